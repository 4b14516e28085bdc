#include "kernels/rnn/recurrent.h"

#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/matmul/matmul.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/clones.h"

#include <string.h>

/* Gates stand in one array (steps, batch, gates, hidden). */
enum { GATES_OF_LSTM = 4, GATES_OF_GRU = 3 };
enum { LIST_I, LIST_G, LIST_F, LIST_O, LIST_H, LIST_C, LIST_TANH_C };
enum { LIST_R, LIST_Z, LIST_N, LIST_HN, LIST_GRU_H };

typedef struct Sizes {
    int64_t steps, batch, input, hidden, gates, width; /* width: of a layer's output */
    int64_t rows, states;                              /* steps * batch; rows * hidden */
} Sizes;

/* One direction of one layer. */
typedef struct Pass {
    const Recurrent *network;
    const Sizes *sizes;
    const View *parameters;
    int64_t index, inputs; /* direction + layer * directions; size of x */
    bool reversed;
    const float *x;        /* (steps, batch, inputs) */
    float *weight_x, *weight_h, *bias_x, *bias_h;
    float *initial_h, *initial_c; /* (batch, hidden) */
    float *gates, *h, *c, *extra; /* extra: tanh(c), or hn */
} Pass;

int32_t us_recurrent_lists(CellKind kind)
{
    return kind == CELL_LSTM ? LSTM_LISTS : GRU_LISTS;
}

int32_t us_recurrent_parameters(const Recurrent *network)
{
    return network->layers * network->directions * (network->has_bias ? 4 : 2);
}

/* ---- between views and arrays ---- */

static View with_steps_first(const View *view, bool batch_first)
{
    View turned = *view;
    if (batch_first) {
        turned.shape[0] = view->shape[1];
        turned.shape[1] = view->shape[0];
        turned.strides[0] = view->strides[1];
        turned.strides[1] = view->strides[0];
    }
    return turned;
}

static void load(const View *view, float *values)
{
    if (us_view_is_empty(view)) {
        return;
    }
    us_linear_load_float(view, 0, us_view_elements(view), values);
}

static void store(const View *view, const float *values)
{
    if (!us_view_is_absent(view) && !us_view_is_empty(view)) {
        us_linear_store_float(view, 0, us_view_elements(view), values);
    }
}

/* A slice of the first axis. */
static View slice_of(const View *view, int64_t index)
{
    View slice = *view;
    slice.shape[0] = 1;
    slice.data = (char *)view->data + index * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
    return slice;
}

static void load_state(const View *states, int64_t index, int64_t count, float *values)
{
    if (us_view_is_absent(states)) {
        memset(values, 0, (size_t)count * sizeof *values);
        return;
    }
    const View state = slice_of(states, index);
    load(&state, values);
}

static void store_state(const View *states, int64_t index, const float *values)
{
    if (!us_view_is_absent(states)) {
        const View state = slice_of(states, index);
        store(&state, values);
    }
}

/* One gate of an array of gates, as an array by itself. */
static void split_gate(const Sizes *sizes, const float *gates, int64_t gate, float *values)
{
    for (int64_t row = 0; row < sizes->rows; row++) {
        memcpy(values + row * sizes->hidden, gates + (row * sizes->gates + gate) * sizes->hidden,
               (size_t)sizes->hidden * sizeof *values);
    }
}

static void join_gate(const Sizes *sizes, const float *values, int64_t gate, float *gates)
{
    for (int64_t row = 0; row < sizes->rows; row++) {
        memcpy(gates + (row * sizes->gates + gate) * sizes->hidden, values + row * sizes->hidden,
               (size_t)sizes->hidden * sizeof *values);
    }
}

static const View *parameter(const Pass *pass, int which)
{
    return &pass->parameters[pass->index * (pass->network->has_bias ? 4 : 2) + which];
}

static void load_parameters(Pass *pass)
{
    const int64_t biases = pass->sizes->gates * pass->sizes->hidden;
    load(parameter(pass, 0), pass->weight_x);
    load(parameter(pass, 1), pass->weight_h);
    memset(pass->bias_x, 0, (size_t)biases * sizeof(float));
    memset(pass->bias_h, 0, (size_t)biases * sizeof(float));
    if (pass->network->has_bias) {
        load(parameter(pass, 2), pass->bias_x);
        load(parameter(pass, 3), pass->bias_h);
    }
}

/* ---- arithmetic ---- */

/* c = a b + beta c; c is packed. */
static KernelStatus multiply(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, double beta, float *c)
{
    const Matrix result = matrix_of_rows(c, DTYPE_FLOAT32, n);
    const Matmul product = {.m = m, .n = n, .k = k, .a = a, .b = b, .c = result,
                            .addend = beta == 0 ? (Matrix){.dtype = DTYPE_NONE} : result,
                            .compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {beta}};
    return us_matmul(&product);
}

static Matrix rows_of(const float *values, int64_t columns)
{
    return matrix_of_rows(values, DTYPE_FLOAT32, columns);
}

static Matrix transposed(const float *values, int64_t columns)
{
    return matrix_transposed(values, DTYPE_FLOAT32, columns);
}

static void fill_rows(int64_t rows, int64_t columns, const float *row, const float *added, float *values)
{
    for (int64_t i = 0; i < rows * columns; i++) {
        values[i] = row[i % columns] + (added != NULL ? added[i % columns] : 0);
    }
}

/* The step that comes `order`-th in the pass's direction. */
static int64_t step_of(const Pass *pass, int64_t order)
{
    return pass->reversed ? pass->sizes->steps - 1 - order : order;
}

/* h (or c) before the step that comes `order`-th; before the one behind the last, what is left in the end. */
static const float *state_before(const Pass *pass, int64_t order, const float *states, const float *initial)
{
    return order == 0 ? initial : states + step_of(pass, order - 1) * pass->sizes->batch * pass->sizes->hidden;
}

/* One step of the whole batch. */
typedef struct Step {
    int64_t hidden, gate_count;
    float *gates;               /* before: the sums; after: the gates */
    const float *of_h;          /* GRU: W_hh h + b_hh */
    const float *h_before, *c_before;
    float *h, *c, *extra;
} Step;

KERNEL_CLONES static void lstm_row(int64_t hidden, float *gates, const float *c_before, float *c, float *tanh_c,
                                   float *h)
{
    float *i = gates, *f = i + hidden, *g = f + hidden, *o = g + hidden;
#pragma GCC ivdep
    for (int64_t k = 0; k < hidden; k++) {
        i[k] = sigmoid_float(i[k]);
        f[k] = sigmoid_float(f[k]);
        g[k] = tanh_float(g[k]);
        o[k] = sigmoid_float(o[k]);
        c[k] = f[k] * c_before[k] + i[k] * g[k];
        tanh_c[k] = tanh_float(c[k]);
        h[k] = o[k] * tanh_c[k];
    }
}

KERNEL_CLONES static void gru_row(int64_t hidden, float *gates, const float *of_h, const float *h_before, float *hn,
                                  float *h)
{
    float *r = gates, *z = r + hidden, *n = z + hidden;
#pragma GCC ivdep
    for (int64_t k = 0; k < hidden; k++) {
        hn[k] = of_h[2 * hidden + k];
        r[k] = sigmoid_float(r[k] + of_h[k]);
        z[k] = sigmoid_float(z[k] + of_h[hidden + k]);
        n[k] = tanh_float(n[k] + r[k] * hn[k]);
        h[k] = (1 - z[k]) * n[k] + z[k] * h_before[k];
    }
}

static void lstm_step(void *context, int64_t row)
{
    const Step *step = context;
    const int64_t at = row * step->hidden;
    lstm_row(step->hidden, step->gates + at * step->gate_count, step->c_before + at, step->c + at, step->extra + at,
             step->h + at);
}

static void gru_step(void *context, int64_t row)
{
    const Step *step = context;
    const int64_t at = row * step->hidden;
    gru_row(step->hidden, step->gates + at * step->gate_count, step->of_h + at * step->gate_count, step->h_before + at,
            step->extra + at, step->h + at);
}

/* ---- forward ---- */

static KernelStatus run_pass(const Pass *pass, float *of_h)
{
    const Sizes *sizes = pass->sizes;
    const bool is_lstm = pass->network->kind == CELL_LSTM;
    const int64_t columns = sizes->gates * sizes->hidden, states = sizes->batch * sizes->hidden;
    fill_rows(sizes->rows, columns, pass->bias_x, is_lstm ? pass->bias_h : NULL, pass->gates);
    KernelStatus status = multiply(sizes->rows, columns, pass->inputs, rows_of(pass->x, pass->inputs),
                                   transposed(pass->weight_x, pass->inputs), 1, pass->gates);
    for (int64_t order = 0; order < sizes->steps && status == KERNEL_OK; order++) {
        const int64_t at = step_of(pass, order);
        float *gates = pass->gates + at * sizes->batch * columns;
        Step step = {.hidden = sizes->hidden,
                     .gate_count = sizes->gates,
                     .gates = gates,
                     .of_h = of_h,
                     .h_before = state_before(pass, order, pass->h, pass->initial_h),
                     .c_before = is_lstm ? state_before(pass, order, pass->c, pass->initial_c) : NULL,
                     .h = pass->h + at * states,
                     .c = is_lstm ? pass->c + at * states : NULL,
                     .extra = pass->extra + at * states};
        float *sums = is_lstm ? gates : of_h;
        if (!is_lstm) {
            fill_rows(sizes->batch, columns, pass->bias_h, NULL, of_h);
        }
        status = multiply(sizes->batch, columns, sizes->hidden, rows_of(step.h_before, sizes->hidden),
                          transposed(pass->weight_h, sizes->hidden), 1, sums);
        if (status == KERNEL_OK) {
            run_pieces(sizes->batch, states, is_lstm ? lstm_step : gru_step, &step);
        }
    }
    return status;
}

/* The directions' h side by side. */
static void place_output(const Pass *pass, int64_t direction, float *output)
{
    const Sizes *sizes = pass->sizes;
    for (int64_t row = 0; row < sizes->rows; row++) {
        memcpy(output + row * sizes->width + direction * sizes->hidden, pass->h + row * sizes->hidden,
               (size_t)sizes->hidden * sizeof *output);
    }
}

/* Leaves gates and states in the lists. `lists` is the first list's first tensor. */
static void keep(const Pass *pass, const View *lists, float *spare)
{
    const int64_t length = pass->network->layers * pass->network->directions;
    const bool is_lstm = pass->network->kind == CELL_LSTM;
    static const int gates_of_lstm[] = {LIST_I, LIST_F, LIST_G, LIST_O}, gates_of_gru[] = {LIST_R, LIST_Z, LIST_N};
    for (int64_t gate = 0; gate < pass->sizes->gates; gate++) {
        split_gate(pass->sizes, pass->gates, gate, spare);
        store(&lists[(is_lstm ? gates_of_lstm : gates_of_gru)[gate] * length + pass->index], spare);
    }
    store(&lists[(is_lstm ? (int)LIST_H : (int)LIST_GRU_H) * length + pass->index], pass->h);
    store(&lists[(is_lstm ? (int)LIST_TANH_C : (int)LIST_HN) * length + pass->index], pass->extra);
    if (is_lstm) {
        store(&lists[LIST_C * length + pass->index], pass->c);
    }
}

static Sizes sizes_of(const Recurrent *network, const View *input, const View *weight_h)
{
    const View turned = with_steps_first(input, network->batch_first);
    Sizes sizes = {.steps = turned.shape[0], .batch = turned.shape[1], .input = turned.shape[2],
                   .hidden = weight_h->shape[1],
                   .gates = network->kind == CELL_LSTM ? GATES_OF_LSTM : GATES_OF_GRU};
    sizes.width = sizes.hidden * network->directions;
    sizes.rows = sizes.steps * sizes.batch;
    sizes.states = sizes.rows * sizes.hidden;
    return sizes;
}

/* Arrays of a block of scratch memory, one after the other. */
typedef struct Arrays {
    char *block, *cursor;
    size_t size;
} Arrays;

static void plan_array(Arrays *arrays, int64_t count)
{
    arrays->size += us_scratch_round((size_t)count * sizeof(float));
}

static float *next_array(Arrays *arrays, int64_t count)
{
    return us_scratch_part(&arrays->cursor, (size_t)count * sizeof(float));
}

static bool take_arrays(Arrays *arrays)
{
    arrays->block = arrays->cursor = us_scratch_take(arrays->size + 64);
    return arrays->block != NULL;
}

static int64_t widest_input(const Recurrent *network, const Sizes *sizes)
{
    return network->layers > 1 && sizes->width > sizes->input ? sizes->width : sizes->input;
}

static void plan_pass(Arrays *arrays, const Recurrent *network, const Sizes *sizes)
{
    const int64_t columns = sizes->gates * sizes->hidden;
    plan_array(arrays, columns * widest_input(network, sizes));
    plan_array(arrays, columns * sizes->hidden);
    for (int i = 0; i < 2; i++) {
        plan_array(arrays, columns);
        plan_array(arrays, sizes->batch * sizes->hidden);
    }
    plan_array(arrays, sizes->rows * columns);
    for (int i = 0; i < 3; i++) {
        plan_array(arrays, sizes->states);
    }
}

static Pass pass_of(Arrays *arrays, const Recurrent *network, const Sizes *sizes, const View *parameters)
{
    const int64_t columns = sizes->gates * sizes->hidden, state = sizes->batch * sizes->hidden;
    Pass pass = {.network = network, .sizes = sizes, .parameters = parameters};
    pass.weight_x = next_array(arrays, columns * widest_input(network, sizes));
    pass.weight_h = next_array(arrays, columns * sizes->hidden);
    pass.bias_x = next_array(arrays, columns);
    pass.initial_h = next_array(arrays, state);
    pass.bias_h = next_array(arrays, columns);
    pass.initial_c = next_array(arrays, state);
    pass.gates = next_array(arrays, sizes->rows * columns);
    pass.h = next_array(arrays, sizes->states);
    pass.c = next_array(arrays, sizes->states);
    pass.extra = next_array(arrays, sizes->states);
    return pass;
}

/* Of a layer and a direction. */
static void aim(Pass *pass, int64_t layer, int64_t direction, const float *x)
{
    pass->index = layer * pass->network->directions + direction;
    pass->inputs = layer == 0 ? pass->sizes->input : pass->sizes->width;
    pass->reversed = direction == 1;
    pass->x = x;
}

KernelStatus us_recurrent_forward(const View *views, const void *attributes)
{
    const Recurrent *network = attributes;
    const View *parameters = views + 3, *outputs = parameters + us_recurrent_parameters(network), *lists = outputs + 3;
    const Sizes sizes = sizes_of(network, &views[0], &parameters[1]);
    const int64_t columns = sizes.gates * sizes.hidden, state = sizes.batch * sizes.hidden;
    const int64_t widest = widest_input(network, &sizes);
    Arrays arrays = {0};
    plan_pass(&arrays, network, &sizes);
    plan_array(&arrays, sizes.rows * (widest > sizes.width ? widest : sizes.width));
    plan_array(&arrays, sizes.rows * sizes.width);
    plan_array(&arrays, sizes.batch * columns);
    plan_array(&arrays, sizes.states);
    if (!take_arrays(&arrays)) {
        return KERNEL_NO_MEMORY;
    }
    Pass pass = pass_of(&arrays, network, &sizes, parameters);
    float *x = next_array(&arrays, sizes.rows * (widest > sizes.width ? widest : sizes.width));
    float *output = next_array(&arrays, sizes.rows * sizes.width), *of_h = next_array(&arrays, sizes.batch * columns);
    float *spare = next_array(&arrays, sizes.states);
    const View input = with_steps_first(&views[0], network->batch_first);
    load(&input, x);
    KernelStatus status = KERNEL_OK;
    for (int64_t layer = 0; layer < network->layers && status == KERNEL_OK; layer++) {
        for (int64_t direction = 0; direction < network->directions && status == KERNEL_OK; direction++) {
            aim(&pass, layer, direction, x);
            load_parameters(&pass);
            load_state(&views[1], pass.index, state, pass.initial_h);
            load_state(&views[2], pass.index, state, pass.initial_c);
            status = run_pass(&pass, of_h);
            place_output(&pass, direction, output);
            store_state(&outputs[1], pass.index, state_before(&pass, sizes.steps, pass.h, pass.initial_h));
            store_state(&outputs[2], pass.index, state_before(&pass, sizes.steps, pass.c, pass.initial_c));
            if (network->keeps) {
                keep(&pass, lists, spare);
            }
        }
        float *above = x;
        x = output;
        output = above;
    }
    const View result = with_steps_first(&outputs[0], network->batch_first);
    store(&result, x);
    us_scratch_give_back(arrays.block);
    return status;
}

/* ---- backward ---- */

/* What the gradients of a pass need beside the pass. */
typedef struct Slopes {
    float *output;          /* of the layer's output: (steps, batch, width) */
    float *h, *c;           /* of the state that the step leaves: (batch, hidden) */
    float *sums_x, *sums_h; /* of the sums of W_ih x and of W_hh h; one array where they are the same */
    float *x;               /* of the layer's input */
    float *before;          /* h before each step; spare room */
    float *weights;         /* room for a weight's gradient */
} Slopes;

/* One step of a row: `output` is the gradient that comes to h from above. */
typedef struct StepSlopes {
    int64_t hidden, gate_count, width;
    const float *gates, *h_before, *c_before, *extra, *output;
    float *h, *c, *sums_x, *sums_h;
} StepSlopes;

KERNEL_CLONES static void lstm_slopes(int64_t hidden, const float *gates, const float *c_before, const float *tanh_c,
                                      const float *output, const float *h, float *c, float *sums)
{
    const float *i = gates, *f = i + hidden, *g = f + hidden, *o = g + hidden;
#pragma GCC ivdep
    for (int64_t k = 0; k < hidden; k++) {
        const float dh = output[k] + h[k];
        const float dc = dh * o[k] * (1 - tanh_c[k] * tanh_c[k]) + c[k];
        sums[k] = dc * g[k] * i[k] * (1 - i[k]);
        sums[hidden + k] = dc * c_before[k] * f[k] * (1 - f[k]);
        sums[2 * hidden + k] = dc * i[k] * (1 - g[k] * g[k]);
        sums[3 * hidden + k] = dh * tanh_c[k] * o[k] * (1 - o[k]);
        c[k] = dc * f[k];
    }
}

/* h becomes what reaches the step before past the gates. */
KERNEL_CLONES static void gru_slopes(int64_t hidden, const float *gates, const float *h_before, const float *hn,
                                     const float *output, float *h, float *sums_x, float *sums_h)
{
    const float *r = gates, *z = r + hidden, *n = z + hidden;
#pragma GCC ivdep
    for (int64_t k = 0; k < hidden; k++) {
        const float dh = output[k] + h[k];
        const float dn = dh * (1 - z[k]) * (1 - n[k] * n[k]);
        const float dr = dn * hn[k] * r[k] * (1 - r[k]), dz = dh * (h_before[k] - n[k]) * z[k] * (1 - z[k]);
        sums_x[k] = sums_h[k] = dr;
        sums_x[hidden + k] = sums_h[hidden + k] = dz;
        sums_x[2 * hidden + k] = dn;
        sums_h[2 * hidden + k] = dn * r[k];
        h[k] = dh * z[k];
    }
}

static void lstm_step_back(void *context, int64_t row)
{
    const StepSlopes *step = context;
    const int64_t at = row * step->hidden, gates = at * step->gate_count;
    lstm_slopes(step->hidden, step->gates + gates, step->c_before + at, step->extra + at,
                step->output + row * step->width, step->h + at, step->c + at, step->sums_x + gates);
}

static void gru_step_back(void *context, int64_t row)
{
    const StepSlopes *step = context;
    const int64_t at = row * step->hidden, gates = at * step->gate_count;
    gru_slopes(step->hidden, step->gates + gates, step->h_before + at, step->extra + at,
               step->output + row * step->width, step->h + at, step->sums_x + gates, step->sums_h + gates);
}

static KernelStatus run_back(const Pass *pass, const Slopes *slopes)
{
    const Sizes *sizes = pass->sizes;
    const bool is_lstm = pass->network->kind == CELL_LSTM;
    const int64_t columns = sizes->gates * sizes->hidden, states = sizes->batch * sizes->hidden;
    KernelStatus status = KERNEL_OK;
    for (int64_t order = sizes->steps - 1; order >= 0 && status == KERNEL_OK; order--) {
        const int64_t at = step_of(pass, order);
        StepSlopes step = {.hidden = sizes->hidden,
                           .gate_count = sizes->gates,
                           .width = sizes->width,
                           .gates = pass->gates + at * sizes->batch * columns,
                           .h_before = state_before(pass, order, pass->h, pass->initial_h),
                           .c_before = is_lstm ? state_before(pass, order, pass->c, pass->initial_c) : NULL,
                           .extra = pass->extra + at * states,
                           .output = slopes->output + at * sizes->batch * sizes->width +
                                     pass->index % pass->network->directions * sizes->hidden,
                           .h = slopes->h,
                           .c = slopes->c,
                           .sums_x = slopes->sums_x + at * sizes->batch * columns,
                           .sums_h = slopes->sums_h + at * sizes->batch * columns};
        run_pieces(sizes->batch, states, is_lstm ? lstm_step_back : gru_step_back, &step);
        status = multiply(sizes->batch, sizes->hidden, columns, rows_of(step.sums_h, columns),
                          rows_of(pass->weight_h, sizes->hidden), is_lstm ? 0 : 1, slopes->h);
    }
    return status;
}

static void store_sums_of_rows(int64_t rows, int64_t columns, const float *values, float *sums, const View *to)
{
    memset(sums, 0, (size_t)columns * sizeof *sums);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t k = 0; k < columns; k++) {
            sums[k] += values[row * columns + k];
        }
    }
    store(to, sums);
}

/* Gradients of weights and biases from those of the sums. `to` is the first of the pass's. */
static KernelStatus differentiate_parameters(const Pass *pass, const Slopes *slopes, const View *to)
{
    const Sizes *sizes = pass->sizes;
    const int64_t columns = sizes->gates * sizes->hidden, states = sizes->batch * sizes->hidden;
    for (int64_t order = 0; order < sizes->steps; order++) {
        memcpy(slopes->before + step_of(pass, order) * states, state_before(pass, order, pass->h, pass->initial_h),
               (size_t)states * sizeof(float));
    }
    KernelStatus status = multiply(columns, pass->inputs, sizes->rows, transposed(slopes->sums_x, columns),
                                   rows_of(pass->x, pass->inputs), 0, slopes->weights);
    if (status != KERNEL_OK) {
        return status;
    }
    store(&to[0], slopes->weights);
    status = multiply(columns, sizes->hidden, sizes->rows, transposed(slopes->sums_h, columns),
                      rows_of(slopes->before, sizes->hidden), 0, slopes->weights);
    if (status != KERNEL_OK) {
        return status;
    }
    store(&to[1], slopes->weights);
    if (pass->network->has_bias) {
        store_sums_of_rows(sizes->rows, columns, slopes->sums_x, slopes->weights, &to[2]);
        store_sums_of_rows(sizes->rows, columns, slopes->sums_h, slopes->weights, &to[3]);
    }
    return KERNEL_OK;
}

/* What the forward has left in the lists. */
static void recall(const Pass *pass, const View *lists, float *spare)
{
    const int64_t length = pass->network->layers * pass->network->directions;
    const bool is_lstm = pass->network->kind == CELL_LSTM;
    static const int gates_of_lstm[] = {LIST_I, LIST_F, LIST_G, LIST_O}, gates_of_gru[] = {LIST_R, LIST_Z, LIST_N};
    for (int64_t gate = 0; gate < pass->sizes->gates; gate++) {
        load(&lists[(is_lstm ? gates_of_lstm : gates_of_gru)[gate] * length + pass->index], spare);
        join_gate(pass->sizes, spare, gate, pass->gates);
    }
    load(&lists[(is_lstm ? (int)LIST_H : (int)LIST_GRU_H) * length + pass->index], pass->h);
    load(&lists[(is_lstm ? (int)LIST_TANH_C : (int)LIST_HN) * length + pass->index], pass->extra);
    if (is_lstm) {
        load(&lists[LIST_C * length + pass->index], pass->c);
    }
}

/* A layer's input: the network's, or the h of the layer below. */
static void load_input(const Pass *pass, int64_t layer, const View *input, const View *lists, float *x, float *spare)
{
    const Recurrent *network = pass->network;
    if (layer == 0) {
        const View turned = with_steps_first(input, network->batch_first);
        load(&turned, x);
        return;
    }
    const int64_t length = network->layers * network->directions;
    const int list = network->kind == CELL_LSTM ? (int)LIST_H : (int)LIST_GRU_H;
    Pass below = *pass;
    below.h = spare;
    for (int64_t direction = 0; direction < network->directions; direction++) {
        load(&lists[list * length + (layer - 1) * network->directions + direction], spare);
        place_output(&below, direction, x);
    }
}

static void load_or_zero(const View *view, int64_t count, float *values)
{
    if (us_view_is_absent(view)) {
        memset(values, 0, (size_t)count * sizeof *values);
    } else {
        load(view, values);
    }
}

typedef struct BackwardViews {
    const View *input, *h, *c, *parameters, *output_slope, *h_slope, *c_slope, *lists;
    const View *to_input, *to_h, *to_c, *to_parameters;
} BackwardViews;

static BackwardViews backward_views(const Recurrent *network, const View *views)
{
    const int32_t count = us_recurrent_parameters(network);
    BackwardViews all = {.input = views, .h = views + 1, .c = views + 2, .parameters = views + 3};
    all.output_slope = all.parameters + count;
    all.h_slope = all.output_slope + 1;
    all.c_slope = all.output_slope + 2;
    all.lists = all.output_slope + 3;
    all.to_input = all.lists + us_recurrent_lists(network->kind) * network->layers * network->directions;
    all.to_h = all.to_input + 1;
    all.to_c = all.to_input + 2;
    all.to_parameters = all.to_input + 3;
    return all;
}

static KernelStatus backward_pass(Pass *pass, Slopes *slopes, const BackwardViews *views, bool is_first)
{
    const Sizes *sizes = pass->sizes;
    const int64_t state = sizes->batch * sizes->hidden, columns = sizes->gates * sizes->hidden;
    load_parameters(pass);
    load_state(views->h, pass->index, state, pass->initial_h);
    load_state(views->c, pass->index, state, pass->initial_c);
    load_state(views->h_slope, pass->index, state, slopes->h);
    load_state(views->c_slope, pass->index, state, slopes->c);
    recall(pass, views->lists, slopes->before);
    KernelStatus status = run_back(pass, slopes);
    if (status == KERNEL_OK) {
        store_state(views->to_h, pass->index, slopes->h);
        store_state(views->to_c, pass->index, slopes->c);
        status = differentiate_parameters(pass, slopes,
                                          views->to_parameters + pass->index * (pass->network->has_bias ? 4 : 2));
    }
    if (status == KERNEL_OK) {
        status = multiply(sizes->rows, pass->inputs, columns, rows_of(slopes->sums_x, columns),
                          rows_of(pass->weight_x, pass->inputs), is_first ? 0 : 1, slopes->x);
    }
    return status;
}

KernelStatus us_recurrent_backward(const View *views, const void *attributes)
{
    const Recurrent *network = attributes;
    const BackwardViews all = backward_views(network, views);
    const Sizes sizes = sizes_of(network, all.input, &all.parameters[1]);
    const int64_t columns = sizes.gates * sizes.hidden, state = sizes.batch * sizes.hidden;
    int64_t widest = widest_input(network, &sizes);
    widest = widest > sizes.width ? widest : sizes.width;
    const bool two_sums = network->kind == CELL_GRU;
    Arrays arrays = {0};
    plan_pass(&arrays, network, &sizes);
    for (int i = 0; i < 3; i++) {
        plan_array(&arrays, sizes.rows * widest);
    }
    for (int i = 0; i < 2; i++) {
        plan_array(&arrays, state);
        plan_array(&arrays, sizes.rows * columns);
    }
    plan_array(&arrays, sizes.states);
    plan_array(&arrays, columns * (widest > sizes.hidden ? widest : sizes.hidden));
    if (!take_arrays(&arrays)) {
        return KERNEL_NO_MEMORY;
    }
    Pass pass = pass_of(&arrays, network, &sizes, all.parameters);
    float *x = next_array(&arrays, sizes.rows * widest);
    Slopes slopes = {.output = next_array(&arrays, sizes.rows * widest), .x = next_array(&arrays, sizes.rows * widest)};
    slopes.h = next_array(&arrays, state);
    slopes.sums_x = next_array(&arrays, sizes.rows * columns);
    slopes.c = next_array(&arrays, state);
    slopes.sums_h = next_array(&arrays, sizes.rows * columns);
    slopes.sums_h = two_sums ? slopes.sums_h : slopes.sums_x;
    slopes.before = next_array(&arrays, sizes.states);
    slopes.weights = next_array(&arrays, columns * (widest > sizes.hidden ? widest : sizes.hidden));
    const View output_slope = us_view_is_absent(all.output_slope)
                                  ? *all.output_slope : with_steps_first(all.output_slope, network->batch_first);
    load_or_zero(&output_slope, sizes.rows * sizes.width, slopes.output);
    KernelStatus status = KERNEL_OK;
    for (int64_t layer = network->layers - 1; layer >= 0 && status == KERNEL_OK; layer--) {
        aim(&pass, layer, 0, x);
        load_input(&pass, layer, all.input, all.lists, x, slopes.before);
        for (int64_t direction = 0; direction < network->directions && status == KERNEL_OK; direction++) {
            aim(&pass, layer, direction, x);
            status = backward_pass(&pass, &slopes, &all, direction == 0);
        }
        float *done = slopes.output;
        slopes.output = slopes.x;
        slopes.x = done;
    }
    if (!us_view_is_absent(all.to_input)) {
        const View to = with_steps_first(all.to_input, network->batch_first);
        store(&to, slopes.output);
    }
    us_scratch_give_back(arrays.block);
    return status;
}
