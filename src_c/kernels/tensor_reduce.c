#include "kernels/detach.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/tensor_ops.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNK = 16 * 1024, TILE = 1024 };

/* The result for some neighbouring reduced elements. */
typedef struct Partial {
    double value;
    int64_t index; /* of the element that won; -1: there is none */
} Partial;

typedef struct Reduce {
    const TensorReduce *reduce;
    View a; /* axes that are kept first, then the reduced ones */
    int64_t groups, elements, chunks;
    Partial *partials;
} Reduce;

static Partial start(TensorReduction reduction)
{
    bool product = reduction == REDUCE_PRODUCT || reduction == REDUCE_PRODUCT_WITHOUT_ZEROS;
    return (Partial){product ? 1 : 0, -1};
}

/* Adds `value`, an element or the result of a later chunk. */
static void take(const TensorReduce *reduce, Partial *partial, double value, int64_t index)
{
    switch (reduce->reduction) {
    case REDUCE_SUM:
    case REDUCE_AVERAGE:
    case REDUCE_NORM1:
    case REDUCE_NORM2: partial->value += value; return;
    case REDUCE_PRODUCT:
    case REDUCE_PRODUCT_WITHOUT_ZEROS: partial->value *= value; return;
    case REDUCE_MINIMUM:
    case REDUCE_MAXIMUM:
    case REDUCE_LARGEST_SIZE: break;
    }
    if (index < 0 || (value != value && !reduce->propagate_nan)) {
        return;
    }
    const bool larger = reduce->reduction == REDUCE_MINIMUM ? value < partial->value : value > partial->value;
    if (partial->index < 0 || (partial->value == partial->value && (larger || value != value))) {
        *partial = (Partial){value, index};
    }
}

static double prepared(TensorReduction reduction, double value)
{
    switch (reduction) {
    case REDUCE_LARGEST_SIZE:
    case REDUCE_NORM1: return fabs(value);
    case REDUCE_NORM2: return value * value;
    case REDUCE_PRODUCT_WITHOUT_ZEROS: return value == 0 ? 1 : value;
    default: return value;
    }
}

static void reduce_chunk(void *context, int64_t piece)
{
    const Reduce *work = context;
    const int64_t group = piece / work->chunks, begin = piece % work->chunks * CHUNK;
    const int64_t end = work->elements - begin < CHUNK ? work->elements : begin + CHUNK;
    Partial partial = start(work->reduce->reduction);
    double tile[TILE];
    for (int64_t i = begin; i < end; i += TILE) {
        const int64_t count = end - i < TILE ? end - i : TILE;
        us_linear_load_double(&work->a, group * work->elements + i, count, tile);
        for (int64_t k = 0; k < count; k++) {
            take(work->reduce, &partial, prepared(work->reduce->reduction, tile[k]), i + k);
        }
    }
    work->partials[piece] = partial;
}

static Partial finished(const Reduce *work, int64_t group)
{
    Partial result = start(work->reduce->reduction);
    for (int64_t chunk = 0; chunk < work->chunks; chunk++) {
        const Partial *partial = &work->partials[group * work->chunks + chunk];
        take(work->reduce, &result, partial->value, partial->index);
    }
    switch (work->reduce->reduction) {
    case REDUCE_AVERAGE: result.value /= (double)work->elements; break;
    case REDUCE_NORM2: result.value = sqrt(result.value); break;
    case REDUCE_MINIMUM:
    case REDUCE_MAXIMUM:
    case REDUCE_LARGEST_SIZE:
        if (result.index < 0) { /* nothing but ignored NaN */
            result = (Partial){NAN, 0};
        }
        break;
    default: break;
    }
    return result;
}

static View kept_first(const View *a, const View *c)
{
    View sorted = *a;
    int32_t to = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t axis = 0; axis < a->rank; axis++) {
            const bool reduced = c->shape[axis] == 1 && a->shape[axis] != 1;
            if (reduced == (pass == 1)) {
                sorted.shape[to] = a->shape[axis];
                sorted.strides[to++] = a->strides[axis];
            }
        }
    }
    return sorted;
}

KernelStatus us_tensor_reduce(const View *views, const void *attributes)
{
    const View *c = &views[1], *indices = &views[2];
    Detached detached;
    Reduce work = {.reduce = attributes};
    KernelStatus status = us_detach(&detached, 1, views, 1, c);
    if (status == KERNEL_OK) {
        work.a = kept_first(&detached.inputs[0], c);
        work.groups = us_view_elements(c);
        work.elements = us_view_elements(&work.a) / work.groups;
        work.chunks = (work.elements + CHUNK - 1) / CHUNK;
        work.partials = malloc((size_t)(work.groups * work.chunks) * sizeof *work.partials);
        status = work.partials != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    }
    if (status == KERNEL_OK) {
        run_pieces(work.groups * work.chunks, work.groups * work.elements, reduce_chunk, &work);
        for (int64_t group = 0; group < work.groups; group++) {
            Partial result = finished(&work, group);
            double value = work.reduce->alpha * result.value, prior;
            if (work.reduce->beta != 0) {
                us_linear_load_double(c, group, 1, &prior);
                value += work.reduce->beta * prior;
            }
            us_linear_store_double(c, group, 1, &value);
            if (!us_view_is_absent(indices)) {
                ((uint32_t *)indices->data)[group] = (uint32_t)result.index;
            }
        }
    }
    free(work.partials);
    us_detach_end(&detached);
    return status;
}
