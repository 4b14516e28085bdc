#include "kernels/linear_algebra/distance.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

#include <stdatomic.h>

/* Rows of b that are converted at a time. */
enum { ROWS = 32 };

typedef struct Pairs {
    const View *views;
    int other, out; /* the views of the second rows, and of the distances */
    double power;
    atomic_bool no_memory;
} Pairs;

/* Element (row, column) of matrix `index` of a batch. */
static char *element_of(const View *view, int64_t index, int64_t row, int64_t column)
{
    int64_t at = row * view->strides[view->rank - 2] + column * view->strides[view->rank - 1];
    for (int32_t axis = view->rank - 3; axis >= 0; axis--) {
        at += index % view->shape[axis] * view->strides[axis];
        index /= view->shape[axis];
    }
    return (char *)view->data + at * (int64_t)us_dtype_size(view->dtype);
}

static char *element_of_line(const View *view, int64_t place)
{
    return (char *)view->data + place * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
}

static double distance(double power, int64_t count, const double *a, const double *b)
{
    double sum = 0;
    if (power == 2) {
        for (int64_t i = 0; i < count; i++) {
            sum += (a[i] - b[i]) * (a[i] - b[i]);
        }
        return __builtin_sqrt(sum);
    }
    if (power == 1) {
        for (int64_t i = 0; i < count; i++) {
            sum += __builtin_fabs(a[i] - b[i]);
        }
        return sum;
    }
    for (int64_t i = 0; i < count; i++) {
        const double difference = __builtin_fabs(a[i] - b[i]);
        if (power == 0) {
            sum += difference == 0 ? 0 : difference != difference ? difference : 1;
        } else if (isinf(power)) {
            sum = difference > sum || difference != difference ? difference : sum;
        } else {
            sum += pow_double(difference, power);
        }
    }
    return power == 0 || isinf(power) ? sum : pow_double(sum, 1 / power);
}

/* Row `row` of matrix `index`, as doubles. */
static void load_row(double *to, const View *view, int64_t index, int64_t row)
{
    us_load_double(to, element_of(view, index, row, 0), view->dtype, view->strides[view->rank - 1],
                   view->shape[view->rank - 1]);
}

/* A row of a with rows `first` … of b, to `count` elements at `to`. `memory` is for 2 rows and ROWS numbers; the first row is
 * a's. */
static void distances_to(const Pairs *pairs, int64_t index, int64_t first, int64_t count, double *memory, char *to,
                         int64_t stride)
{
    const View *b = &pairs->views[pairs->other], *out = &pairs->views[pairs->out];
    const int64_t width = b->shape[b->rank - 1];
    double *other = memory + width, *results = other + width;
    for (int64_t begin = 0; begin < count; begin += ROWS) {
        const int64_t some = count - begin < ROWS ? count - begin : ROWS;
        for (int64_t i = 0; i < some; i++) {
            load_row(other, b, index, first + begin + i);
            results[i] = distance(pairs->power, width, memory, other);
        }
        us_store_double(to + begin * stride * (int64_t)us_dtype_size(out->dtype), out->dtype, stride, results, some);
    }
}

static double *take_memory(Pairs *pairs, int64_t elements)
{
    double *memory = us_scratch_array(elements, sizeof *memory);
    if (memory == NULL) {
        atomic_store(&pairs->no_memory, true);
    }
    return memory;
}

/* A row of a with all rows of b. */
static void distances_of_row(void *context, int64_t piece)
{
    Pairs *pairs = context;
    const View *a = &pairs->views[0], *b = &pairs->views[1], *out = &pairs->views[2];
    const int64_t rows = a->shape[a->rank - 2], index = piece / rows, row = piece % rows;
    double *memory = take_memory(pairs, 2 * a->shape[a->rank - 1] + ROWS);
    if (memory != NULL) {
        load_row(memory, a, index, row);
        distances_to(pairs, index, 0, b->shape[b->rank - 2], memory, element_of(out, index, row, 0),
                     out->strides[out->rank - 1]);
        us_scratch_give_back(memory);
    }
}

/* Rows of all matrices of a batch. */
static int64_t all_rows(const View *view)
{
    return us_shape_elements(view->rank - 1, view->shape);
}

static KernelStatus run(Pairs *pairs, int64_t rows, int64_t elements, ParallelBody *body)
{
    const int64_t width = pairs->views[0].shape[pairs->views[0].rank - 1];
    atomic_init(&pairs->no_memory, false);
    run_pieces(rows, us_scratch_count(elements, width > 0 ? width : 1), body, pairs);
    return atomic_load(&pairs->no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_distance(const View *views, const void *attributes)
{
    Pairs pairs = {.views = views, .other = 1, .out = 2, .power = ((const Distance *)attributes)->power};
    return run(&pairs, all_rows(&views[2]), us_view_elements(&views[2]), distances_of_row);
}

/* A row with those after it. */
static void pairs_of_row(void *context, int64_t row)
{
    Pairs *pairs = context;
    const View *a = &pairs->views[0], *out = &pairs->views[1];
    const int64_t rows = a->shape[0], before = row * rows - row * (row + 1) / 2;
    double *memory = take_memory(pairs, 2 * a->shape[1] + ROWS);
    if (memory != NULL) {
        load_row(memory, a, 0, row);
        distances_to(pairs, 0, row + 1, rows - row - 1, memory, element_of_line(out, before), out->strides[0]);
        us_scratch_give_back(memory);
    }
}

KernelStatus us_pair_distance(const View *views, const void *attributes)
{
    Pairs pairs = {.views = views, .other = 0, .out = 1, .power = ((const Distance *)attributes)->power};
    return run(&pairs, views[0].shape[0], us_view_elements(&views[1]), pairs_of_row);
}

/* ---- the gradient ---- */

/* slopes += slope * derivative of the distance by a. */
static void add_slopes(double power, DType dtype, int64_t count, const double *a, const double *b, double length,
                       double slope, double *slopes)
{
    if (power == 0 || length == 0) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const double difference = a[i] - b[i], size = __builtin_fabs(difference);
        const double sign = difference > 0 ? 1 : difference < 0 ? -1 : difference; /* 0 and NaN are their own */
        double derivative = sign;
        if (isinf(power)) { /* the length was rounded to its type */
            double element, rounded;
            us_convert(&element, dtype, &size, DTYPE_FLOAT64, 1);
            us_load_double(&rounded, &element, dtype, 1, 1);
            derivative = rounded == length || rounded != rounded ? sign : 0;
        } else if (power == 2) {
            derivative = difference / length;
        } else if (power != 1 && size != 0) {
            derivative = sign * pow_double(size / length, power - 1);
        }
        slopes[i] += slope * derivative;
    }
}

static void slopes_of_row(void *context, int64_t piece)
{
    Pairs *pairs = context;
    const View *grad = &pairs->views[0], *a = &pairs->views[1], *b = &pairs->views[2], *distances = &pairs->views[3];
    const View *out = &pairs->views[4];
    const int64_t rows = a->shape[a->rank - 2], width = a->shape[a->rank - 1], others = b->shape[b->rank - 2];
    const int64_t index = piece / rows, row = piece % rows;
    double *memory = take_memory(pairs, 3 * width);
    if (memory == NULL) {
        return;
    }
    double *other = memory + width, *slopes = other + width;
    load_row(memory, a, index, row);
    for (int64_t i = 0; i < width; i++) {
        slopes[i] = 0;
    }
    for (int64_t i = 0; i < others; i++) {
        double slope, length;
        us_load_double(&slope, element_of(grad, index, row, i), grad->dtype, 1, 1);
        us_load_double(&length, element_of(distances, index, row, i), distances->dtype, 1, 1);
        load_row(other, b, index, i);
        add_slopes(pairs->power, distances->dtype, width, memory, other, length, slope, slopes);
    }
    us_store_double(element_of(out, index, row, 0), out->dtype, out->strides[out->rank - 1], slopes, width);
    us_scratch_give_back(memory);
}

KernelStatus us_distance_gradient(const View *views, const void *attributes)
{
    Pairs pairs = {.views = views, .power = ((const Distance *)attributes)->power};
    const int64_t width = views[4].shape[views[4].rank - 1], others = views[2].shape[views[2].rank - 2];
    const int64_t rows = all_rows(&views[4]);
    return run(&pairs, rows, us_scratch_count(us_scratch_count(rows, width + 1), others + 1), slopes_of_row);
}
