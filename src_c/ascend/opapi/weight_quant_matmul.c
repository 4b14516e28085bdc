/* Products with a quantized weight: of x in floating point. */
#include "ascend/opapi/quant_matmul_parts.h"
#include "kernels/quantize/product.h"

enum { TOKEN_LIMIT = 96 };

static int64_t group_of(const WeightQuantCall *call, int64_t k)
{
    return call->group > 0 ? call->group : k;
}

static int64_t groups_of(const WeightQuantCall *call, int64_t k)
{
    return call->group > 0 ? ceiling(k, call->group) : 1;
}

/* Per tensor, per channel, or per group of the depth. */
static bool is_weight_scale(const WeightQuantCall *call, const Operand *scale, int64_t k, int64_t n)
{
    const bool alike = is_line(scale, n) || has_shape(scale, 2, 1, 1) || has_shape(scale, 2, 1, n);
    return call->group > 0 ? has_shape(scale, 2, groups_of(call, k), n) : alike;
}

static bool is_line_or_row(const Operand *operand, int64_t n)
{
    return is_line(operand, n) || has_shape(operand, 2, 1, n) || has_shape(operand, 2, 1, 1);
}

void op_require_weight_quant_shapes(OpCall *op, const WeightQuantCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Integers weight = op_integers_of(call->weight);
    const int64_t k = op_size(call->x, 1), m = op_size(call->x, 0), n = op_integer_size(&weight, 1);
    op_require_packed(op, call->weight, &weight);
    op_require(op, op_integer_size(&weight, 2) == k, call->weight->name, "shape", op->invalid, "%s is %s, %s is %s",
               call->x->name, op_shape_text(op, call->x), call->weight->name, op_shape_text(op, call->weight));
    op_require(op, call->group == 0 || (call->group >= 32 && call->group < k && call->group % 32 == 0),
               "antiquantGroupSize", "value", op->invalid,
               "antiquantGroupSize is %lld; k is %lld: it is 0, or a multiple of 32 below k", (long long)call->group,
               (long long)k);
    const Sizes of = {.m = m, .n = n, .k = k};
    require_quant_size(op, call->scale, op_refused(op) || is_weight_scale(call, call->scale, k, n), &of);
    op_require_same_shape(op, call->offset, call->scale);
    require_quant_size(op, call->quant_scale, !op_given(call->quant_scale) || is_line_or_row(call->quant_scale, n), &of);
    op_require_same_shape(op, call->quant_offset, call->quant_scale);
    require_quant_size(op, call->bias, !op_given(call->bias) || has_shape(call->bias, 1, n, 0) ||
                                     has_shape(call->bias, 2, 1, n), &of);
}

/* A scale of 64 bits has one case of its own. */
static void require_wide_scale(OpCall *op, const WeightQuantCall *call)
{
    const bool wide = dtype_in(call->scale->dtype, T_BITS);
    const int64_t m = op_size(call->x, 0), k = op_size(call->x, 1), n = op_size(call->weight, 1);
    const View *weight = &call->weight->view;
    const bool fits = call->x->dtype == ACL_FLOAT16 && !op_is_turned(&call->x->view) && call->weight->dtype == ACL_INT8 &&
                      weight->strides[0] == 1 && call->group == 0 && op_elements(call->scale) == n &&
                      !op_given(call->quant_scale) && m <= TOKEN_LIMIT && k % 64 == 0 && n % 64 == 0;
    op_require(op, !wide || fits, call->scale->name, "case", op->invalid,
               "%s is %s: x is ACL_FLOAT16 of at most %d rows, not transposed, weight a transposed ACL_INT8 whose sizes are "
               "multiples of 64, the scale is per channel and y is not quantized then",
               call->scale->name, acl_dtype_name(call->scale->dtype), TOKEN_LIMIT);
    op_require(op, !op_given(call->offset) || (call->offset->dtype == ACL_INT32) == wide, call->offset->name, "types",
               op->invalid, "%s is %s, %s is %s", call->offset->name, type_name(call->offset), call->scale->name,
               type_name(call->scale));
}

void op_require_weight_quant_types(OpCall *op, const WeightQuantCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const aclDataType x = call->x->dtype;
    op_require(op, dtype_in(call->scale->dtype, T_BITS) || call->scale->dtype == x, call->scale->name, "types",
               op->invalid, "%s is %s, x is %s", call->scale->name, type_name(call->scale), acl_dtype_name(x));
    require_wide_scale(op, call);
    op_require(op, !op_given(call->offset) || call->offset->dtype == ACL_INT32 || call->offset->dtype == x,
               call->offset->name, "same-dtype", op->invalid, "%s is %s, x is %s", call->offset->name,
               type_name(call->offset), acl_dtype_name(x));
    op_require(op, !op_given(call->bias) || call->bias->dtype == (x == ACL_BF16 ? ACL_FLOAT : ACL_FLOAT16),
               call->bias->name, "types", op->invalid, "%s is %s with x of %s", call->bias->name,
               type_name(call->bias), acl_dtype_name(x));
    op_require(op, call->y->dtype == (op_given(call->quant_scale) ? ACL_INT8 : x), call->y->name, "types", op->invalid,
               "%s is %s; x is %s and quantScaleOptional is %s", call->y->name, type_name(call->y), acl_dtype_name(x),
               type_name(call->quant_scale));
}

/* Where no offset is given, that in the 64 bits of the scale. */
static View quant_offset_of(const WeightQuantCall *call, int64_t n)
{
    if (op_given(call->quant_offset) || !op_given(call->quant_scale)) {
        return lines_of(call->quant_offset, 1, n);
    }
    View parameters = call->quant_scale->view;
    parameters.dtype = DTYPE_UINT64;
    return as_lines(parameters, 1, n);
}

/* A transposed weight and its scales: programs cut them out of those of many experts by an offset alone. */
static void unbind_transposed(const Operand *operand)
{
    if (op_given(operand) && operand->view.rank == 2 && operand->view.strides[0] == 1) {
        op_unbind(operand);
    }
}

aclnnStatus op_weight_quant_matmul(OpCall *op, const WeightQuantCall *call)
{
    if (op_refused(op) || op_empty(call->y)) {
        return op_plan_nothing(op);
    }
    unbind_transposed(call->weight);
    unbind_transposed(call->scale);
    unbind_transposed(call->offset);
    const Integers weight = op_integers_of(call->weight);
    const int64_t k = op_size(call->x, 1), n = op_size(call->y, 1);
    const int64_t group = group_of(call, k), groups = groups_of(call, k);
    const View scale = lines_of(call->scale, groups, n), offset = lines_of(call->offset, groups, n);
    const View bias = lines_of(call->bias, 1, n), quant_scale = lines_of(call->quant_scale, 1, n);
    const View quant_offset = quant_offset_of(call, n);
    const Operand *shift = op_given(call->quant_offset) ? call->quant_offset : call->quant_scale;
    const WeightProduct how = {group, weight.axis};
    const PlannedView views[] = {
        {call->x, VIEW_READ, NULL},          {call->weight, VIEW_READ, &weight.view},
        {call->scale, VIEW_READ, &scale},    {call->y, VIEW_WRITE, NULL},
        {call->offset, VIEW_READ, &offset},  {call->bias, VIEW_READ, &bias},
        {call->quant_scale, VIEW_READ, &quant_scale}, {shift, VIEW_READ, &quant_offset},
    };
    return op_plan_views(op, us_quantized_weight_product, &how, sizeof how, sizeof views / sizeof *views, views);
}
