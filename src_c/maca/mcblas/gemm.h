/* Products of general matrices, of one type or of several, singly and in batches. */
#ifndef MCBLAS_GEMM_H
#define MCBLAS_GEMM_H

#include "call.h"
#include "gemm_types.h"

/* One operand: a matrix, or a vector as a matrix of one column, with what a refusal calls its parameters. */
typedef struct GemmOperand {
    const char *name;
    const void *data; /* with `table`: an array of pointers in device memory */
    DType dtype;
    int leading;
    const char *leading_name;
} GemmOperand;

typedef struct Gemm {
    mcblasOperation_t transa, transb;
    int64_t m, n, k; /* checked by the caller */
    const void *alpha, *beta;
    const char *alpha_name, *beta_name; /* what a refusal calls them; NULL: alpha, beta */
    DType scale;   /* of alpha and beta */
    DType compute; /* kernels/matmul/matmul.h */
    GemmOperand a, b, c;
    int64_t batch;
    int64_t strides[3]; /* elements between the matrices of a batch: a, b, c */
    bool vectors; /* b and c are vectors, whose leading dimension is a step */
    bool table;
    int64_t entry; /* of the program's arrays, where these tables begin */
    bool only_checks; /* nothing is queued */
} Gemm;

/* C = alpha * op(A) op(B) + beta * C. Checks leading dimensions and pointers, and queues the call. */
void blas_gemm(BlasCall *call, const Gemm *gemm);

#endif
