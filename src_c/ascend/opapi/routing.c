#include "ascend/opapi/routing.h"

/* A view of what is only there together with another operand. */
static PlannedView written_with(const Operand *operand, const Operand *other, const View *absent)
{
    return op_given(other) ? (PlannedView){operand, VIEW_WRITE, NULL} : (PlannedView){NULL, VIEW_READ, absent};
}

/* ---- which experts ---- */

int64_t op_padded_experts(int64_t experts, int64_t groups)
{
    return (experts / groups + 31) / 32 * 32 * groups;
}

aclnnStatus op_gate_tokens(OpCall *op, const Operand *x, const Operand *bias, const GateTokens *how, const Operand *weights,
                           const Operand *chosen, bool wants_scores, const Operand *scores, const Operand *keys,
                           const Operand *table)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {bias, VIEW_READ, NULL}, {weights, VIEW_WRITE, NULL},
                                 {chosen, VIEW_WRITE, NULL},
                                 written_with(scores, wants_scores ? scores : NULL, &absent),
                                 {keys, VIEW_READ, NULL}, {table, VIEW_READ, NULL}};
    return op_plan_views(op, us_gate_tokens, how, sizeof *how, sizeof views / sizeof *views, views);
}

aclnnStatus op_gate_mapped(OpCall *op, const Operand *x, const Operand *bias, const GateTokens *how, const Operand *weights,
                           const Operand *chosen, const Operand *counts, const Operand *table)
{
    if (op_refused(op) || !op_given(counts)) {
        return op_gate_tokens(op, x, bias, how, weights, chosen, false, NULL, NULL, NULL);
    }
    const PlannedView views[] = {{x, VIEW_READ, NULL},       {bias, VIEW_READ, NULL},   {weights, VIEW_WRITE, NULL},
                                 {chosen, VIEW_WRITE, NULL}, {counts, VIEW_READ, NULL}, {table, VIEW_READ, NULL}};
    return op_plan_views(op, us_gate_mapped, how, sizeof *how, sizeof views / sizeof *views, views);
}

aclnnStatus op_gate_tokens_backward(OpCall *op, const Operand *scores, const Operand *slopes, const Operand *chosen,
                                    GateGradient how, const Operand *gradient)
{
    return op_plan_operands(op, us_gate_tokens_backward, &how, sizeof how, OPERANDS(scores, slopes, chosen), OPERANDS(gradient));
}

aclnnStatus op_balance_experts(OpCall *op, const Operand *experts, const Operand *table, const Operand *scales,
                               const Operand *threshold, const Operand *active, BalanceExperts how, const Operand *placed,
                               const Operand *mask)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const PlannedView views[] = {{experts, VIEW_READ, NULL}, {table, VIEW_READ, NULL},     {placed, VIEW_WRITE, NULL},
                                 {scales, VIEW_READ, NULL},  {threshold, VIEW_READ, NULL}, {active, VIEW_READ, NULL},
                                 written_with(mask, scales, &absent)};
    return op_plan_views(op, us_balance_experts, &how, sizeof how, sizeof views / sizeof *views, views);
}

Shape op_shape_gates(OpCall *op, const Operand *x, int64_t choices)
{
    Shape shape = op_shape(x);
    if (!op_refused(op) && shape.rank > 0) {
        shape.sizes[shape.rank - 1] = choices;
    }
    return shape;
}

aclnnStatus op_gate_by_softmax(OpCall *op, const Operand *x, const Operand *finished, bool late, const Operand *weights,
                               const Operand *chosen, const Operand *rows, const Operand *scores)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const GateBySoftmax how = {late};
    const View absent = us_view_absent();
    const PlannedView views[] = {{x, VIEW_READ, NULL},       {finished, VIEW_READ, NULL}, {weights, VIEW_WRITE, NULL},
                                 {chosen, VIEW_WRITE, NULL}, written_with(rows, rows, &absent),
                                 written_with(scores, scores, &absent)};
    return op_plan_views(op, us_gate_by_softmax, &how, sizeof how, sizeof views / sizeof *views, views);
}

/* ---- to the experts ---- */

int64_t op_choices(const Operand *experts)
{
    return experts->view.rank == 2 ? experts->view.shape[1] : 1;
}

Shape op_shape_places(OpCall *op, const Operand *experts)
{
    (void)op;
    const int64_t count = op_elements(experts);
    return op_shape_of(1, &count);
}

int64_t op_kept_tokens(const Operand *experts, int64_t limit)
{
    const int64_t count = op_elements(experts);
    return limit == 0 ? count : op_slice_size(count, 0, limit, 1);
}

Shape op_shape_permuted_tokens(OpCall *op, const Operand *tokens, const Operand *experts, int64_t limit,
                               const Operand *out)
{
    Shape shape = op_shape(tokens);
    if (op_refused(op)) {
        return shape;
    }
    const View *tokens_view = &tokens->view, *view = &out->view;
    shape.sizes[0] = op_kept_tokens(experts, limit);
    const bool folds = view->rank >= 2 && view->shape[0] == shape.sizes[0] &&
                       us_shape_elements(view->rank - 1, view->shape + 1) ==
                           us_shape_elements(tokens_view->rank - 1, tokens_view->shape + 1);
    return folds ? op_shape(out) : shape;
}

Shape op_shape_routed_tokens(OpCall *op, const Operand *x, const Operand *experts, int64_t mode, int64_t expert_count,
                             int64_t capacity, int64_t active)
{
    (void)op;
    const int64_t count = op_elements(experts), width = op_size(x, 1);
    return mode == 1 ? op_shape_of(3, (const int64_t[]){expert_count, capacity, width})
                     : op_shape_of(2, (const int64_t[]){active > 0 && active < count ? active : count, width});
}

Shape op_shape_expert_counts(OpCall *op, int64_t mode, int64_t counting_mode, bool wanted, int64_t expert_count,
                             const Operand *counts)
{
    (void)op;
    return mode == counting_mode && wanted ? op_shape_of(1, &expert_count) : op_shape(counts);
}

int64_t op_active_experts(IntArguments active, int64_t experts)
{
    return active.count > 0 ? active.values[1] - active.values[0] : experts;
}

Shape op_shape_counted_experts(OpCall *op, IntArguments active, int64_t experts, int64_t counting, bool wanted,
                               const Operand *counts)
{
    if (op_refused(op) || !wanted) {
        return op_shape(counts);
    }
    const int64_t pairs[] = {experts, 2}, numbers = op_active_experts(active, experts);
    return counting == COUNT_PAIRS ? op_shape_of(2, pairs) : op_shape_of(1, &numbers);
}

static RouteTokens how_to_route(const TokenRoute *route)
{
    return (RouteTokens){.choices = op_choices(route->experts), .limit = route->limit,
                         .begin = route->active.count > 0 ? route->active.values[0] : 0,
                         .end = route->active.count > 0 ? route->active.values[1] : route->limit,
                         .capacity = route->capacity, .row_axes = route->capacity > 0 ? 2 : 1, .counts = route->counting,
                         .skips = route->skips, .in_order = route->in_order, .first = route->first,
                         .own_gates = route->own_gates};
}

aclnnStatus op_route_tokens(OpCall *op, const TokenRoute *route)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const RouteTokens call = how_to_route(route);
    const View absent = us_view_absent();
    const PlannedView views[] = {{route->tokens, VIEW_READ, NULL},  {route->experts, VIEW_READ, NULL},
                                 {route->routed, VIEW_WRITE, NULL}, {route->places, VIEW_WRITE, NULL},
                                 {route->counts, VIEW_WRITE, NULL}, {route->gates, VIEW_READ, NULL},
                                 written_with(route->routed_gates, route->gates, &absent)};
    return op_plan_views(op, us_route_tokens, &call, sizeof call, sizeof views / sizeof *views, views);
}

aclnnStatus op_route_quantized(OpCall *op, const TokenRoute *route, bool by_rows, const Operand *scale, const Operand *shift)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Integers routed = op_integers_of(route->routed);
    const RouteQuantized call = {how_to_route(route), by_rows, routed.axis != NOT_PACKED};
    View scales = op_given(scale) ? scale->view : us_view_absent();
    if (by_rows && op_given(scale) && scale->view.shape[0] == 1) { /* one row for all */
        scales = us_view_remove_axis(scales, 0);
    }
    const PlannedView row_scale = {route->routed_gates, VIEW_WRITE, NULL}, shifts = {shift, VIEW_READ, NULL};
    const PlannedView views[] = {{route->tokens, VIEW_READ, NULL},          {route->experts, VIEW_READ, NULL},
                                 {route->routed, VIEW_WRITE, &routed.view}, {route->places, VIEW_WRITE, NULL},
                                 {route->counts, VIEW_WRITE, NULL},         {scale, VIEW_READ, &scales},
                                 by_rows ? row_scale : shifts};
    return op_plan_views(op, us_route_quantized, &call, sizeof call, sizeof views / sizeof *views, views);
}

Shape op_shape_active_tokens(OpCall *op, const Operand *x, const Operand *experts, int64_t active)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    const int64_t rows = op_size(x, 0);
    return op_shape_of(2, (const int64_t[]){(active < rows ? active : rows) * op_size(experts, 1), op_size(x, 1)});
}

aclnnStatus op_route_numbered(OpCall *op, const Operand *tokens, const Operand *numbers, const Operand *experts,
                              RouteNumbered how, const Operand *routed, const Operand *places, const Operand *sorted)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {{tokens, VIEW_READ, NULL},  {numbers, VIEW_READ, NULL}, {experts, VIEW_READ, NULL},
                                 {routed, VIEW_WRITE, NULL}, {places, VIEW_WRITE, NULL}, {sorted, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_route_numbered, &how, sizeof how, sizeof views / sizeof *views, views);
}

aclnnStatus op_re_route_tokens(OpCall *op, const Operand *tokens, const Operand *counts, const Operand *scales,
                               const Operand *routed, const Operand *routed_scales, const Operand *order, const Operand *sums)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const PlannedView views[] = {{tokens, VIEW_READ, NULL}, {counts, VIEW_READ, NULL}, {routed, VIEW_WRITE, NULL},
                                 {order, VIEW_WRITE, NULL}, {sums, VIEW_WRITE, NULL},  {scales, VIEW_READ, NULL},
                                 written_with(routed_scales, scales, &absent)};
    return op_plan_views(op, us_re_route_tokens, NULL, 0, sizeof views / sizeof *views, views);
}

aclnnStatus op_expert_ends(OpCall *op, const Operand *sorted, const Operand *ends)
{
    return op_plan_operands(op, us_expert_ends, NULL, 0, OPERANDS(sorted), OPERANDS(ends));
}

RouteByMap op_map_route(const Operand *map, int64_t limit, bool blocks)
{
    const int64_t count = op_size(map, blocks ? 1 : 0);
    return (RouteByMap){count > 0 ? limit / count : 0, blocks};
}

static int64_t mapped_rows(const Operand *map, int64_t limit, bool blocks)
{
    return op_map_route(map, limit, blocks).each * op_size(map, blocks ? 1 : 0);
}

Shape op_shape_mapped_places(OpCall *op, const Operand *map, int64_t limit, bool blocks)
{
    const int64_t rows = op_refused(op) ? 0 : mapped_rows(map, limit, blocks);
    return op_shape_of(1, &rows);
}

Shape op_shape_mapped_tokens(OpCall *op, const Operand *tokens, const Operand *map, int64_t limit, bool blocks)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    return op_shape_of(2, (const int64_t[]){mapped_rows(map, limit, blocks), op_size(tokens, 1)});
}

aclnnStatus op_route_by_map(OpCall *op, const Operand *tokens, const Operand *map, const Operand *gates, RouteByMap how,
                            const Operand *routed, const Operand *routed_gates, const Operand *places)
{
    if (op_refused(op) || op_empty(places)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const PlannedView views[] = {{tokens, VIEW_READ, NULL},  {map, VIEW_READ, NULL},
                                 {routed, VIEW_WRITE, NULL}, {places, VIEW_WRITE, NULL},
                                 {gates, VIEW_READ, NULL},   written_with(routed_gates, gates, &absent)};
    return op_plan_views(op, us_route_by_map, &how, sizeof how, sizeof views / sizeof *views, views);
}

aclnnStatus op_route_by_map_backward(OpCall *op, const Operand *routed, const Operand *gates, const Operand *places,
                                     const Operand *map, RouteByMap how, const Operand *token_gradient,
                                     const Operand *gate_gradient)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const PlannedView views[] = {{routed, VIEW_READ, NULL},          {places, VIEW_READ, NULL},
                                 {token_gradient, VIEW_WRITE, NULL}, {gates, VIEW_READ, NULL},
                                 {map, VIEW_READ, NULL},             written_with(gate_gradient, gates, &absent),
                                 {NULL, VIEW_READ, &absent}};
    return op_plan_views(op, us_route_by_map_backward, &how, sizeof how, sizeof views / sizeof *views, views);
}

bool op_divides(int64_t count, int64_t size)
{
    return count == 0 ? size == 0 : size % count == 0;
}

RouteByMap op_unmap_route(const Operand *rows, int64_t count, bool blocks)
{
    return (RouteByMap){count == 0 ? 0 : op_size(rows, 0) / count, blocks};
}

aclnnStatus op_unroute_by_map(OpCall *op, const MapUnrouting *all)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const PlannedView views[] = {{all->routed, VIEW_READ, NULL}, {all->places, VIEW_READ, NULL}, {all->tokens, VIEW_WRITE, NULL},
                                 {all->map, VIEW_READ, NULL},    {all->gates, VIEW_READ, NULL},
                                 written_with(all->routed_gates, all->gates, &absent),
                                 {all->rows, VIEW_WRITE, NULL},  {all->row_tokens, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_unroute_by_map, &all->how, sizeof all->how, sizeof views / sizeof *views, views);
}

aclnnStatus op_unroute_by_map_backward(OpCall *op, const MapUnrouting *all, const Operand *slopes, const Operand *routed_gradient,
                                       const Operand *gate_gradient)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const PlannedView views[] = {{slopes, VIEW_READ, NULL},          {all->rows, VIEW_READ, NULL},
                                 {all->row_tokens, VIEW_READ, NULL}, {routed_gradient, VIEW_WRITE, NULL},
                                 {all->map, VIEW_READ, NULL},        {all->routed, VIEW_READ, NULL},
                                 {all->gates, VIEW_READ, NULL},      written_with(gate_gradient, all->gates, &absent)};
    return op_plan_views(op, us_unroute_by_map_backward, &all->how, sizeof all->how, sizeof views / sizeof *views, views);
}

/* ---- and back ---- */

Shape op_shape_combined_tokens(OpCall *op, const Operand *tokens, const Operand *places, const Operand *scale)
{
    (void)op;
    const int64_t rows = op_given(scale) ? op_size(scale, 0) : op_size(places, 0);
    return op_shape_of(2, (const int64_t[]){rows, op_size(tokens, -1)});
}

static CombineTokens how_to_combine(const TokenCombination *all)
{
    return (CombineTokens){.choices = op_given(all->scale) ? op_size(all->scale, 1) : all->choices > 0 ? all->choices : 1,
                           .by_columns = all->by_columns, .drops = all->drops, .part = all->part};
}

static aclnnStatus plan_combination(OpCall *op, Kernel *kernel, const void *attributes, size_t size, const TokenCombination *all,
                                    const SpecialExperts *special)
{
    const PlannedView views[] = {
        {all->tokens, VIEW_READ, NULL}, {all->places, VIEW_READ, NULL}, {all->out, VIEW_WRITE, NULL},
        {all->scale, VIEW_READ, NULL},  {all->bias, VIEW_READ, NULL},   {all->expert, VIEW_READ, NULL},
        {all->first, VIEW_READ, NULL},  {all->second, VIEW_READ, NULL}, {special->x, VIEW_READ, NULL},
        {special->alpha1, VIEW_READ, NULL}, {special->alpha2, VIEW_READ, NULL}, {special->v, VIEW_READ, NULL},
    };
    return op_plan_views(op, kernel, attributes, size, kernel == us_combine_tokens ? 8 : sizeof views / sizeof *views, views);
}

aclnnStatus op_combine_tokens(OpCall *op, const TokenCombination *all)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const CombineTokens call = how_to_combine(all);
    return plan_combination(op, us_combine_tokens, &call, sizeof call, all, &(SpecialExperts){.x = NULL});
}

bool op_has_experts(IntArguments range)
{
    return range.given && range.count > 0;
}

bool op_is_expert_range(IntArguments range)
{
    return !op_has_experts(range) || (range.count == 2 && range.values[0] > 0 && range.values[1] > range.values[0]);
}

bool op_overlaps(IntArguments a, IntArguments b)
{
    return op_has_experts(a) && op_has_experts(b) && a.values[0] < b.values[1] && b.values[0] < a.values[1];
}

static ExpertRange expert_range(IntArguments range)
{
    return op_has_experts(range) ? (ExpertRange){range.values[0], range.values[1]} : (ExpertRange){0, 0};
}

aclnnStatus op_combine_with_experts(OpCall *op, const TokenCombination *all, const SpecialExperts *special)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    if (!op_has_experts(special->zero) && !op_has_experts(special->copying) && !op_has_experts(special->constant)) {
        return op_combine_tokens(op, all);
    }
    const CombineWithExperts call = {how_to_combine(all), expert_range(special->zero), expert_range(special->copying),
                                     expert_range(special->constant)};
    return plan_combination(op, us_combine_with_experts, &call, sizeof call, all, special);
}

Shape op_shape_finalized(OpCall *op, const Operand *tokens, const Operand *places, const Operand *scale, int64_t choices)
{
    return op_given(scale) || op_refused(op) ? op_shape_combined_tokens(op, tokens, places, scale)
                                             : op_shape_rows_of_places(op, tokens, places, choices);
}

bool op_is_part(IntArguments range)
{
    return !range.given || (range.count == 2 && range.values[0] >= 0 && range.values[1] >= range.values[0]);
}

int64_t op_part_size(IntArguments range)
{
    return range.values[1] - range.values[0];
}

PlacePart op_place_part(IntArguments range, int64_t limit)
{
    return range.given ? (PlacePart){true, range.values[0], range.values[1], limit} : (PlacePart){0};
}

Shape op_shape_part_of_tokens(OpCall *op, const Operand *tokens, const Operand *experts, IntArguments range, int64_t limit)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    const int64_t rows = range.given ? op_part_size(range) : op_kept_tokens(experts, limit);
    return op_shape_of(2, (const int64_t[]){rows, op_size(tokens, 1)});
}

Shape op_shape_combined_part(OpCall *op, const Operand *tokens, const Operand *places, const Operand *scale, IntArguments range,
                             int64_t choices)
{
    return range.given ? op_shape_rows_of_places(op, tokens, places, choices)
                       : op_shape_combined_tokens(op, tokens, places, scale);
}

aclnnStatus op_route_part_backward(OpCall *op, const TokenCombination *all, const Operand *token_gradient,
                                   const Operand *routed_gate_gradient, const Operand *gate_gradient)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const CombineTokens call = {.choices = all->choices, .part = all->part};
    const PlannedView views[] = {{all->tokens, VIEW_READ, NULL}, {all->places, VIEW_READ, NULL},
                                 {token_gradient, VIEW_WRITE, NULL}, {routed_gate_gradient, VIEW_READ, NULL},
                                 written_with(gate_gradient, routed_gate_gradient, &absent)};
    return op_plan_views(op, us_route_part_backward, &call, sizeof call, sizeof views / sizeof *views, views);
}

Shape op_shape_rows_of_places(OpCall *op, const Operand *tokens, const Operand *places, int64_t choices)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    return op_shape_of(2, (const int64_t[]){op_size(places, 0) / choices, op_size(tokens, -1)});
}

aclnnStatus op_combine_tokens_backward(OpCall *op, const Operand *slopes, const TokenCombination *all,
                                       const Operand *token_gradient, const Operand *scale_gradient)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View absent = us_view_absent();
    const CombineTokensBackward call = {.choices = op_given(all->scale) ? op_size(all->scale, 1) : 1, .drops = all->drops,
                                        .part = all->part};
    const PlannedView views[] = {{slopes, VIEW_READ, NULL},      {all->tokens, VIEW_READ, NULL}, {all->places, VIEW_READ, NULL},
                                 {token_gradient, VIEW_WRITE, NULL}, {all->scale, VIEW_READ, NULL},
                                 written_with(scale_gradient, all->scale, &absent),
                                 {all->bias, VIEW_READ, NULL},   {all->expert, VIEW_READ, NULL}};
    return op_plan_views(op, us_combine_tokens_backward, &call, sizeof call, sizeof views / sizeof *views, views);
}
