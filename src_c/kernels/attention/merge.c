#include "kernels/attention/merge.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

#include <string.h>

enum { PIECE = 4096 }; /* elements, about */
#define NO_KEYS -1.0f

typedef struct Merge {
    const View *views;
    int32_t count;
    int64_t rows_of_piece;
    bool out_of_memory;
} Merge;

static int64_t pieces_of(Merge *work, int64_t rows, int64_t depth)
{
    work->rows_of_piece = larger(1, PIECE / larger(depth, 1));
    return ceiling(rows, work->rows_of_piece);
}

static float *take(Merge *work, int64_t count)
{
    float *taken = us_scratch_array(count, sizeof *taken);
    if (taken == NULL) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
    }
    return taken;
}

static float element(const View *view, int64_t offset)
{
    return ((const float *)view->data)[offset];
}

static void load(const View *view, int64_t offset, int64_t count, float *to)
{
    us_load_float(to, (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype), view->dtype,
                  view->strides[view->rank - 1], count);
}

static void store(const View *view, int64_t offset, int64_t count, const float *from)
{
    us_store_float((char *)view->data + offset * (int64_t)us_dtype_size(view->dtype), view->dtype, view->strides[view->rank - 1],
                   from, count);
}

/* ---- two parts ---- */

enum { Y1, M1, S1, Y2, M2, S2, Y, M, S, VIEWS };

/* Where row `number` begins. */
static int64_t begin_of(const View *view, int64_t number)
{
    const int64_t last = view->shape[2], middle = view->shape[1];
    return number % last * view->strides[2] + number / last % middle * view->strides[1] +
           number / last / middle * view->strides[0];
}

/* A copy of the statistics, what comes of it, and what the parts count. */
typedef struct Merged {
    float given[4], largest, sum, weights[2];
} Merged;

static Merged merge_statistics(float m1, float s1, float m2, float s2)
{
    Merged merged = {.given = {m1, s1, m2, s2}, .largest = m1 > m2 || m1 != m1 ? m1 : m2};
    const bool none = merged.largest == -INFINITY;
    const float shift = none ? 0 : merged.largest;
    const float first = exp_float(m1 - shift) * s1, second = exp_float(m2 - shift) * s2;
    merged.sum = first + second;
    merged.weights[0] = none ? 0 : first / merged.sum;
    merged.weights[1] = none ? 0 : second / merged.sum;
    return merged;
}

static float statistic(const View *views, const int64_t *at, int operand, int64_t copy)
{
    return element(&views[operand], at[operand] + copy * views[operand].strides[3]);
}

/* Most often all copies are the first one. */
static Merged merge_copy(const View *views, const int64_t *at, int64_t copy, const Merged *first)
{
    const float given[] = {statistic(views, at, M1, copy), statistic(views, at, S1, copy), statistic(views, at, M2, copy),
                           statistic(views, at, S2, copy)};
    return first != NULL && memcmp(given, first->given, sizeof given) == 0
               ? *first
               : merge_statistics(given[0], given[1], given[2], given[3]);
}

static void merge_two(const View *views, int64_t row, float *first, float *second)
{
    const int64_t depth = views[Y].shape[3], copies = views[M].shape[3];
    int64_t at[VIEWS];
    for (int i = 0; i < VIEWS; i++) {
        at[i] = begin_of(&views[i], row);
    }
    const Merged of_first = merge_copy(views, at, 0, NULL);
    for (int64_t copy = 0; copy < copies; copy++) {
        const Merged merged = merge_copy(views, at, copy, &of_first);
        ((float *)views[M].data)[at[M] + copy * views[M].strides[3]] = merged.largest;
        ((float *)views[S].data)[at[S] + copy * views[S].strides[3]] = merged.sum;
    }
    load(&views[Y1], at[Y1], depth, first);
    load(&views[Y2], at[Y2], depth, second);
    for (int64_t i = 0; i < depth; i++) {
        first[i] = first[i] * of_first.weights[0] + second[i] * of_first.weights[1];
    }
    store(&views[Y], at[Y], depth, first);
}

static void merge_two_piece(void *context, int64_t piece)
{
    Merge *work = context;
    const View *y = &work->views[Y];
    const int64_t depth = y->shape[3], rows = y->shape[0] * y->shape[1] * y->shape[2], begin = piece * work->rows_of_piece;
    const int64_t end = smaller(rows - begin, work->rows_of_piece) + begin;
    float *first = take(work, us_scratch_count(depth, 2));
    for (int64_t row = begin; row < end && first != NULL; row++) {
        merge_two(work->views, row, first, first + depth);
    }
    us_scratch_give_back(first);
}

KernelStatus us_merge_two_parts(const View *views, const void *attributes)
{
    (void)attributes;
    Merge work = {.views = views};
    const View *y = &views[Y];
    const int64_t rows = y->shape[0] * y->shape[1] * y->shape[2];
    run_pieces(pieces_of(&work, rows, y->shape[3]), us_view_elements(y), merge_two_piece, &work);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- any number of parts ---- */

/* What each part counts for a row: e^(l - L), or NO_KEYS; and L. */
static float weigh(const Merge *work, int64_t row, float *weights)
{
    float largest = -INFINITY, sum = 0;
    for (int32_t i = 0; i < work->count; i++) {
        weights[i] = element(&work->views[i], row * work->views[i].strides[0]);
        weights[i] = weights[i] == INFINITY ? -INFINITY : weights[i];
        largest = weights[i] > largest || weights[i] != weights[i] ? weights[i] : largest;
    }
    for (int32_t i = 0; i < work->count; i++) {
        sum += weights[i] == -INFINITY ? 0 : exp_float(weights[i] - largest);
    }
    const float whole = largest == -INFINITY ? INFINITY : largest + log_float(sum);
    for (int32_t i = 0; i < work->count; i++) {
        weights[i] = weights[i] == -INFINITY ? NO_KEYS : exp_float(weights[i] - whole);
    }
    return whole;
}

static void add(float *sums, const float *values, float weight, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += values[i] * weight;
    }
}

static void merge_row(const Merge *work, int64_t row, float *weights, float *sums, float *values)
{
    const View *out = &work->views[2 * work->count], *whole = out + 1;
    const int64_t depth = out->shape[1];
    const float l = weigh(work, row, weights);
    if (!us_view_is_absent(whole)) {
        ((float *)whole->data)[row * whole->strides[0]] = l;
    }
    for (int64_t d = 0; d < depth; d++) {
        sums[d] = 0;
    }
    for (int32_t i = 0; i < work->count; i++) {
        const View *part = &work->views[work->count + i];
        if (weights[i] != NO_KEYS) {
            load(part, row * part->strides[0], depth, values);
            add(sums, values, weights[i], depth);
        }
    }
    store(out, row * out->strides[0], depth, sums);
}

static void merge_piece(void *context, int64_t piece)
{
    Merge *work = context;
    const View *out = &work->views[2 * work->count];
    const int64_t depth = out->shape[1], begin = piece * work->rows_of_piece;
    const int64_t end = smaller(out->shape[0] - begin, work->rows_of_piece) + begin;
    float *sums = take(work, us_scratch_count(depth, 2) + work->count);
    for (int64_t row = begin; row < end && sums != NULL; row++) {
        merge_row(work, row, sums + 2 * depth, sums, sums + depth);
    }
    us_scratch_give_back(sums);
}

KernelStatus us_merge_parts(const View *views, const void *attributes)
{
    const MergeParts *call = attributes;
    Merge work = {.views = views, .count = call->count};
    const View *out = &views[2 * call->count];
    const int64_t width = us_scratch_count(out->shape[1], call->count);
    run_pieces(pieces_of(&work, out->shape[0], width), us_view_elements(out), merge_piece, &work);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}
