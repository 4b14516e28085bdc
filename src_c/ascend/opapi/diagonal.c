#include "ascend/opapi/diagonal.h"

#include "kernels/move/move.h"
#include "kernels/sizes.h"

#include <math.h>

static View moved(View view, int64_t elements)
{
    view.data = (void *)((uintptr_t)view.data + (uintptr_t)elements * us_dtype_size(view.dtype));
    return view;
}

/* ---- diagonals ---- */

static int64_t magnitude(int64_t diagonal)
{
    return diagonal == INT64_MIN ? INT64_MAX : diagonal < 0 ? -diagonal : diagonal;
}

Shape op_shape_diagonal_matrix(OpCall *op, const Operand *self, int64_t diagonal)
{
    (void)op;
    int64_t size = 0;
    const bool fits = !__builtin_add_overflow(op_elements(self), magnitude(diagonal), &size);
    return op_shape_of(2, (const int64_t[]){fits ? size : -1, fits ? size : -1});
}

static int64_t diagonal_length(const View *matrix, int64_t diagonal)
{
    const int64_t rows = matrix->shape[0], columns = matrix->shape[1];
    if (rows <= 0 || diagonal <= -rows || diagonal >= columns) {
        return 0;
    }
    const int64_t down = diagonal < 0 ? rows + diagonal : rows, across = diagonal > 0 ? columns - diagonal : columns;
    return down < across ? down : across;
}

Shape op_shape_diagonal(OpCall *op, const Operand *self, int64_t diagonal)
{
    if (self->view.rank != 2) {
        return op_shape_diagonal_matrix(op, self, diagonal);
    }
    return op_shape_of(1, (const int64_t[]){diagonal_length(&self->view, diagonal)});
}

aclnnStatus op_diagonal_matrix(OpCall *op, const Operand *self, int64_t diagonal, const Operand *out)
{
    const Diagonal attributes = {.diagonal = diagonal};
    return op_plan_operands(op, us_diagonal_matrix, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(out));
}

static aclnnStatus reshape_view(OpCall *op, const Operand *self, const View *view, const Operand *out)
{
    const Reshape attributes = {0};
    return op_plan_views(op, us_reshape, &attributes, sizeof attributes, 2,
                         (const PlannedView[]){{self, VIEW_READ, view}, {out, VIEW_WRITE, NULL}});
}

aclnnStatus op_diagonal(OpCall *op, const Operand *self, int64_t diagonal, const Operand *out)
{
    if (op_refused(op) || self->view.rank != 2) {
        return op_diagonal_matrix(op, self, diagonal, out);
    }
    View view = self->view;
    view.rank = 1;
    view.shape[0] = diagonal_length(&self->view, diagonal);
    view.strides[0] = (int64_t)((uint64_t)self->view.strides[0] + (uint64_t)self->view.strides[1]);
    if (view.shape[0] > 0) {
        view = moved(view, diagonal < 0 ? -diagonal * self->view.strides[0] : diagonal * self->view.strides[1]);
    }
    return reshape_view(op, self, &view, out);
}

aclnnStatus op_fill_diagonal(OpCall *op, const Operand *self, Number value, bool wraps)
{
    const DiagonalFill attributes = {.value = value, .wraps = wraps && self->view.rank == 2};
    return op_plan_views(op, us_fill_diagonal, &attributes, sizeof attributes, 1,
                         (const PlannedView[]){{self, VIEW_READ_WRITE, NULL}});
}

bool op_overflows(const ScalarArgument *scalar, aclDataType dtype)
{
    const double value = scalar->value.real, stored = op_number(scalar, dtype).real;
    if (op_is_integer(dtype)) {
        return dtype != ACL_BOOL && stored != trunc(value);
    }
    return isfinite(value) && !isfinite(stored);
}

bool op_is_cube(const Operand *operand)
{
    for (int32_t d = 1; d < operand->view.rank; d++) {
        if (operand->view.shape[d] != operand->view.shape[0]) {
            return false;
        }
    }
    return true;
}

/* ---- slices ---- */

Shape op_shape_sliced_axes(OpCall *op, const Operand *self, IntArguments starts, IntArguments ends, IntArguments axes,
                           IntArguments steps)
{
    Shape shape = op_shape(self);
    for (int64_t i = 0; i < axes.count && !op_refused(op); i++) {
        int64_t *size = &shape.sizes[axes.values[i] < 0 ? axes.values[i] + shape.rank : axes.values[i]];
        *size = op_slice_size(*size, starts.values[i], ends.values[i], steps.values[i]);
    }
    return shape;
}

/* The part of the tensor that has the sizes of `slice`, which is not empty. */
static View sliced(const View *whole, IntArguments starts, IntArguments axes, IntArguments steps, const Operand *slice)
{
    View view = *whole;
    for (int64_t i = 0; i < axes.count; i++) {
        const int64_t axis = axes.values[i] < 0 ? axes.values[i] + view.rank : axes.values[i];
        view = moved(view, op_slice_begin(whole->shape[axis], starts.values[i]) * view.strides[axis]);
        view.strides[axis] = (int64_t)((uint64_t)view.strides[axis] * (uint64_t)steps.values[i]); /* of one place any step */
        view.shape[axis] = slice->view.shape[axis];
    }
    return view;
}

aclnnStatus op_slice_axes(OpCall *op, const Operand *self, IntArguments starts, IntArguments axes, IntArguments steps,
                          const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View view = sliced(&self->view, starts, axes, steps, out);
    return reshape_view(op, self, &view, out);
}

IntArguments op_axes_or_first(IntArguments axes, int64_t count)
{
    static const int64_t first[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int64_t most = sizeof first / sizeof *first; /* no tensor has more: then there are fewer than were asked for */
    return axes.given ? axes
                      : (IntArguments){.name = axes.name, .given = true, .count = smaller(count, most), .values = first};
}

bool op_are_axes(const Operand *operand, IntArguments axes)
{
    uint32_t seen = 0;
    for (int64_t i = 0; i < axes.count; i++) {
        const int64_t axis = axes.values[i] < 0 ? axes.values[i] + operand->view.rank : axes.values[i];
        if (axis < 0 || axis >= operand->view.rank || (seen >> axis & 1) != 0) {
            return false;
        }
        seen |= UINT32_C(1) << axis;
    }
    return true;
}

bool op_steps_on_last(const Operand *operand, IntArguments axes, IntArguments steps)
{
    for (int64_t i = 0; i < axes.count; i++) {
        if ((axes.values[i] == -1 || axes.values[i] == operand->view.rank - 1) && steps.values[i] != 1) {
            return true;
        }
    }
    return false;
}

bool op_is_slice(OpCall *op, const Operand *slice, const Operand *whole, IntArguments starts, IntArguments ends,
                 IntArguments axes, IntArguments steps)
{
    const Shape shape = op_shape_sliced_axes(op, whole, starts, ends, axes, steps);
    return slice->view.rank == shape.rank &&
           memcmp(slice->view.shape, shape.sizes, (size_t)shape.rank * sizeof *shape.sizes) == 0;
}

aclnnStatus op_assign_slice(OpCall *op, const Operand *whole, IntArguments starts, IntArguments axes, IntArguments steps,
                            const Operand *value)
{
    if (op_refused(op) || op_empty(value)) {
        return op_plan_nothing(op);
    }
    const View view = sliced(&whole->view, starts, axes, steps, value);
    const Reshape attributes = {0};
    return op_plan_views(op, us_reshape, &attributes, sizeof attributes, 2,
                         (const PlannedView[]){{value, VIEW_READ, NULL}, {whole, VIEW_WRITE, &view}});
}

bool op_broadcasts_to(const Operand *operand, IntArguments sizes)
{
    for (int32_t d = 0; d < operand->view.rank; d++) {
        const int64_t size = operand->view.shape[d], wanted = sizes.values[sizes.count - operand->view.rank + d];
        if (size != 1 && size != wanted) {
            return false;
        }
    }
    return true;
}
