#include "ascend/opapi/gates.h"

#include "ascend/common/op_memory.h"
#include "kernels/map/formulas.h"
#include "kernels/norm/modulate.h"
#include "kernels/reduce/compound.h"

#include <float.h>

static MapCall call_of(const MapFormula *formula, aclDataType compute)
{
    return (MapCall){.formula = formula, .compute = dtype_of_acl(compute), .result = dtype_of_acl(compute),
                     .inputs = formula->inputs, .outputs = formula->outputs, .items = 1};
}

/* ---- halves ---- */

aclnnStatus op_fatrelu_mul(OpCall *op, const Operand *self, const Operand *threshold, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    MapCall call = call_of(&us_map_fatrelu_mul, self->dtype);
    call.inputs = 3;
    const int32_t axis = self->view.rank - 1;
    const View first = us_view_half(self->view, axis, false, false), second = us_view_half(self->view, axis, true, false);
    const PlannedView views[] = {{self, VIEW_READ, &first}, {self, VIEW_READ, &second}, {threshold, VIEW_READ, NULL},
                                 {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}

void op_require_even(OpCall *op, const Operand *x, int64_t axis)
{
    op_require(op, op_refused(op) || (axis < x->view.rank && x->view.shape[axis] % 2 == 0), x->name, "even",
               op->invalid, "%s is %s; dimension %lld has no halves", x->name, op_shape_text(op, x), (long long)axis);
}

static MapCall call_with(const MapFormula *formula, aclDataType compute, size_t count, const Number *numbers)
{
    MapCall call = call_of(formula, compute);
    for (size_t i = 0; i < count; i++) {
        call.numbers[i] = numbers[i];
    }
    return call;
}

aclnnStatus op_gate(OpCall *op, const MapFormula *formula, const Operand *self, int32_t axis, bool swapped, size_t count,
                    const Number *numbers, const Operand *out, const Operand *gate)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const MapCall call = call_with(formula, self->dtype, count, numbers);
    const View first = us_view_half(self->view, axis, swapped, false), second = us_view_half(self->view, axis, !swapped, false);
    const PlannedView views[] = {{self, VIEW_READ, &first}, {self, VIEW_READ, &second}, {out, VIEW_WRITE, NULL},
                                 {gate, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, call.inputs + call.outputs, views);
}

aclnnStatus op_glu(OpCall *op, const MapFormula *formula, const Operand *self, int32_t axis, const Operand *out)
{
    return op_gate(op, formula, self, axis, false, NO_NUMBERS, out, NULL);
}

aclnnStatus op_gate_backward(OpCall *op, const MapFormula *formula, const Operand *gradient, const Operand *self,
                             const Operand *gate, int32_t axis, bool swapped, size_t count, const Number *numbers,
                             const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const MapCall call = call_with(formula, self->dtype, count, numbers);
    const View first = us_view_half(self->view, axis, swapped, false), second = us_view_half(self->view, axis, !swapped, false);
    const View of_first = us_view_half(out->view, axis, swapped, false);
    const View of_second = us_view_half(out->view, axis, !swapped, false);
    PlannedView views[6] = {{gradient, VIEW_READ, NULL}, {self, VIEW_READ, &first}, {self, VIEW_READ, &second}};
    int32_t used = 3;
    if (gate != NULL) {
        views[used++] = (PlannedView){gate, VIEW_READ, NULL};
    }
    views[used++] = (PlannedView){out, VIEW_WRITE, &of_first};
    views[used++] = (PlannedView){out, VIEW_WRITE, &of_second};
    return op_plan_views(op, us_map, &call, sizeof call, used, views);
}

aclnnStatus op_glu_backward(OpCall *op, const MapFormula *formula, const Operand *gradient, const Operand *self,
                            int32_t axis, const Operand *out)
{
    return op_gate_backward(op, formula, gradient, self, NULL, axis, false, NO_NUMBERS, out);
}

/* ---- thirds ---- */

Shape op_shape_heads_of(OpCall *op, const Operand *qkv, int64_t heads)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    return op_shape_of(4, (const int64_t[]){op_size(qkv, 0), heads, op_size(qkv, 1), op_size(qkv, 2) / 3 / heads});
}

/* Part 0, 1 or 2 of the last axis, which the heads divide, as [b, heads, t, d]; of a bias, with one axis, as [heads, 1, d]. */
static View heads_of(const Operand *operand, int part, int64_t heads, int64_t depth)
{
    const View *all = &operand->view;
    const int32_t last = all->rank - 1;
    const int64_t step = all->strides[last];
    View view = {.dtype = all->dtype, .rank = 3, .shape = {heads, 1, depth}, .strides = {depth * step, 0, step}};
    view.data = (void *)((uintptr_t)all->data + (uintptr_t)(part * heads * depth * step * (int64_t)us_dtype_size(all->dtype)));
    if (last > 0) {
        view.shape[1] = all->shape[1];
        view.strides[1] = all->strides[1];
        view = us_view_insert_axis(view, 0, all->shape[0], all->strides[0]);
    }
    return view;
}

aclnnStatus op_split_heads(OpCall *op, const Operand *qkv, const Operand *bias, int64_t heads, Operands outputs)
{
    enum { PARTS = 3, PER_PART = 3 };
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const size_t size = sizeof(MapListCall) + PARTS * sizeof(Number);
    MapListCall *call = op_take(op, size);
    if (call == NULL) {
        return op_plan_nothing(op);
    }
    const int64_t depth = op_size(outputs.items[0], 3);
    View views[2 * PARTS];
    PlannedView planned[PARTS * PER_PART];
    call->call = call_of(&us_map_sum_times, qkv->dtype);
    call->call.items = PARTS;
    call->call.number_count = 1;
    for (int part = 0; part < PARTS; part++) {
        call->each[part] = op_real(part == 0 && depth > 0 ? 1 / __builtin_sqrt((double)depth) : 1, ACL_FLOAT);
        views[2 * part] = heads_of(qkv, part, heads, depth);
        views[2 * part + 1] = heads_of(bias, part, heads, depth);
        planned[PER_PART * part] = (PlannedView){qkv, VIEW_READ, &views[2 * part]};
        planned[PER_PART * part + 1] = (PlannedView){bias, VIEW_READ, &views[2 * part + 1]};
        planned[PER_PART * part + 2] = (PlannedView){outputs.items[part], VIEW_WRITE, NULL};
    }
    return op_plan_views(op, us_map, call, size, PARTS * PER_PART, planned);
}

bool is_gelu_name(const char *name)
{
    return name[0] == '\0' || strcmp(name, "none") == 0 || strcmp(name, "tanh") == 0;
}

const MapFormula *gelu_formula(const char *name)
{
    return strcmp(name, "tanh") == 0 ? &us_map_gelu_tanh_mul : &us_map_gelu_mul;
}

/* ---- one weight per channel ---- */

/* Axis 1 is the channel where there is one and weight has an element for each of it; else -1. */
static int32_t channel_axis(const Operand *weight, const Operand *self)
{
    const int64_t elements = op_elements(weight);
    return self->view.rank > 1 && elements != 1 && elements == self->view.shape[1] ? 1 : -1;
}

void require_channels(OpCall *op, const Operand *weight, const Operand *self)
{
    const bool fits = op_elements(weight) == 1 || channel_axis(weight, self) == 1;
    op_require(op, fits, weight->name, "elements", op->invalid,
               "%s has %lld elements; it needs 1, or one for each channel of %s, %s", weight->name,
               (long long)op_elements(weight), self->name, op_shape_text(op, self));
}

/* A tensor of weights seen with the rank of self. */
static View weight_view(const Operand *weight, const Operand *self)
{
    View view = {.data = weight->view.data, .dtype = weight->view.dtype, .rank = self->view.rank};
    for (int32_t axis = 0; axis < view.rank; axis++) {
        view.shape[axis] = 1;
    }
    const int32_t channel = channel_axis(weight, self);
    for (int32_t axis = 0; axis < weight->view.rank && channel >= 0; axis++) {
        if (weight->view.shape[axis] == self->view.shape[channel]) {
            view.shape[channel] = weight->view.shape[axis];
            view.strides[channel] = weight->view.strides[axis];
        }
    }
    return view;
}

aclnnStatus op_prelu(OpCall *op, const Operand *self, const Operand *weight, aclDataType compute, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const MapCall call = call_of(&us_map_prelu, compute);
    const View weights = weight_view(weight, self);
    const PlannedView views[] = {{self, VIEW_READ, NULL}, {weight, VIEW_READ, &weights}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 3, views);
}

aclnnStatus op_prelu_backward(OpCall *op, const Operand *gradient, const Operand *self, const Operand *weight,
                              const Operand *input_gradient, const Operand *weight_gradient)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const PreluBackward backward = {dtype_of_acl(self->dtype), channel_axis(weight, self)};
    const View expanded = us_view_broadcast(&gradient->view, self->view.rank, self->view.shape);
    const View weights = weight_view(weight, self), sums = weight_view(weight_gradient, self);
    const PlannedView views[] = {{gradient, VIEW_READ, &expanded}, {self, VIEW_READ, NULL}, {weight, VIEW_READ, &weights},
                                 {input_gradient, VIEW_WRITE, NULL}, {weight_gradient, VIEW_WRITE, &sums}};
    return op_plan_views(op, us_prelu_backward, &backward, sizeof backward, 5, views);
}

/* ---- scalars that may be missing ---- */

static Number number_or_one(const ScalarArgument *scalar, aclDataType dtype)
{
    return scalar->given ? op_number(scalar, dtype) : ONE;
}

aclnnStatus op_swish(OpCall *op, const MapFormula *formula, Operands inputs, const ScalarArgument *beta,
                     const Operand *out)
{
    const aclDataType compute = inputs.items[0]->dtype;
    return op_map(op, formula, compute, inputs, OPERANDS(out), NUMBERS(number_or_one(beta, compute)));
}

static bool is_bool(const ScalarArgument *scalar)
{
    return scalar->given && scalar->dtype == ACL_BOOL;
}

static bool is_whole(const ScalarArgument *scalar)
{
    return !scalar->given || op_is_integer(scalar->dtype);
}

bool scalars_fit_bool(aclDataType promoted, const ScalarArgument *beta, const ScalarArgument *alpha)
{
    return promoted == ACL_BOOL || (!is_bool(beta) && !is_bool(alpha));
}

bool scalars_fit_integer(aclDataType promoted, const ScalarArgument *beta, const ScalarArgument *alpha)
{
    return !op_is_integer(promoted) || (is_whole(beta) && is_whole(alpha));
}

aclnnStatus op_addr(OpCall *op, const Operand *self, const Operand *row, const Operand *column,
                    const ScalarArgument *beta, const ScalarArgument *alpha, aclDataType compute, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    MapCall call = call_of(&us_map_addr, compute);
    call.numbers[0] = number_or_one(alpha, compute);
    call.numbers[1] = number_or_one(beta, compute);
    View rows = row->view;
    rows.rank = 2;
    rows.shape[1] = 1;
    rows.strides[1] = 0;
    const PlannedView views[] = {{self, VIEW_READ, NULL}, {row, VIEW_READ, &rows}, {column, VIEW_READ, NULL},
                                 {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}

/* ---- along some axes ---- */

/* The view of a tensor that has only the axes of x from this one on. */
static View from_axis(const Operand *part, const View *x, int32_t axis)
{
    View view = us_view_absent();
    if (op_given(part)) {
        view = part->view;
        view.rank = x->rank;
        for (int32_t d = 0; d < x->rank; d++) {
            const bool has = d >= axis && d < axis + part->view.rank;
            view.shape[d] = has ? part->view.shape[d - axis] : 1;
            view.strides[d] = has ? part->view.strides[d - axis] : 0;
        }
    }
    return view;
}

bool op_scales(const Operand *x, int32_t axis, int64_t count, bool from_blob, const Operand *scale)
{
    const View *of = &scale->view;
    if (from_blob && count == 0) {
        return true;
    }
    const int64_t wanted = !from_blob ? of->rank : count < 0 ? x->view.rank - axis : count;
    bool fits = of->rank == wanted && axis + of->rank <= x->view.rank;
    for (int32_t d = 0; d < of->rank && fits; d++) {
        fits = of->shape[d] == x->view.shape[axis + d];
    }
    return fits;
}

aclnnStatus op_scale(OpCall *op, const Operand *x, int32_t axis, const Operand *scale, const Operand *bias, const Operand *y)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View factors = from_axis(scale, &x->view, axis), addends = from_axis(bias, &x->view, axis);
    MapCall call = call_of(op_given(bias) ? &us_map_addcmul : &us_map_mul, x->dtype);
    call.numbers[0] = ONE;
    const PlannedView views[] = {{bias, VIEW_READ, &addends}, {x, VIEW_READ, NULL}, {scale, VIEW_READ, &factors},
                                 {y, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, call.inputs + 1, views + (op_given(bias) ? 0 : 1));
}

bool op_modulates(const Operand *self, const Operand *part)
{
    const int32_t rank = part->view.rank;
    return (rank == 2 || (rank == 3 && op_size(part, 1) == 1)) && op_size(part, 0) == op_size(self, 0) &&
           op_size(part, -1) == op_size(self, -1);
}

/* [b, 1, d] of [b, d]. */
static View over_length(const Operand *part)
{
    View view = op_given(part) ? part->view : us_view_absent();
    if (view.rank == 2) {
        view.shape[2] = view.shape[1];
        view.strides[2] = view.strides[1];
        view.shape[1] = 1;
        view.rank = 3;
    }
    return view;
}

static PlannedView given_view(const Operand *operand, ViewAccess access, const View *view)
{
    return op_given(operand) ? (PlannedView){operand, access, view} : (PlannedView){NULL, access, NULL};
}

aclnnStatus op_modulate(OpCall *op, const Operand *self, const Operand *scale, const Operand *shift, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const MapCall call = call_of(&us_map_modulate, self->dtype); /* its numbers, for what is absent, are 0 */
    const View factors = over_length(scale), addends = over_length(shift);
    const PlannedView views[] = {{self, VIEW_READ, NULL}, given_view(scale, VIEW_READ, &factors),
                                 given_view(shift, VIEW_READ, &addends), {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}

aclnnStatus op_modulate_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *scale,
                                 const Operand *input_slopes, const Operand *scale_slopes, const Operand *shift_slopes)
{
    if (op_refused(op) || op_empty(input)) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {{slopes, VIEW_READ, NULL}, {input, VIEW_READ, NULL}, given_view(scale, VIEW_READ, NULL),
                                 {input_slopes, VIEW_WRITE, NULL}, given_view(scale_slopes, VIEW_WRITE, NULL),
                                 given_view(shift_slopes, VIEW_WRITE, NULL)};
    return op_plan_views(op, us_modulate_gradient, NULL, 0, 6, views);
}

aclnnStatus op_quantized_norm(OpCall *op, const QuantizedNorm *norm, const Operand *output)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    MapCall call = call_of(&us_map_quantised_norm, ACL_FLOAT);
    const double numbers[] = {norm->input_zero, norm->input_scale, norm->output_scale, norm->output_zero, norm->epsilon,
                              op_given(norm->weight) ? 0 : 1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        call.numbers[i] = op_real(numbers[i], ACL_FLOAT);
    }
    const Operand *parts[] = {norm->mean, norm->variance, norm->weight, norm->bias};
    View shown[4];
    PlannedView views[6] = {{norm->input, VIEW_READ, NULL}};
    for (int i = 0; i < 4; i++) {
        shown[i] = from_axis(parts[i], &norm->input->view, 1);
        views[1 + i] = given_view(parts[i], VIEW_READ, &shown[i]);
    }
    views[5] = (PlannedView){output, VIEW_WRITE, NULL};
    return op_plan_views(op, us_map, &call, sizeof call, 6, views);
}

bool op_holds(aclDataType dtype, double number)
{
    const double least = dtype == ACL_INT8 ? INT8_MIN : dtype == ACL_UINT8 ? 0 : INT32_MIN;
    const double most = dtype == ACL_INT8 ? INT8_MAX : dtype == ACL_UINT8 ? UINT8_MAX : INT32_MAX;
    return number >= least && number <= most;
}

/* ---- by type ---- */

aclDataType real_type(aclDataType dtype)
{
    return dtype == ACL_COMPLEX64 ? ACL_FLOAT : dtype == ACL_COMPLEX128 ? ACL_DOUBLE : dtype;
}

aclnnStatus op_real_part(OpCall *op, const Operand *self, const Operand *out)
{
    return self->dtype == real_type(self->dtype)
               ? op_copy(op, self, out)
               : op_map(op, &us_map_real, self->dtype, OPERANDS(self), OPERANDS(out), NO_NUMBERS);
}

/* Integers have no places behind the point; before it they round in double. */
aclnnStatus op_round(OpCall *op, const Operand *self, int64_t decimals, const Operand *out)
{
    const bool is_integer = op_is_integer(self->dtype);
    if (is_integer && decimals >= 0) {
        return op_copy(op, self, out);
    }
    const aclDataType compute = is_integer ? ACL_DOUBLE : self->dtype;
    if (decimals == 0) {
        return op_map(op, &us_map_round, compute, OPERANDS(self), OPERANDS(out), NO_NUMBERS);
    }
    double scale = 1;
    for (int64_t digits = 0; digits != decimals && scale < DBL_MAX; digits += decimals < 0 ? -1 : 1) {
        scale *= 10;
    }
    return op_map(op, &us_map_round_decimals, compute, OPERANDS(self), OPERANDS(out),
                  NUMBERS(op_real(scale, ACL_DOUBLE), op_real(decimals < 0, ACL_DOUBLE)));
}
