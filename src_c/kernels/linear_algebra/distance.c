#include "kernels/linear_algebra/distance.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/lane.h"
#include "tensor/levels.h"

#include <stdatomic.h>
#include <string.h>

/* Rows of b that stand side by side, so that no sum waits for another; rows of a of a piece, and how many pieces there are
 * rather than larger ones. */
enum { AT_ONCE = 8, GROUP = 16, PIECES = 16 };

typedef struct Pairs {
    const View *views;
    int other, out;  /* the views of the second rows, and of the distances */
    bool later;      /* only of rows with those after them: out is a line */
    double power;
    int64_t group;   /* rows of a piece */
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

typedef double Eight __attribute__((vector_size(AT_ONCE * sizeof(double))));
typedef int64_t EightWords __attribute__((vector_size(AT_ONCE * sizeof(int64_t))));

US_ALWAYS_INLINE void add_differences(bool squares, int64_t count, const double *a, const double *others, double *sums)
{
    Eight all = {0};
    for (int64_t i = 0; i < count; i++) {
        Eight other;
        memcpy(&other, others + i * AT_ONCE, sizeof other);
        const Eight difference = a[i] - other;
        all += squares ? difference * difference : (Eight)((EightWords)difference & INT64_MAX);
    }
    memcpy(sums, &all, sizeof all);
}

/* Of any power but 1 and 2. */
static void add_powers(double power, int64_t count, const double *a, const double *others, double *sums)
{
    memset(sums, 0, AT_ONCE * sizeof *sums);
    for (int64_t i = 0; i < count; i++, others += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) {
            const double difference = __builtin_fabs(a[i] - others[k]);
            if (power == 0) {
                sums[k] += difference == 0 ? 0 : difference != difference ? difference : 1;
            } else if (isinf(power)) {
                sums[k] = difference > sums[k] || difference != difference ? difference : sums[k];
            } else {
                sums[k] += pow_double(difference, power);
            }
        }
    }
}

/* A row with AT_ONCE others: element i of number k is others[i * AT_ONCE + k]. */
static void distances(double power, int64_t count, const double *a, const double *others, double *results)
{
    if (power == 2) {
        add_differences(true, count, a, others, results);
    } else if (power == 1) {
        add_differences(false, count, a, others, results);
    } else {
        add_powers(power, count, a, others, results);
    }
    for (int k = 0; k < AT_ONCE && power != 0 && power != 1 && !isinf(power); k++) {
        results[k] = power == 2 ? __builtin_sqrt(results[k]) : pow_double(results[k], 1 / power);
    }
}

/* Row `row` of matrix `index`, as doubles. */
static void load_row(double *to, const View *view, int64_t index, int64_t row)
{
    us_load_double(to, element_of(view, index, row, 0), view->dtype, view->strides[view->rank - 1],
                   view->shape[view->rank - 1]);
}

/* Rows `first` … of b, side by side; `row` is room for one. */
static void load_others(const View *b, int64_t index, int64_t first, int64_t count, double *row, double *others)
{
    const int64_t width = b->shape[b->rank - 1];
    for (int64_t k = 0; k < AT_ONCE; k++) {
        if (k < count) { /* else again the last one, whose results nobody wants */
            load_row(row, b, index, first + k);
        }
        for (int64_t i = 0; i < width; i++) {
            others[i * AT_ONCE + k] = row[i];
        }
    }
}

/* A row with `count` others from `first` on. */
static void store_distances(const Pairs *pairs, int64_t index, int64_t row, int64_t first, int64_t count, const double *results)
{
    const View *out = &pairs->views[pairs->out];
    if (!pairs->later) {
        us_store_double(element_of(out, index, row, first), out->dtype, out->strides[out->rank - 1], results, count);
        return;
    }
    const int64_t rows = pairs->views[0].shape[0], before = row * rows - row * (row + 1) / 2;
    const int64_t skipped = larger(row + 1 - first, 0);
    if (skipped < count) {
        us_store_double(element_of_line(out, before + first + skipped - row - 1), out->dtype, out->strides[0],
                        results + skipped, count - skipped);
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

/* A group of rows of a with all rows of b, or those after its first one. */
static void distances_of_group(void *context, int64_t piece)
{
    Pairs *pairs = context;
    const View *a = &pairs->views[0], *b = &pairs->views[pairs->other];
    const int64_t rows = a->shape[a->rank - 2], width = a->shape[a->rank - 1], others = b->shape[b->rank - 2];
    const int64_t groups = ceiling(rows, pairs->group), index = piece / groups, first = piece % groups * pairs->group;
    const int64_t count = smaller(rows - first, pairs->group);
    double *memory = take_memory(pairs, us_scratch_count(width, pairs->group + AT_ONCE + 1));
    if (memory == NULL) {
        return;
    }
    double *row = memory + count * width, *side_by_side = row + width, results[AT_ONCE];
    for (int64_t i = 0; i < count; i++) {
        load_row(memory + i * width, a, index, first + i);
    }
    for (int64_t begin = pairs->later ? first + 1 : 0; begin < others; begin += AT_ONCE) {
        const int64_t some = smaller(others - begin, AT_ONCE);
        load_others(b, index, begin, some, row, side_by_side);
        for (int64_t i = 0; i < count; i++) {
            distances(pairs->power, width, memory + i * width, side_by_side, results);
            store_distances(pairs, index, first + i, begin, some, results);
        }
    }
    us_scratch_give_back(memory);
}

/* Rows of all matrices of a batch. */
static int64_t all_rows(const View *view)
{
    return us_shape_elements(view->rank - 1, view->shape);
}

static KernelStatus run(Pairs *pairs, int64_t pieces, int64_t elements, ParallelBody *body)
{
    const int64_t width = pairs->views[0].shape[pairs->views[0].rank - 1];
    atomic_init(&pairs->no_memory, false);
    run_pieces(pieces, us_scratch_count(elements, width > 0 ? width : 1), body, pairs);
    return atomic_load(&pairs->no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

static KernelStatus run_groups(Pairs *pairs, int64_t all)
{
    const View *a = &pairs->views[0], *out = &pairs->views[pairs->out];
    const int64_t rows = a->shape[a->rank - 2];
    if (rows == 0) {
        return KERNEL_OK;
    }
    pairs->group = smaller(ceiling(rows, PIECES), GROUP);
    return run(pairs, all / rows * ceiling(rows, pairs->group), us_view_elements(out), distances_of_group);
}

KernelStatus us_distance(const View *views, const void *attributes)
{
    Pairs pairs = {.views = views, .other = 1, .out = 2, .power = ((const Distance *)attributes)->power};
    return run_groups(&pairs, all_rows(&views[2]));
}

KernelStatus us_pair_distance(const View *views, const void *attributes)
{
    Pairs pairs = {.views = views, .other = 0, .out = 1, .later = true, .power = ((const Distance *)attributes)->power};
    return run_groups(&pairs, views[0].shape[0]);
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
