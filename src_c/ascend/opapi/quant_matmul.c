/* Products of quantized matrices: from the pages' types, scales and packed integers to the kernels' views. */
#include "ascend/opapi/quant_matmul_parts.h"
#include "kernels/map/formulas.h"
#include "kernels/matmul/activated.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quantize/product.h"
#include "kernels/quantize/sums.h"

static void turn(Integers *integers)
{
    integers->view = turned(integers->view);
    if (integers->axis != NOT_PACKED) {
        integers->axis = 2 * integers->view.rank - 3 - integers->axis;
    }
}

Mode quant_mode_of(const QuantMatmulCall *call)
{
    const bool grouped = op_given(call->row_scale) && call->scale->view.rank >= 2;
    return !grouped ? PLAIN : call->x1->dtype == ACL_INT8 && call->x2->dtype == ACL_INT8 ? BLOCKS : DEPTH_GROUPS;
}

Sizes quant_sizes_of(const QuantMatmulCall *call)
{
    Sizes of = {.a = op_integers_of(call->x1), .b = op_integers_of(call->x2)};
    if (call->transpose1) {
        turn(&of.a);
    }
    if (call->transpose2) {
        turn(&of.b);
    }
    of.m = op_integer_size(&of.a, 2);
    of.k = op_integer_size(&of.a, 1);
    of.depth_of_b = op_integer_size(&of.b, 2);
    of.n = op_integer_size(&of.b, 1);
    const Mode mode = quant_mode_of(call);
    of.groups = mode == PLAIN ? 1 : ceiling(of.k, mode == BLOCKS ? BLOCK : DEPTH_GROUP);
    return of;
}

bool quant_joint_batch(const Sizes *of, Shape *batch)
{
    View a = of->a.view, b = of->b.view;
    a.rank -= 2;
    b.rank -= 2;
    return us_broadcast_shape((const View *const[]){&a, &b}, 2, &batch->rank, batch->sizes, NULL);
}

Shape op_shape_product_of_integers(OpCall *op, const Operand *x1, const Operand *x2, bool turned1, bool turned2)
{
    Shape shape = {0};
    if (!op_refused(op)) {
        const QuantMatmulCall call = {.x1 = x1, .x2 = x2, .transpose1 = turned1, .transpose2 = turned2, .scale = x1};
        const Sizes of = quant_sizes_of(&call);
        quant_joint_batch(&of, &shape);
        shape.sizes[shape.rank++] = of.m;
        shape.sizes[shape.rank++] = of.n;
    }
    return shape;
}

const Operand *op_second_factor(OpCall *op, const Operand *x1, bool turned1, const Operand *x2, bool turned2,
                                const Operand *out)
{
    if (op_refused(op)) {
        return x2;
    }
    const Integers a = op_integers_of(x1);
    const int64_t k = op_integer_size(&a, turned1 ? 2 : 1), n = op_size(out, -1);
    return op_weight_of(op, x2, 0, turned2 ? n : k, turned2 ? k : n);
}

const Operand *op_second_factor_of_either(OpCall *op, const Operand *x1, const Operand *x2, const Operand *out)
{
    const Operand *straight = op_second_factor(op, x1, false, x2, false, out);
    if (op_refused(op) || straight->blocks != NULL) {
        return straight;
    }
    const Operand *other = op_second_factor(op, x1, false, x2, true, out);
    return other->blocks != NULL ? op_turned(op, other, true) : straight;
}

const MapFormula *op_fused_formula(const char *name)
{
    return strcmp(name, "gelu_erf") == 0 ? &us_map_gelu : strcmp(name, "gelu_tanh") == 0 ? &us_map_gelu_tanh : NULL;
}

/* ---- plan ---- */

/* With the batch of the result in front; the packed axis moves along. */
static Integers of_batch(const Integers *integers, const View *out)
{
    const int32_t added = out->rank - integers->view.rank;
    return (Integers){op_with_batch(&integers->view, out->rank - 2, out->shape),
                      integers->axis == NOT_PACKED ? NOT_PACKED : integers->axis + added, true};
}

static View batched(View view, const View *out)
{
    return us_view_is_absent(&view) ? view : op_with_batch(&view, out->rank - 2, out->shape);
}

/* [1, n], or [batch, 1, n], for every row: with a stride of 0. */
static View bias_view(const QuantMatmulCall *call, int64_t n)
{
    if (!op_given(call->bias) || call->bias->view.rank != 3) {
        return lines_of(call->bias, 1, n);
    }
    View view = call->bias->view;
    view.strides[1] = 0;
    return view;
}

static aclnnStatus plan_integers(OpCall *op, const QuantMatmulCall *call, const View *a, const View *b, View bias)
{
    const View *out = &call->out->view;
    if (!us_view_is_absent(&bias)) {
        bias.shape[bias.rank - 2] = out->shape[out->rank - 2];
    }
    const ViewProduct product = {.compute = DTYPE_INT64, .alpha = {1}, .beta = {1}};
    const PlannedView views[] = {{call->x1, VIEW_READ, a},           {call->x2, VIEW_READ, b},
                                 {call->bias, VIEW_READ, &bias},     {call->out, VIEW_WRITE, NULL},
                                 {NULL, VIEW_READ, NULL},            {NULL, VIEW_READ, NULL}};
    return op_plan_views(op, us_product, &product, sizeof product, 6, views);
}

/* bias is of the batch, or absent. */
static aclnnStatus plan_numbers(OpCall *op, const QuantMatmulCall *call, const Sizes *of, const Integers *a,
                                const Integers *b, const View *bias)
{
    const View *out = &call->out->view, absent = us_view_absent();
    const Mode mode = quant_mode_of(call);
    const bool adds_first = op_given(call->bias) && call->bias->dtype == ACL_INT32;
    const bool adds_last = op_given(call->bias) && !adds_first;
    const View row_scale = !op_given(call->row_scale) ? absent
                           : mode != PLAIN            ? call->row_scale->view
                                                      : turned(lines_of(call->row_scale, 1, of->m));
    const View scale = mode == BLOCKS ? turned(call->scale->view) : lines_of(call->scale, of->groups, of->n);
    const View offset = lines_of(call->offset, of->groups, of->n);
    const View of_rows = batched(row_scale, out), of_columns = batched(scale, out), shifts = batched(offset, out);
    const View shift = batched(lines_of(call->shift, 1, of->n), out);
    const QuantizedProduct how = {.group = mode == PLAIN ? INT64_MAX : mode == BLOCKS ? BLOCK : DEPTH_GROUP,
                                  .scale_columns = mode == BLOCKS ? BLOCK : 1, .packed_a = a->axis, .packed_b = b->axis};
    const PlannedView views[] = {
        {call->x1, VIEW_READ, &a->view},
        {call->x2, VIEW_READ, &b->view},
        {call->scale, VIEW_READ, &of_columns},
        {call->out, VIEW_WRITE, NULL},
        {call->bias, VIEW_READ, adds_first ? bias : &absent},
        {call->row_scale, VIEW_READ, &of_rows},
        {call->offset, VIEW_READ, mode == PLAIN ? &absent : &shifts},
        {call->shift, VIEW_READ, &shift},
        {adds_last ? call->bias : call->offset, VIEW_READ, adds_last ? bias : mode == PLAIN ? &shifts : &absent},
    };
    const size_t count = sizeof views / sizeof *views;
    if (call->activation != NULL) {
        const ActivatedProduct activated = {how, call->activation};
        return op_plan_views(op, us_activated_product, &activated, sizeof activated, count, views);
    }
    return op_plan_views(op, us_quantized_product, &how, sizeof how, count, views);
}

aclnnStatus op_quant_matmul(OpCall *op, const QuantMatmulCall *call)
{
    if (op_refused(op) || op_empty(call->out)) {
        return op_plan_nothing(op);
    }
    const Sizes of = quant_sizes_of(call);
    const View *out = &call->out->view;
    const Integers a = of_batch(&of.a, out), b = of_batch(&of.b, out);
    const View bias = batched(bias_view(call, of.n), out);
    if (call->out->dtype == ACL_INT32) {
        return plan_integers(op, call, &a.view, &b.view, bias);
    }
    return plan_numbers(op, call, &of, &a, &b, &bias);
}

aclnnStatus op_scaled_matmul(OpCall *op, const Operand *x1, const Operand *x2, const Operand *bias, float scale,
                             const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View summand = batched(lines_of(bias, 1, op_size(out, -1)), &out->view);
    const ScaledProduct how = {scale};
    const PlannedView views[] = {{x1, VIEW_READ, NULL}, {x2, VIEW_READ, NULL}, {out, VIEW_WRITE, NULL},
                                 {bias, VIEW_READ, &summand}};
    return op_plan_views(op, us_scaled_product, &how, sizeof how, sizeof views / sizeof *views, views);
}

/* ---- sums of products ---- */

/* Whether an axis and the next one step like one. */
static bool merges(const View *view, int32_t axis)
{
    int64_t step;
    return view->shape[axis] == 1 ||
           (!__builtin_mul_overflow(view->shape[axis + 1], view->strides[axis + 1], &step) && view->strides[axis] == step);
}

static View merged(View view, int32_t axis)
{
    const int64_t size = view.shape[axis] * view.shape[axis + 1];
    view = us_view_remove_axis(view, axis);
    view.shape[axis] = size;
    return view;
}

/* Two axes as one: of a copy where they do not step so. */
static const Operand *with_merged(OpCall *op, const Operand *operand, const View *view, int32_t axis, View *shown)
{
    if (merges(view, axis)) {
        *shown = merged(*view, axis);
        return operand;
    }
    *shown = merged(us_view_contiguous(view->data, view->dtype, view->rank, view->shape), axis);
    return op_with_copy(op, operand, *view, *shown);
}

const Operand *op_as_rows(OpCall *op, const Operand *x)
{
    if (op_refused(op) || x->view.rank != 3) {
        return x;
    }
    View rows;
    const Operand *from = with_merged(op, x, &x->view, 0, &rows);
    return from == x ? op_shown_as(op, x, rows) : from;
}

const Operand *op_as_line(OpCall *op, const Operand *line)
{
    const bool is_row = !op_refused(op) && op_given(line) && line->view.rank == 2 && line->view.shape[0] == 1;
    return is_row ? op_shown_as(op, line, us_view_remove_axis(line->view, 0)) : line;
}

bool op_is_summed_factor(const Operand *x2)
{
    return x2->blocks == NULL || merges(&x2->view, 0);
}

aclnnStatus op_summed_quant_matmul(OpCall *op, const Operand *x1, const Operand *x2, const Operand *rows,
                                   const Operand *columns, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    View a, b;
    const QuantizedProduct how = {.group = op_size(x1, 2), .scale_columns = 1, .packed_a = NOT_PACKED,
                                  .packed_b = NOT_PACKED};
    const View of_rows = turned(rows->view), absent = us_view_absent();
    const View of_columns = us_view_insert_axis(columns->view, 0, op_size(x1, 0), 0);
    const View rows_first = op_swap_axes(x1->view, 0, 1);
    x1 = with_merged(op, x1, &rows_first, 1, &a);
    x2 = with_merged(op, x2, &x2->view, 0, &b);
    const PlannedView views[] = {{x1, VIEW_READ, &a}, {x2, VIEW_READ, &b}, {columns, VIEW_READ, &of_columns},
                                 {out, VIEW_WRITE, NULL}, {NULL, VIEW_READ, &absent}, {rows, VIEW_READ, &of_rows},
                                 {NULL, VIEW_READ, &absent}, {NULL, VIEW_READ, &absent}, {NULL, VIEW_READ, &absent}};
    return op_plan_views(op, us_quantized_product, &how, sizeof how, sizeof views / sizeof *views, views);
}
