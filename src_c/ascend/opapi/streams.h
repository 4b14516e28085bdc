/* Residual streams: src_c/kernels/streams/streams.h. */
#ifndef ASCEND_OPAPI_STREAMS_H
#define ASCEND_OPAPI_STREAMS_H

#include "ascend/opapi/families.h"
#include "kernels/streams/streams.h"

/* Of x [tokens…, N, D]: N is 4, or of few streams 1 to 8; D a multiple of 128 up to 100000. */
bool op_has_streams(const Operand *x);
bool op_has_few_streams(const Operand *x);
/* Of every token: a mixing matrix, the numbers of a layer, one for each stream, `count` of them, one. */
Shape op_shape_stream_matrices(OpCall *op, const Operand *x);
Shape op_shape_stream_layer(OpCall *op, const Operand *x);
Shape op_shape_stream_weights(OpCall *op, const Operand *x);
Shape op_shape_stream_parts(OpCall *op, const Operand *x, int64_t count);
Shape op_shape_stream_tokens(OpCall *op, const Operand *x);
/* phi: a row for each number of a token's mixing. These are N for reading, N for writing, and with a mix N * N or N! for it. */
Shape op_shape_stream_products(OpCall *op, const Operand *x, const Operand *phi);
bool op_is_mixing(const Operand *phi, bool mixes);
bool op_is_mixing_matrices(const Operand *phi, const Operand *x); /* N * N for the mix, of any N */
/* A matrix for each token, or its numbers in a row. */
bool op_is_flat_mix(OpCall *op, const Operand *mix, const Operand *x);
/* Of a balanced mix: what is kept for the gradients. */
enum { BALANCE_ITERATIONS = 20 };
Shape op_shape_stream_inverses(OpCall *op, const Operand *x);
Shape op_shape_balanced_sums(OpCall *op, const Operand *x);
Shape op_shape_balanced_streams(OpCall *op, const Operand *x);
typedef struct KeptStreams {
    const Operand *read, *products, *inverses, *sums, *matrices;
} KeptStreams;
void op_require_kept_streams(OpCall *op, const Operand *x, const Operand *phi, const KeptStreams *kept);
/* Of the mix: matrices, or N! numbers where phi has rows for these; either where it has none for a mix. */
Shape op_shape_stream_mix(OpCall *op, const Operand *x, const Operand *phi);
bool op_is_stream_mix(OpCall *op, const Operand *mix, const Operand *x, const Operand *phi);
/* Of blocks [tokens, N, D]: a number for each of a token's blocks and for the partial one. */
Shape op_shape_weighed_blocks(OpCall *op, const Operand *blocks);

aclnnStatus op_mix_streams(OpCall *op, Operands inputs, const Operand *out);
aclnnStatus op_mix_streams_backward(OpCall *op, Operands inputs, Operands outputs);
aclnnStatus op_read_streams(OpCall *op, const ReadStreams *how, Operands inputs, Operands outputs);
aclnnStatus op_read_streams_backward(OpCall *op, const ReadStreamsBackward *how, Operands inputs, Operands outputs);
aclnnStatus op_weigh_blocks(OpCall *op, double epsilon, Operands inputs, Operands outputs);
aclnnStatus op_weigh_blocks_backward(OpCall *op, Operands inputs, Operands outputs);

#endif
