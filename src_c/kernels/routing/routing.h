/* Tokens on their way to experts and back: a token goes to as many experts as its row of expert numbers names, the rows
 * of one expert side by side. */
#ifndef UNDERSTUDY_ROUTING_H
#define UNDERSTUDY_ROUTING_H

#include "kernels/kernels.h"

/* Which experts a token goes to, and with which weights. scores = norm(x) row by row; of scores + bias the kept_groups best
 * groups of neighbours (by the sum of their `best` largest values), and of these the choices largest, in descending order,
 * the first of equal ones first; NaN is above all others. With a table: the experts in its row keys[r], and no bias.
 * weights = scores of these, with `divides` over (their sum + eps), times factor. norm and scores + bias are float32, the
 * rest double, rounded once. A key that the table does not have, and an expert there that x does not have, is a fault.
 * views: x [rows, experts], at most US_GATE_EXPERTS of them; bias [experts] or absent; weights and chosen (int32) [rows,
 * choices]; scores (as x) or absent; keys [rows] and table [keys, choices], int32 or int64, or both absent. */
enum { US_GATE_EXPERTS = 2048 };
typedef enum GateNorm { GATE_SOFTMAX, GATE_SIGMOID, GATE_SQRT_SOFTPLUS } GateNorm;
typedef struct GateTokens {
    int64_t choices, groups, kept_groups, best;
    GateNorm norm;
    bool divides;
    double factor, eps;
} GateTokens;
Kernel us_gate_tokens;
/* The same with others in the place of each chosen expert e: table[e, r % counts[e]]. A count that is not 1 … columns of the
 * table is a fault. views: x, bias or absent, weights, chosen, counts [experts] and table [experts, most], all int32. */
Kernel us_gate_mapped;

/* The gradient of the weights by x, of sigmoid scores that are divided: of w = scores[chosen], d = their sum + eps and
 * s = factor * slopes, scores[e] * (1 - scores[e]) * the sum of (s - the sum of w * s / d) / d over the choices of e. In
 * double, rounded once. An expert that scores does not have is a fault.
 * views: scores [rows, experts], at most US_GATE_EXPERTS, slopes and chosen (int32) [rows, choices], gradient as scores. */
typedef struct GateGradient {
    double factor, eps;
} GateGradient;
Kernel us_gate_tokens_backward;

/* Which place each chosen expert e has: its first one where there is one alone, else, of as many as there are, the one of
 * this rank, ranks shared out in order, or, `by_rows`, number r modulo as many. Row e of the table has how many there are,
 * then the places; an expert that it does not have, or a number of places, is a fault. The mask is where the scale is not
 * below the row's sum of scales, times the threshold of the choice, in float32, and the row is active.
 * views: experts [rows, choices] and places of one type, int32 or int64, the table [experts, 1 + places] (int32) between
 * them; then, or absent: scales [rows, choices], threshold [.., choices], active [rows] (bytes) and mask (bytes). */
typedef struct BalanceExperts {
    int64_t rank, ranks;
    bool by_rows;
} BalanceExperts;
Kernel us_balance_experts;

/* The same by softmax alone, of any number of experts: scores = softmax(x) along the last axis, in float32; weights and
 * chosen = the largest scores; `late`: chosen are the largest of x, and weights the softmax of these. Row r, counted
 * over the axes before, has chosen = the number of experts where finished is not 0, and rows = r, r + rows, r + 2 * rows …
 * views: x [rows…, experts], finished [rows…] (bytes) or absent, weights and chosen (int32) [rows…, choices]; then, or
 * absent: rows (int32, as chosen), scores (float32, as x; with `late` it is not written). */
typedef struct GateBySoftmax {
    bool late;
} GateBySoftmax;
Kernel us_gate_by_softmax;

/* Expert numbers, of all tokens in row-major order, are sorted, stable. Number f, of token f / choices, gets a place:
 * where it stands in this order, or, with a capacity, where it stands among those of its expert, from expert * capacity
 * on; -1 where that expert has no room. Numbers outside begin ... end - 1 have no place and stand behind all others. Row
 * `place` of `routed` is the token; rows that none has are 0. places: of each f, -1 without one, or `in_order` the f's in
 * the sorted order, -1 behind the last one.
 * views: tokens [tokens, …], experts, routed (of the tokens' type; its first `row_axes` axes count the rows), places
 * with an element for each expert number; then, or absent: counts [end - begin], or of pairs [.., 2], gates [tokens] and
 * routed_gates [rows], which go the way of the tokens. An expert number outside 0 … limit - 1 is a fault; `skips`: -1 is none. */
typedef enum ExpertCounts {
    COUNT_EACH,
    COUNT_SUMS, /* those before and its own */
    COUNT_PAIRS /* number and count of experts that have a token, then zeros */
} ExpertCounts;
typedef struct RouteTokens {
    int64_t choices, limit, begin, end;
    int64_t capacity; /* 0: none */
    int64_t first;    /* the place of the first row */
    int32_t row_axes;
    ExpertCounts counts;
    bool skips, in_order;
    bool own_gates; /* gates have one for each expert number */
} RouteTokens;
Kernel us_route_tokens;
/* The same with routed quantized: of int8, the nearest integers, ties to even, of token * scale + shift (rows without a
 * token 0), or, `by_rows`, as us_quantize_rows has it, with smooth numbers for all or for each expert from begin on.
 * `packed`: of 4 bits, as us_quantize and us_quantize_rows have them.
 * views: tokens, experts, routed, places, counts or absent, scale [1] or smooth [width] or [end - begin, width] or absent,
 * shift [1] or row_scale [rows]. */
typedef struct RouteQuantized {
    RouteTokens route;
    bool by_rows, packed;
} RouteQuantized;
Kernel us_route_quantized;

/* The older form: expert numbers are sorted, stable, in row-major order, and `numbers` go with them. Row i of `routed` is
 * token number % tokens of the i-th of these numbers, places[number] = i, -1 for a number that does not come. A number
 * outside 0 … numbers - 1 is a fault. `quantizes`: as us_route_quantized does it with one scale and shift.
 * views: tokens [tokens, width], numbers and experts of one shape, routed, of no more rows than there are numbers; places
 * and sorted (the expert numbers in order) with an element for each of them. */
typedef struct RouteNumbered {
    bool quantizes;
    float scale, offset;
} RouteNumbered;
Kernel us_route_numbered;

/* Tokens that came from several ranks, in each rank's part in the order of experts, go into the order of experts, for each
 * those of one rank after the other: row i of routed is token order[i], -1 and zeros behind the last one. sums: how many
 * tokens each expert has. Counts that are negative, or more than there are tokens, are a fault.
 * views: tokens [rows, width], counts [ranks, experts], routed, order [rows], sums [experts]; then, or absent: scales and
 * routed_scales [rows], which go the way of the tokens. */
Kernel us_re_route_tokens;

/* Where the rows of each expert end: out[e] = how many of the sorted expert numbers are not above e.
 * views: sorted expert numbers [count], out [experts], at most US_SORTED_EXPERTS of them. */
enum { US_SORTED_EXPERTS = 2048 };
Kernel us_expert_ends;

/* The same by a map of tokens and experts. Rows are in the order of experts, those of one in the order of tokens: all
 * marked pairs, and places[t * each + j] = the row of the token's pair j, -1 where it has fewer; more are a fault. Rows
 * behind the last pair are 0. With `blocks` each expert has so many rows: its marked tokens, then the others, each in
 * order; places are the tokens. gates, if given, go the way of the tokens.
 * views: tokens [tokens, width], map [tokens, experts] (bytes), routed [rows, width], places [rows]; then, or absent: gates (as
 * map), routed_gates [rows]. */
typedef struct RouteByMap {
    int64_t each; /* rows of a token, or, `blocks`, of an expert */
    bool blocks;
} RouteByMap;
Kernel us_route_by_map;

/* Its gradients: of tokens the sums of their rows, in the order of places, in float32 and rounded once; of gates the row's,
 * or 0. Places are those of the routing; one that names no row is a fault.
 * views: routed_gradient [rows, width], places [rows], token_gradient [tokens, width]; then, or absent: routed_gate_gradient
 * [rows], map (not of blocks) and gate_gradient [tokens, experts]; row_scale [rows], which rows are multiplied by. */
Kernel us_route_by_map_backward;

/* Back: tokens = the sums of their rows as there, each times its gate. routed_gates are those of the marked pairs in the
 * order of experts, then 0, or of blocks the expert's gates of the tokens in `places`. rows = places and row_tokens = the
 * token of each, or of blocks the rows in the order of their tokens, stable, and these tokens.
 * views: routed [rows, width], places [rows], tokens [tokens, width]; map, gates and routed_gates as for us_route_by_map,
 * or absent; rows and row_tokens [rows]. */
Kernel us_unroute_by_map;

/* Its gradients: row rows[i] of routed_gradient = slopes[row_tokens[i]] times its gate, 0 where there is none; of the gate
 * the sum of slopes[row_tokens[i]] * routed[rows[i]], in double, else 0. Without blocks row_tokens is i / each, whatever is
 * given, and a row -1 is none; other rows and tokens outside are a fault, and of equal rows the last one counts.
 * views: slopes [tokens, width], rows and row_tokens [rows] (int32), routed_gradient [rows, width]; then, or absent: map
 * (not of blocks), routed, gates, gate_gradient. */
Kernel us_unroute_by_map_backward;

/* out[r] = first[r] + second[r] + sum over k of scale[r, k] * (tokens[place] + bias[expert[r, k]]), in this order, in
 * float32 and rounded once. place is element r * choices + k of `places`, or k * rows + r: `by_columns`. A place that
 * tokens does not have adds nothing where it is below rows * choices; `drops`: -1 is a token of zeros. All others are a
 * fault, and experts that bias does not have.
 * views: tokens [places…, width], places, out [rows, width]; then, or absent: scale [rows, choices], bias [experts, width],
 * expert [rows, choices], first and second [rows, width]. Without scale it is 1, and there is one choice. */
typedef struct PlacePart { /* of places: those from first on, before end, stand for tokens 0, 1 …; the others add nothing */
    bool given;
    int64_t first, end, limit; /* places from limit on are a fault */
} PlacePart;
typedef struct CombineTokens {
    int64_t choices;
    bool by_columns, drops;
    PlacePart part;
} CombineTokens;
Kernel us_combine_tokens;

/* The same with experts that have no tokens of their own, by the numbers in `expert`: a zero expert adds nothing, a copying
 * one stands for a token that is x[r], a constant one for alpha1[c] * x[r] + alpha2[c] * v[c], c counted from its first; bias
 * is added as there. Their places are not looked at.
 * views: those of us_combine_tokens; then, or absent: x [rows, width], alpha1, alpha2 and v [constant experts, width]. */
typedef struct ExpertRange {
    int64_t begin, end;
} ExpertRange;
typedef struct CombineWithExperts {
    CombineTokens call;
    ExpertRange zero, copying, constant;
} CombineWithExperts;
Kernel us_combine_with_experts;

/* The gradients of us_route_tokens with first and own_gates: of tokens as us_combine_tokens has it, without scale, and of
 * gates their row's, 0 without one. views: routed_gradient, places and token_gradient as tokens, places and out there; then,
 * or absent: routed_gate_gradient [rows], gate_gradient with an element for each place. Attributes: CombineTokens. */
Kernel us_route_part_backward;

/* Its gradients by tokens and scale, with places by rows: row p of token_gradient = scale[f] * slopes[f / choices] for the last
 * f whose place is p, or 0 without one; scale_gradient[f] = the sum of slopes[f / choices] * (tokens[place] + bias[expert[f]]),
 * in double. Places outside 0 … rows * choices - 1 are a fault, and one that tokens does not have gives 0; `drops`: -1 is a
 * token of zeros, and others outside tokens are a fault. Experts that bias does not have are a fault.
 * views: slopes [rows, width], tokens [places…, width] or, without scale, absent, places, token_gradient (as tokens); then, or
 * absent: scale and scale_gradient [rows, choices], bias [experts, width] and expert [rows, choices]. Without scale it is 1. */
typedef struct CombineTokensBackward {
    int64_t choices;
    bool drops;
    PlacePart part;
} CombineTokensBackward;
Kernel us_combine_tokens_backward;

#endif
