/* What the ways of computing a softmax share: the call, and the loops of its types. */
#ifndef UNDERSTUDY_SOFTMAX_PLAN_H
#define UNDERSTUDY_SOFTMAX_PLAN_H

#include "kernels/kernels.h"
#include "kernels/move/past.h"
#include "tensor/axes.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Sums are formed in this order on every machine and with any number of threads: rows by LANES over blocks of
 * SUM_BLOCK, blocks in order over parts of PART, parts in order; columns one by one over blocks of COLUMN_BLOCK,
 * blocks in order. */
enum { SUM_BLOCK = 1024, PART = 16384, COLUMN_BLOCK = 64 };

/* A softmax as its loops know it. */
typedef struct SoftmaxWork {
    SoftmaxAlgorithm algorithm;
    bool past; /* results go past the caches */
    double alpha, beta;
} SoftmaxWork;

/* The loops of one type. */
typedef struct SoftmaxLoops {
    double (*part_max)(const void *x, int64_t count);
    double (*part_sum)(const SoftmaxWork *work, const void *x, int64_t count, double shift, void *e);
    void (*part_forward)(const SoftmaxWork *work, const void *x, int64_t count, double shift, double sum, void *y);
    double (*part_dot)(const SoftmaxWork *work, const void *y, const void *dy, int64_t count);
    void (*part_backward)(const SoftmaxWork *work, const void *y, const void *dy, int64_t count, double sum, void *dx);
    void (*rows_forward)(const SoftmaxWork *work, int64_t rows, const int64_t *alongs, int64_t count, const void *x,
                         void *y, void *e);
    void (*rows_backward)(const SoftmaxWork *work, int64_t rows, const int64_t *alongs, int64_t count, const void *y,
                          const void *dy, void *dx);
    void (*columns_forward)(const SoftmaxWork *work, int64_t group, int64_t rows, const int64_t *strides, int64_t width,
                            const void *x, void *y, void *scratch);
    void (*columns_backward)(const SoftmaxWork *work, int64_t group, const int64_t *strides, int64_t width,
                             const void *y, const void *dy, void *dx);
} SoftmaxLoops;

/* One call: views are x, y (forward) or y, dy, dx (backward); the last one is written. */
typedef struct SoftmaxPlan {
    SoftmaxWork work;
    const SoftmaxLoops *loops;
    const View *views[3];
    int count; /* of views */
    Axes group_axes, other_axes;
    int64_t group, others, piece; /* sizes; groups (or blocks of columns) per piece */
    bool direct;                  /* rows (or columns) are unit-stride arrays of the loops' type: nothing is gathered */
    bool turned;                  /* columns are rows of the loops' type, and are gathered by squares */
    int64_t tile;                 /* rows of the loops' type that are gathered at a time, where not all are direct; or 0 */
    DType compute;                /* float32 or float64 */
    int64_t width, blocks;        /* columns: groups handled at a time, and how many such blocks the last axis has */
    int64_t rows;                 /* columns: elements of a group of which values are kept at a time */
    size_t scratch_bytes;         /* of one piece */
    atomic_bool no_memory;
} SoftmaxPlan;

static inline void *us_softmax_element(const View *view, int64_t offset)
{
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

static inline bool us_softmax_is_forward(const SoftmaxPlan *plan)
{
    return plan->count == 2;
}

/* Of a piece, before other threads are told. */
static inline void us_softmax_ends(const SoftmaxPlan *plan)
{
    if (plan->work.past) {
        us_past_is_done();
    }
}

/* A few long groups, each in parts on all threads; false without memory. */
bool us_softmax_run_parts(const SoftmaxPlan *plan);

#endif
