#include "kernels/attention/rotary.h"

#include "kernels/map/formulas.h"
#include "kernels/matmul/matmul.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"

static KernelStatus map(const MapFormula *formula, int32_t inputs, int32_t outputs, const View *views)
{
    const MapCall call = {.formula = formula, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = inputs,
                          .outputs = outputs, .items = 1};
    return us_map(views, &call);
}

/* to = sum of a * b over the axes of size 1 of `to`, negated if asked; `space` holds a float for every element of a. */
static KernelStatus add_products(const View *a, const View *b, const View *to, bool negative, void *space)
{
    const View products = us_view_contiguous(space, DTYPE_FLOAT32, a->rank, a->shape);
    KernelStatus status = map(&us_map_mul, 2, 1, (const View[]){*a, *b, products});
    ReduceCall sum = {.reduction = &us_reduce_sum, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .outputs = 1};
    for (int32_t axis = 0; axis < a->rank; axis++) {
        sum.axes |= (uint32_t)(to->shape[axis] == 1) << axis;
    }
    status = status != KERNEL_OK ? status : us_reduce((const View[]){products, *to}, &sum);
    return status != KERNEL_OK || !negative ? status : map(&us_map_neg, 1, 1, (const View[]){*to, *to});
}

KernelStatus us_rotary_backward(const View *views, const void *attributes)
{
    (void)attributes;
    const View *dy = views, *x = views + 2, *angles = views + 4, *dx = views + 8, *sums = views + 10;
    KernelStatus status = KERNEL_OK;
    if (!us_view_is_absent(x)) {
        void *space = us_scratch_array(us_view_elements(dy), sizeof(float));
        status = space == NULL ? KERNEL_NO_MEMORY : add_products(&dy[0], &x[0], &sums[0], false, space);
        status = status != KERNEL_OK ? status : add_products(&dy[1], &x[1], &sums[1], false, space);
        status = status != KERNEL_OK ? status : add_products(&dy[0], &x[1], &sums[2], true, space);
        status = status != KERNEL_OK ? status : add_products(&dy[1], &x[0], &sums[3], false, space);
        us_scratch_give_back(space);
    }
    const View turned[] = {dy[0], dy[1], angles[0], angles[1], angles[2], angles[3], dx[0], dx[1]};
    return status != KERNEL_OK ? status : map(&us_map_rotate_back, 6, 2, turned);
}

/* ---- by a matrix ---- */

KernelStatus us_rotary_product(const View *views, const void *attributes)
{
    (void)attributes;
    const View *x = &views[0], *y = &views[4], absent = us_view_absent();
    const int64_t count = us_view_elements(y);
    float *taken = us_scratch_take(2 * us_scratch_bytes(count, sizeof *taken));
    if (taken == NULL) {
        return KERNEL_NO_MEMORY;
    }
    float *second = (float *)((char *)taken + us_scratch_bytes(count, sizeof *taken));
    const View product = us_view_contiguous(taken, DTYPE_FLOAT32, y->rank, y->shape);
    const View kept = us_view_contiguous(second, DTYPE_FLOAT32, y->rank, y->shape);
    View repeated = *x; /* sizes: the matrix for each batch of rows */
    repeated.shape[x->rank - 2] = views[3].shape[0];
    const View matrix = us_view_broadcast(&views[3], x->rank, repeated.shape);
    const ViewProduct how = {.compute = DTYPE_FLOAT32, .alpha = {1}};
    KernelStatus status = us_product((const View[]){*x, matrix, absent, product, absent, absent}, &how);
    status = status != KERNEL_OK ? status : us_map_floats(&us_map_mul, 2, (const View[]){*x, views[1], kept});
    status = status != KERNEL_OK ? status : us_map_floats(&us_map_addcmul, 3, (const View[]){kept, product, views[2], *y});
    us_scratch_give_back(taken);
    return status;
}
