/* Pooling of small planes, LANES of them side by side: where rows are short, vectors go across planes. */
#ifndef UNDERSTUDY_POOL_SIDE_BY_SIDE_H
#define UNDERSTUDY_POOL_SIDE_BY_SIDE_H

#include "kernels/kernels.h"

/* The elements of a window inside an axis, and how many of it an average is divided by. */
typedef struct PlaneWindow {
    int64_t begin, end;
    double counted;
} PlaneWindow;

typedef enum BesideMode { BESIDE_MAXIMUM, BESIDE_AVERAGE, BESIDE_AVERAGE_GRADIENT } BesideMode;

/* x is the larger tensor, or its gradient; y the smaller one; the largest element of a window has a place, its number
 * in the plane: see places.h. */
typedef struct Beside {
    BesideMode mode;
    const View *x, *y, *places; /* places: NULL or absent where nobody asks */
    PlaneWindow (*window)(const void *context, int axis, int64_t o); /* number o on spatial axis 1 or 2 of y */
    const void *context;
    double divide_by; /* averages, if it is not 0 */
} Beside;

/* Whether these are tensors for it: of rank 5, flat and without gaps; enough planes of up to `limit` elements. */
bool us_lies_side_by_side(const View *x, const View *y, const View *places, int64_t limit);

/* With the bits that other ways to the same have: columns of a window are added first. */
KernelStatus us_pool_side_by_side(const Beside *beside);

#endif
