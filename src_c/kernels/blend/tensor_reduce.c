#include "kernels/blend/tensor_ops.h"
#include "kernels/detach.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

#include <math.h>

enum { CHUNK = 16 * 1024, TILE = 1024 };

/* The result for some neighbouring reduced elements: what kernels/reduce does not have, and extrema that ignore a NaN. */
typedef struct Partial {
    double value;
    int64_t index; /* of the element that won; -1: there is none */
} Partial;

typedef struct Reduce {
    const TensorReduce *reduce;
    View a; /* axes that are kept first, then the reduced ones */
    int64_t groups, elements, chunks;
    int64_t groups_together; /* in a piece, where groups have one chunk */
    Partial *partials; /* of the chunks, or */
    double *values;    /* of the groups */
    int64_t *indices;  /* of these values; NULL: nobody wants them */
} Reduce;

/* NULL: kernels/reduce has none. */
static const Reduction *reduction_of(TensorReduction reduction, bool finds)
{
    switch (reduction) {
    case REDUCE_SUM: return &us_reduce_sum;
    case REDUCE_PRODUCT: return &us_reduce_prod;
    case REDUCE_MINIMUM: return finds ? &us_reduce_min_index : &us_reduce_min;
    case REDUCE_MAXIMUM: return finds ? &us_reduce_max_index : &us_reduce_max;
    case REDUCE_LARGEST_SIZE: return finds ? NULL : &us_reduce_norm_high;
    case REDUCE_AVERAGE: return &us_reduce_mean;
    case REDUCE_NORM1: return &us_reduce_norm_1;
    case REDUCE_NORM2: return &us_reduce_norm_2;
    default: return NULL;
    }
}

static KernelStatus form_values(Reduce *work, const View *a, const View *c, const Reduction *reduction, bool finds)
{
    work->values = us_scratch_array(work->groups, sizeof *work->values);
    work->indices = finds ? us_scratch_array(work->groups, sizeof *work->indices) : NULL;
    if (work->values == NULL || (finds && work->indices == NULL)) {
        return KERNEL_NO_MEMORY;
    }
    const View views[] = {*a, us_view_contiguous(work->values, DTYPE_FLOAT64, c->rank, c->shape),
                          finds ? us_view_contiguous(work->indices, DTYPE_INT64, c->rank, c->shape) : us_view_absent()};
    ReduceCall call = {.reduction = reduction, .compute = a->dtype, .result = DTYPE_FLOAT64, .outputs = finds ? 2 : 1};
    for (int32_t axis = 0; axis < c->rank; axis++) {
        call.axes |= (uint32_t)(c->shape[axis] == 1) << axis;
    }
    return us_reduce(views, &call);
}

static bool is_extremum(TensorReduction reduction)
{
    return reduction == REDUCE_MINIMUM || reduction == REDUCE_MAXIMUM || reduction == REDUCE_LARGEST_SIZE;
}

/* An extremum of kernels/reduce is NaN where any element is. */
static bool ignores_some_nan(const Reduce *work)
{
    bool any = false;
    for (int64_t group = 0; group < work->groups; group++) {
        any |= work->values[group] != work->values[group];
    }
    return any && is_extremum(work->reduce->reduction) && !work->reduce->propagate_nan;
}

static Partial start(TensorReduction reduction)
{
    return (Partial){is_extremum(reduction) ? 0 : 1, -1};
}

/* Adds `value`, an element or the result of a later chunk. */
static void take(const TensorReduce *reduce, Partial *partial, double value, int64_t index)
{
    if (!is_extremum(reduce->reduction)) {
        partial->value *= value;
        return;
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
    case REDUCE_LARGEST_SIZE: return fabs(value);
    case REDUCE_PRODUCT_WITHOUT_ZEROS: return value == 0 ? 1 : value;
    default: return value;
    }
}

/* Elements of one group, or of whole groups: a partial for each group. */
static void reduce_range(const Reduce *work, int64_t begin, int64_t end, Partial *partials)
{
    const TensorReduction reduction = work->reduce->reduction;
    Partial partial = start(reduction);
    int64_t index = begin % work->elements;
    double tile[TILE];
    for (int64_t at = begin; at < end; at += TILE) {
        const int64_t count = smaller(end - at, TILE);
        us_linear_load_double(&work->a, at, count, tile);
        for (int64_t k = 0; k < count; k++) {
            take(work->reduce, &partial, prepared(reduction, tile[k]), index);
            if (++index == work->elements) {
                *partials++ = partial;
                partial = start(reduction);
                index = 0;
            }
        }
    }
    if (index != 0) {
        *partials = partial;
    }
}

static void reduce_piece(void *context, int64_t piece)
{
    const Reduce *work = context;
    const int64_t elements = work->elements;
    if (work->chunks == 1) {
        const int64_t first = piece * work->groups_together, last = smaller(first + work->groups_together, work->groups);
        reduce_range(work, first * elements, last * elements, &work->partials[first]);
        return;
    }
    const int64_t begin = piece % work->chunks * CHUNK, group = piece / work->chunks * elements;
    reduce_range(work, group + begin, group + smaller(begin + CHUNK, elements), &work->partials[piece]);
}

static Partial finished(const Reduce *work, int64_t group)
{
    Partial result = start(work->reduce->reduction);
    if (work->values != NULL) {
        return (Partial){work->values[group], work->indices != NULL ? work->indices[group] : 0};
    }
    for (int64_t chunk = 0; chunk < work->chunks; chunk++) {
        const Partial *partial = &work->partials[group * work->chunks + chunk];
        take(work->reduce, &result, partial->value, partial->index);
    }
    const bool is_nothing_but_ignored_nan = is_extremum(work->reduce->reduction) && result.index < 0;
    return is_nothing_but_ignored_nan ? (Partial){NAN, 0} : result;
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

static void forget_values(Reduce *work)
{
    us_scratch_give_back(work->indices);
    us_scratch_give_back(work->values);
    work->values = NULL;
    work->indices = NULL;
}

/* Values of the groups, or partials of the chunks. */
static KernelStatus reduce_groups(Reduce *work, const View *a, const View *c, bool finds)
{
    const Reduction *reduction = reduction_of(work->reduce->reduction, finds);
    work->groups = us_view_elements(c);
    if (reduction != NULL) {
        const KernelStatus status = form_values(work, a, c, reduction, finds);
        if (status != KERNEL_OK || !ignores_some_nan(work)) {
            return status;
        }
        forget_values(work);
    }
    work->a = kept_first(a, c);
    work->elements = us_view_elements(&work->a) / work->groups;
    work->chunks = ceiling(work->elements, CHUNK);
    work->groups_together = work->elements < CHUNK ? CHUNK / work->elements : 1;
    work->partials = us_scratch_array(us_scratch_count(work->groups, work->chunks), sizeof *work->partials);
    if (work->partials == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t pieces = work->chunks == 1 ? ceiling(work->groups, work->groups_together) : work->groups * work->chunks;
    run_pieces(pieces, work->groups * work->elements, reduce_piece, work);
    return KERNEL_OK;
}

typedef struct Finish {
    const Reduce *work;
    const View *c, *indices;
} Finish;

static void finish_tile(void *context, int64_t tile)
{
    const Finish *finish = context;
    const TensorReduce *reduce = finish->work->reduce;
    const int64_t first = tile * TILE, count = smaller(finish->work->groups - first, TILE);
    double values[TILE], priors[TILE];
    if (reduce->beta != 0) {
        us_linear_load_double(finish->c, first, count, priors);
    }
    for (int64_t i = 0; i < count; i++) {
        const Partial result = finished(finish->work, first + i);
        values[i] = reduce->alpha * result.value + (reduce->beta != 0 ? reduce->beta * priors[i] : 0);
        if (!us_view_is_absent(finish->indices)) {
            ((uint32_t *)finish->indices->data)[first + i] = (uint32_t)result.index;
        }
    }
    us_linear_store_double(finish->c, first, count, values);
}

KernelStatus us_tensor_reduce(const View *views, const void *attributes)
{
    const View *c = &views[1];
    Detached detached;
    Reduce work = {.reduce = attributes};
    KernelStatus status = us_detach(&detached, 1, views, 1, c);
    if (status == KERNEL_OK) {
        status = reduce_groups(&work, &detached.inputs[0], c, !us_view_is_absent(&views[2]));
    }
    if (status == KERNEL_OK) {
        run_pieces(ceiling(work.groups, TILE), work.groups, finish_tile, &(Finish){&work, c, &views[2]});
    }
    forget_values(&work);
    us_scratch_give_back(work.partials);
    us_detach_end(&detached);
    return status;
}
