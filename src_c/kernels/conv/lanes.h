/* The sums of a gather in float32, and its slopes, by vectors of what neighbouring results get at one position: they meet one
 * value of the input at a time, that of a cell (kernels/conv/grid.h). Of depthwise filters they hold what neighbouring
 * channels get, of a value each. Planes may be as small as one likes: no lane is lost at the end of a row.
 *   lanes.c        what is taken, the cells
 *   lane_sums.c    sums
 *   lane_slopes.c  slopes */
#ifndef UNDERSTUDY_LANES_H
#define UNDERSTUDY_LANES_H

#include "kernels/conv/grid.h"
#include "tensor/convert.h"
#include "tensor/intrinsics.h"
#include "tensor/levels.h"

#include <math.h>

/* Lanes of a vector; work for a few threads; steps of gathers whose input is copied as it is. */
enum { WIDTH = REGISTER_BYTES / sizeof(float), FEW = 8, LANES_STEP = 2 };

typedef float Lanes __attribute__((vector_size(REGISTER_BYTES), aligned(sizeof(float)), may_alias));

/* a * b + c, rounded once: the same on every level. Where multiplications and additions wait for the same units (Intel), half
 * the time of the two; libm's function, slow and exact, where there is no such instruction. */
US_ALWAYS_INLINE Lanes fused(Lanes a, Lanes b, Lanes c)
{
#if defined(__AVX512F__)
    return (Lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (Lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (Lanes)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    for (int i = 0; i < WIDTH; i++) {
        c[i] = fmaf(a[i], b[i], c[i]);
    }
    return c;
#endif
}

/* Less 0, which changes nothing: 0 more would make 0 of -0, and takes an instruction. */
US_ALWAYS_INLINE Lanes all_lanes(float value)
{
    return value - (Lanes){0};
}

/* Units share cells: a group, or WIDTH channels of depthwise filters. A piece has a set of them and a part of the positions. */
typedef struct Plan {
    const Gather *gather;
    bool own;                         /* depthwise: every lane has its own channel */
    int64_t depth;                    /* weights of a result */
    int64_t results, vectors, units;  /* of a unit; vectors of its results */
    int64_t blocks;                   /* of a unit: two vectors each, one where no more are left */
    int64_t cell;                     /* floats of a cell: one channel, or WIDTH */
    int64_t each, sets;               /* units of a set */
    GridCut cut;
} Plan;

/* Which of all results the results of a gather are: those at first, first + stride, … along each axis. */
typedef struct Among {
    int64_t first[CONV_AXES], stride[CONV_AXES], size[CONV_AXES]; /* size: of all results of an image */
} Among;

/* The division of the work on a gather. */
Plan us_lanes_plan(const Gather *gather);

/* One vector of a unit or two, the first one counted over all units; their results, the first one over all groups. */
typedef struct Block {
    int64_t vector, lanes;
    int64_t first, results;
} Block;

Block us_lanes_block(const Plan *plan, int64_t number);

/* Cells of a line that lie inside the input: the first one, and its position in an image. */
typedef struct Line {
    int64_t cell, position, image, count;
} Line;

/* A part of the positions, and the cells that they see of a unit. */
typedef struct Patch {
    const Plan *plan;
    GridPart part;
    Gather seen;              /* whose grid it is: see lanes.c */
    Grid grid;
    int64_t rows, width;      /* rows of results */
    int64_t apart;            /* floats from what a result sees to what the next one in its row does */
    int64_t *starts;          /* of a row: what its first result sees of the first tap */
    int64_t *places, step;    /* of a row: where the sums of its first result stand; from result to result */
    int64_t shifts[GRID_MOST_TAPS];
    Line *lines;
    int64_t line_count;
    int64_t lowest, highest;  /* positions of an image that the lines reach from and to */
    float *cells;             /* [channel][cell], or [cell][channel]; those outside the input are zeros */
    float *turned;            /* positions of an image: [position][channel] */
} Patch;

/* All results of an image. */
Among us_lanes_all(const int64_t *size);

/* A part of a gather; the memory that it notes rows and lines in; both are noted there. */
Patch us_lanes_patch(const Plan *plan, const Gather *gather, int64_t number);
size_t us_lanes_patch_bytes(const Patch *patch);
void us_lanes_begin(Patch *patch, const Among *among, char **cursor);

/* The memory of its cells, which becomes zeros; cells of a unit. */
size_t us_lanes_cell_bytes(const Patch *patch);
void us_lanes_take_cells(Patch *patch, char **cursor);
void us_lanes_pack(const Patch *patch, int64_t unit);

#endif
