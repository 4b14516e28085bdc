/* The gated delta rule: a matrix for every head, which forgets and learns with every token. In float32, token after token; states
 * and results are rounded where they are stored. The same bits for any number of threads. */
#ifndef UNDERSTUDY_DELTA_RULE_H
#define UNDERSTUDY_DELTA_RULE_H

#include "kernels/kernels.h"

typedef struct DeltaRule {
    float scale;
    int64_t longest; /* tokens of a sequence; 0: any number */
    bool whole;      /* a sequence has one token at least */
} DeltaRule;

/* For every token of a sequence, with m[i, j] = e^(g + gk[j]) S[i, j]:
 *     S = m + beta (v - m k) k^T        out = S (scale q)
 * Heads of v that follow each other share one of q and k.
 * views: q and k [T, Nk, Dk], v [T, Nv, Dv], beta [T, Nv], g? [T, Nv], gk? [T, Nv, Dk], lengths [B] (int32, T together), states
 * [.., Nv, Dv, Dk] before and after, out [T, Nv, Dv], then places? [T] and accepted? [B] (int32; absent: 1).
 * Without places, sequence b begins with state b and leaves its last one there. With places they are those of tokens: it begins
 * with the state of its token number `accepted`, counted from 1, and leaves one for every token; both views are the same. Of two
 * sequences with a state in common the later one sees what the earlier one left. */
Kernel us_delta_rule;

#endif
