/* Calls on matrices whose addresses are in arrays in device memory, which are read when the work runs, or which lie at
 * equal distances. */
#ifndef MCBLAS_BATCH_H
#define MCBLAS_BATCH_H

#include "call.h"

enum { BATCH_TABLE_LIMIT = 4, BATCH_ATTRIBUTE_LIMIT = 512 };

/* Does matrix i, whose operands are at `addresses`; several threads may call at once. KERNEL_FAULT: `fault` says why. */
typedef KernelStatus BatchBody(const void *attributes, char *const *addresses, const double (*scalars)[2]);

typedef struct BatchTable {
    const char *name;
    const void *table; /* of addresses, or NULL */
    const void *first; /* the first of matrices `stride` bytes apart, or NULL; neither: not used, addresses are NULL */
    int64_t stride;
    size_t bytes; /* that each matrix reaches */
} BatchTable;

typedef struct Batch {
    BatchTable tables[BATCH_TABLE_LIMIT];
    int64_t count;
    BlasScalar scalars[2];
    DType scale;
    BatchBody *body;
    const char *fault;
    _Alignas(16) unsigned char attributes[BATCH_ATTRIBUTE_LIMIT];
} Batch;

/* Bytes from the first to the last element of a matrix, or of a vector as one row of `columns` elements `leading` apart; as
 * many as there can be where they are more, which no memory has. */
size_t blas_reach(int64_t rows, int64_t columns, int64_t leading, int64_t element);

/* Queues a copy of the batch: handle/launch. */
void blas_batch_submit(BlasCall *call, const Batch *batch);

#endif
