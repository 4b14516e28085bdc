/* Operators on contiguous arrays that are not element-wise. Arrays are contiguous and row-major; each function does a
 * part, begin … end-1, of what it is told to split, and the parts do not depend on each other. float32 and float16
 * data is accumulated in float64 unless said otherwise; results are rounded (integers: truncated, saturated) once. */
#ifndef UNDERSTUDY_ARRAYS_H
#define UNDERSTUDY_ARRAYS_H

#include "tensor/view.h"

#include <stdatomic.h>

enum { ARRAY_RANK_LIMIT = 8 };

/* out[i] = start + i * step for i = begin … end-1, in float64, rounded (integers: truncated, saturated) when stored. */
void us_array_sequence(double start, double step, void *out, DType dtype, int64_t begin, int64_t end);

/* c = act(a[m,k] * b[k,n] + bias[m,n]). float32 and float16 accumulate in float32, everything else in float64. Complex
 * numbers have no activation. Splits the pieces. */
typedef enum ArrayActivation { ARRAY_ACTIVATION_NONE, ARRAY_ACTIVATION_RELU, ARRAY_ACTIVATION_RELU6 } ArrayActivation;
typedef struct ArrayMatrixProduct {
    const void *a, *b, *bias; /* bias may be NULL, or c */
    void *c;
    DType dtype;
    int64_t m, n, k;
    ArrayActivation activation;
    atomic_bool no_memory; /* set when a piece could not be done */
} ArrayMatrixProduct;
int64_t us_array_matrix_product_pieces(const ArrayMatrixProduct *work);
void us_array_matrix_product(ArrayMatrixProduct *work, int64_t begin, int64_t end);

/* Scaled dot-product attention in float32 for [heads, length, depth] arrays; scores and weights are
 * [heads, length, length]. Splits the pieces. */
typedef struct ArrayAttention {
    const float *q, *k, *v;
    float *out, *scores, *weights;
    int64_t heads, length, depth;
    atomic_bool no_memory;
} ArrayAttention;
int64_t us_array_attention_pieces(const ArrayAttention *work);
void us_array_attention(ArrayAttention *work, int64_t begin, int64_t end);

/* weights = softmax(scores); the same array is fine. */
void us_array_softmax_row(const float *scores, float *weights, int64_t count);

#endif
