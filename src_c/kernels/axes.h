/* The order of a view's axes: where it does not matter to the maths, memory order is the fast one. */
#ifndef UNDERSTUDY_KERNEL_AXES_H
#define UNDERSTUDY_KERNEL_AXES_H

#include "tensor/view.h"

/* Permutes the axes of views of one shape alike, so that the last view's strides do not increase: a packed view of any
 * layout (NHWC) becomes contiguous. */
void us_axes_in_memory_order(int count, View *views);

#endif
