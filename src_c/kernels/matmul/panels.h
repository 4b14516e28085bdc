/* The parts of matmul.c that multiply the panels of a block: by BLAS or by loops, where the operands lie or from copies. */
#ifndef UNDERSTUDY_MATMUL_PANELS_H
#define UNDERSTUDY_MATMUL_PANELS_H

#include "kernels/matmul/lines.h"

#include <limits.h>
#include <stdatomic.h>

typedef struct Run {
    const Matmul *product;
    bool through_blas;
    bool exact;              /* 8-bit integers: float32 or int32 products, int64 sums */
    bool bytes;              /* of these: as they are, where kernels/matmul/bytes.h can, with int32 products */
    bool bf16;               /* 16-bit operands meet as they are, where kernels/matmul/bf16.h can */
    bool few_rows;           /* B meets few rows a few lines at a time: kernels/matmul/few_rows.h */
    DType panel;             /* the type of panels and of their products */
    int64_t batch, block_rows, block_columns, blocks_down, blocks_across;
    const char *parts;       /* not NULL: the products are there, to be summed; [part][batch][m][n] */
    int64_t part_count;
    atomic_bool no_memory;
} Run;

/* One block of C, and what belongs to it. */
typedef struct Block {
    MatmulTile tile;
    Matrix a, b, addend, c;
} Block;

/* Whether the matrix is one of packed or padded rows, as BLAS takes them. */
static inline bool matrix_has_rows(const Matrix *matrix, int64_t rows, int64_t columns, int64_t *stride)
{
    *stride = rows == 1 ? columns : matrix->row;
    return (columns == 1 || matrix->column == 1) && *stride >= columns && *stride <= INT_MAX;
}

static inline bool matrix_has_columns(const Matrix *matrix, int64_t rows, int64_t columns, int64_t *stride)
{
    const Matrix transposed = {.row = matrix->column, .column = matrix->row};
    return matrix_has_rows(&transposed, columns, rows, stride);
}

/* Memory for a block: its tile unless C is used in place, and the panels. */
typedef struct Workspace {
    void *memory;
    char *tile, *exact, *a, *b;
    int64_t *offsets; /* bytes: of columns, to be added to their products */
    int64_t depth; /* of the panels */
    bool a_direct, b_direct;
    bool bf16; /* the block is multiplied by bf16.h; until some of its depth could not be */
} Workspace;

/* Whether there is memory; `direct`: C is used in place, `by_columns`: it lies by columns. */
bool us_panels_take_workspace(const Run *run, const Block *block, bool direct, bool by_columns, Workspace *space);

/* c = alpha * A B + beta * c for `depth` of the depth from `first` on; c in the panels' type. */
void us_multiply_panels(const Run *run, const Block *block, Workspace *space, int64_t first, int64_t depth,
                        const double *alpha, const double *beta, const Matrix *c);

/* C = A B rounded to bfloat16, of a shallow product (BF16_SHALLOW); false: nothing is written. */
bool us_panels_multiply_rounded(const Run *run, const Block *block, const Workspace *space);

#endif
