#include "kernels/linear_algebra/matrices.h"

#include "kernels/matmul/lines.h"
#include "kernels/move/copy_view.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdlib.h>

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

/* Elements of LINES_OF_A_PIECE lines. */
typedef struct Tile {
    _Alignas(64) char bytes[LINES_OF_A_PIECE * LINE_ELEMENTS * LARGEST_ELEMENT];
} Tile;

/* Whether the elements of a line lie farther apart than the lines do, as in a transposed matrix. Such ones are copied for
 * some lines at once: one after the other, each line would find the caches' lines of the one before gone. */
static bool is_across(const View *view)
{
    return !us_view_is_absent(view) && view->strides[0] != 0 && llabs(view->strides[1]) > llabs(view->strides[0]);
}

static View part_of(const View *view, int64_t line, int64_t lines, int64_t first, int64_t count)
{
    View part = *view;
    part.data = line_at(view, line, first);
    part.shape[0] = lines;
    part.shape[1] = count;
    return part;
}

static View operand_of(const View *view, int64_t line, int64_t lines, int64_t first, int64_t count, Tile *copy)
{
    if (us_view_is_absent(view)) {
        return *view;
    }
    const View part = part_of(view, line, lines, first, count);
    if (!is_across(view)) {
        return part;
    }
    const View packed = us_view_contiguous(copy->bytes, view->dtype, 2, part.shape);
    us_copy_view(&packed, &part);
    return packed;
}

static void load(const View *view, int64_t line, int64_t first, int64_t count, bool conjugated, double *values)
{
    us_line_load(wide_type(view->dtype), values, line_at(view, line, first), view->dtype, view->strides[1], count,
                 conjugated && is_complex(view->dtype));
}

/* values *= others */
static void multiply_reals(double *values, const double *others, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] *= others[i];
    }
}

US_SCALAR static void multiply_pairs(double *values, const double *others, int64_t count)
{
    for (int64_t i = 0; i < 2 * count; i += 2) {
        const double real = values[i] * others[i] - values[i + 1] * others[i + 1];
        values[i + 1] = values[i] * others[i + 1] + values[i + 1] * others[i];
        values[i] = real;
    }
}

static void sum_line(const Sum *sum, const View *a, const View *b, const View *c, int64_t line)
{
    const int64_t count = c->shape[1];
    const DType wide = wide_type(c->dtype);
    double of_a[2 * LINE_ELEMENTS], of_b[2 * LINE_ELEMENTS];
    const bool reads_b = !us_view_is_absent(b);
    if (us_view_is_absent(a)) {
        memset(of_a, 0, sizeof of_a);
    } else {
        load(a, line, 0, count, sum->form.conjugated_a, of_a);
    }
    if (reads_b) {
        load(b, line, 0, count, sum->form.conjugated_b, of_b);
    }
    if (sum->multiplies) {
        (is_complex(wide) ? multiply_pairs : multiply_reals)(of_a, of_b, count);
    } else {
        us_line_blend(wide, of_a, sum->form.alpha, reads_b ? of_b : NULL, sum->form.beta, count);
    }
    for (int64_t i = 0; i < count && wide == DTYPE_FLOAT64 && !us_dtype_is_float(c->dtype); i++) {
        of_a[i] = rint(of_a[i]); /* integers: to the nearest, ties to even, where a conversion would truncate */
    }
    us_line_store(wide, line_at(c, line, 0), c->dtype, c->strides[1], of_a, count);
}

static void sum_part(const Sum *sum, int64_t begin, int64_t lines, int64_t first, int64_t count)
{
    Tile of_a, of_b;
    const View a = operand_of(sum->a, begin, lines, first, count, &of_a);
    const View b = operand_of(sum->b, begin, lines, first, count, &of_b);
    const View c = part_of(sum->c, begin, lines, first, count);
    for (int64_t line = 0; line < lines; line++) {
        sum_line(sum, &a, &b, &c, line);
    }
}

static void sum_lines(void *context, int64_t piece)
{
    const Sum *sum = context;
    const int64_t begin = piece * LINES_OF_A_PIECE, end = smaller(sum->c->shape[0], begin + LINES_OF_A_PIECE);
    const int64_t at_once = is_across(sum->a) || is_across(sum->b) ? LINES_OF_A_PIECE : 1;
    for (int64_t line = begin; line < end; line += at_once) {
        for (int64_t first = 0; first < sum->c->shape[1]; first += LINE_ELEMENTS) {
            sum_part(sum, line, smaller(at_once, end - line), first, smaller(sum->c->shape[1] - first, LINE_ELEMENTS));
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

/* c = a, which lies elsewhere. */
static bool is_copy(const Sum *sum)
{
    const double *alpha = sum->form.alpha;
    return us_view_is_absent(sum->b) && !us_view_is_absent(sum->a) && alpha[0] == 1 && alpha[1] == 0 &&
           sum->a->dtype == sum->c->dtype && sum->a->data != sum->c->data &&
           !(sum->form.conjugated_a && is_complex(sum->c->dtype));
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
    if (is_copy(&sum)) {
        us_copy_view(sum.c, sum.a);
        return KERNEL_OK;
    }
    run(&sum);
    return KERNEL_OK;
}

static View matrix_at(const View *batch, int64_t index)
{
    const uintptr_t offset = (uintptr_t)index * (uintptr_t)batch->strides[0] * us_dtype_size(batch->dtype);
    View matrix = *batch;
    matrix.data = (void *)((uintptr_t)batch->data + offset);
    return us_view_is_absent(batch) ? matrix : us_view_remove_axis(matrix, 0);
}

KernelStatus us_matrix_sums(const View *views, const void *attributes)
{
    KernelStatus status = KERNEL_OK;
    for (int64_t index = 0; index < views[2].shape[0] && status == KERNEL_OK; index++) {
        const View matrices[] = {matrix_at(&views[0], index), matrix_at(&views[1], index), matrix_at(&views[2], index),
                                 views[3], views[4]};
        status = us_matrix_sum(matrices, attributes);
    }
    return status;
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
