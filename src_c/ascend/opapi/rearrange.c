#include "ascend/opapi/rearrange.h"

#include "kernels/map/formulas.h"
#include "kernels/move/chunk_cat.h"
#include "kernels/move/move.h"
#include "kernels/move/repeat_each.h"
#include "kernels/move/windows.h"

static aclnnStatus copy_view(OpCall *op, const Operand *from, View source, const Operand *to, View target)
{
    const DType dtype = dtype_of_acl(from->dtype);
    const MapCall call = {.formula = &us_map_copy, .compute = dtype, .result = dtype, .inputs = 1, .outputs = 1,
                          .items = 1};
    return op_plan_views(op, us_map, &call, sizeof call, 2,
                         (const PlannedView[]){{from, VIEW_READ, &source}, {to, VIEW_WRITE, &target}});
}

aclnnStatus op_channel_shuffle(OpCall *op, const Operand *self, int64_t groups, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const int64_t in_group = op_size(self, 1) / groups;
    const View source = op_swap_axes(op_split_axis(self->view, 1, in_group), 1, 2);
    return copy_view(op, self, source, out, op_split_axis(out->view, 1, groups));
}

/* ---- slices as often as a tensor says ---- */

void require_repeats(OpCall *op, const Operand *self, int32_t axis, const Operand *repeats)
{
    const int64_t given = op_elements(repeats);
    const int64_t size = axis < 0 ? op_elements(self) : op_size(self, axis);
    op_require(op, given == 1 || given == size, repeats->name, "elements", op->invalid,
               "%s is %s; it needs 1 element or %lld", repeats->name, op_shape_text(op, repeats), (long long)size);
}

Shape op_shape_repeated_each(OpCall *op, const Operand *self, int32_t axis, int64_t size)
{
    Shape shape = op_shape(self);
    if (!op_refused(op) && axis < shape.rank) {
        shape.sizes[axis] = size;
    }
    return shape;
}

static aclnnStatus plan_repeats(OpCall *op, RepeatEach attributes, const Operand *self, const Operand *repeats,
                                const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    return op_plan_operands(op, us_repeat_each, &attributes, sizeof attributes, OPERANDS(self, repeats), OPERANDS(out));
}

aclnnStatus op_repeat_each(OpCall *op, const Operand *self, const Operand *repeats, int32_t axis, const Operand *out)
{
    return plan_repeats(op, (RepeatEach){.axis = axis}, self, repeats, out);
}

aclnnStatus op_repeat_each_element(OpCall *op, const Operand *self, const Operand *repeats, const Operand *out)
{
    return plan_repeats(op, (RepeatEach){.flat = true}, self, repeats, out);
}

aclnnStatus op_repeat_places(OpCall *op, const Operand *repeats, const Operand *out)
{
    return plan_repeats(op, (RepeatEach){.flat = true}, NULL, repeats, out);
}

bool op_alike_but(const Operand *a, const Operand *b, int32_t axis)
{
    bool alike = a->view.rank == b->view.rank;
    for (int32_t d = 0; d < a->view.rank && alike; d++) {
        alike = d == axis || a->view.shape[d] == b->view.shape[d];
    }
    return alike;
}

aclnnStatus op_repeat_each_gradient(OpCall *op, const Operand *slopes, const Operand *repeats, int32_t axis,
                                    const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const RepeatEach attributes = {.axis = axis};
    return op_plan_operands(op, us_repeat_each_gradient, &attributes, sizeof attributes, OPERANDS(slopes, repeats),
                            OPERANDS(out));
}

/* ---- powers ---- */

aclnnStatus op_logspace(OpCall *op, const ScalarArgument *start, const ScalarArgument *end, int64_t steps, double base,
                        const Operand *out)
{
    const double from = op_number(start, ACL_DOUBLE).real, to = op_number(end, ACL_DOUBLE).real;
    const double gap = steps > 1 ? (to - from) / (double)(steps - 1) : 0;
    const Sequence attributes = {.compute = DTYPE_FLOAT64, .powers = true, .base = base,
                                 .start = op_real(from, ACL_DOUBLE), .step = op_real(gap, ACL_DOUBLE),
                                 .last = op_real(to, ACL_DOUBLE),
                                 .last_at = steps > 1 ? steps - 1 : -1};
    return op_plan_operands(op, us_sequence, &attributes, sizeof attributes, NO_OPERANDS, OPERANDS(out));
}

Shape op_shape_chunks(OpCall *op, Operands tensors, int64_t chunks)
{
    Shape shape = {.rank = 2, .sizes = {chunks, 0}};
    for (int32_t i = 0; i < tensors.count && !op_refused(op); i++) {
        if (__builtin_add_overflow(shape.sizes[1], us_chunk_elements(&tensors.items[i]->view, chunks), &shape.sizes[1])) {
            shape.sizes[1] = -1;
            break;
        }
    }
    return shape;
}

aclnnStatus op_chunk_cat(OpCall *op, Operands tensors, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const ChunkCat attributes = {tensors.count};
    return op_plan_operands(op, us_chunk_cat, &attributes, sizeof attributes, tensors, OPERANDS(out));
}

/* ---- windows ---- */

int64_t op_last_of(IntArguments sizes)
{
    return sizes.count == 0 ? 0 : sizes.count - 1;
}

int64_t op_unfolded_size(IntArguments sizes, int64_t dim)
{
    if (dim < 0 || dim > op_last_of(sizes)) {
        return 0;
    }
    return sizes.count == 0 ? 1 : sizes.values[dim];
}

bool op_windows_fit(aclDataType dtype, bool last, int64_t size, int64_t step)
{
    const bool wide = dtype == ACL_FLOAT;
    const int64_t limit = last ? (wide ? 49088 : 32720) : wide ? 88 : 72;
    return size <= limit && step <= limit;
}

void require_windows(OpCall *op, const Operand *windows, IntArguments sizes, int64_t dim, int64_t size)
{
    bool fits = op_refused(op) || windows->view.shape[windows->view.rank - 1] == size;
    for (int64_t d = 0; d < sizes.count && fits && !op_refused(op); d++) {
        fits = d == dim || windows->view.shape[d] == sizes.values[d];
    }
    op_require(op, fits, windows->name, "shape", op->invalid, "%s is %s, whose other dimensions do not fit", windows->name,
               op_shape_text(op, windows));
}

aclnnStatus op_add_windows(OpCall *op, const Operand *windows, int64_t dim, int64_t step, const Operand *out)
{
    if (!op_refused(op) && out->view.rank == 0) {
        return op_reshape(op, windows, out);
    }
    const AddWindows how = {(int32_t)dim, step};
    return op_plan_operands(op, us_add_windows, &how, sizeof how, OPERANDS(windows), OPERANDS(out));
}
