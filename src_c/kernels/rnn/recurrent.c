#include "kernels/rnn/recurrent.h"

#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/matmul/matmul.h"
#include "kernels/pieces.h"
#include "kernels/random/dropout.h"
#include "kernels/scratch.h"

#include <math.h>
#include <string.h>

enum { LIST_I, LIST_G, LIST_F, LIST_O, LIST_H, LIST_C, LIST_TANH_C };
enum { LIST_R, LIST_Z, LIST_N, LIST_HN, LIST_GRU_H };

/* Gates stand in one array (steps, batch, gates, hidden). */
typedef struct Sizes {
    CellKind kind;
    int64_t steps, batch, input, hidden, output;
    int64_t gates, columns; /* columns: gates * hidden */
    int64_t width, widest;  /* of a layer's output; of any layer's input or output */
    int64_t rows;           /* steps * batch */
    bool projects;
} Sizes;

static Sizes sizes_of(const Recurrent *network, RecurrentSizes given)
{
    Sizes sizes = {.kind = network->kind,
                   .steps = given.steps,
                   .batch = given.batch,
                   .input = given.input,
                   .hidden = given.hidden,
                   .output = given.output,
                   .gates = us_recurrent_gates(network->kind),
                   .width = given.output * network->directions,
                   .rows = given.steps * given.batch,
                   .projects = network->each > PARAMETER_W_HR && given.output != given.hidden};
    sizes.columns = sizes.gates * sizes.hidden;
    sizes.widest = sizes.width > sizes.input ? sizes.width : sizes.input;
    return sizes;
}

int32_t us_recurrent_gates(CellKind kind)
{
    return kind == CELL_LSTM ? 4 : kind == CELL_GRU ? 3 : 1;
}

int32_t us_recurrent_lists(CellKind kind)
{
    return kind == CELL_LSTM ? LSTM_LISTS : GRU_LISTS;
}

int32_t us_recurrent_parameters(const Recurrent *network)
{
    return network->layers * network->directions * network->each;
}

/* ---- views ---- */

static View with_steps_first(const View *view, bool batch_first)
{
    View turned = *view;
    if (batch_first && !us_view_is_absent(view)) {
        turned.shape[0] = view->shape[1];
        turned.shape[1] = view->shape[0];
        turned.strides[0] = view->strides[1];
        turned.strides[1] = view->strides[0];
    }
    return turned;
}

/* A slice of the first axis; of no view, none. */
static View slice_of(const View *view, int64_t index)
{
    if (view == NULL || us_view_is_absent(view)) {
        return us_view_absent();
    }
    View slice = *view;
    slice.shape[0] = 1;
    slice.data = (char *)view->data + index * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
    return slice;
}

static const View *list_of(const RecurrentRun *run, int list, int64_t index)
{
    return &run->lists[(int64_t)list * run->network->layers * run->network->directions + index];
}

static const View *list_of_gate(const RecurrentRun *run, int64_t gate, int64_t index)
{
    static const int of_lstm[] = {LIST_I, LIST_F, LIST_G, LIST_O}, of_gru[] = {LIST_R, LIST_Z, LIST_N};
    return list_of(run, (run->network->kind == CELL_LSTM ? of_lstm : of_gru)[gate], index);
}

static const View *list_of_h(const RecurrentRun *run, int64_t index)
{
    return list_of(run, run->network->kind == CELL_LSTM ? (int)LIST_H : (int)LIST_GRU_H, index);
}

static const View *list_of_extra(const RecurrentRun *run, int64_t index)
{
    return list_of(run, run->network->kind == CELL_LSTM ? (int)LIST_TANH_C : (int)LIST_HN, index);
}

/* ---- sequences of their own lengths ---- */

static bool is_active(const Recurrent *network, int64_t row, int64_t step)
{
    return network->lengths == NULL || step < network->lengths[row];
}

/* Rows of the batch up to the last one that has the step. */
static int64_t rows_with_step(const Recurrent *network, const Sizes *sizes, int64_t step)
{
    int64_t rows = sizes->batch;
    while (rows > 0 && !is_active(network, rows - 1, step)) {
        rows--;
    }
    return rows;
}

/* Goes over steps and rows, and says where their elements are. */
typedef struct Places {
    const RecurrentRun *run;
    const Sizes *sizes;
    int64_t step, row;   /* of the next */
    int64_t place, used; /* of the last one, in elements of the sequence's width; packed ones so far */
} Places;

/* False: the last one lies behind the end of its sequence. */
static bool next_place(Places *places)
{
    const Recurrent *network = places->run->network;
    const Sizes *sizes = places->sizes;
    const bool active = is_active(network, places->row, places->step);
    places->place = network->packed        ? places->used
                    : network->batch_first ? places->row * sizes->steps + places->step
                                           : places->step * sizes->batch + places->row;
    places->used += active;
    if (++places->row == sizes->batch) {
        places->row = 0;
        places->step++;
    }
    return active;
}

/* ---- memory ---- */

/* Arrays one after the other; without a block only their size is counted. */
typedef struct Arrays {
    char *block;
    size_t size;
} Arrays;

static size_t mask_bytes(const Sizes *sizes)
{
    return us_scratch_bytes(us_dropout_mask_bytes(sizes->rows * sizes->width), 1);
}

#define BODY "kernels/rnn/recurrent.inc"
#include "kernels/both_reals.inc"

/* ---- runs ---- */

static size_t bytes_of_run(const Sizes *sizes, DType compute, bool has_trace, bool forward)
{
    return compute == DTYPE_FLOAT64
               ? (forward ? forward_bytes_double(sizes, has_trace) : backward_bytes_double(sizes, has_trace))
               : (forward ? forward_bytes_float(sizes, has_trace) : backward_bytes_float(sizes, has_trace));
}

size_t us_recurrent_memory(const Recurrent *network, RecurrentSizes given, DType compute, bool trains)
{
    const Sizes sizes = sizes_of(network, given);
    const size_t forward = bytes_of_run(&sizes, compute, false, true); /* with a trace it needs less */
    const size_t back = trains ? bytes_of_run(&sizes, compute, true, false) : 0;
    return forward > back ? forward : back;
}

size_t us_recurrent_trace(const Recurrent *network, RecurrentSizes given, DType compute)
{
    const Sizes sizes = sizes_of(network, given);
    const size_t pass = compute == DTYPE_FLOAT64 ? kept_bytes_double(&sizes) : kept_bytes_float(&sizes);
    return us_scratch_bytes((int64_t)network->layers * network->directions, pass) +
           us_scratch_bytes(network->layers - 1, mask_bytes(&sizes));
}

/* `gradients` 0: the forward. */
static KernelStatus run_in_memory(const RecurrentRun *run, DType compute, int gradients)
{
    const Sizes sizes = sizes_of(run->network, run->sizes);
    void *own = NULL;
    if (run->memory == NULL) {
        own = us_scratch_take(bytes_of_run(&sizes, compute, run->trace != NULL, gradients == 0) + 64);
        if (own == NULL) {
            return KERNEL_NO_MEMORY;
        }
    }
    void *memory = own != NULL ? own : run->memory;
    KernelStatus status;
    if (gradients == 0) {
        status = compute == DTYPE_FLOAT64 ? run_forward_double(run, &sizes, memory)
                                          : run_forward_float(run, &sizes, memory);
    } else {
        status = compute == DTYPE_FLOAT64 ? run_backward_double(run, &sizes, gradients, memory)
                                          : run_backward_float(run, &sizes, gradients, memory);
    }
    us_scratch_give_back(own);
    return status;
}

KernelStatus us_recurrent_run(const RecurrentRun *run, DType compute)
{
    return run_in_memory(run, compute, 0);
}

KernelStatus us_recurrent_run_back(const RecurrentRun *run, DType compute, int gradients)
{
    return run_in_memory(run, compute, gradients);
}

/* ---- kernels with lists ---- */

static int32_t list_count(const Recurrent *network)
{
    return us_recurrent_lists(network->kind) * network->layers * network->directions;
}

static RecurrentSizes sizes_of_views(const Recurrent *network, const View *input, const View *weight_h)
{
    const View turned = with_steps_first(input, network->batch_first);
    return (RecurrentSizes){.steps = turned.shape[0], .batch = turned.shape[1], .input = turned.shape[2],
                            .hidden = weight_h->shape[0] / us_recurrent_gates(network->kind),
                            .output = weight_h->shape[1]};
}

/* The length of every sequence, from how many have each step. */
static KernelStatus read_lengths(const View *batch_sizes, RecurrentSizes sizes, int32_t *lengths)
{
    memset(lengths, 0, (size_t)sizes.batch * sizeof *lengths);
    for (int64_t step = 0; step < sizes.steps; step++) {
        const int64_t count = ((const int64_t *)batch_sizes->data)[step * batch_sizes->strides[0]];
        if (count < 0 || count > sizes.batch) {
            return us_kernel_fault("step %lld has %lld sequences, the batch has %lld", (long long)step,
                                   (long long)count, (long long)sizes.batch);
        }
        for (int64_t row = 0; row < count; row++) {
            lengths[row]++;
        }
    }
    return KERNEL_OK;
}

/* The same from a mask, all of whose cells of a step are alike. */
static KernelStatus read_mask(const View *mask, RecurrentSizes sizes, int32_t *lengths)
{
    memset(lengths, 0, (size_t)sizes.batch * sizeof *lengths);
    for (int64_t i = 0; i < us_view_elements(mask); i++) {
        const int64_t cell = i % mask->shape[2], line = i / mask->shape[2];
        const int64_t row = line % sizes.batch, step = line / sizes.batch;
        float value;
        us_linear_load_float(mask, i, 1, &value);
        lengths[row] += cell == 0 && value != 0 && lengths[row] == step;
        if ((value != 0) != (lengths[row] > step)) {
            return us_kernel_fault("the mask of sequence %lld does not end once and for all cells", (long long)row);
        }
    }
    return KERNEL_OK;
}

static KernelStatus run_with_lists(RecurrentRun *run, const View *batch_sizes, int gradients)
{
    if (us_view_is_absent(batch_sizes)) {
        return run_in_memory(run, DTYPE_FLOAT32, gradients);
    }
    int32_t *lengths = us_scratch_array(run->sizes.batch, sizeof *lengths);
    if (lengths == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = (batch_sizes->rank == 1 ? read_lengths : read_mask)(batch_sizes, run->sizes, lengths);
    if (status == KERNEL_OK) {
        Recurrent network = *run->network;
        network.lengths = lengths;
        network.fills = true;
        run->network = &network;
        status = run_in_memory(run, DTYPE_FLOAT32, gradients);
    }
    us_scratch_give_back(lengths);
    return status;
}

KernelStatus us_recurrent_forward(const View *views, const void *attributes)
{
    const Recurrent *network = attributes;
    RecurrentRun run = {.network = network, .input = views, .h = views + 1, .c = views + 2, .parameters = views + 3};
    run.sizes = sizes_of_views(network, run.input, &run.parameters[PARAMETER_W_HH]);
    run.output = run.parameters + us_recurrent_parameters(network);
    run.last_h = run.output + 1;
    run.last_c = run.output + 2;
    run.lists = run.output + 3;
    return run_with_lists(&run, run.lists + (network->keeps ? list_count(network) : 0), 0);
}

KernelStatus us_recurrent_backward(const View *views, const void *attributes)
{
    const Recurrent *network = attributes;
    RecurrentRun run = {.network = network, .input = views, .h = views + 1, .c = views + 2, .parameters = views + 3};
    run.sizes = sizes_of_views(network, run.input, &run.parameters[PARAMETER_W_HH]);
    run.output_slope = run.parameters + us_recurrent_parameters(network);
    run.h_slope = run.output_slope + 1;
    run.c_slope = run.output_slope + 2;
    run.lists = run.output_slope + 3;
    run.to_input = run.lists + list_count(network);
    run.to_h = run.to_input + 1;
    run.to_c = run.to_input + 2;
    run.to_parameters = run.to_input + 3;
    return run_with_lists(&run, run.to_parameters + us_recurrent_parameters(network),
                          GRADIENTS_OF_DATA | GRADIENTS_OF_PARAMETERS);
}
