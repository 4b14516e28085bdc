/* LSTM and GRU by name, layer by layer: DynamicRNN, whose w [inputs + cells, 4 cells] holds the weights of input and state
 * below each other, and DynamicRNNV2, which has them apart. Columns are those of the gates i, f, g, o; j and c are other
 * names of g. DynamicGRUV2 has weights and biases of input and state apart, with columns r, z, n. */
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
    named_require_attribute(named, "time_major", named_bool(named, "time_major", true), "true");
    named_require_attribute(named, "num_proj", named_integer(named, "num_proj", 0) == 0, "0");
    named_require_attribute(named, "cell_clip", named_number(named, "cell_clip", -1) < 0, "below 0: nothing is clipped");
    return reversed;
}

static void require_forward_attributes(Named *named)
{
    named_require_attribute(named, "activation", named_is(named, "activation", true, "tanh"), "\"tanh\"");
    named_require_attribute(named, "cell_depth", named_integer(named, "cell_depth", 1) == 1, "1");
    named_require_attribute(named, "keep_prob", named_number(named, "keep_prob", 1) == 1, "1");
}

static bool require_lstm_attributes(Named *named)
{
    const bool order = named_is(named, "gate_order", false, "ifjo") || named_is(named, "gate_order", false, "ifco");
    named_require_attribute(named, "gate_order", order, "\"ifjo\" or \"ifco\"");
    named_require_attribute(named, "use_peephole", !named_bool(named, "use_peephole", false), "false");
    return require_attributes(named);
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
    const bool reversed = require_lstm_attributes(named);
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
    named_require_attribute(named, "cell_type", named_is(named, "cell_type", true, "LSTM"), "\"LSTM\"");
    named_require_attribute(named, "forget_bias", named_number(named, "forget_bias", 0) == 0, "0");
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

/* ---- GRU ---- */

enum { GRU_GATES = 3 };

/* x and the weights; the shapes of all others follow from them. */
typedef struct Gru {
    int64_t steps, batch, inputs, cells;
    View w_input, w_state;
    Recurrent layer;
} Gru;

static Gru require_gru(Named *named)
{
    enum { X, W_INPUT, W_STATE };
    Gru gru = {0};
    const bool reversed = require_attributes(named);
    named_require_attribute(named, "gate_order", named_is(named, "gate_order", false, "rzh"), "\"rzh\"");
    named_require_attribute(named, "reset_after", named_bool(named, "reset_after", true), "true");
    named_require_input(named, X, 3);
    named_require_input(named, W_INPUT, 2);
    named_require_input(named, W_STATE, 2);
    if (named->call.status != 0) {
        return gru;
    }
    const View *x = &named->inputs[X];
    us_require(&named->call, us_dtype_is_float(x->dtype) && x->dtype != DTYPE_FLOAT64, "inputDesc", "type",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input 0 of %s is of type %s; it must be float32, float16 or bfloat16",
               named->type, us_dtype_name(x->dtype));
    gru = (Gru){.steps = x->shape[0], .batch = x->shape[1], .inputs = x->shape[2],
                .cells = named->inputs[W_STATE].shape[0],
                .layer = {.kind = CELL_GRU, .layers = 1, .directions = 1, .each = PARAMETER_B_HH + 1, .keeps = true,
                          .reversed = reversed}};
    const int64_t columns = named->inputs[W_INPUT].shape[1];
    us_require(&named->call, columns / GRU_GATES == gru.cells && columns % GRU_GATES == 0, "inputDesc", "shape",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input 1 of %s has %lld columns; %lld cells have 3 gates", named->type,
               (long long)columns, (long long)gru.cells);
    named_require_shape(named, true, W_INPUT, x->dtype, 2, (const int64_t[]){gru.inputs, columns});
    named_require_shape(named, true, W_STATE, x->dtype, 2, (const int64_t[]){gru.cells, columns});
    gru.w_input = turned(&named->inputs[W_INPUT], 0, gru.inputs);
    gru.w_state = turned(&named->inputs[W_STATE], 0, gru.cells);
    return gru;
}

/* x, weights, biases of input and state, lengths of sequences, which are not emulated, h; y, h, then the gates z, r, n
 * and what n has of the state. */
void named_dynamic_gru_v2(Named *named)
{
    enum { X, B_INPUT = 3, B_STATE, LENGTHS, H, INPUTS };
    enum { OUT_Y, OUT_H, OUT_Z, OUT_R, OUT_N, OUT_HN, OUTPUTS };
    named_require_counts(named, B_INPUT, INPUTS, OUTPUTS);
    require_forward_attributes(named);
    complete_operands(named, H, OUT_Y);
    const Gru gru = require_gru(named);
    if (named->call.status != 0) {
        return;
    }
    const DType dtype = named->inputs[X].dtype;
    const int64_t columns = GRU_GATES * gru.cells, state[] = {1, gru.batch, gru.cells};
    named_require_shape(named, true, B_INPUT, dtype, 1, &columns);
    named_require_shape(named, true, B_STATE, dtype, 1, &columns);
    named_require_shape(named, true, H, dtype, 3, state);
    if (named->input_count > LENGTHS) {
        named_require_absent(named, LENGTHS);
    }
    for (int32_t i = 0; i < OUTPUTS; i++) {
        named_require_shape(named, false, i, dtype, 3, (const int64_t[]){gru.steps, gru.batch, gru.cells});
    }
    const View biases[] = {optional(named, B_INPUT), optional(named, B_STATE)}, h = optional(named, H);
    const View *const reads[] = {&named->inputs[X], &h, NULL, &gru.w_input, &gru.w_state, &biases[0], &biases[1]};
    static const int8_t lists[GRU_LISTS] = {OUT_R, OUT_Z, OUT_N, OUT_HN, OUT_H};
    NamedViews views = {.count = 0};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        named_read(&views, reads[i]);
    }
    named_write(&views, &named->outputs[OUT_Y]);
    named_write(&views, NULL); /* the last h is that of the list */
    named_write(&views, NULL);
    for (int32_t i = 0; i < GRU_LISTS; i++) {
        named_write(&views, &named->outputs[lists[i]]);
    }
    named_read(&views, NULL);
    named_run(named, us_recurrent_forward, &views, &gru.layer, sizeof gru.layer);
}

/* Of a GRU's gradients, behind x and the weights. */
enum { GRU_Y = 3, GRU_H0, GRU_H, GRU_DY, GRU_DH, GRU_Z, GRU_R, GRU_N, GRU_HN, GRU_INPUTS };
enum { GRU_DW_INPUT, GRU_DW_STATE, GRU_DB_INPUT, GRU_DB_STATE, GRU_DX, GRU_DH0, GRU_OUTPUTS };

static void require_gru_slopes(Named *named, const Gru *gru)
{
    if (named->call.status != 0) {
        return;
    }
    const DType dtype = named->inputs[0].dtype;
    const int64_t columns = GRU_GATES * gru->cells, state[] = {1, gru->batch, gru->cells};
    const int64_t sequences[] = {gru->steps, gru->batch, gru->cells};
    for (int32_t i = GRU_Y; i < GRU_INPUTS; i++) {
        named_require_input(named, i, 3);
        named_require_shape(named, true, i, dtype, 3, i == GRU_H0 || i == GRU_DH ? state : sequences);
    }
    for (int32_t i = GRU_INPUTS; i < named->input_count; i++) {
        named_require_absent(named, i);
    }
    named_require_shape(named, false, GRU_DW_INPUT, dtype, 2, (const int64_t[]){gru->inputs, columns});
    named_require_shape(named, false, GRU_DW_STATE, dtype, 2, (const int64_t[]){gru->cells, columns});
    named_require_shape(named, false, GRU_DB_INPUT, dtype, 1, &columns);
    named_require_shape(named, false, GRU_DB_STATE, dtype, 1, &columns);
    named_require_shape(named, false, GRU_DX, dtype, 3, named->inputs[0].shape);
    named_require_shape(named, false, GRU_DH0, dtype, 3, state);
}

/* x, weights, y, h before the first step, h, slopes of y and of the last h, the gates z, r, n and what n has of the state,
 * then what is not emulated; slopes of weights, biases, x and the first h. */
void named_dynamic_gru_v2_grad(Named *named)
{
    named_require_counts(named, GRU_INPUTS, NAMED_LIMIT, GRU_OUTPUTS);
    complete_operands(named, GRU_Y, GRU_DX);
    const Gru gru = require_gru(named);
    require_gru_slopes(named, &gru);
    if (named->call.status != 0) {
        return;
    }
    const View *given = named->inputs, *made = named->outputs;
    const View weights[] = {turned(&made[GRU_DW_INPUT], 0, gru.inputs), turned(&made[GRU_DW_STATE], 0, gru.cells)};
    const View *const reads[] = {&given[0], &given[GRU_H0], NULL, &gru.w_input, &gru.w_state, NULL, NULL, &given[GRU_DY],
                                 &given[GRU_DH], NULL, &given[GRU_R], &given[GRU_Z], &given[GRU_N], &given[GRU_HN],
                                 &given[GRU_H]};
    const View *const writes[] = {&made[GRU_DX], &made[GRU_DH0], NULL, &weights[0], &weights[1], &made[GRU_DB_INPUT],
                                  &made[GRU_DB_STATE]};
    NamedViews views = {.count = 0};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        named_read(&views, reads[i]);
    }
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        named_write(&views, writes[i]);
    }
    named_read(&views, NULL);
    named_run(named, us_recurrent_backward, &views, &gru.layer, sizeof gru.layer);
}
