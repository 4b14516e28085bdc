#include "kernels/linear_algebra/matrices.h"

#include "kernels/matmul/lines.h"
#include "tensor/parallel.h"

#include <math.h>

enum { LINES_OF_A_PIECE = 16 };

static DType wide_type(DType dtype)
{
    return is_complex(dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64;
}

typedef struct Sum {
    const View *a, *b, *c;
    MatrixSum form;
    bool multiplies; /* c = a * b instead of a sum */
} Sum;

static char *line_at(const View *view, int64_t line, int64_t first)
{
    const int64_t offset = line * view->strides[0] + first * view->strides[1];
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

static void load(const View *view, int64_t line, int64_t first, int64_t count, bool conjugated, double *values)
{
    us_line_load(wide_type(view->dtype), values, line_at(view, line, first), view->dtype, view->strides[1], count,
                 conjugated && is_complex(view->dtype));
}

/* values *= others, elements of the type. */
static void multiply_line(DType wide, double *values, const double *others, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (is_complex(wide)) {
            us_line_blend(wide, values + 2 * i, others + 2 * i, NULL, NULL, 1);
        } else {
            values[i] *= others[i];
        }
    }
}

static void sum_lines(void *context, int64_t piece)
{
    const Sum *sum = context;
    const View *c = sum->c;
    const DType wide = wide_type(c->dtype);
    double a[2 * LINE_ELEMENTS], b[2 * LINE_ELEMENTS];
    for (int64_t line = piece * LINES_OF_A_PIECE; line < smaller(c->shape[0], (piece + 1) * LINES_OF_A_PIECE); line++) {
        for (int64_t first = 0; first < c->shape[1]; first += LINE_ELEMENTS) {
            const int64_t count = smaller(c->shape[1] - first, LINE_ELEMENTS);
            const bool reads_a = !us_view_is_absent(sum->a), reads_b = !us_view_is_absent(sum->b);
            memset(a, 0, sizeof a);
            if (reads_a) {
                load(sum->a, line, first, count, sum->form.conjugated_a, a);
            }
            if (reads_b) {
                load(sum->b, line, first, count, sum->form.conjugated_b, b);
            }
            if (sum->multiplies) {
                multiply_line(wide, a, b, count);
            } else {
                us_line_blend(wide, a, sum->form.alpha, reads_b ? b : NULL, sum->form.beta, count);
            }
            for (int64_t i = 0; i < count && wide == DTYPE_FLOAT64 && !us_dtype_is_float(c->dtype); i++) {
                a[i] = rint(a[i]); /* integers: to the nearest, ties to even, where a conversion would truncate */
            }
            us_line_store(wide, line_at(c, line, first), c->dtype, c->strides[1], a, count);
        }
    }
}

static void run(Sum *sum)
{
    us_parallel((sum->c->shape[0] + LINES_OF_A_PIECE - 1) / LINES_OF_A_PIECE, sum_lines, sum);
}

static void read_scalar(const View *view, double *value)
{
    if (!us_view_is_absent(view)) {
        us_line_load(wide_type(view->dtype), value, view->data, view->dtype, 1, 1, false);
    }
}

KernelStatus us_matrix_sum(const View *views, const void *attributes)
{
    const View absent = us_view_absent();
    Sum sum = {.a = &views[0], .b = &views[1], .c = &views[2], .form = *(const MatrixSum *)attributes};
    read_scalar(&views[3], sum.form.alpha);
    read_scalar(&views[4], sum.form.beta);
    if (is_zero(sum.form.alpha)) { /* what is multiplied by 0 is not read */
        sum.a = &absent;
    }
    if (is_zero(sum.form.beta)) {
        sum.b = &absent;
    }
    run(&sum);
    return KERNEL_OK;
}

KernelStatus us_matrix_scale(const View *views, const void *attributes)
{
    (void)attributes;
    Sum sum = {.a = &views[0], .b = &views[1], .c = &views[2], .multiplies = true};
    run(&sum);
    return KERNEL_OK;
}

KernelStatus us_triangle_copy(const View *views, const void *attributes)
{
    const TriangleCopy *copy = attributes;
    const View *matrix = &views[1];
    const int64_t n = matrix->shape[0], size = (int64_t)us_dtype_size(matrix->dtype);
    char *packed = views[0].data;
    for (int64_t column = 0; column < n; column++) {
        const int64_t count = copy->upper ? column + 1 : n - column;
        char *place = line_at(matrix, column, copy->upper ? 0 : column);
        memcpy(copy->to_matrix ? place : packed, copy->to_matrix ? packed : place, (size_t)(count * size));
        packed += count * size;
    }
    return KERNEL_OK;
}
