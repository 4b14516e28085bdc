/* Tokens on their way to experts of other ranks, and back. The first `shared_ranks` ranks have one copy of a shared expert
 * each, which every token goes to; the others have equal parts of `experts`, of which a token names some. The next numbers are
 * of experts that are on no rank, and give nothing, the token itself, or a sum of it and a constant. */
#ifndef UNDERSTUDY_RANKS_EXPERTS_H
#define UNDERSTUDY_RANKS_EXPERTS_H

#include "ranks/exchange.h"

typedef struct ExpertLayout {
    RankTask task;
    int64_t experts, shared, shared_ranks;
    int64_t nothing, copies, constants;
} ExpertLayout;

/* Of a rank. */
static inline int64_t us_experts_of(const ExpertLayout *layout, int32_t ranks, int32_t rank)
{
    return rank < layout->shared_ranks ? 1 : layout->experts / (ranks - layout->shared_ranks);
}

/* Each active token goes to the experts that it names, and to a copy of each shared one. They arrive by experts, by ranks,
 * and as they are numbered. Quantized, a token times the smooth numbers of its expert is divided by its step, which is the
 * largest / 127, and rounded, ties to even. */
typedef struct ExpertDispatch {
    ExpertLayout layout;
    bool sums; /* numbers of tokens are added up */
} ExpertDispatch;
enum {
    DISPATCH_X,       /* [tokens, columns] */
    DISPATCH_IDS,     /* [tokens, k] of int32 */
    DISPATCH_SMOOTH,  /* [shared + experts, columns] of float32, or absent */
    DISPATCH_ACTIVE,  /* [tokens] or [tokens, k] of bool, or absent: all are */
    DISPATCH_WEIGHTS, /* [tokens, k] of float32, or absent */
    DISPATCH_OUT,     /* [room, columns], of x's type or int8: quantized */
    DISPATCH_STEPS,   /* [room] of float32, or absent */
    DISPATCH_ORDER,   /* of int32, or absent: for each token and k its number among those for the expert */
    DISPATCH_ORIGIN,  /* [room * 128] of int32, or absent: rank, token and k of each that has arrived, in the first of 128 */
    DISPATCH_TOKENS,  /* [own experts] of int64: how many have arrived for each */
    DISPATCH_COUNTS,  /* at least [own experts * ranks] of int32: the same by ranks */
    DISPATCH_ARRIVED_WEIGHTS, /* [room] of float32, or absent */
    DISPATCH_VIEWS
};
Kernel us_dispatch_to_experts; /* expert_dispatch.c */

/* Rows that arrived so go back, and are added up: what the experts give that a token names, times its weights, in the order of
 * k, then those of shared ones, then `added`. Tokens that are not active get the latter only. */
enum {
    COMBINE_X,       /* [room, columns] */
    COMBINE_IDS,
    COMBINE_COUNTS,  /* DISPATCH_COUNTS */
    COMBINE_WEIGHTS, /* [tokens, k] of float32 */
    COMBINE_ACTIVE,
    COMBINE_ADDED,   /* [tokens, columns], or absent */
    COMBINE_TOKENS,  /* [tokens, columns], or absent: what copies give; constants that times FACTOR + VALUE times WEIGHT */
    COMBINE_FACTOR,  /* [constants, columns], or absent, as the next */
    COMBINE_WEIGHT,
    COMBINE_VALUE,
    COMBINE_OUT,     /* [tokens, columns] */
    COMBINE_VIEWS
};
Kernel us_combine_from_experts; /* attributes: ExpertLayout; expert_combine.c */

#endif
