/* Reductions over some axes of several tensors of one shape: which elements belong together, in which order they are
 * walked, and how the work is cut.
 *
 * The kept axes number the groups, the reduced axes the elements of a group. Both are sorted by memory order and merged
 * where all tensors allow it. Work is done in panels of at most FOLD_PANEL elements, rows x width, whose columns have
 * their own accumulators. Where the groups lie innermost in memory (channels last), a column is a group; otherwise
 * columns are elements of one group, and their accumulators are added at the end. The cuts depend on the shapes only, so
 * sums have the same bits on any number of threads. */
#ifndef UNDERSTUDY_FOLD_H
#define UNDERSTUDY_FOLD_H

#include "tensor/view.h"

enum { FOLD_PANEL = 1024, FOLD_OPERANDS = 5 };

typedef struct FoldAxes {
    int32_t rank; /* at least 1 */
    int32_t order[VIEW_RANK_LIMIT]; /* the views' axes, outermost in memory first */
    int32_t order_count;
    int64_t sizes[VIEW_RANK_LIMIT]; /* merged */
    int64_t strides[FOLD_OPERANDS][VIEW_RANK_LIMIT];
    int64_t count; /* product of the sizes */
} FoldAxes;

typedef struct Fold {
    FoldAxes kept, reduced;
    bool columns_are_groups;
    int64_t blocks; /* blocks of groups: up to FOLD_PANEL neighbouring ones, or one */
    int64_t chunks; /* pieces of the reduced elements, for every block */
    int64_t blocks_per_run;
    int64_t chunk_elements;
    int operand_count;
    View operands[FOLD_OPERANDS];
} Fold;

/* `keeps` says of each axis whether it is kept. Absent operands are allowed, except the first. */
void us_fold_begin(Fold *fold, int operand_count, const View *operands, const bool *keeps, bool columns_are_groups);

/* The groups of a block: first number and how many. */
void us_fold_groups(const Fold *fold, int64_t block, int64_t *first, int64_t *count);

/* The first element of every group of a block. */
void us_fold_first(const Fold *fold, int operand, int64_t block, double *values);

/* One panel: rows x width elements. */
typedef struct Panel {
    int64_t rows, width;
    int64_t first_row; /* where columns are groups: number of the first reduced element */
    int64_t offsets[FOLD_OPERANDS];      /* elements */
    int64_t column_stride[FOLD_OPERANDS]; /* from column to column */
    int64_t row_stride[FOLD_OPERANDS];    /* from row to row */
} Panel;

/* Calls visit(context, panel) for the panels of a chunk of a block, in order. */
typedef void PanelVisit(void *context, const Panel *panel);
void us_fold_walk(const Fold *fold, int64_t block, int64_t chunk, PanelVisit *visit, void *context);

/* Runs stage after stage; a stage is visited for every block and chunk, then finished for every block. One block's data
 * stays in cache from stage to stage when it is not cut into chunks. */
typedef struct FoldStage {
    void (*run)(void *context, int64_t block, int64_t chunk);
    void (*finish)(void *context, int64_t block); /* may be NULL */
} FoldStage;
void us_fold_run(const Fold *fold, int stage_count, const FoldStage *stages, void *context);

/* Parameters of the groups: a view with the tensors' axes (size 1 where reduced), as doubles in the order of the
 * groups. */
void us_fold_load(const Fold *fold, const View *parameters, double *values);
void us_fold_store(const Fold *fold, const View *parameters, const double *values);

/* The panel's elements of an operand as float or double: in place where possible, otherwise converted into the tile of
 * FOLD_PANEL elements. *row_stride is set to the distance of the rows there. */
float *us_panel_float(const Fold *fold, const Panel *panel, int operand, float *tile, bool load, int64_t *row_stride);
double *us_panel_double(const Fold *fold, const Panel *panel, int operand, double *tile, bool load,
                        int64_t *row_stride);
/* Converts the tile back, unless the elements were in place. */
void us_panel_store_float(const Fold *fold, const Panel *panel, int operand, const float *values);
void us_panel_store_double(const Fold *fold, const Panel *panel, int operand, const double *values);

#endif
