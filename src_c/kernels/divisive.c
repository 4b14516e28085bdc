#include "kernels/detach.h"
#include "kernels/lrn.h"
#include "kernels/pieces.h"
#include "kernels/power.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One call; a plane is one channel of one image, as doubles. Windows are separable: a sum over n^d neighbours is d sums
 * over n of them. */
typedef struct Divisive {
    const LocalNorm *norm;
    View x, means, dy, out, dmeans;
    int64_t sizes[3], elements;
    double scale; /* lrnAlpha / n^d: also where the window is clipped */
    atomic_int out_of_memory;
} Divisive;

static char *row_at(const View *view, int64_t plane, int64_t row, const int64_t *sizes)
{
    const int32_t rank = view->rank;
    int64_t offset = plane / view->shape[1] * view->strides[0] + plane % view->shape[1] * view->strides[1];
    offset += row % sizes[1] * view->strides[rank - 2];
    offset += rank == 5 ? row / sizes[1] * view->strides[2] : 0;
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

static void load_plane(const Divisive *call, const View *view, int64_t plane, double *values)
{
    for (int64_t row = 0; row < call->sizes[0] * call->sizes[1]; row++) {
        us_load_double(values + row * call->sizes[2], row_at(view, plane, row, call->sizes), view->dtype,
                       view->strides[view->rank - 1], call->sizes[2]);
    }
}

static void store_plane(const Divisive *call, const View *view, int64_t plane, double *values, double *prior)
{
    const double alpha = call->norm->alpha, beta = call->norm->beta;
    if (beta != 0) {
        load_plane(call, view, plane, prior);
    }
    for (int64_t i = 0; i < call->elements; i++) {
        values[i] = alpha * values[i] + (beta != 0 ? beta * prior[i] : 0);
    }
    for (int64_t row = 0; row < call->sizes[0] * call->sizes[1]; row++) {
        us_store_double(row_at(view, plane, row, call->sizes), view->dtype, view->strides[view->rank - 1],
                        values + row * call->sizes[2], call->sizes[2]);
    }
}

/* Adds `count` neighbours, `step` apart, along one axis: sums[i] = sum of values[i - back … i + ahead]. */
KERNEL_CLONES static void sum_axis(int64_t size, int64_t inner, int64_t back, int64_t ahead, const double *values,
                                   double *sums)
{
    for (int64_t i = 0; i < size; i++) {
        const int64_t first = i < back ? 0 : i - back, last = i + ahead < size ? i + ahead : size - 1;
        memset(sums + i * inner, 0, (size_t)inner * sizeof *sums);
        for (int64_t j = first; j <= last; j++) {
            for (int64_t k = 0; k < inner; k++) {
                sums[i * inner + k] += values[j * inner + k];
            }
        }
    }
}

/* Sums over the windows of every element, in place; `other` is scratch. */
static void sum_windows(const Divisive *call, int64_t back, int64_t ahead, double *values, double *other)
{
    int64_t inner = 1;
    for (int axis = 2; axis >= 0; axis--) {
        const int64_t size = call->sizes[axis];
        for (int64_t outer = 0; size > 1 && outer < call->elements / (size * inner); outer++) {
            sum_axis(size, inner, back, ahead, values + outer * size * inner, other + outer * size * inner);
        }
        if (size > 1) {
            memcpy(values, other, (size_t)call->elements * sizeof *values);
        }
        inner *= size;
    }
}

/* What every element's window adds up to: numbers of neighbours, their sum, and K + scale * sum of (x_j - m_i)^2. */
static void windows(const Divisive *call, const double *x, const double *means, double *counts, double *sums,
                    double *squares, double *other)
{
    const int64_t back = (call->norm->window - 1) / 2, ahead = call->norm->window - 1 - back;
    for (int64_t i = 0; i < call->elements; i++) {
        counts[i] = 1;
        sums[i] = x[i];
        squares[i] = x[i] * x[i];
    }
    sum_windows(call, back, ahead, counts, other);
    sum_windows(call, back, ahead, sums, other);
    sum_windows(call, back, ahead, squares, other);
    for (int64_t i = 0; i < call->elements; i++) {
        const double m = means[i];
        const double total = squares[i] - 2 * m * sums[i] + counts[i] * m * m;
        squares[i] = call->norm->norm_k + call->scale * (total < 0 ? 0 : total);
    }
}

static double *begin_plane(Divisive *call, int64_t plane, int arrays)
{
    double *memory = calloc((size_t)arrays * (size_t)call->elements, sizeof *memory);
    if (memory == NULL) {
        atomic_store(&call->out_of_memory, 1);
        return NULL;
    }
    load_plane(call, &call->x, plane, memory);
    if (!us_view_is_absent(&call->means)) {
        load_plane(call, &call->means, plane, memory + call->elements);
    }
    return memory;
}

static void forward_plane(void *context, int64_t plane)
{
    Divisive *call = context;
    const int64_t n = call->elements;
    double *x = begin_plane(call, plane, 6);
    if (x == NULL) {
        return;
    }
    double *means = x + n, *counts = means + n, *sums = counts + n, *squares = sums + n, *other = squares + n;
    windows(call, x, means, counts, sums, squares, other);
    negative_powers_double(call->norm->norm_beta, n, squares, squares);
    for (int64_t i = 0; i < n; i++) {
        squares[i] *= x[i];
    }
    store_plane(call, &call->out, plane, squares, other);
    free(x);
}

static void backward_plane(void *context, int64_t plane)
{
    Divisive *call = context;
    const int64_t n = call->elements;
    double *x = begin_plane(call, plane, 9);
    if (x == NULL) {
        return;
    }
    double *means = x + n, *counts = means + n, *sums = counts + n, *squares = sums + n, *other = squares + n;
    double *dy = other + n, *g = dy + n, *result = g + n;
    load_plane(call, &call->dy, plane, dy);
    windows(call, x, means, counts, sums, squares, other);
    negative_powers_double(call->norm->norm_beta, n, squares, result);
    for (int64_t i = 0; i < n; i++) {
        g[i] = -call->norm->norm_beta * call->scale * dy[i] * x[i] * (result[i] / squares[i]);
        result[i] *= dy[i];
        sums[i] = -2 * g[i] * (sums[i] - counts[i] * means[i]);
        squares[i] = g[i] * means[i];
    }
    /* dx_k sums over the windows that contain k: the mirrored window around k. */
    const int64_t back = (call->norm->window - 1) / 2, ahead = call->norm->window - 1 - back;
    sum_windows(call, ahead, back, g, other);
    sum_windows(call, ahead, back, squares, other);
    for (int64_t i = 0; i < n; i++) {
        result[i] += 2 * (x[i] * g[i] - squares[i]);
    }
    store_plane(call, &call->out, plane, result, other);
    if (!us_view_is_absent(&call->dmeans)) {
        store_plane(call, &call->dmeans, plane, sums, other);
    }
    free(x);
}

static KernelStatus run(Divisive *call, const LocalNorm *norm, ParallelBody *body)
{
    const View *x = &call->x;
    call->norm = norm;
    call->sizes[0] = x->rank == 5 ? x->shape[2] : 1;
    call->sizes[1] = x->shape[x->rank - 2];
    call->sizes[2] = x->shape[x->rank - 1];
    call->elements = call->sizes[0] * call->sizes[1] * call->sizes[2];
    const double n = norm->window;
    call->scale = norm->norm_alpha / (x->rank == 5 ? n * n * n : n * n);
    atomic_init(&call->out_of_memory, 0);
    run_pieces(x->shape[0] * x->shape[1], us_view_elements(x), body, call);
    return atomic_load(&call->out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_divisive_forward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        Divisive call = {.x = detached.inputs[0], .means = detached.inputs[1], .out = views[2]};
        status = run(&call, attributes, forward_plane);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_divisive_backward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 3, views, 2, &views[3]);
    if (status == KERNEL_OK) {
        Divisive call = {.x = detached.inputs[0], .means = detached.inputs[1], .dy = detached.inputs[2],
                         .out = views[3], .dmeans = views[4]};
        status = run(&call, attributes, backward_plane);
    }
    us_detach_end(&detached);
    return status;
}
