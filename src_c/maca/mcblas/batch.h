/* Calls on matrices whose addresses are in arrays in device memory, which are read when the work runs, or which lie at
 * equal distances. */
#ifndef MCBLAS_BATCH_H
#define MCBLAS_BATCH_H

#include "call.h"

enum { BATCH_TABLE_LIMIT = 4, BATCH_ATTRIBUTE_LIMIT = 512 };

/* Does matrix i, whose operands are at `addresses`; several threads may call at once. KERNEL_FAULT: `fault` says why. */
typedef KernelStatus BatchBody(const void *attributes, char *const *addresses, const double (*scalars)[2]);

typedef enum BatchFactor { BATCH_FACTOR_NONE, BATCH_FACTOR_ALPHA, BATCH_FACTOR_BETA } BatchFactor;

typedef struct BatchTable {
    const char *name;
    const void *table; /* of addresses, or NULL */
    int64_t entry;     /* the number of its first address in the program's array */
    const void *first; /* the first of matrices `stride` bytes apart, or NULL; neither: not used, addresses are NULL */
    int64_t stride;
    /* Each matrix, as it lies in memory; of a vector one row of `columns` elements, `leading` apart. */
    DType dtype;
    int64_t rows, columns, leading;
    /* For the checks. Where the factor is 0, what the matrices hold is not read. */
    ViewAccess access;
    BatchFactor factor;
    ViewPart part;
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

/* Queues a copy of the batch: handle/launch. */
void blas_batch_submit(BlasCall *call, const Batch *batch);

#endif
