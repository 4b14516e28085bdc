/* Rows of matrices on their way between strided views of any type and blocks of fp32. */
#ifndef UNDERSTUDY_FUSED_ROWS_H
#define UNDERSTUDY_FUSED_ROWS_H

#include "tensor/view.h"

enum {
    ROW_BLOCK = 1024,       /* tokens handled at a time */
    VOCABULARY_BLOCK = 512, /* logits handled at a time per token */
};

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Address of element (row, column) of a matrix. */
static inline char *element_at(const View *matrix, int64_t row, int64_t column)
{
    int64_t offset = row * matrix->strides[0] + column * matrix->strides[1];
    return (char *)matrix->data + offset * (int64_t)us_dtype_size(matrix->dtype);
}

/* Rows first … first+count-1 of a matrix as fp32, one after the other; and back, rounded once. */
void fused_load_rows(const View *matrix, int64_t first, int64_t count, float *to);
void fused_store_rows(const View *matrix, int64_t first, int64_t count, const float *from);

#endif
