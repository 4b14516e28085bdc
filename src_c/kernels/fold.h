/* Reductions over some axes of several tensors of one shape and type: which elements belong together, in which order
 * they are walked, and how the work is cut.
 *
 * The kept axes number the groups, the reduced axes the elements of a group. Both are sorted by memory order and merged
 * where all tensors allow it. A block is a number of neighbouring groups: up to FOLD_WIDTH where the groups lie
 * innermost in memory (channels last), otherwise one. It is walked in panels, rows x width: a row holds one element of
 * every group. Short rows that follow each other without gaps are seen as one line, so that loops along a line have
 * something to do. Where the elements of a group come in small planes, one behind the other (channels first), blocks
 * have many groups, too, and a row holds a plane of every group. The cuts depend on the shapes only, so sums have the
 * same bits on any number of threads. */
#ifndef UNDERSTUDY_FOLD_H
#define UNDERSTUDY_FOLD_H

#include "kernels/kernels.h"

enum {
    FOLD_WIDTH = 1024,      /* groups of a block, elements of a row, columns of a line */
    FOLD_TILE = 4096,       /* elements of a panel where an operand must be gathered */
    FOLD_OPERANDS = 4,
    FOLD_SUMS = 2,          /* per group, that a stage can form */
    FOLD_STATE = 48 * 1024, /* bytes that a block can keep from stage to stage */
};

typedef struct FoldAxes {
    int32_t rank; /* at least 1 */
    int32_t order[VIEW_RANK_LIMIT]; /* the views' axes, outermost in memory first */
    int32_t order_count;
    int64_t sizes[VIEW_RANK_LIMIT]; /* merged */
    int64_t strides[FOLD_OPERANDS][VIEW_RANK_LIMIT];
    int64_t count; /* product of the sizes */
} FoldAxes;

typedef struct Fold {
    FoldAxes kept, reduced; /* without the plane */
    int64_t elements;       /* of a group */
    int64_t plane;          /* elements of a group in a row, neighbours: 1 but for small planes */
    int64_t width;          /* of every block but the last of a run */
    int64_t blocks, blocks_per_run;
    int64_t chunks, chunk_elements; /* pieces of the reduced elements, for every block */
    int64_t stack;          /* rows of a line */
    int64_t panel_rows;     /* at most; a multiple of `stack` */
    int operand_count;
    bool gathers[FOLD_OPERANDS]; /* not usable in place */
    View operands[FOLD_OPERANDS];
} Fold;

/* `keeps` says of each axis whether it is kept. Absent operands are allowed, except the first. `by_row`: groups lie
 * innermost, and rows are not put together unless their width is a multiple of 8. */
void us_fold_begin(Fold *fold, int operand_count, const View *operands, const bool *keeps, bool by_row);

/* For work without sums on blocks of one group: cuts the reduced elements so that the same chunk of all blocks, one after
 * the other, lies side by side in memory. False: it does not, and nothing has changed. */
bool us_fold_cut_by_memory(Fold *fold);

/* The groups of a block: first number and how many. */
void us_fold_groups(const Fold *fold, int64_t block, int64_t *first, int64_t *count);

/* A number near the mean of every group of a block: in float the mean of its first elements, of float64 the first. */
void us_fold_guess(const Fold *fold, int operand, int64_t block, double *values);

/* One panel. Where an operand is gathered, its rows follow each other without gaps. */
typedef struct Panel {
    int64_t rows, width; /* elements of a row */
    int64_t first_row; /* number of the first reduced element */
    void *data[FOLD_OPERANDS];
    int64_t row_stride[FOLD_OPERANDS]; /* elements */
    int64_t ahead[FOLD_OPERANDS]; /* bytes to the next panel, which is to be fetched while this one is read; 0: none */
} Panel;

/* What a visit does with the operands, one bit each. */
typedef struct FoldAccess {
    unsigned reads, writes;
} FoldAccess;

/* Calls visit(context, panel) for the panels of a chunk of a block, in order. */
typedef void PanelVisit(void *context, const Panel *panel);
void us_fold_walk(const Fold *fold, int64_t block, int64_t chunk, FoldAccess access, PanelVisit *visit, void *context);

/* Runs stage after stage; a stage is run for every block and chunk, then finished for every block with the sums of its
 * groups: `width` first sums, then as many second sums. Either may be NULL. Every second stage meets chunks in the
 * opposite order, so that it finds in cache what the stage before it read last. `state` is the block's own memory. */
typedef struct FoldStage {
    void (*run)(void *context, int64_t block, int64_t chunk, void *state, double *sums);
    void (*finish)(void *context, int64_t block, void *state, const double *sums);
} FoldStage;
KernelStatus us_fold_run(const Fold *fold, int stage_count, const FoldStage *stages, void *context);

/* Parameters of a block's groups: a view with the tensors' axes (size 1 where reduced). */
void us_fold_load(const Fold *fold, int64_t block, const View *parameters, double *values);
void us_fold_store(const Fold *fold, int64_t block, const View *parameters, const double *values);

#endif
