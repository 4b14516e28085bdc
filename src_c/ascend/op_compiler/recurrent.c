/* LSTM by name, layer by layer: DynamicRNN, whose w [inputs + cells, 4 cells] holds the weights of input and state below each
 * other, and DynamicRNNV2, which has them apart. Columns are those of the gates i, f, g, o; j and c are other names of g. */
#include "ascend/op_compiler/named.h"
#include "kernels/rnn/recurrent.h"

enum { GATES = 4 };

/* Inputs of the gradients, behind x, the weights and b. */
enum { Y, H0, C0, H, C, DY, DH, DC, I, G, F, O, TANH_C, BACKWARD_INPUTS };

typedef struct Lstm {
    int64_t steps, batch, inputs, cells;
    View x, w_input, w_state, b, h, c; /* weights as the kernel has them: [4 cells, …] */
    View mask;                         /* absent: every sequence has all steps */
    Recurrent layer;
} Lstm;

/* What the passes have in common; true: they run from the last step. The PyTorch adapter tells the gradients of
 * DynamicRNN other values of the rest, in which they have no part. */
static bool require_attributes(Named *named)
{
    const bool reversed = named_is(named, "direction", false, "REDIRECTIONAL");
    named_require_attribute(named, "direction", reversed || named_is(named, "direction", true, "UNIDIRECTIONAL"),
                            "\"UNIDIRECTIONAL\" or \"REDIRECTIONAL\"");
    const bool order = named_is(named, "gate_order", false, "ifjo") || named_is(named, "gate_order", false, "ifco");
    named_require_attribute(named, "gate_order", order, "\"ifjo\" or \"ifco\"");
    named_require_attribute(named, "time_major", named_bool(named, "time_major", true), "true");
    named_require_attribute(named, "use_peephole", !named_bool(named, "use_peephole", false), "false");
    named_require_attribute(named, "num_proj", named_integer(named, "num_proj", 0) == 0, "0");
    named_require_attribute(named, "cell_clip", named_number(named, "cell_clip", -1) < 0, "below 0: nothing is clipped");
    return reversed;
}

static void require_forward_attributes(Named *named)
{
    named_require_attribute(named, "cell_type", named_is(named, "cell_type", true, "LSTM"), "\"LSTM\"");
    named_require_attribute(named, "activation", named_is(named, "activation", true, "tanh"), "\"tanh\"");
    named_require_attribute(named, "cell_depth", named_integer(named, "cell_depth", 1) == 1, "1");
    named_require_attribute(named, "keep_prob", named_number(named, "keep_prob", 1) == 1, "1");
    named_require_attribute(named, "forget_bias", named_number(named, "forget_bias", 0) == 0, "0");
}

/* Rows `begin` and those behind of a matrix, as columns. */
static View turned(const View *matrix, int64_t begin, int64_t count)
{
    View view = *matrix;
    view.data = view.data == NULL ? NULL : (char *)view.data + begin * view.strides[0] * (int64_t)us_dtype_size(view.dtype);
    view.shape[0] = matrix->shape[1];
    view.shape[1] = count;
    view.strides[0] = matrix->strides[1];
    view.strides[1] = matrix->strides[0];
    return view;
}

/* Of one step, the axis of the steps may be missing; so may the first one of a state. */
static void complete(View *view)
{
    if (view->rank == 2) {
        *view = us_view_insert_axis(*view, 0, 1, 0);
    }
}

static void complete_operands(Named *named, int32_t first_state, int32_t first_output)
{
    complete(&named->inputs[0]);
    for (int32_t i = first_state; i < named->input_count; i++) {
        complete(&named->inputs[i]);
    }
    for (int32_t i = first_output; i < named->output_count; i++) {
        complete(&named->outputs[i]);
    }
}

/* x, then the weights; the shapes of all others follow from them. */
static Lstm require_model(Named *named, bool apart)
{
    enum { X, WEIGHTS };
    Lstm lstm = {0};
    const bool reversed = require_attributes(named);
    named_require_input(named, X, 3);
    for (int32_t i = WEIGHTS; i <= WEIGHTS + apart; i++) {
        named_require_input(named, i, 2);
    }
    if (named->call.status != 0) {
        return lstm;
    }
    const View *given = &named->inputs[X], *w = &named->inputs[WEIGHTS];
    us_require(&named->call, us_dtype_is_float(given->dtype) && given->dtype != DTYPE_FLOAT64, "inputDesc", "type",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input 0 of %s is of type %s; it must be float32, float16 or bfloat16", named->type,
               us_dtype_name(given->dtype));
    lstm = (Lstm){.steps = given->shape[0], .batch = given->shape[1], .inputs = given->shape[2], .cells = w->shape[1] / GATES,
                  .x = *given, .layer = {.kind = CELL_LSTM, .layers = 1, .directions = 1, .each = PARAMETER_B_IH + 1,
                                         .keeps = true, .reversed = reversed}};
    const int64_t rows = apart ? lstm.inputs : lstm.inputs + lstm.cells, columns = GATES * lstm.cells;
    named_require_shape(named, true, WEIGHTS, given->dtype, 2, (const int64_t[]){rows, columns});
    lstm.w_input = turned(w, 0, lstm.inputs);
    if (apart) {
        named_require_shape(named, true, WEIGHTS + 1, given->dtype, 2, (const int64_t[]){lstm.cells, columns});
        lstm.w_state = turned(&named->inputs[WEIGHTS + 1], 0, lstm.cells);
    } else {
        lstm.w_state = turned(w, lstm.inputs, lstm.cells);
    }
    return lstm;
}

static View optional(const Named *named, int32_t index)
{
    return index < named->input_count ? named->inputs[index] : us_view_absent();
}

static void require_bias(Named *named, Lstm *lstm, int32_t index)
{
    named_require_shape(named, true, index, lstm->x.dtype, 1, (const int64_t[]){GATES * lstm->cells});
    lstm->b = optional(named, index);
}

/* States, or of outputs gradients of them: h and c. */
static void require_states(Named *named, const Lstm *lstm, bool input, int32_t first)
{
    const int64_t shape[] = {1, lstm->batch, lstm->cells};
    named_require_shape(named, input, first, lstm->x.dtype, 3, shape);
    named_require_shape(named, input, first + 1, lstm->x.dtype, 3, shape);
}

static void require_sequences(Named *named, const Lstm *lstm, bool input, int32_t first, int32_t count)
{
    const int64_t shape[] = {lstm->steps, lstm->batch, lstm->cells};
    for (int32_t i = first; i < first + count; i++) {
        if (input) {
            named_require_input(named, i, 3);
        }
        named_require_shape(named, input, i, lstm->x.dtype, 3, shape);
    }
}

/* [steps, batch, cells] of 1 up to the end of a sequence and 0 behind it; lengths themselves are not emulated. What
 * stands behind it are weights of peepholes, and more. */
static void require_mask(Named *named, Lstm *lstm, int32_t index, int32_t rest)
{
    lstm->mask = optional(named, index);
    const bool given = !us_view_is_absent(&lstm->mask) && lstm->mask.rank > 0;
    if (given) {
        const int64_t shape[] = {lstm->steps, lstm->batch, lstm->cells};
        named_require_shape(named, true, index, DTYPE_FLOAT16, 3, shape);
    } else {
        lstm->mask = us_view_absent();
    }
    for (int32_t i = rest; i < named->input_count; i++) {
        named_require_absent(named, i);
    }
}

static void read_model(NamedViews *views, const Lstm *lstm)
{
    const View *const given[] = {&lstm->x, &lstm->h, &lstm->c, &lstm->w_input, &lstm->w_state, &lstm->b};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        named_read(views, given[i]);
    }
}

/* x, w or both weights, b, a mask, h, c, then weights of peepholes. */
static void forward(Named *named, bool apart)
{
    enum { OUT_Y, OUT_H, OUT_C, OUT_I, OUT_G, OUT_F, OUT_O, OUT_TANH_C, OUTPUTS };
    const int32_t bias = 2 + apart, mask = bias + 1, states = bias + 2;
    named_require_counts(named, bias + 1, states + 6, OUTPUTS);
    require_forward_attributes(named);
    complete_operands(named, states, OUT_Y);
    Lstm lstm = require_model(named, apart);
    require_bias(named, &lstm, bias);
    require_states(named, &lstm, true, states);
    require_mask(named, &lstm, mask, states + 2);
    require_sequences(named, &lstm, false, OUT_Y, OUTPUTS);
    lstm.h = optional(named, states);
    lstm.c = optional(named, states + 1);
    static const int8_t lists[LSTM_LISTS] = {OUT_I, OUT_G, OUT_F, OUT_O, OUT_H, OUT_C, OUT_TANH_C};
    NamedViews views = {.count = 0};
    read_model(&views, &lstm);
    named_write(&views, &named->outputs[OUT_Y]);
    named_write(&views, NULL); /* the last h and c are those of the lists */
    named_write(&views, NULL);
    for (int32_t i = 0; i < LSTM_LISTS; i++) {
        named_write(&views, &named->outputs[lists[i]]);
    }
    named_read(&views, &lstm.mask);
    named_run(named, us_recurrent_forward, &views, &lstm.layer, sizeof lstm.layer);
}

void named_dynamic_rnn(Named *named)
{
    forward(named, false);
}

void named_dynamic_rnn_v2(Named *named)
{
    forward(named, true);
}

/* Of the weights, of b, x, h and c. */
static void require_gradients(Named *named, const Lstm *lstm, bool apart)
{
    const int64_t columns = GATES * lstm->cells, rows[] = {apart ? lstm->inputs : lstm->inputs + lstm->cells, lstm->cells};
    int32_t place = 0;
    for (; place <= apart; place++) {
        named_require_shape(named, false, place, lstm->x.dtype, 2, (const int64_t[]){rows[place], columns});
    }
    named_require_shape(named, false, place++, lstm->x.dtype, 1, &columns);
    named_require_shape(named, false, place++, lstm->x.dtype, 3, lstm->x.shape);
    require_states(named, lstm, false, place);
}

static void run_backward(Named *named, const Lstm *lstm, const View *given, const View *made)
{
    enum { DW_INPUT, DW_STATE, DB, DX, DH0, DC0 };
    NamedViews views = {.count = 0};
    read_model(&views, lstm);
    static const int8_t reads[] = {DY, DH, DC, I, G, F, O, H, C, TANH_C}, writes[] = {DX, DH0, DC0, DW_INPUT, DW_STATE, DB};
    for (size_t i = 0; i < sizeof reads; i++) {
        named_read(&views, &given[reads[i]]);
    }
    for (size_t i = 0; i < sizeof writes; i++) {
        named_write(&views, &made[writes[i]]);
    }
    named_read(&views, &lstm->mask);
    named_run(named, us_recurrent_backward, &views, &lstm->layer, sizeof lstm->layer);
}

/* x and its weights (with b, where they are not apart), Y … TANH_C, a mask, then what is not emulated. */
static void backward(Named *named, bool apart)
{
    const int32_t first = 3, outputs = 5 + apart, dx = 2 + apart;
    named_require_counts(named, first + BACKWARD_INPUTS, NAMED_LIMIT, outputs);
    if (named->call.status != 0) {
        return;
    }
    complete_operands(named, first, dx);
    Lstm lstm = require_model(named, apart);
    require_states(named, &lstm, true, first + H0);
    require_states(named, &lstm, true, first + DH);
    static const int8_t sequences[] = {Y, H, C, DY, I, G, F, O, TANH_C};
    for (size_t i = 0; i < sizeof sequences; i++) {
        require_sequences(named, &lstm, true, first + sequences[i], 1);
    }
    require_mask(named, &lstm, first + BACKWARD_INPUTS, first + BACKWARD_INPUTS + 1);
    require_gradients(named, &lstm, apart);
    lstm.h = named->inputs[first + H0];
    lstm.c = named->inputs[first + C0];
    const View *made = named->outputs;
    const View parts[] = {turned(&made[0], 0, lstm.inputs), apart ? turned(&made[1], 0, lstm.cells)
                                                                  : turned(&made[0], lstm.inputs, lstm.cells),
                          made[dx - 1], made[dx], made[dx + 1], made[dx + 2]};
    run_backward(named, &lstm, &named->inputs[first], parts);
}

void named_dynamic_rnn_grad(Named *named)
{
    backward(named, false);
}

void named_dynamic_rnn_v2_grad(Named *named)
{
    backward(named, true);
}
