#include "ascend/opapi/feed_forward.h"

#include "ascend/common/op_memory.h"
#include "ascend/opapi/packed_integers.h"
#include "kernels/map/formulas.h"
#include "kernels/matmul/feed_forward.h"

enum { MOST_EXPERTS = 256, SIZE_LIMIT = 65536 };

/* ---- types ---- */

typedef struct TypeRow {
    FeedForwardKind kind;
    DTypeSet x, weight, bias, deq_scale, between, antiquant_scale, antiquant_offset, y;
} TypeRow;

static const TypeRow rows[] = {
    {FEED_FLOATS, T_F16, T_F16, T_NONE | T_F16, T_NONE, T_NONE, T_NONE, T_NONE, T_F16},
    {FEED_FLOATS, T_BF16, T_BF16, T_NONE | T_F32, T_NONE, T_NONE, T_NONE, T_NONE, T_BF16},
    {FEED_INTEGERS, T_I8, T_I8, T_NONE | T_I32, T_U64 | T_I64 | T_F32, T_F32, T_NONE, T_NONE, T_F16},
    {FEED_INTEGERS, T_I8, T_I8, T_NONE | T_I32, T_BF16, T_F32, T_NONE, T_NONE, T_BF16},
    {FEED_WEIGHTS, T_F16, T_I8 | T_I4, T_NONE | T_F16, T_NONE, T_NONE, T_F16, T_NONE | T_F16, T_F16},
    {FEED_WEIGHTS, T_BF16, T_I8 | T_I4, T_NONE | T_F32, T_NONE, T_NONE, T_BF16, T_NONE | T_BF16, T_BF16},
};

static bool fits_row(const FeedForwardCall *call, const TypeRow *row)
{
    bool fits = op_is_of(call->x, row->x) && op_is_of(call->y, row->y) && op_is_of(call->scale, row->between) &&
                op_is_of(call->offset, row->between);
    for (int i = 0; i < 2; i++) {
        const FeedForwardLayer *layer = &call->layers[i];
        fits = fits && op_is_of(layer->weight, row->weight) && op_is_of(layer->bias, row->bias) &&
               op_is_of(layer->scale, row->deq_scale) && op_is_of(layer->antiquant_scale, row->antiquant_scale) &&
               op_is_of(layer->antiquant_offset, row->antiquant_offset);
    }
    return fits;
}

static const TypeRow *row_of(const FeedForwardCall *call)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (fits_row(call, &rows[i])) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool has_experts(const FeedForwardCall *call)
{
    return call->tokens != NULL ? op_given(call->tokens) : call->counts.given && call->counts.count > 0;
}

typedef struct Activation {
    const char *name;
    const MapFormula *formula;
    bool gated;
} Activation;

static const Activation *activation_of(const char *name)
{
    static const Activation known[] = {
        {"fastgelu", &us_map_fast_gelu, false}, {"gelu", &us_map_gelu, false},  {"relu", &us_map_relu, false},
        {"silu", &us_map_silu, false},          {"geglu", &us_map_gelu, true}, {"swiglu", &us_map_silu, true},
        {"reglu", &us_map_relu, true},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return &known[i];
        }
    }
    return NULL;
}

void op_require_feed_forward_types(OpCall *op, const FeedForwardCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Activation *activation = activation_of(call->activation);
    op_require(op, activation != NULL, "activation", "value", op->invalid,
               "activation is \"%s\": it is fastgelu, gelu, relu, silu, geglu, swiglu or reglu", call->activation);
    const TypeRow *row = row_of(call);
    const FeedForwardLayer *layers = call->layers;
    const bool alike = layers[0].weight->dtype == layers[1].weight->dtype &&
                       (!op_given(layers[0].scale) || layers[0].scale->dtype == layers[1].scale->dtype);
    op_require(op, row != NULL && alike, "y", "types", op->invalid,
               "y of %s is not made from x %s, weights %s and %s and the numbers that are given",
               acl_dtype_name(call->y->dtype), acl_dtype_name(call->x->dtype),
               acl_dtype_name(layers[0].weight->dtype), acl_dtype_name(layers[1].weight->dtype));
    if (op_refused(op)) {
        return;
    }
    op_require(op, !activation->gated || (call->x->dtype == ACL_FLOAT16 && row->kind == FEED_FLOATS &&
                                          call->precise == 1 && !has_experts(call)),
               "activation", "case", op->invalid,
               "activation is %s: that goes with ACL_FLOAT16, innerPrecise 1 and no experts", call->activation);
    op_require(op, call->precise == 0 || row->kind != FEED_FLOATS || call->x->dtype == ACL_FLOAT16, "innerPrecise",
               "case", op->invalid, "innerPrecise is %lld: with ACL_BF16 it is 0", (long long)call->precise);
}

/* ---- shapes ---- */

typedef struct LayerSizes {
    Integers weight;
    int64_t depth, columns;
} LayerSizes;

static LayerSizes layer_sizes(const FeedForwardCall *call, int layer)
{
    LayerSizes of = {.weight = op_integers_of(call->layers[layer].weight)};
    of.depth = op_integer_size(&of.weight, 2);
    of.columns = op_integer_size(&of.weight, 1);
    return of;
}

static int64_t tokens_of(const FeedForwardCall *call)
{
    const View *x = &call->x->view;
    return us_shape_elements(x->rank - 1, x->shape);
}

static int64_t experts_of(const FeedForwardCall *call)
{
    return has_experts(call) ? op_size(call->layers[0].weight, 0) : 1;
}

/* The tokens of an expert, of an array; below 0 where they end before those of the last one. */
static int64_t count_of(const FeedForwardCall *call, int64_t expert)
{
    const int64_t *counts = call->counts.values, before = call->ends && expert > 0 ? counts[expert - 1] : 0;
    return counts[expert] < before ? -1 : counts[expert] - before;
}

static void require_experts(OpCall *op, const FeedForwardCall *call)
{
    const char *name = call->tokens != NULL ? call->tokens->name : call->counts.name;
    const int64_t experts = experts_of(call);
    const int64_t length = !has_experts(call)    ? experts
                           : call->tokens != NULL ? op_elements(call->tokens)
                                                  : call->counts.count;
    op_require(op, length == experts && experts <= MOST_EXPERTS, name, "length", op->invalid,
               "%s has %lld numbers, weight1 has %lld experts; 256 are the most", name, (long long)length,
               (long long)experts);
    int64_t sum = 0;
    for (int64_t i = 0; i < length && has_experts(call) && call->tokens == NULL && !op_refused(op); i++) {
        const int64_t count = count_of(call, i);
        op_require(op, count >= 0 && count <= tokens_of(call), name, "range", op->invalid,
                   "%s has %lld tokens for expert %lld, x has %lld", name, (long long)count, (long long)i,
                   (long long)tokens_of(call));
        sum = __builtin_add_overflow(sum, count, &sum) ? INT64_MAX : sum;
    }
    op_require(op, !has_experts(call) || call->tokens != NULL || sum == tokens_of(call), name, "sum", op->invalid,
               "%s has %lld tokens together, x has %lld", name, (long long)sum, (long long)tokens_of(call));
}

/* [n], with experts [experts, n]; `parts` of the depth may be a dimension more before n. */
static bool is_of_layer(const FeedForwardCall *call, const Operand *operand, int64_t n, int64_t depth, bool parts)
{
    const View *view = &operand->view;
    const int32_t front = has_experts(call) ? 1 : 0;
    const bool has_parts = parts && view->rank == front + 2;
    return view->rank == front + (has_parts ? 2 : 1) && (front == 0 || view->shape[0] == experts_of(call)) &&
           view->shape[view->rank - 1] == n &&
           (!has_parts || (view->shape[front] > 0 && depth % view->shape[front] == 0));
}

static void require_of_layer(OpCall *op, const FeedForwardCall *call, const Operand *operand, const LayerSizes *of,
                             bool parts)
{
    op_require(op, !op_given(operand) || is_of_layer(call, operand, of->columns, of->depth, parts),
               op_given(operand) ? operand->name : "", "shape", op->invalid,
               "%s is %s; its weight sums over %lld and has %lld columns, of %lld experts", operand->name,
               op_shape_text(op, operand), (long long)of->depth, (long long)of->columns, (long long)experts_of(call));
}

static void require_layer(OpCall *op, const FeedForwardCall *call, int layer, const LayerSizes *of, int64_t depth)
{
    const FeedForwardLayer *own = &call->layers[layer];
    op_require_packed(op, own->weight, &of->weight);
    op_require(op, of->depth == depth && (layer == 0 || of->columns == op_size(call->x, -1)) &&
                       (!has_experts(call) || op_size(own->weight, 0) == experts_of(call)),
               own->weight->name, "shape", op->invalid,
               "%s is %s: it must sum over %lld; x is %s, and the second layer makes its width", own->weight->name,
               op_shape_text(op, own->weight), (long long)depth, op_shape_text(op, call->x));
    op_require(op, of->depth < SIZE_LIMIT, own->weight->name, "size", op->invalid, "%s is %s: it may sum over 65535",
               own->weight->name, op_shape_text(op, own->weight));
    op_require(op, layer == 1 || !op_empty(own->weight), own->weight->name, "empty", op->invalid,
               "%s is %s: it has no elements", own->weight->name, op_shape_text(op, own->weight));
    if (op_refused(op)) {
        return;
    }
    require_of_layer(op, call, own->bias, of, false);
    require_of_layer(op, call, own->scale, of, false);
    require_of_layer(op, call, own->antiquant_scale, of, own->weight->dtype == ACL_INT4);
    op_require_same_shape(op, own->antiquant_offset, own->antiquant_scale);
}

/* One number for each expert, or for each expert and column of the first layer. */
static bool is_between(const FeedForwardCall *call, const Operand *operand, int64_t columns)
{
    const View *view = &operand->view;
    const bool lines = view->rank == (has_experts(call) ? 2 : 1) && view->shape[view->rank - 1] == columns &&
                       (!has_experts(call) || view->shape[0] == experts_of(call));
    return (view->rank == 1 && view->shape[0] == experts_of(call)) || (columns > 0 && lines);
}

static void require_between(OpCall *op, const FeedForwardCall *call, int64_t columns)
{
    if (!op_given(call->scale) || op_refused(op)) {
        return;
    }
    op_require(op, is_between(call, call->scale, columns), call->scale->name, "shape", op->invalid,
               "%s is %s: it has a number for each of %lld experts, or for each of their %lld columns",
               call->scale->name, op_shape_text(op, call->scale), (long long)experts_of(call), (long long)columns);
    op_require(op, is_between(call, call->offset, 0), call->offset->name, "shape", op->invalid,
               "%s is %s: it has a number for each of %lld experts", call->offset->name,
               op_shape_text(op, call->offset), (long long)experts_of(call));
    const bool lines = op_elements(call->scale) != experts_of(call);
    op_require(op, !lines || call->layers[0].scale->dtype != ACL_FLOAT, call->scale->name, "case", op->invalid,
               "%s is %s: with a number for each column the other scales are not ACL_FLOAT", call->scale->name,
               op_shape_text(op, call->scale));
}

void op_require_feed_forward_shapes(OpCall *op, const FeedForwardCall *call)
{
    const int32_t rank = has_experts(call) ? 3 : 2;
    op_require_rank(op, call->x, 2, 8);
    op_require_rank(op, call->layers[0].weight, rank, rank);
    op_require_rank(op, call->layers[1].weight, rank, rank);
    if (op_refused(op)) {
        return;
    }
    const bool gated = activation_of(call->activation)->gated;
    const LayerSizes first = layer_sizes(call, 0), second = layer_sizes(call, 1);
    op_require(op, !op_empty(call->x), "x", "empty", op->invalid, "x is %s: it has no elements",
               op_shape_text(op, call->x));
    require_experts(op, call);
    require_layer(op, call, 0, &first, op_size(call->x, -1));
    op_require(op, !gated || first.columns % 2 == 0 || op_refused(op), call->layers[0].weight->name, "even", op->invalid,
               "%s is %s: its columns have no halves", call->layers[0].weight->name,
               op_shape_text(op, call->layers[0].weight));
    if (!op_refused(op)) {
        require_layer(op, call, 1, &second, gated ? first.columns / 2 : first.columns);
    }
    require_between(op, call, first.columns);
}

/* ---- plan ---- */

/* [n] as [1, n], [experts, n] as [experts, 1, n]. */
static View line_of(const FeedForwardCall *call, const Operand *operand)
{
    const View view = op_scale_view(operand);
    const bool is_line = op_given(operand) && view.rank == (has_experts(call) ? 2 : 1);
    return is_line ? us_view_insert_axis(view, view.rank - 1, 1, 0) : view;
}

/* [experts, 1] or [experts, columns]. */
static View between_view(const FeedForwardCall *call, const Operand *operand)
{
    const View *view = &operand->view;
    const bool each = op_given(operand) && view->rank == 1 && view->shape[0] == experts_of(call);
    return !op_given(operand) || view->rank == 2 ? *view
           : each                                ? us_view_insert_axis(*view, 1, 1, 0)
                                                 : us_view_insert_axis(*view, 0, 1, 0);
}

static GroupedKind kind_of(const FeedForwardCall *call, FeedForwardKind kind, int layer)
{
    const FeedForwardLayer *own = &call->layers[layer];
    const LayerSizes of = layer_sizes(call, layer);
    const int32_t front = has_experts(call) ? 1 : 0;
    GroupedKind how = {.plain = {.compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {1}}};
    if (kind == FEED_INTEGERS) {
        how.integers = (QuantizedProduct){
            .group = INT64_MAX, .scale_columns = 1, .packed_a = NOT_PACKED, .packed_b = NOT_PACKED};
    } else if (kind == FEED_WEIGHTS) {
        const View *scale = &own->antiquant_scale->view;
        const int64_t parts = scale->rank == front + 2 ? scale->shape[front] : 1;
        how.weight = (WeightProduct){of.depth / parts, of.weight.axis == NOT_PACKED ? NOT_PACKED : of.weight.axis - front};
    }
    return how;
}

aclnnStatus op_feed_forward(OpCall *op, const FeedForwardCall *call)
{
    const size_t size = sizeof(FeedForward) + (op_refused(op) ? 0 : (size_t)experts_of(call)) * sizeof(int64_t);
    FeedForward *plan = op_take(op, size);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Activation *activation = activation_of(call->activation);
    const FeedForwardKind kind = row_of(call)->kind;
    const bool from_tensor = call->tokens != NULL && has_experts(call);
    memset(plan, 0, size);
    *plan = (FeedForward){.kind = kind, .activation = activation->formula, .gated = activation->gated,
                          .items = has_experts(call), .how = {kind_of(call, kind, 0), kind_of(call, kind, 1)},
                          .list = !from_tensor ? GROUPS_FIXED : call->ends ? GROUPS_ENDS : GROUPS_SIZES,
                          .groups = (int32_t)experts_of(call), .sizes_known = !from_tensor};
    for (int32_t i = 0; i < plan->groups && !from_tensor; i++) {
        plan->sizes[i] = has_experts(call) ? count_of(call, i) : tokens_of(call);
    }
    const Operand *operands[] = {from_tensor ? call->tokens : NULL, call->x, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                 NULL, call->y, call->scale, call->offset};
    enum { VIEWS = sizeof operands / sizeof *operands, LAYER = 2, Y = 10, OF_LAYER = 4 };
    View views[VIEWS];
    for (int i = 0; i < 2; i++) {
        const FeedForwardLayer *own = &call->layers[i];
        const Operand *of[] = {own->weight, op_given(own->scale) ? own->scale : own->antiquant_scale,
                               own->antiquant_offset, own->bias};
        memcpy(operands + LAYER + i * OF_LAYER, of, sizeof of);
    }
    PlannedView planned[VIEWS];
    for (int i = 0; i < VIEWS; i++) {
        const bool weight = i == LAYER || i == LAYER + OF_LAYER;
        views[i] = operands[i] == NULL || !op_given(operands[i]) ? us_view_absent()
                   : weight                                       ? op_integers_of(operands[i]).view
                   : i > Y                                        ? between_view(call, operands[i])
                   : i < LAYER || i == Y                          ? operands[i]->view
                                                                  : line_of(call, operands[i]);
        planned[i] = (PlannedView){us_view_is_absent(&views[i]) ? NULL : operands[i], i == Y ? VIEW_WRITE : VIEW_READ,
                                   &views[i]};
    }
    return op_plan_views(op, us_feed_forward, plan, size, VIEWS, planned);
}
