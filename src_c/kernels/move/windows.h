/* Windows along one axis, added up where they overlap: the gradient of a view of windows. */
#ifndef UNDERSTUDY_WINDOWS_H
#define UNDERSTUDY_WINDOWS_H

#include "kernels/kernels.h"

/* out[..., p, ...] = the sum of windows[..., t, ..., k] with t * step + k = p, in ascending t in float64, rounded once; 0
 * where no window is. Views: windows, whose last axis is the place in a window, and whose `axis` counts them; out. */
typedef struct AddWindows {
    int32_t axis;
    int64_t step;
} AddWindows;
Kernel us_add_windows;

#endif
