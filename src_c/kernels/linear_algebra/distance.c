#include "kernels/linear_algebra/distance.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/clones.h"

#include <stdatomic.h>

/* Rows of b that are converted at a time. */
enum { ROWS = 32 };

typedef struct Pairs {
    const View *views;
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

KERNEL_CLONES static double distance(double power, int64_t count, const double *a, const double *b)
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

/* A row of a with all rows of b. */
static void distances_of_row(void *context, int64_t piece)
{
    Pairs *pairs = context;
    const View *a = &pairs->views[0], *b = &pairs->views[1], *out = &pairs->views[2];
    const int64_t rows = a->shape[a->rank - 2], others = b->shape[b->rank - 2], count = a->shape[a->rank - 1];
    const int64_t index = piece / rows, row = piece % rows;
    double *memory = us_scratch_take((size_t)(2 * count + ROWS) * sizeof *memory);
    if (memory == NULL) {
        atomic_store(&pairs->no_memory, true);
        return;
    }
    double *other = memory + count, *results = other + count;
    us_load_double(memory, element_of(a, index, row, 0), a->dtype, a->strides[a->rank - 1], count);
    for (int64_t first = 0; first < others; first += ROWS) {
        const int64_t some = others - first < ROWS ? others - first : ROWS;
        for (int64_t i = 0; i < some; i++) {
            us_load_double(other, element_of(b, index, first + i, 0), b->dtype, b->strides[b->rank - 1], count);
            results[i] = distance(pairs->power, count, memory, other);
        }
        us_store_double(element_of(out, index, row, first), out->dtype, out->strides[out->rank - 1], results, some);
    }
    us_scratch_give_back(memory);
}

KernelStatus us_distance(const View *views, const void *attributes)
{
    Pairs pairs = {.views = views, .power = ((const Distance *)attributes)->power};
    atomic_init(&pairs.no_memory, false);
    int64_t rows = 1;
    for (int32_t axis = 0; axis < views[2].rank - 1; axis++) {
        rows *= views[2].shape[axis];
    }
    const int64_t width = views[0].shape[views[0].rank - 1];
    run_pieces(rows, us_view_elements(&views[2]) * (width > 0 ? width : 1), distances_of_row, &pairs);
    return atomic_load(&pairs.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
