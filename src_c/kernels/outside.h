/* Indices that are outside their dimension, met by several threads. */
#ifndef UNDERSTUDY_OUTSIDE_H
#define UNDERSTUDY_OUTSIDE_H

#include "kernels/kernels.h"

/* The first index that is outside, by the number of the piece of work that met it. */
typedef struct OutsideIndex {
    bool found;
    int64_t piece, index, size;
} OutsideIndex;
void us_outside_met(OutsideIndex *outside, int64_t piece, int64_t index, int64_t size);
KernelStatus us_outside_status(const OutsideIndex *outside);

#endif
