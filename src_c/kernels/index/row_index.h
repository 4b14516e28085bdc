/* Which positions of an index tensor name which row: a stable sort of indices by row, at the cost of a few passes over
 * them, on all cores. */
#ifndef UNDERSTUDY_ROW_INDEX_H
#define UNDERSTUDY_ROW_INDEX_H

#include "tensor/view.h"

#define NO_ROW UINT32_MAX
enum { ROW_INDEX_BUCKET_LIMIT = 256 }; /* their cursors stay in the first-level cache */

/* Rows of `count` elements of a view of any type, from element `first` in row-major order: truncated towards zero,
 * NO_ROW when that is not in 0 … rows-1. */
void row_index_read(const View *indices, int64_t first, int64_t count, uint32_t rows, uint32_t *to);

/* Rows are sorted in buckets of neighbours, the unit of parallel work. */
typedef struct RowIndex {
    int64_t bucket_count;
    uint32_t bucket_shift;  /* row >> bucket_shift is its bucket */
    uint32_t rows;
    uint32_t *positions;    /* grouped by row, ascending within a row */
    uint32_t *ends;         /* per row: where its positions end */
    uint32_t *bucket_begin; /* per bucket: where its first row's positions begin; one more at the end */
    void *scratch;
} RowIndex;

/* Positions of `skipped` are left out; a row is `row_bytes` long where it is used. False: no memory. Fewer than
 * 2^32 - 1 rows and indices. Takes the thread's scratch memory until it is freed. */
bool row_index_make(RowIndex *index, const View *indices, uint32_t rows, int64_t row_bytes, int64_t skipped);
void row_index_free(RowIndex *index);

/* First row of a bucket; of the last bucket's successor: the number of rows. */
static inline uint32_t row_index_first_row(const RowIndex *index, int64_t bucket)
{
    uint64_t row = (uint64_t)bucket << index->bucket_shift;
    return row < index->rows ? (uint32_t)row : index->rows;
}

#endif
