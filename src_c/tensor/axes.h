/* The axes several views share, with neighbours merged where every view allows it, and walks along them. */
#ifndef UNDERSTUDY_AXES_H
#define UNDERSTUDY_AXES_H

#include "tensor/lane.h"

enum { AXES_OPERAND_LIMIT = 12 };

typedef struct Axes {
    int32_t rank; /* at least 1 once axes were added */
    int64_t shape[VIEW_RANK_LIMIT];
    int64_t strides[AXES_OPERAND_LIMIT][VIEW_RANK_LIMIT];
} Axes;

/* Appends axes first … end-1 of the views (all of the same shape). Axes of size 1 vanish; when nothing is left there is
 * one axis of size and stride 1. */
void us_axes_add(Axes *axes, const View *const *views, int count, int32_t first, int32_t end);

/* Appends one axis, inside of those that are there, with a stride for each of `count` operands; merges it with the last
 * one where every operand allows it. And the axis of an Axes that has none. */
void us_axes_append(Axes *axes, int64_t size, const int64_t *strides, int count);
void us_axes_complete(Axes *axes, int count);

/* The numbers of the axes whose size is not 1 among those in the bit set `chosen`: outermost in the view's memory first, or
 * as given. Returns how many. */
int32_t us_axes_order(const View *view, uint32_t chosen, bool by_memory, int32_t order[VIEW_RANK_LIMIT]);

/* Elements from a view's data to the element at a row-major position. */
int64_t us_axes_offset(const Axes *axes, int operand, int64_t position);

/* The elements from a row-major position on, run after run along the last axis. */
typedef struct AxesRun {
    int64_t offset, length;
} AxesRun;

typedef struct AxesWalk {
    const Axes *axes;
    const int64_t *strides;
    int64_t index[VIEW_RANK_LIMIT];
    int64_t offset, remaining;
} AxesWalk;

/* Filled in part, and never copied: a copy of what was just written in parts waits until all stores before it are done. */
void us_axes_walk(AxesWalk *walk, const Axes *axes, int operand, int64_t begin, int64_t count);
AxesRun us_axes_next(AxesWalk *walk); /* while walk->remaining > 0 */

/* Copies `count` elements of an operand from row-major position `begin` into a unit-stride array of a lane, and back. */
void us_axes_load(const Axes *axes, int operand, const void *data, DType dtype, int64_t begin, int64_t count, Lane lane,
                  void *to);
void us_axes_store(const Axes *axes, int operand, void *data, DType dtype, int64_t begin, int64_t count, Lane lane,
                   const void *from);

#endif
