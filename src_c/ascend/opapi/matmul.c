/* Matrix products: src_c/kernels/matmul. */
#include "ascend/opapi/matmul.h"

#include "ascend/common/op_memory.h"
#include "kernels/matmul/matmul.h"

#include <string.h>

/* Shapes of a product as torch.matmul has them: a vector on the left is a row, one on the right a column. */
static void as_matrix(View *view, bool left)
{
    if (view->rank == 1) {
        const int32_t kept = left ? 1 : 0;
        const int64_t size = view->shape[0], stride = view->strides[0];
        view->rank = 2;
        view->shape[kept] = size;
        view->strides[kept] = stride;
        view->shape[1 - kept] = 1;
        view->strides[1 - kept] = size * stride;
    }
}

bool op_joint_batch(const Operand *a, const Operand *b, Shape *shape)
{
    View batches[] = {a->view, b->view};
    const View *const pointers[] = {&batches[0], &batches[1]};
    batches[0].rank -= 2;
    batches[1].rank -= 2;
    return us_broadcast_shape(pointers, 2, &shape->rank, shape->sizes, NULL);
}

Shape op_shape_in_batch(const OpCall *op, const Operand *a, const Operand *b, int64_t rows, int64_t columns)
{
    Shape shape = {0};
    if (op_refused(op) || !op_joint_batch(a, b, &shape)) {
        return (Shape){0};
    }
    shape.sizes[shape.rank++] = rows;
    shape.sizes[shape.rank++] = columns;
    return shape;
}

View op_with_batch(const View *view, int32_t rank, const int64_t *shape)
{
    View own = *view;
    own.rank -= 2;
    View result = us_view_broadcast(&own, rank, shape);
    for (int32_t axis = 0; axis < 2; axis++) {
        result.shape[rank + axis] = view->shape[view->rank - 2 + axis];
        result.strides[rank + axis] = view->strides[view->rank - 2 + axis];
    }
    result.rank = rank + 2;
    return result;
}

const Operand *op_turned(OpCall *op, const Operand *matrix, bool turned)
{
    Operand *result = turned ? op_take(op, sizeof *result) : NULL;
    if (result == NULL) {
        return matrix;
    }
    *result = *matrix;
    result->view = op_swap_axes(matrix->view, matrix->view.rank - 2, matrix->view.rank - 1);
    return result;
}

Shape op_shape_turned_product(OpCall *op, const Operand *a, const Operand *b, bool turned_a, bool turned_b)
{
    return op_shape_product(op, op_turned(op, a, turned_a), op_turned(op, b, turned_b));
}

DType op_product_type(DType dtype)
{
    return dtype == DTYPE_FLOAT64 || dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128 ? dtype
           : us_dtype_is_float(dtype) ? DTYPE_FLOAT32 : DTYPE_INT64;
}

/* The result as a matrix of a batch; axes that vectors do not have are of size 1. */
static View result_matrix(const View *view, int32_t batch, bool has_row, bool has_column)
{
    View result = *view;
    int32_t axis = batch;
    for (int32_t i = 0; i < 2; i++) {
        const bool given = i == 0 ? has_row : has_column;
        result.shape[batch + i] = given ? view->shape[axis] : 1;
        result.strides[batch + i] = given ? view->strides[axis] : 0;
        axis += given;
    }
    result.rank = batch + 2;
    return result;
}

aclnnStatus op_matmul(OpCall *op, const Operand *a, const Operand *b, const Operand *addend, Number beta, Number alpha,
                      const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    ViewProduct product = {.compute = op_product_type(dtype_of_acl(op_promote(op, OPERANDS(a, b)))),
                       .alpha = {alpha.real}, .beta = {beta.real}};
    View left = a->view, right = b->view;
    as_matrix(&left, true);
    as_matrix(&right, false);
    const int32_t batch = out->view.rank - (a->view.rank > 1) - (b->view.rank > 1);
    left = op_with_batch(&left, batch, out->view.shape);
    right = op_with_batch(&right, batch, out->view.shape);
    const View result = result_matrix(&out->view, batch, a->view.rank > 1, b->view.rank > 1);
    View added = us_view_absent();
    if (addend != NULL) {
        const View joint = us_view_broadcast(&addend->view, out->view.rank, out->view.shape);
        added = result_matrix(&joint, batch, a->view.rank > 1, b->view.rank > 1);
    }
    const PlannedView views[] = {{a, VIEW_READ, &left},     {b, VIEW_READ, &right}, {addend, VIEW_READ, &added},
                                 {out, VIEW_WRITE, &result}, {NULL, VIEW_READ, NULL}, {NULL, VIEW_READ, NULL}};
    return op_plan_views(op, us_product, &product, sizeof product, 6, views);
}
