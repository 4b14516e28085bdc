/* Recurrent networks: src_c/kernels/rnn. */
#include "ascend/opapi/recurrent.h"

#include "kernels/rnn/cell.h"

static int64_t directions_of(const Network *network)
{
    return network->recurrent.layers * network->recurrent.directions;
}

static void require_tensor(OpCall *op, const Network *network, const Operand *operand, Shape shape)
{
    if (!op_refused(op)) {
        op_require_same_dtype(op, operand, network->model);
        op_require_shape(op, operand, &shape);
    }
}

static void require_count(OpCall *op, Operands list, int64_t count)
{
    op_require(op, list.count == count, list.name, "length", op->invalid, "%s has %d tensors; there must be %lld",
               list.name, (int)list.count, (long long)count);
}

void op_require_network_parameters(OpCall *op, const Network *network, Operands list)
{
    require_count(op, list, us_recurrent_parameters(&network->recurrent));
    const int64_t gates = network->recurrent.kind == CELL_LSTM ? 4 : 3, rows = gates * network->hidden;
    const int64_t width = network->hidden * network->recurrent.directions;
    const int32_t each = network->recurrent.each;
    for (int32_t i = 0; i < list.count && !op_refused(op); i++) {
        const int64_t inputs = i / each / network->recurrent.directions == 0 ? network->input : width;
        const int64_t sizes[] = {rows, i % each == 0 ? inputs : network->hidden};
        require_tensor(op, network, list.items[i], op_shape_of(i % each < 2 ? 2 : 1, sizes));
    }
}

static bool is_packed(const Network *network)
{
    return op_given(network->batch_sizes) && !op_empty(network->batch_sizes);
}

/* Its steps and its batch. */
static void require_input(OpCall *op, Network *network, const Operand *input)
{
    const bool packed = is_packed(network), batch_first = network->recurrent.batch_first;
    op_require_rank(op, input, packed ? 2 : 3, packed ? 2 : 3);
    if (op_refused(op)) {
        return;
    }
    network->steps = packed ? op_size(network->batch_sizes, 0) : op_size(input, batch_first ? 1 : 0);
    network->batch = packed ? op_size(input, 0) / network->steps : op_size(input, batch_first ? 0 : 1);
    network->input = op_size(input, -1);
    op_require(op, !packed || network->batch * network->steps == op_size(input, 0), input->name, "rows", op->invalid,
               "%s is %s, which is not a number of sequences for each of %lld steps", input->name,
               op_shape_text(op, input), (long long)network->steps);
}

Network op_require_network(OpCall *op, CellKind kind, const Operand *input, const Operand *batch_sizes, Operands params,
                           bool has_bias, int64_t layers, bool two_directions, bool batch_first)
{
    const int32_t directions = two_directions ? 2 : 1, each = has_bias ? 4 : 2;
    Network network = {.recurrent = {.kind = kind, .directions = directions, .each = each,
                                     .batch_first = batch_first},
                       .model = input, .batch_sizes = batch_sizes};
    network.recurrent.batch_first &= !is_packed(&network);
    op_require_range(op, "numLayers", layers, 1, INT64_MAX);
    require_input(op, &network, input);
    op_require(op, op_refused(op) || params.count / each / directions == layers, params.name, "length", op->invalid,
               "%s has %d tensors; %lld layers have %d each", params.name, (int)params.count, (long long)layers,
               (int)(each * directions));
    if (op_refused(op)) {
        return network;
    }
    const View *first = &params.items[0]->view;
    network.recurrent.layers = (int32_t)layers;
    network.hidden = first->rank == 2 ? first->shape[0] / (kind == CELL_LSTM ? 4 : 3) : 0;
    op_require_network_parameters(op, &network, params);
    return network;
}

/* Packed ones have one dimension for steps and batch. */
static Shape sequence_of(const Network *network, int64_t width, bool packed)
{
    if (packed) {
        return op_shape_of(2, (const int64_t[]){network->steps * network->batch, width});
    }
    const bool batch_first = network->recurrent.batch_first;
    return op_shape_of(3, (const int64_t[]){batch_first ? network->batch : network->steps,
                                            batch_first ? network->steps : network->batch, width});
}

void op_require_network_input(OpCall *op, const Network *network, const Operand *operand)
{
    require_tensor(op, network, operand, sequence_of(network, network->input, is_packed(network)));
}

void op_require_network_output(OpCall *op, const Network *network, const Operand *operand)
{
    const int64_t width = network->hidden * network->recurrent.directions;
    require_tensor(op, network, operand, sequence_of(network, width, false));
}

void op_require_network_slope(OpCall *op, const Network *network, const Operand *operand)
{
    const int64_t width = network->hidden * network->recurrent.directions;
    const bool packed = is_packed(network) && operand->view.rank != 3; /* as the input, or as the output is */
    require_tensor(op, network, operand, sequence_of(network, width, packed));
}

void op_require_network_states(OpCall *op, const Network *network, const Operand *operand)
{
    if (op_given(operand)) {
        const int64_t sizes[] = {directions_of(network), network->batch, network->hidden};
        require_tensor(op, network, operand, op_shape_of(3, sizes));
    }
}

void op_require_network_pair(OpCall *op, const Network *network, Operands list)
{
    if (list.given) {
        require_count(op, list, 2);
        for (int32_t i = 0; i < list.count && !op_refused(op); i++) {
            op_require_network_states(op, network, list.items[i]);
        }
    }
}

void op_require_network_list(OpCall *op, const Network *network, Operands list, bool needed)
{
    op_require(op, list.given || !needed, list.name, "null", ACLNN_ERR_PARAM_NULLPTR, "%s is NULL", list.name);
    if (!needed) {
        return;
    }
    require_count(op, list, directions_of(network));
    for (int32_t i = 0; i < list.count && !op_refused(op); i++) {
        const int64_t sizes[] = {network->steps, network->batch, network->hidden};
        require_tensor(op, network, list.items[i], op_shape_of(3, sizes));
    }
}

const Operand *op_item(Operands list, int32_t index)
{
    return index < list.count ? list.items[index] : NULL;
}

/* ---- plans ---- */

typedef struct Views {
    PlannedView *items;
    int32_t count;
} Views;

/* As many as the largest network of this size has. NULL: the call is refused. */
static Views room_for(OpCall *op, const Network *network)
{
    const size_t most = 16 + 2 * (size_t)us_recurrent_parameters(&network->recurrent) +
                        (size_t)us_recurrent_lists(network->recurrent.kind) * (size_t)directions_of(network);
    Views views = {.items = op_refused(op) ? NULL : executor_take(op->executor, most * sizeof *views.items)};
    op_require(op, views.items != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    return views;
}

static void add(Views *views, const Operand *operand, ViewAccess access)
{
    views->items[views->count++] = (PlannedView){operand, access, NULL};
}

static void add_list(Views *views, Operands list, ViewAccess access)
{
    for (int32_t i = 0; i < list.count; i++) {
        add(views, list.items[i], access);
    }
}

/* What may be packed, as (steps, batch, …). */
static void add_sequence(OpCall *op, Views *views, const Network *network, const Operand *operand, ViewAccess access)
{
    add(views, operand, access);
    const bool packed = is_packed(network) && op_given(operand) && operand->view.rank == 2;
    View *view = packed ? executor_take(op->executor, sizeof *view) : NULL;
    op_require(op, view != NULL || !packed, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (view != NULL) {
        const int64_t row = operand->view.strides[0], column = operand->view.strides[1];
        *view = operand->view;
        view->rank = 3;
        view->shape[2] = view->shape[1];
        view->shape[1] = network->batch;
        view->shape[0] = network->steps;
        view->strides[0] = row * network->batch;
        view->strides[1] = row;
        view->strides[2] = column;
        views->items[views->count - 1].view = view;
    }
}

static void add_batch_sizes(Views *views, const Network *network)
{
    add(views, is_packed(network) ? network->batch_sizes : NULL, VIEW_READ);
}

static void add_states(OpCall *op, Views *views, const Network *network, const Operand *input, const Operand *h,
                       const Operand *c, Operands params)
{
    add_sequence(op, views, network, input, VIEW_READ);
    add(views, h, VIEW_READ);
    add(views, c, VIEW_READ);
    add_list(views, params, VIEW_READ);
}

aclnnStatus op_recurrent(OpCall *op, Network network, const Operand *input, const Operand *h, const Operand *c,
                         Operands params, bool keeps, const Operand *output, const Operand *last_h,
                             const Operand *last_c, const Operands *lists)
{
    Views views = room_for(op, &network);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    add_states(op, &views, &network, input, h, c, params);
    add(&views, output, VIEW_WRITE);
    add(&views, last_h, VIEW_WRITE);
    add(&views, last_c, VIEW_WRITE);
    for (int32_t i = 0; i < us_recurrent_lists(network.recurrent.kind) && keeps; i++) {
        add_list(&views, lists[i], VIEW_WRITE);
    }
    add_batch_sizes(&views, &network);
    network.recurrent.keeps = keeps;
    return op_plan_views(op, us_recurrent_forward, &network.recurrent, sizeof network.recurrent, views.count,
                         views.items);
}

aclnnStatus op_recurrent_backward(OpCall *op, Network network, const Operand *input, const Operand *h, const Operand *c,
                                  Operands params, const Operands *lists, NetworkSlopes slopes)
{
    Views views = room_for(op, &network);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    add_states(op, &views, &network, input, h, c, params);
    add_sequence(op, &views, &network, slopes.output, VIEW_READ);
    add(&views, slopes.h, VIEW_READ);
    add(&views, slopes.c, VIEW_READ);
    for (int32_t i = 0; i < us_recurrent_lists(network.recurrent.kind); i++) {
        add_list(&views, lists[i], VIEW_READ);
    }
    add_sequence(op, &views, &network, slopes.to_input, VIEW_WRITE);
    add(&views, slopes.to_h, VIEW_WRITE);
    add(&views, slopes.to_c, VIEW_WRITE);
    add_list(&views, slopes.to_params, VIEW_WRITE);
    add_batch_sizes(&views, &network);
    return op_plan_views(op, us_recurrent_backward, &network.recurrent, sizeof network.recurrent, views.count,
                         views.items);
}

/* ---- one step ---- */

aclnnStatus op_lstm_cell(OpCall *op, Operands inputs, Operands outputs)
{
    return op_plan_operands(op, us_lstm_cell, NULL, 0, inputs, outputs);
}

aclnnStatus op_lstm_cell_backward(OpCall *op, Operands inputs, Operands outputs, const Operand *parameter)
{
    return op_plan_operands(op, us_lstm_cell_backward, NULL, 0, inputs, OPERANDS(outputs.items[0], outputs.items[1], parameter));
}
