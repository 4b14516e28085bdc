/* Scans: running sums, products and extrema along one axis. A scan is one line of scans.inc.
 *
 * How a call computes. The input converts to the type `compute` (rounded to it); states are of the wider type that
 * reductions have (kernels/reduce/reduce.h). Every value rounds to `result` and then to the output's type; indices are
 * stored as they are. Elements are taken one after the other, so results are the same bits for any number of threads
 * and every instruction set. NaN wins over numbers in extrema; of equal ones the last. */
#ifndef UNDERSTUDY_SCAN_H
#define UNDERSTUDY_SCAN_H

#include "kernels/kernels.h"
#include "tensor/lane.h"
#include "tensor/levels.h"

/* `rows` elements of each of `width` lines, the first of them number `position`; `a`, `b`: states of the lines. Values
 * before (exclusive) or after each element go to `to_a` and `to_b`, which are of the states' type. Lines are either
 * columns side by side (to.column is 1), whole LANES of them or, where they are few, without padding; or they follow
 * each other in memory (to.row is 1). */
enum { SCAN_LINES = 4 }; /* that follow each other, at most: one alone waits for every sum */
typedef struct ScanSteps {
    int64_t row, column; /* elements from a row to the next, from a line to the next */
} ScanSteps;
typedef struct ScanPanel {
    int64_t rows, width, position;
    ScanSteps x, to;
    bool by_columns, exclusive;
} ScanPanel;
typedef void ScanBody(const ScanPanel *panel, const void *elements, void *a, void *b, void *to_a, void *to_b);

typedef void ScanStart(int64_t count, void *a, void *b);

/* A scan in each lane; NULL: no such lane. */
typedef struct ScanLanes {
    ScanStart *start[LANE_BODIES];
    ScanBody *body[LANE_BODIES];
} ScanLanes;

typedef struct Scan {
    const char *name;
    int32_t outputs; /* 2: value and index */
    const ScanLanes *(*lanes)(void); /* of the level in use */
} Scan;

typedef struct ScanCall {
    const Scan *scan;
    DType compute, result;
    int32_t axis;
    int32_t outputs; /* views after the input */
    bool exclusive;  /* the value at an element is that of the elements before it */
    bool reverse;    /* from the last element to the first */
} ScanCall;

#define SCAN(name, ...) \
    extern const Scan us_scan_##name; \
    const ScanLanes *us_scan_lanes_##name(void);
#include "kernels/scan/scans.inc"
#undef SCAN

/* views: input, values, of scans with an index the indices. All of one shape. */
KernelStatus us_scan(const View *views, const void *attributes);

bool us_scan_has_lane(const Scan *scan, DType compute);

#endif
