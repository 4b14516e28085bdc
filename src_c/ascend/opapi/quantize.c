/* Quantization. */
#include "ascend/opapi/quantize.h"

#include "kernels/map/formulas.h"
#include "kernels/quantize/fake.h"
#include "kernels/quantize/parameters.h"
#include "kernels/quantize/signs.h"
#include "kernels/quantize/sums.h"

int64_t op_rounding(const char *name)
{
    static const char *const names[] = {"round", "ceil", "trunc", "floor"};
    for (int64_t i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

/* Whether scale is a vector along the axis of x, or of that rank with all other sizes 1. */
static bool lies_along(const View *x, const View *scale, int64_t axis)
{
    const int64_t size = x->shape[axis];
    if (scale->rank == 1) {
        return scale->shape[0] == 1 || scale->shape[0] == size;
    }
    bool fits = scale->rank == x->rank;
    for (int32_t i = 0; fits && i < x->rank; i++) {
        fits = scale->shape[i] == 1 || (i == axis && scale->shape[i] == size);
    }
    return fits;
}

void op_require_along(OpCall *op, const Operand *x, const Operand *scale, int64_t axis)
{
    op_require(op, op_refused(op) || lies_along(&x->view, &scale->view, axis), scale->name, "axis", op->invalid,
               "%s is %s, %s is %s: it does not lie along the axis", scale->name, op_shape_text(op, scale), x->name,
               op_shape_text(op, x));
}

/* A scale as a view of x's shape. */
static View spread(const View *x, const View *scale, int64_t axis)
{
    View own = *scale;
    if (scale->rank == 1 && x->rank > 1 && scale->shape[0] != 1) {
        own.rank = x->rank;
        for (int32_t i = 0; i < x->rank; i++) {
            own.shape[i] = i == axis ? scale->shape[0] : 1;
            own.strides[i] = i == axis ? scale->strides[0] : 0;
        }
    } else if (scale->rank == 1 && scale->shape[0] == 1) {
        own.rank = 0;
    }
    return us_view_broadcast(&own, x->rank, x->shape);
}

static aclnnStatus plan(OpCall *op, Kernel *kernel, Quantize how, const Operand *x, const Operand *scale,
                        const Operand *offset, int64_t axis, const Operand *y)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const Integers from = op_integers_of(x), to = op_integers_of(y);
    const View *whole = from.axis == NOT_PACKED ? &x->view : &y->view;
    const View scales = spread(whole, &scale->view, axis);
    const View offsets = op_given(offset) ? spread(whole, &offset->view, axis) : us_view_absent();
    const PlannedView views[] = {{x, VIEW_READ, &from.view}, {scale, VIEW_READ, &scales}, {offset, VIEW_READ, &offsets},
                                 {y, VIEW_WRITE, &to.view}};
    how.packed = from.axis != NOT_PACKED || to.axis != NOT_PACKED;
    return op_plan_views(op, kernel, &how, sizeof how, 4, views);
}

aclnnStatus op_quantize(OpCall *op, const Operand *x, const Operand *scale, const Operand *offset, int64_t axis,
                        bool twice, int64_t rounding, const Operand *y)
{
    const Quantize how = {.rounding = (Rounding)rounding, .twice = twice};
    return plan(op, us_quantize, how, x, scale, offset, axis, y);
}

aclnnStatus op_dequantize(OpCall *op, const Operand *x, const Operand *scale, const Operand *offset, bool twice,
                          const Operand *y)
{
    const Quantize how = {.rounding = ROUND_EVEN, .twice = twice};
    return plan(op, us_dequantize, how, x, scale, offset, y->view.rank - 1, y);
}

bool op_has_number_of_row(const Operand *numbers, const Operand *x)
{
    return op_elements(numbers) == us_shape_elements(x->view.rank - 1, x->view.shape);
}

void op_require_smooth(OpCall *op, const Operand *x, const Operand *smooth, const Operand *ends)
{
    if (op_refused(op) || !op_given(smooth)) {
        return;
    }
    const bool grouped = op_given(ends);
    const int64_t sizes[] = {grouped ? op_size(ends, 0) : 1, op_size(x, -1)};
    const Shape shape = op_shape_of(grouped ? 2 : 1, sizes + (grouped ? 0 : 1));
    op_require_shape(op, smooth, &shape);
}

aclnnStatus op_quantize_rows(OpCall *op, const Operand *x, const Operand *smooth, const Operand *ends,
                             const Operand *y, const Operand *scale, const Operand *offset)
{
    if (op_refused(op) || op_empty(scale)) {
        return op_plan_nothing(op);
    }
    const Integers to = op_integers_of(y);
    const QuantizeRows how = {.packed = to.axis != NOT_PACKED};
    const bool smooths = op->product->product != PRODUCT_910A; /* reserved there (aclnnDynamicQuant, aclnnDynamicQuantV2) */
    const PlannedView views[] = {{x, VIEW_READ, NULL},      {smooths ? smooth : NULL, VIEW_READ, NULL},
                                 {y, VIEW_WRITE, &to.view}, {scale, VIEW_WRITE, NULL},
                                 {offset, VIEW_WRITE, NULL}, {smooths ? ends : NULL, VIEW_READ, NULL}};
    return op_plan_views(op, us_quantize_rows, &how, sizeof how, 6, views);
}

/* x's, with as many of the last two sizes as there are blocks. */
Shape op_shape_blocks(OpCall *op, const Operand *x, int64_t rows, int64_t columns)
{
    Shape shape = op_shape(x);
    const int64_t sizes[] = {rows, columns};
    for (int32_t i = 0; !op_refused(op) && i < 2; i++) {
        int64_t *size = &shape.sizes[shape.rank - 2 + i];
        *size = *size / sizes[i] + (*size % sizes[i] != 0);
    }
    return shape;
}

aclnnStatus op_quantize_blocks(OpCall *op, const Operand *x, int64_t block, double least, const Operand *y, const Operand *scale)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const float most = least > 0 ? (float)(1 / least) : 0, smallest = 0x1p-149f; /* 0 is no limit */
    const QuantizeBlocks how = {.block = block, .most = least > 0 && most == 0 ? smallest : most};
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {y, VIEW_WRITE, NULL}, {scale, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_quantize_blocks, &how, sizeof how, sizeof views / sizeof *views, views);
}

aclnnStatus op_quantize_flat(OpCall *op, const FlatCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Integers to = op_integers_of(call->y);
    const QuantizeFlat how = {.clip = (float)call->clip, .groups = call->kind};
    const PlannedView views[] = {{call->x, VIEW_READ, NULL},       {call->left, VIEW_READ, NULL},
                                 {call->right, VIEW_READ, NULL},   {call->y, VIEW_WRITE, &to.view},
                                 {call->scale, VIEW_WRITE, NULL}, {call->groups, VIEW_READ, NULL}};
    return op_plan_views(op, us_quantize_flat, &how, sizeof how, sizeof views / sizeof *views, views);
}

int64_t op_row_rounding(const char *name)
{
    return strcmp(name, "rint") == 0 || name[0] == 0 ? ROUND_EVEN
           : strcmp(name, "round") == 0              ? ROUND_AWAY
           : strcmp(name, "floor") == 0              ? ROUND_DOWN
                                                     : -1;
}

aclnnStatus op_quantize_rotated(OpCall *op, const Operand *x, const Operand *rotation, int64_t rounding, const Operand *y,
                                const Operand *scale)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const QuantizeRotated how = {(Rounding)rounding};
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {rotation, VIEW_READ, NULL}, {y, VIEW_WRITE, NULL},
                                 {scale, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_quantize_rotated, &how, sizeof how, sizeof views / sizeof *views, views);
}

aclnnStatus op_quantize_groups(OpCall *op, const Operand *x, const Operand *scale, const Operand *ends, const Operand *offset,
                               const Operand *y)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const Integers to = op_integers_of(y);
    const QuantizeGroups how = {.packed = to.axis != NOT_PACKED};
    const PlannedView views[] = {{x, VIEW_READ, NULL},    {scale, VIEW_READ, NULL}, {offset, VIEW_READ, NULL},
                                 {ends, VIEW_READ, NULL}, {y, VIEW_WRITE, &to.view}};
    return op_plan_views(op, us_quantize_groups, &how, sizeof how, sizeof views / sizeof *views, views);
}

static View as_wide_as(const Operand *out, const Operand *operand)
{
    return op_given(operand) ? us_view_broadcast(&operand->view, out->view.rank, out->view.shape) : us_view_absent();
}

aclnnStatus op_quantize_parameters(OpCall *op, const Operand *scale, const Operand *offset, bool rounded,
                                   const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View scales = as_wide_as(out, scale), offsets = as_wide_as(out, offset);
    const PlannedView views[] = {{scale, VIEW_READ, &scales}, {offset, VIEW_READ, &offsets}, {out, VIEW_WRITE, NULL}};
    const QuantizeParameters how = {rounded};
    return op_plan_views(op, us_quantize_parameters, &how, sizeof how, 3, views);
}

static void require_group_shape(OpCall *op, const Operand *x, const Operand *numbers, const Operand *ends, bool fits)
{
    op_require(op, fits, numbers->name, "shape", op->invalid, "%s is %s; there are %lld groups, and x is %s", numbers->name,
               op_shape_text(op, numbers), op_given(ends) ? (long long)ends->view.shape[0] : 1LL, op_shape_text(op, x));
}

void op_require_group_numbers(OpCall *op, const Operand *x, const Operand *numbers, const Operand *ends)
{
    if (op_refused(op) || !op_given(numbers)) {
        return;
    }
    const View *view = &numbers->view;
    const int64_t groups = op_given(ends) ? ends->view.shape[0] : 1;
    require_group_shape(op, x, numbers, ends, view->shape[0] == groups &&
                                              (view->rank == 1 || (view->rank == 2 && view->shape[1] == op_size(x, -1) / 2)));
}

void op_require_group_lines(OpCall *op, const Operand *x, const Operand *numbers, const Operand *ends)
{
    if (op_refused(op) || !op_given(numbers)) {
        return;
    }
    const View *view = &numbers->view;
    const int64_t groups = op_given(ends) ? ends->view.shape[0] : 1;
    require_group_shape(op, x, numbers, ends, op_size(numbers, -1) == op_size(x, -1) &&
                                              (view->rank == 1 || (view->rank == 2 && view->shape[0] == groups)));
}

/* A line of numbers for each group, or one for all: a vector of `size` is a line, as is one number for all; another one has a
 * number for each group. */
static View group_lines(const Operand *operand, int64_t size, bool vector_is_line)
{
    if (!op_given(operand)) {
        return us_view_absent();
    }
    View view = operand->view;
    if (view.rank == 1) {
        view.rank = 2;
        view.shape[1] = size;
        view.strides[1] = vector_is_line && view.shape[0] == size ? view.strides[0] : 0;
        view.shape[0] = vector_is_line ? 1 : view.shape[0];
    }
    return view;
}

static View half_lines(const Operand *operand, bool second, const GatedCall *call)
{
    return op_given(operand) ? us_view_half(group_lines(operand, op_size(call->x, -1), true), 1, second, call->pairs)
                             : us_view_absent();
}

aclnnStatus op_quantize_gated(OpCall *op, const GatedCall *call)
{
    if (op_refused(op) || op_empty(call->x)) {
        return op_plan_nothing(op);
    }
    const bool left = call->left;
    const View *x = &call->x->view;
    const int32_t last = x->rank - 1;
    const int64_t size = x->shape[last] / 2;
    const bool line = op_given(call->smooth) && call->smooth->view.rank == 1 && !op_given(call->ends) &&
                      op_size(call->smooth, 0) == size;
    const View a = us_view_half(*x, last, !left, call->pairs), b = us_view_half(*x, last, left, call->pairs);
    const View smooths = group_lines(call->smooth, size, line), offsets = group_lines(call->offset, size, line);
    const View weights[] = {half_lines(call->weight, !left, call), half_lines(call->weight, left, call)};
    const View biases[] = {half_lines(call->bias, !left, call), half_lines(call->bias, left, call)};
    const View absent = us_view_absent();
    const bool one_row = op_given(call->row) && op_elements(call->row) == 1;
    const View every_row = one_row ? us_view_broadcast(&call->row->view, last, x->shape) : absent;
    const Integers to = op_integers_of(call->y);
    QuantizeGated how = call->how;
    how.packed = to.axis != NOT_PACKED;
    const PlannedView views[] = {
        {call->x, VIEW_READ, &a},
        {call->x, VIEW_READ, &b},
        {call->smooth, VIEW_READ, &smooths},
        {call->offset, VIEW_READ, &offsets},
        {call->ends, VIEW_READ, NULL},
        {call->y, VIEW_WRITE, &to.view},
        how.fixed ? (PlannedView){NULL, VIEW_READ, &absent} : (PlannedView){call->scale, VIEW_WRITE, NULL},
        {call->row, VIEW_READ, one_row ? &every_row : NULL},
        {call->weight, VIEW_READ, &weights[0]},
        {call->bias, VIEW_READ, &biases[0]},
        {call->weight, VIEW_READ, &weights[1]},
        {call->bias, VIEW_READ, &biases[1]},
    };
    return op_plan_views(op, us_quantize_gated, &how, sizeof how, sizeof views / sizeof *views, views);
}

GateForm op_gate_form(int64_t mode, double limit, double alpha, double bias)
{
    static const GateKind kinds[] = {GATE_SWISH, GATE_CLIPPED, GATE_CLIPPED, GATE_SWISH_FIRST};
    return (GateForm){kinds[mode], (float)alpha, (float)limit, (float)bias};
}

void op_require_line(OpCall *op, const Operand *x, const Operand *numbers, bool half)
{
    const int64_t last = x->view.rank > 0 ? op_size(x, -1) : 1;
    const int64_t size = half ? last / 2 : last, given = op_given(numbers) ? op_size(numbers, 0) : size;
    op_require(op, op_refused(op) || !op_given(numbers) || (numbers->view.rank == 1 && (given == 1 || given == size)),
               numbers->name, "shape", op->invalid, "%s is %s: it has one number, or %lld", numbers->name,
               op_shape_text(op, numbers), (long long)size);
}

double op_bytes(const Operand *operand)
{
    return op_given(operand) ? (double)op_elements(operand) * (double)us_dtype_size(operand->view.dtype) : 0;
}

aclnnStatus op_clipped_gate(OpCall *op, const Operand *x, const Operand *sizes, int64_t axis, const GateForm *form,
                            bool interleaved, const Operand *out)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const ClippedGate how = {*form, us_shape_elements((int32_t)axis, x->view.shape), interleaved};
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {out, VIEW_WRITE, NULL}, {sizes, VIEW_READ, NULL}};
    return op_plan_views(op, us_clipped_gate, &how, sizeof how, sizeof views / sizeof *views, views);
}

aclnnStatus op_clipped_gate_backward(OpCall *op, const Operand *slopes, const Operand *x, const Operand *sizes, int64_t axis,
                                     const GateForm *form, bool interleaved, const Operand *x_gradient)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const ClippedGate how = {*form, us_shape_elements((int32_t)axis, x->view.shape), interleaved};
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {slopes, VIEW_READ, NULL}, {sizes, VIEW_READ, NULL},
                                 {x_gradient, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_clipped_gate_backward, &how, sizeof how, sizeof views / sizeof *views, views);
}

aclnnStatus op_dequantize_sums(OpCall *op, const Operand *x, const Operand *column, const Operand *row, const Operand *bias,
                               const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {column, VIEW_READ, NULL}, {out, VIEW_WRITE, NULL},
                                 {row, VIEW_READ, NULL}, {bias, VIEW_READ, NULL}};
    return op_plan_views(op, us_dequantize_sums, NULL, 0, sizeof views / sizeof *views, views);
}

/* ---- levels ---- */

bool op_has_steps_of(const Operand *scale, const Operand *x, int64_t axis)
{
    const int64_t steps = op_elements(scale);
    return steps == 1 || steps == op_size(x, axis);
}

static View absent_or_spread(const View *x, const Operand *scale, int64_t axis)
{
    return op_given(scale) ? spread(x, &scale->view, axis < 0 ? axis + x->rank : axis) : us_view_absent();
}

aclnnStatus op_quantize_by(OpCall *op, const Operand *x, const Operand *scale, const Operand *zero, int64_t axis,
                           const Operand *y)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const MapCall call = {.formula = &us_map_rounded_quotient, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32,
                          .inputs = 3, .outputs = 1, .items = 1}; /* without zero points 0 */
    const View scales = absent_or_spread(&x->view, scale, axis), zeros = absent_or_spread(&x->view, zero, axis);
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {scale, VIEW_READ, &scales}, {zero, VIEW_READ, &zeros},
                                 {y, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}

aclnnStatus op_fake_quantize(OpCall *op, const Operand *x, const Operand *scale, const Operand *zero, int64_t axis,
                             bool enabled, int64_t least, int64_t most, const Operand *out, const Operand *mask)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const FakeQuantize how = {!enabled, (double)least, (double)most};
    const View scales = absent_or_spread(&x->view, scale, axis), zeros = absent_or_spread(&x->view, zero, axis);
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {scale, VIEW_READ, &scales}, {zero, VIEW_READ, &zeros},
                                 {out, VIEW_WRITE, NULL}, {mask, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_fake_quantize, &how, sizeof how, 5, views);
}

/* ---- signs ---- */

Shape op_shape_packed_signs(OpCall *op, const Operand *self, int64_t rows)
{
    const int64_t bytes = op_refused(op) ? 0 : op_elements(self) / 8 + (op_elements(self) % 8 != 0);
    return op_shape_of(2, (const int64_t[]){rows, op_refused(op) ? 0 : bytes / rows});
}

Shape op_shape_unpacked_signs(OpCall *op, const Operand *self, int64_t rows)
{
    return op_shape_of(2, (const int64_t[]){rows, op_refused(op) ? 0 : op_elements(self) * 8 / rows});
}

aclnnStatus op_pack_signs(OpCall *op, const Operand *self, const Operand *out)
{
    return op_plan_operands(op, us_pack_signs, NULL, 0, OPERANDS(self), OPERANDS(out));
}

aclnnStatus op_unpack_signs(OpCall *op, const Operand *self, const Operand *out)
{
    return op_plan_operands(op, us_unpack_signs, NULL, 0, OPERANDS(self), OPERANDS(out));
}
