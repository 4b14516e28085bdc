/* The input of a gather on a grid of cells, padded with zeros, so that taps are shifts: where a result is at cell q, tap t
 * sees the input at cell q + shift of t. Cells that are a step apart lie side by side, in a grid for each residue. */
#ifndef UNDERSTUDY_GRID_H
#define UNDERSTUDY_GRID_H

#include "kernels/conv/gather.h"
#include "kernels/matmul/bf16_tiles.h"

enum { GRID_MOST_TAPS = 1024 };

typedef struct Grid {
    const Gather *gather;
    int64_t lowest[CONV_AXES];                         /* the input's index in the first cell */
    int64_t cells[CONV_AXES], residues[CONV_AXES];
    int64_t image, all;                                /* cells of an image; of all images */
} Grid;

Grid us_grid_of(const Gather *gather);

int64_t us_grid_shift(const Grid *grid, int64_t tap);

/* The cell of the first result of a row of an image's results. */
int64_t us_grid_row(const Grid *grid, int64_t image, int64_t row);

/* Covers the cells of the results, in order, by runs of `width` cells: starts[run], and slots[position] = run * width + place
 * in the run; starts[runs] is once more the last one. In memory that the caller gives back; NULL: there is none. */
void *us_grid_cover(const Grid *grid, int64_t width, int32_t **starts, int32_t **slots, int64_t *runs);

/* Neighbouring cells, and the input's positions that lie in some of them, `step` apart; the others are zeros. */
typedef struct GridLine {
    int64_t cell, before, count, behind;
    int64_t position, step; /* of an image; counted over all images */
    int64_t image;
} GridLine;
typedef void GridVisit(void *context, const GridLine *line);

/* Visits all cells, in order. */
void us_grid_lines(const Grid *grid, GridVisit *visit, void *context);

/* Channels of the positions of a line, first … first + channels - 1 of all groups': lines of positions. */
Bf16Operand us_grid_operand(const Gather *gather, const GridLine *line, int64_t first, int64_t channels);

/* Elements of the input, and the range of so many numbers. */
int64_t us_grid_elements(const Gather *gather);
Bf16Range us_grid_range(const void *numbers, int64_t count);

/* ---- parts ---- */

/* A part of the results of a gather: images, and rows along the first axis that has more than one. */
typedef struct GridPart {
    Gather gather;
    int64_t begin, count; /* positions */
} GridPart;

/* Sizes of parts, so that `channels` of them and their sums stay in the second cache, and images of few cells are together. */
typedef struct GridCut {
    int axis;
    int64_t images, rows; /* of a part */
    int64_t per_image, count;
} GridCut;

GridCut us_grid_cut(const Gather *gather, int64_t channels, int64_t least_parts);
GridPart us_grid_part(const Gather *gather, const GridCut *cut, int64_t number);

/* Whether the gather has taps and results, of which there are not too many for a grid, nor too many cells of some channels. */
bool us_grid_fits(const Gather *gather, int64_t channels);

/* Whether the gather goes by shifts, and its work is not mostly padding. */
bool us_grid_takes(const Gather *gather);

#endif
