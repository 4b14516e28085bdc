/* Kernels of types that they do not take by way of float. */
#ifndef UNDERSTUDY_WIDENED_H
#define UNDERSTUDY_WIDENED_H

#include "kernels/kernels.h"

/* Runs a kernel that takes float32 on copies of `count` views, the last of which is the output; some may be absent. Results
 * become int8 by rounding to the nearest integer, ties to even, and saturate; NaN gives 0. `reads_prior`: the old output
 * counts. */
KernelStatus us_run_widened(Kernel *kernel, int count, const View *views, const void *attributes, bool reads_prior);

#endif
