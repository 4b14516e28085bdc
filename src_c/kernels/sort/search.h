/* Places in a sorted sequence, and how many elements fall into intervals. */
#ifndef UNDERSTUDY_SEARCH_H
#define UNDERSTUDY_SEARCH_H

#include "kernels/kernels.h"
#include "tensor/number.h"

/* out = the first place of the sequence whose element is not below the value (`right`: is above it), the sequence's
 * length if there is none. views: sequence, sorter (absent, or of its shape: where each place's element is), values
 * (absent: one, the attribute), out of as many elements. A sequence of more than one axis has one line for each line of
 * the values. Compared in int64 or float64. */
typedef struct SortedSearch {
    bool right, whole; /* whole: in int64 */
    Number value;
} SortedSearch;
Kernel us_sorted_search;

/* out[k] = how many elements of self lie in interval k of as many equal ones as out has between least and greatest,
 * both included; least = greatest: those of self. views: self, out of rank 1. */
typedef struct Histogram {
    double least, greatest;
} Histogram;
Kernel us_histogram;

#endif
