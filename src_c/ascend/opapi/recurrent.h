/* Recurrent networks. */
#ifndef ASCEND_OPAPI_RECURRENT_H
#define ASCEND_OPAPI_RECURRENT_H

#include "ascend/opapi/families.h"
#include "kernels/rnn/recurrent.h"

/* A network and the sizes that its tensors must have. */
typedef struct Network {
    Recurrent recurrent;
    int64_t steps, batch, input, hidden;
    const Operand *model; /* whose type all have */
    /* How many sequences have each step; NULL or not given: all. Then input and gradients are (steps * batch, …). */
    const Operand *batch_sizes;
} Network;

/* From its input (input/rank, input/rows), its parameters (params/length, params/shape, params/same-dtype) and
 * attributes (numLayers/range). */
Network op_require_network(OpCall *op, CellKind kind, const Operand *input, const Operand *batch_sizes, Operands params,
                           bool has_bias, int64_t layers, bool two_directions, bool batch_first);
/* Tensors of a network: of its input, its output or its states (NAME/shape, NAME/same-dtype). */
void op_require_network_input(OpCall *op, const Network *network, const Operand *operand);
void op_require_network_output(OpCall *op, const Network *network, const Operand *operand);
void op_require_network_slope(OpCall *op, const Network *network, const Operand *operand); /* of the output */
void op_require_network_states(OpCall *op, const Network *network, const Operand *operand);
/* Lists of a network: h and c; parameters; a tensor for each direction of each layer (NAME/length too; NAME/null where
 * it is needed and not given, 161001). */
void op_require_network_pair(OpCall *op, const Network *network, Operands list);
void op_require_network_parameters(OpCall *op, const Network *network, Operands list);
void op_require_network_list(OpCall *op, const Network *network, Operands list, bool needed);

/* `lists` as in kernels/rnn/recurrent.h; c is NULL for a GRU. */
aclnnStatus op_recurrent(OpCall *op, Network network, const Operand *input, const Operand *h, const Operand *c,
                         Operands params, bool keeps, const Operand *output, const Operand *last_h,
                             const Operand *last_c, const Operands *lists);
typedef struct NetworkSlopes {
    const Operand *output, *h, *c;
    const Operand *to_input, *to_h, *to_c;
    Operands to_params;
} NetworkSlopes;
aclnnStatus op_recurrent_backward(OpCall *op, Network network, const Operand *input, const Operand *h, const Operand *c,
                                  Operands params, const Operands *lists, NetworkSlopes slopes);
/* One step whose products are done: views as in kernels/rnn/cell.h. */
aclnnStatus op_lstm_cell(OpCall *op, Operands inputs, Operands outputs);
aclnnStatus op_lstm_cell_backward(OpCall *op, Operands inputs, Operands outputs, const Operand *parameter);
/* A list's tensor; NULL where there is no such. */
const Operand *op_item(Operands list, int32_t index);

#endif
