/* Rows that are picked, put and added by their numbers. A row is a run of elements; numbers are checked by the caller. */
#ifndef UNDERSTUDY_INDEX_ROWS_H
#define UNDERSTUDY_INDEX_ROWS_H

#include "kernels/kernels.h"

/* The first number that is not in 0 … limit - 1, or `count`. */
int64_t us_first_outside(const int32_t *index, int64_t count, int64_t limit);

/* out[b, o, k] = in[b, o, index[b, k]]: in is [batches, outer, axis] rows, out [batches, outer, picks]. Index -1: zeros. */
typedef struct RowPick {
    const void *in;
    void *out;
    const int64_t *index; /* [batches, picks] */
    int64_t batches, outer, axis, picks, row_bytes;
} RowPick;
void us_pick_rows(const RowPick *pick);

/* out[index[k]] = rows[k], in this order: of several the last one stays. */
void us_put_rows(void *out, const void *rows, const int64_t *index, int64_t count, int64_t row_bytes);

/* out[index[k]] += rows[k], all rows of one target in order, in float64, and rounded once. */
typedef struct RowSum {
    void *out;         /* `targets` rows */
    const void *rows;  /* as many as there are indices */
    const View *index; /* contiguous int32 or int64, of rank 1 */
    int64_t targets, width;
    DType dtype;
    bool clears;       /* out is 0 first */
    bool wraps;        /* integers are added modulo 2^64, then to their own size: only where us_adds_narrow_rows */
} RowSum;
KernelStatus us_add_rows(const RowSum *sum);

/* Whether there is room for a sum of every element of the targets. Depends on sizes only. */
bool us_adds_narrow_rows(const RowSum *sum);

#endif
