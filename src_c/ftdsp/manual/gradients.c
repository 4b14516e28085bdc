/* Gradients of a difference, a product and a loss (ft-dsp-manual 3 and 4). The gradient of an operand that was repeated is
 * summed along the axes where it has size 1. */
#include "ftdsp/broadcast.h"
#include "ftdsp/manual.h"
#include "ftdsp/operators.h"
#include "kernels/scratch.h"

static void check_dims(FtCall *call, const char *name, const int *dims, const Shape *whole, bool may_repeat)
{
    for (int d = 0; ft_ok(call) && d < whole->rank; d++) {
        ft_require(call, dims[d] == whole->size[d] || (may_repeat && dims[d] == 1), name, "mismatch", FT_BAD_SIZE,
                   "axis %d has size %d, that of dy %lld", d, dims[d], (long long)whole->size[d]);
    }
}

void ft_op_subgrad(FtCall *call, const FtSubgrad *a)
{
    const Shape dy = ft_shape(call, "dy_dims", a->dy_dims, a->num_dims);
    check_dims(call, "x1_dims", a->x1_dims, &dy, true);
    check_dims(call, "x2_dims", a->x2_dims, &dy, true);
    const Shape x1 = ft_shape(call, "x1_dims", a->x1_dims, a->num_dims), x2 = ft_shape(call, "x2_dims", a->x2_dims, a->num_dims);
    if (!ft_ok(call)) {
        return;
    }
    const View from = ft_array(call, a->dy, &dy), dx1 = ft_array(call, a->dx1, &x1), dx2 = ft_array(call, a->dx2, &x2);
    ft_sum_to(call, from, dx1);
    if (x2.elements != dy.elements) {
        ft_sum_to(call, from, dx2);
    }
    ft_map(call, &us_map_neg, call->dtype, 1, (const View[]){x2.elements != dy.elements ? dx2 : from, dx2});
}

/* ---- products ---- */

void ft_op_gradmul(FtCall *call, const FtGradmul *a)
{
    const Shape shape = ft_shape(call, "out_shape", a->out_shape, a->ndims);
    for (int d = 0; ft_ok(call) && d < a->ndims; d++) {
        ft_require(call, a->large_shape[d] == a->out_shape[d] && a->small_shape[d] == a->out_shape[d], "out_shape", "mismatch",
                   FT_BAD_SIZE, "axis %d has sizes %d, %d and %d; equal ones are needed", d, a->large_shape[d],
                   a->small_shape[d], a->out_shape[d]);
    }
    const View dy = ft_array(call, a->dy, &shape);
    ft_map(call, &us_map_mul, DTYPE_FLOAT32, 2, (const View[]){dy, ft_array(call, a->x2, &shape),
                                                               ft_array(call, a->dx1, &shape)});
    ft_map(call, &us_map_mul, DTYPE_FLOAT32, 2, (const View[]){dy, ft_array(call, a->x1, &shape),
                                                               ft_array(call, a->dx2, &shape)});
}

/* An operand and its gradient. */
typedef struct Factor {
    const void *x;
    void *dx;
    const int *dims;
} Factor;

/* `small` was repeated to the shape of `large`. */
static void repeated_product(FtCall *call, const void *upstream, const int *out_shape, int ndims, Factor large, Factor small)
{
    const Shape out = ft_shape(call, "out_shape", out_shape, ndims);
    check_dims(call, "large_shape", large.dims, &out, false);
    check_dims(call, "small_shape", small.dims, &out, true);
    const Shape repeated = ft_shape(call, "small_shape", small.dims, ndims);
    if (!ft_ok(call)) {
        return;
    }
    const View dy = ft_array(call, upstream, &out);
    ft_map(call, &us_map_mul, DTYPE_FLOAT32, 2, (const View[]){dy, ft_array(call, small.x, &repeated),
                                                               ft_array(call, large.dx, &out)});
    double *products = us_scratch_array(out.elements + 1, sizeof *products);
    ft_finish(call, products ? KERNEL_OK : KERNEL_NO_MEMORY);
    const View all = us_view_contiguous(products, DTYPE_FLOAT64, out.rank, out.size);
    ft_map(call, &us_map_mul, DTYPE_FLOAT64, 2, (const View[]){dy, ft_array(call, large.x, &out), all});
    ft_sum_to(call, all, ft_array(call, small.dx, &repeated));
    us_scratch_give_back(products);
}

void ft_op_gradmul1l(FtCall *call, const FtGradmul1l *a)
{
    repeated_product(call, a->dy, a->out_shape, a->ndims, (Factor){a->x1, a->dx1, a->large_shape},
                     (Factor){a->x2, a->dx2, a->small_shape});
}

void ft_op_gradmul2l(FtCall *call, const FtGradmul2l *a)
{
    repeated_product(call, a->dy, a->out_shape, a->ndims, (Factor){a->x2, a->dx2, a->large_shape},
                     (Factor){a->x1, a->dx1, a->small_shape});
}

/* ---- losses ---- */

void ft_op_binary_cross_entropy_grad(FtCall *call, const FtBinaryCrossEntropyGrad *a)
{
    const long long size = a->param[0], reduction = a->param[1];
    ft_length(call, "input_size", size);
    ft_require(call, size <= INT32_MAX, "input_size", "range", FT_BAD_SIZE, "param[0] is %lld, more than an int", size);
    ft_require(call, reduction >= 0 && reduction <= 2, "reduction", "range", FT_BAD_ATTRIBUTE,
               "param[1] is %lld; 0 is none, 1 mean, 2 sum", reduction);
    if (ft_ok(call)) {
        ft_binarycrossentropygrad(call, (int)size, (int)reduction, a->input_x, a->input_y, a->weight, a->dloss, a->dx,
                                  a->param[2] != 0);
    }
}
