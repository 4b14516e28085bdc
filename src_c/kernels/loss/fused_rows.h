/* Rows of matrices on their way between strided views of any type and blocks that products take. */
#ifndef UNDERSTUDY_FUSED_ROWS_H
#define UNDERSTUDY_FUSED_ROWS_H

#include "kernels/matmul/matmul.h"
#include "kernels/sizes.h"
#include "tensor/view.h"

enum {
    ROW_BLOCK = 1024,       /* tokens handled at a time */
    VOCABULARY_BLOCK = 512, /* logits handled at a time per token */
};

/* Address of element (row, column) of a matrix. */
static inline char *element_at(const View *matrix, int64_t row, int64_t column)
{
    int64_t offset = row * matrix->strides[0] + column * matrix->strides[1];
    return (char *)matrix->data + offset * (int64_t)us_dtype_size(matrix->dtype);
}

/* The type that products of two matrices take: fp32, or the matrices' own where the processor multiplies it as it is. */
DType fused_type(const View *a, const View *b);

/* Whether rows of the matrix can be operands where they lie. */
bool fused_is_operand(const View *matrix, DType type);

/* Rows first … first+count-1 of a matrix in that type: where they lie, or copied one after the other to `memory`, unless it
 * is NULL. */
Matrix fused_rows(const View *matrix, DType type, int64_t first, int64_t count, void *memory);

/* A product, of which many may run at a time; without memory for its panels *no_memory becomes true. */
void fused_multiply(const Matmul *product, bool *no_memory);

/* Rows of fp32 into a matrix, rounded once. */
void fused_store_rows(const View *matrix, int64_t first, int64_t count, const float *from);

#endif
