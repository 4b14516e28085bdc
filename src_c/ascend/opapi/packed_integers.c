#include "ascend/opapi/packed_integers.h"

#include "kernels/sizes.h"

enum { NUMBERS_OF_INT32 = 8, BYTES_OF_INT32 = 4 };

/* Of the last two. One integer of 4 bits does not fill a byte: it is a column of those above it. */
static int32_t packed_axis(const View *view, bool eight)
{
    const int32_t last = view->rank - 1;
    const bool is_column = view->shape[last] == 1 && !eight;
    return last == 0 || (!is_column && (view->strides[last] == 1 || view->shape[last] == 1)) ? last : last - 1;
}

Integers op_integers_of(const Operand *operand)
{
    Integers integers = {operand->view, NOT_PACKED, true};
    if (operand->dtype != ACL_INT4 && operand->dtype != ACL_INT32) {
        return integers;
    }
    View *view = &integers.view;
    if (view->rank == 0) {
        integers.fits = false;
        return integers;
    }
    const bool eight = operand->dtype == ACL_INT32, steps = !us_view_is_empty(view); /* strides of nothing say nothing */
    const int32_t axis = packed_axis(view, eight);
    integers.axis = axis;
    integers.fits = !steps || view->strides[axis] == 1 || view->shape[axis] == 1;
    integers.fits &= eight || (view->shape[axis] % 2 == 0 && operand->offset % 2 == 0);
    for (int32_t i = 0; i < view->rank; i++) {
        integers.fits &= !steps || i == axis || eight || view->shape[i] == 1 || view->strides[i] % 2 == 0;
        const int64_t bytes = (int64_t)((uint64_t)view->strides[i] * BYTES_OF_INT32); /* that of one element may be any */
        view->strides[i] = i == axis ? 1 : eight ? bytes : view->strides[i] / 2;
    }
    const int64_t most = INT64_MAX / NUMBERS_OF_INT32; /* of no memory, but sizes are read before it is refused */
    view->shape[axis] = eight ? bounded(view->shape[axis], 0, most) * BYTES_OF_INT32 : view->shape[axis] / 2;
    view->dtype = DTYPE_UINT8;
    /* Modulo 2^64, as the offset has been added. */
    view->data = (void *)((uintptr_t)view->data + (uintptr_t)(eight ? 0 : operand->offset / 2));
    return integers;
}

int64_t op_integer_size(const Integers *integers, int32_t from_end)
{
    const int32_t axis = integers->view.rank - from_end;
    return integers->view.shape[axis] * (integers->axis == axis ? 2 : 1);
}

void op_require_packed(OpCall *op, const Operand *operand, const Integers *integers)
{
    op_require(op, integers->fits, operand->name, "packed", op->invalid,
               "%s is %s of %s: integers of 4 bits fill whole bytes side by side along one of the last two dimensions",
               operand->name, op_shape_text(op, operand), acl_dtype_name(operand->dtype));
}

/* A size that does not divide gives a shape that no tensor has. */
Shape op_shape_packed(OpCall *op, const Operand *whole, const Operand *packed)
{
    Shape shape = op_shape(whole);
    if (!op_refused(op) && packed->dtype == ACL_INT32 && shape.rank > 0) {
        int64_t *last = &shape.sizes[shape.rank - 1];
        *last = *last % NUMBERS_OF_INT32 == 0 ? *last / NUMBERS_OF_INT32 : -1;
    }
    return shape;
}

Shape op_shape_unpacked(OpCall *op, const Operand *packed)
{
    Shape shape = op_shape(packed);
    if (!op_refused(op) && packed->dtype == ACL_INT32 && shape.rank > 0) {
        int64_t *last = &shape.sizes[shape.rank - 1];
        *last = __builtin_mul_overflow(*last, NUMBERS_OF_INT32, last) ? -1 : *last;
    }
    return shape;
}

void op_require_packed_rows(OpCall *op, const Operand *operand)
{
    if (op_refused(op)) {
        return;
    }
    Integers integers = op_integers_of(operand);
    integers.fits &= integers.axis == NOT_PACKED || integers.axis == integers.view.rank - 1;
    op_require_packed(op, operand, &integers);
}

View op_scale_view(const Operand *operand)
{
    View view = op_given(operand) ? operand->view : us_view_absent();
    if (op_given(operand) && (operand->dtype == ACL_UINT64 || operand->dtype == ACL_INT64)) {
        view.dtype = DTYPE_FLOAT32;
        for (int32_t i = 0; i < view.rank; i++) {
            view.strides[i] *= 2;
        }
    }
    return view;
}
