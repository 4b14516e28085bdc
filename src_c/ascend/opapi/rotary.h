/* Rotary embeddings: the map `rotate` on parts of the operands. */
#ifndef ASCEND_OPAPI_ROTARY_H
#define ASCEND_OPAPI_ROTARY_H

#include "ascend/opapi/families.h"

/* Which elements of the last dimension form a pair: (i, i + n/2); (2i, 2i + 1); the halves of each half; (2i, 2i + 1),
 * which the result holds as halves, as cos and sin do. */
typedef enum RotaryMode { ROTARY_HALF, ROTARY_INTERLEAVED, ROTARY_QUARTER, ROTARY_SORTED } RotaryMode;
/* `half`, `interleave`, `quarter`; -1: none of them. */
int64_t op_rotary_mode(const char *name);
/* The last size is divided by the mode, cos and sin broadcast to x (rotary). */
void op_require_rotary(OpCall *op, const Operand *x, const Operand *cos, int64_t mode);
/* Whether two tensors of layout 1 BSND, 2 SBND, 3 BNSD are alike but for N. */
bool op_differ_in_heads(const Operand *a, const Operand *b, int64_t layout);
aclnnStatus op_rotary(OpCall *op, int32_t count, const Operand *const *x, const Operand *cos, const Operand *sin,
                      int64_t mode, const Operand *const *out);
typedef struct RotaryBackward {
    const Operand *dy, *cos, *sin, *x, *dx, *dcos, *dsin;
    int64_t mode;
} RotaryBackward;
aclnnStatus op_rotary_backward(OpCall *op, const RotaryBackward *rotary);

/* By a square matrix in place of a mode. */
aclnnStatus op_rotary_product(OpCall *op, const Operand *x, const Operand *cos, const Operand *sin, const Operand *matrix,
                              const Operand *out);

/* How many there are, none for NULL or zeros; only those of RopeWithSinCosCache's page, or of its second version's, which has
 * one more (value). */
int32_t op_require_rotary_sections(OpCall *op, IntArguments sections, bool second);
int64_t op_rotary_pairs(IntArguments sections);
aclnnStatus op_cached_rotary(OpCall *op, const Operand *positions, const Operand *query, const Operand *key,
                             const Operand *table, IntArguments sections, int32_t section_count, bool alternates,
                             int64_t head, bool halves, const Operand *query_out, const Operand *key_out);

#endif
