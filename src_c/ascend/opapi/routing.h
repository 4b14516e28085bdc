/* Tokens to experts and back: src_c/kernels/routing/routing.h. */
#ifndef ASCEND_OPAPI_ROUTING_H
#define ASCEND_OPAPI_ROUTING_H

#include "ascend/opapi/packed_integers.h"
#include "ascend/opapi/shapes.h"
#include "kernels/routing/routing.h"

/* How many experts groups of so many take where each is padded to a multiple of 32. */
int64_t op_padded_experts(int64_t experts, int64_t groups);
/* `scores` is written where it is wanted. With keys and table, both or none, the experts are those that it has. */
aclnnStatus op_gate_tokens(OpCall *op, const Operand *x, const Operand *bias, const GateTokens *how, const Operand *weights,
                           const Operand *chosen, bool wants_scores, const Operand *scores, const Operand *keys,
                           const Operand *table);
/* counts and table may be NULL: no expert has others in its place. */
aclnnStatus op_gate_mapped(OpCall *op, const Operand *x, const Operand *bias, const GateTokens *how, const Operand *weights,
                           const Operand *chosen, const Operand *counts, const Operand *table);
aclnnStatus op_gate_tokens_backward(OpCall *op, const Operand *scores, const Operand *slopes, const Operand *chosen,
                                    GateGradient how, const Operand *gradient);
/* Without scales the mask is not written. */
aclnnStatus op_balance_experts(OpCall *op, const Operand *experts, const Operand *table, const Operand *scales,
                               const Operand *threshold, const Operand *active, BalanceExperts how, const Operand *placed,
                               const Operand *mask);
/* finished, rows and scores may be NULL. */
aclnnStatus op_gate_by_softmax(OpCall *op, const Operand *x, const Operand *finished, bool late, const Operand *weights,
                               const Operand *chosen, const Operand *rows, const Operand *scores);
/* x with `choices` in its last axis. */
Shape op_shape_gates(OpCall *op, const Operand *x, int64_t choices);

/* Expert numbers, and how many of them each token has. */
int64_t op_choices(const Operand *experts);
/* One for each expert number. */
Shape op_shape_places(OpCall *op, const Operand *experts);
/* Rows that MoeTokenPermute keeps: all for 0, else those of the slice [:limit]. */
int64_t op_kept_tokens(const Operand *experts, int64_t limit);
/* That of out where only sizes behind the first are cut in another way. */
Shape op_shape_permuted_tokens(OpCall *op, const Operand *tokens, const Operand *experts, int64_t limit,
                               const Operand *out);
/* [experts, capacity, width] where there is a capacity, else a row for each expert number, `active` at most if that is
 * not 0. */
Shape op_shape_routed_tokens(OpCall *op, const Operand *x, const Operand *experts, int64_t mode, int64_t expert_count,
                             int64_t capacity, int64_t active);
/* One for each expert, where the mode is the one that counts and they are wanted; else any. */
Shape op_shape_expert_counts(OpCall *op, int64_t mode, int64_t counting_mode, bool wanted, int64_t expert_count,
                             const Operand *counts);

/* How a map of tokens and experts routes `limit` rows at most: as many for each token, or in blocks for each expert. */
RouteByMap op_map_route(const Operand *map, int64_t limit, bool blocks);
Shape op_shape_mapped_places(OpCall *op, const Operand *map, int64_t limit, bool blocks);
Shape op_shape_mapped_tokens(OpCall *op, const Operand *tokens, const Operand *map, int64_t limit, bool blocks);
/* Without gates routed_gates is not written. */
aclnnStatus op_route_by_map(OpCall *op, const Operand *tokens, const Operand *map, const Operand *gates, RouteByMap how,
                            const Operand *routed, const Operand *routed_gates, const Operand *places);
aclnnStatus op_route_by_map_backward(OpCall *op, const Operand *routed, const Operand *gates, const Operand *places,
                                     const Operand *map, RouteByMap how, const Operand *token_gradient,
                                     const Operand *gate_gradient);

/* `count` of something have as many of `size` each; none of them have none. */
bool op_divides(int64_t count, int64_t size);
/* How the rows came from a map: as many for each of `count` tokens, or in blocks for each of `count` experts. */
RouteByMap op_unmap_route(const Operand *rows, int64_t count, bool blocks);

/* The way back, and what it is about in the gradient: the sums are `tokens`. Without gates routed_gates and the gates' gradient
 * are not looked at. */
typedef struct MapUnrouting {
    RouteByMap how;
    const Operand *routed, *places, *tokens, *map, *gates, *routed_gates, *rows, *row_tokens;
} MapUnrouting;
aclnnStatus op_unroute_by_map(OpCall *op, const MapUnrouting *all);
aclnnStatus op_unroute_by_map_backward(OpCall *op, const MapUnrouting *all, const Operand *slopes, const Operand *routed_gradient,
                                       const Operand *gate_gradient);

/* What a page does not have is NULL, or 0. */
typedef struct TokenRoute {
    const Operand *tokens, *experts, *routed, *places, *counts;
    const Operand *gates, *routed_gates;
    int64_t limit, capacity, first;
    IntArguments active; /* first and end of the experts that count; not given: all */
    ExpertCounts counting;
    bool skips, in_order, own_gates;
} TokenRoute;
aclnnStatus op_route_tokens(OpCall *op, const TokenRoute *route);
/* The same quantized: with scale and shift of one element, or, `by_rows`, smooth numbers (absent: 1) and a scale for each row. */
aclnnStatus op_route_quantized(OpCall *op, const TokenRoute *route, bool by_rows, const Operand *scale, const Operand *shift);
/* Rows by the numbers of MoeGatingTopKSoftmax. */
aclnnStatus op_route_numbered(OpCall *op, const Operand *tokens, const Operand *numbers, const Operand *experts,
                              RouteNumbered how, const Operand *routed, const Operand *places, const Operand *sorted);
/* Rows for `active` tokens, as far as there are so many. */
Shape op_shape_active_tokens(OpCall *op, const Operand *x, const Operand *experts, int64_t active);
/* Without scales routed_scales is not written. */
aclnnStatus op_re_route_tokens(OpCall *op, const Operand *tokens, const Operand *counts, const Operand *scales,
                               const Operand *routed, const Operand *routed_scales, const Operand *order, const Operand *sums);
aclnnStatus op_expert_ends(OpCall *op, const Operand *sorted, const Operand *ends);
/* How many experts are active. */
int64_t op_active_experts(IntArguments active, int64_t experts);
Shape op_shape_counted_experts(OpCall *op, IntArguments active, int64_t experts, int64_t counting, bool wanted,
                               const Operand *counts);

/* Rows of the part, or those that MoeTokenPermute keeps. */
Shape op_shape_part_of_tokens(OpCall *op, const Operand *tokens, const Operand *experts, IntArguments range, int64_t limit);
/* A row for every `choices` places, in the part, else as many as the columns of `scale` say. */
Shape op_shape_combined_part(OpCall *op, const Operand *tokens, const Operand *places, const Operand *scale, IntArguments range,
                             int64_t choices);
Shape op_shape_combined_tokens(OpCall *op, const Operand *tokens, const Operand *places, const Operand *scale);
/* Without scale a row for every `choices` places. */
Shape op_shape_finalized(OpCall *op, const Operand *tokens, const Operand *places, const Operand *scale, int64_t choices);

/* Operands that a page does not have are NULL. */
typedef struct TokenCombination {
    const Operand *tokens, *places, *first, *second, *bias, *scale, *expert, *out;
    int64_t choices; /* of a row, where there is no scale; 0: one */
    bool by_columns, drops;
    PlacePart part;
} TokenCombination;
/* Places from range[0] on, before range[1]; not given: all. Those from `limit` on are a fault. */
PlacePart op_place_part(IntArguments range, int64_t limit);
/* No array, or two numbers, the second one not below the first. */
bool op_is_part(IntArguments range);
int64_t op_part_size(IntArguments range);
aclnnStatus op_combine_tokens(OpCall *op, const TokenCombination *combination);
/* With experts that have no tokens of their own; a range that is not given, or empty, is of none. */
typedef struct SpecialExperts {
    IntArguments zero, copying, constant;
    const Operand *x, *alpha1, *alpha2, *v;
} SpecialExperts;
aclnnStatus op_combine_with_experts(OpCall *op, const TokenCombination *combination, const SpecialExperts *special);
/* No numbers, or two, both positive, the second one above the first. */
bool op_is_expert_range(IntArguments range);
bool op_has_experts(IntArguments range);
bool op_overlaps(IntArguments a, IntArguments b);
/* Of tokens, places, bias, scale and expert as there. */
aclnnStatus op_combine_tokens_backward(OpCall *op, const Operand *slopes, const TokenCombination *combination,
                                       const Operand *token_gradient, const Operand *scale_gradient);
/* Of tokens, places, choices and part; gates' gradients may be NULL. */
aclnnStatus op_route_part_backward(OpCall *op, const TokenCombination *all, const Operand *token_gradient,
                                   const Operand *routed_gate_gradient, const Operand *gate_gradient);
/* A row for every `choices` places. */
Shape op_shape_rows_of_places(OpCall *op, const Operand *tokens, const Operand *places, int64_t choices);

#endif
