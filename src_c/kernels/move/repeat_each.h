/* Slices along an axis, each as often in a row as a tensor says. */
#ifndef UNDERSTUDY_REPEAT_EACH_H
#define UNDERSTUDY_REPEAT_EACH_H

#include "kernels/kernels.h"

/* views: self (absent: the slices' own numbers), repeats, out. `repeats` are integers, one for each slice or one for all.
 * `flat`: self is one axis, its elements in row-major order, and out has rank 1. A number below 0, or a sum that is not
 * out's size, is a fault. */
typedef struct RepeatEach {
    bool flat;
    int32_t axis;
} RepeatEach;
Kernel us_repeat_each;

/* views: slopes of out, repeats, slopes of self = their sums, in the wide type, rounded once. */
Kernel us_repeat_each_gradient;

#endif
