/* Reductions over any set of axes: one walker, one loop and one order of the sums for all. A reduction is one line of a
 * file in this folder.
 *
 * How a call computes. The input converts to the type `compute` (rounded to it). A reduction runs in a wider type: sums
 * of float in double, of integers modulo 2^64, of complex64 in pairs of double. Its result rounds to `result` and then
 * to the output's type; indices are stored as they are. NaN wins over numbers in maxima and minima.
 *
 * Elements are reduced in an order that depends on nothing but shapes, strides and types, so results are the same bits
 * for any number of threads and every instruction set. Of no elements the result is the start: 0 of a sum, 1 of a
 * product, NaN of a mean, the lowest number of a maximum. */
#ifndef UNDERSTUDY_REDUCE_FAMILY_H
#define UNDERSTUDY_REDUCE_FAMILY_H

#include "kernels/kernels.h"
#include "tensor/lane.h"
#include "tensor/levels.h"
#include "tensor/number.h"

enum { REDUCE_NUMBERS = 4, REDUCE_OUTPUTS = 2 };

/* Rows that the steps take at once: states stay in registers meanwhile. Those of integers of one or two bytes take TALL_ROWS
 * before they are merged. */
enum { REDUCE_ROWS = 8, FEW_ROWS = 4, TALL_ROWS = 64 };

/* Neighbours are fetched into the second cache as many bytes before their turn. Into the nearest one fewer can be on their
 * way, which is slower where they come from far memory. */
enum { FETCHED_AHEAD = 8192 };

/* Columns of a panel, the most. */
enum { REDUCE_COLUMNS = 2048 };

/* States of a row, the most, and of one shorter than LONG_ROW. */
enum { STRIP = 64, SHORT_STRIP = 2 * LANES };

/* Rows of at most so many columns are fetched while those before are read; of wider ones see fetches_columns. */
enum { FETCHED_WIDTH = 8 * LANES };

/* Elements of one panel: `rows` rows of `width` neighbours, a multiple of LANES, each for the state of its column. Rows are
 * `row_stride` elements apart; row r is number position + r of those that are reduced. */
typedef struct ReducePanel {
    int64_t rows, width, position, row_stride;
    int64_t ahead; /* bytes from what is read to what is fetched meanwhile; 0: nothing is */
} ReducePanel;

/* States of columns are two arrays of the wide type. `guess` is one too: the results of the reduction `first`. */
typedef void ReduceStart(int64_t count, void *a, void *b);
typedef void ReduceStep(const Number *numbers, const ReducePanel *panel, const void *elements, const void *guess,
                        void *a, void *b);
/* May change states up to whole LANES. */
typedef void ReduceMerge(int64_t count, void *a, void *b, const void *c, const void *d);
/* Rows of neighbours, at least one in each, `along` elements apart, for `strip` states each. What lies `ahead` bytes
 * after them is fetched. */
typedef struct ReduceRows {
    const void *elements;
    int64_t rows, along, count, strip, ahead;
} ReduceRows;

/* Each row to its state's value. */
typedef void ReduceFold(const ReduceRows *rows, void *values);
/* The first of `count` neighbours that is *value, or a NaN if that is one; *value becomes this element. */
typedef int64_t ReduceFind(const void *elements, int64_t count, void *value);
typedef void ReduceFinish(const Number *numbers, int64_t elements, int64_t count, const void *guess, void *a, void *b);
/* States of `elements` elements each, made with the guesses `from`, to those that `to` would have made. May change states up
 * to whole LANES. */
typedef void ReduceMove(int64_t count, int64_t elements, const void *from, const void *to, void *a, void *b);

/* A reduction in each lane; NULL: no such lane. */
typedef struct ReduceLanes {
    ReduceStart *start[LANE_BODIES];
    ReduceStep *step[LANE_BODIES];
    ReduceMerge *merge[LANE_BODIES];
    ReduceFinish *finish[LANE_BODIES];
    ReduceFold *fold[LANE_BODIES]; /* of extrema and sums */
    ReduceFind *find[LANE_BODIES]; /* where the second output is an index */
    ReduceMove *move[LANE_BODIES]; /* of reductions with a first one */
} ReduceLanes;

typedef struct Reduction {
    const char *name;
    int32_t numbers, outputs;
    const struct Reduction *first;  /* runs before; NULL: there is none */
    const struct Reduction *values; /* the second output is an index, the first one that of this reduction; or NULL */
    const ReduceLanes *(*lanes)(void); /* of the level in use */
} Reduction;

typedef struct ReduceCall {
    const Reduction *reduction;
    DType compute, result;
    uint32_t axes;   /* bit d: axis d of the input is reduced */
    int32_t outputs; /* views after the input; any of them may be absent */
    Number numbers[REDUCE_NUMBERS]; /* in the compute type */
} ReduceCall;

/* views: input, outputs. Outputs have the input's rank, and size 1 on reduced axes. Indices count the reduced elements
 * in row-major order; the first of equal ones wins. */
KernelStatus us_reduce(const View *views, const void *attributes);

bool us_reduce_has_lane(const Reduction *reduction, DType compute);

#endif
