/* The parts of matmul.c that know element types: lines of elements, and products by loops of our own. */
#ifndef UNDERSTUDY_MATMUL_LINES_H
#define UNDERSTUDY_MATMUL_LINES_H

#include "kernels/matmul/matmul.h"
#include "kernels/sizes.h"

#include <string.h>

enum { LINE_ELEMENTS = 256, LARGEST_ELEMENT = 16 };

typedef struct Sizes {
    int64_t m, n, k;
} Sizes;

static inline bool is_zero(const double *factor)
{
    return factor[0] == 0 && factor[1] == 0;
}

static inline bool is_complex(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128;
}

/* Bytes of an element of a matrix; real types hold pairs in a complex product. */
static inline int64_t element_size(DType compute, DType dtype)
{
    return (int64_t)us_dtype_size(dtype) * (is_complex(compute) && !is_complex(dtype) ? 2 : 1);
}

static inline char *element_at(DType compute, const Matrix *matrix, int64_t row, int64_t column)
{
    return (char *)matrix->data + (row * matrix->row + column * matrix->column) * element_size(compute, matrix->dtype);
}

/* `count` elements of `dtype`, `stride` elements apart, to packed ones of the computed type, and back. */
void us_line_load(DType compute, void *to, const void *from, DType dtype, int64_t stride, int64_t count,
                  bool conjugated);
void us_line_store(DType compute, void *to, DType dtype, int64_t stride, const void *from, int64_t count);
void us_elements_clear(void *elements, DType dtype, int64_t stride, int64_t count);

/* line = alpha * line + beta * addend; addend NULL: there is none. */
void us_line_blend(DType compute, void *line, const double *alpha, const void *addend, const double *beta,
                   int64_t count);

/* sums += products, which are integers. */
void us_add_exact(int64_t *sums, const float *products, int64_t count);

/* c = alpha * a b + beta * c; rows of b and of c are packed. */
void us_multiply_by_loops(DType compute, const Sizes *sizes, const Matrix *a, const Matrix *b, const double *alpha,
                          const double *beta, void *c, int64_t stride);

#endif
