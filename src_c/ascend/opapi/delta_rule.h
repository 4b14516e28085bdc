/* The gated delta rule: src_c/kernels/rnn/delta_rule.h. */
#ifndef ASCEND_OPAPI_DELTA_RULE_H
#define ASCEND_OPAPI_DELTA_RULE_H

#include "ascend/opapi/families.h"

typedef struct DeltaCall {
    const Operand *query, *key, *value, *beta, *gate, *key_gate, *lengths;
    const Operand *before, *after; /* states; the same one where there are places */
    const Operand *out, *places, *accepted;
    float scale;
    int64_t most_heads, deepest; /* heads, and numbers of one */
    int64_t longest;             /* tokens of a sequence, where that is limited */
} DeltaCall;

/* Heads and their sizes: the rules stand on the pages. */
void op_require_delta(OpCall *op, const DeltaCall *call);
aclnnStatus op_delta_rule(OpCall *op, const DeltaCall *call);

#endif
