#include "tensor/axes.h"

#include <stdlib.h>

static bool merges(const Axes *axes, int64_t size, const int64_t *strides, int count)
{
    for (int k = 0; k < count; k++) {
        int64_t span;
        if (__builtin_mul_overflow(strides[k], size, &span) || axes->strides[k][axes->rank - 1] != span) {
            return false;
        }
    }
    return true;
}

void us_axes_append(Axes *axes, int64_t size, const int64_t *strides, int count)
{
    int64_t joint; /* sizes beside one of 0 may be any */
    if (axes->rank > 0 && merges(axes, size, strides, count) &&
        !__builtin_mul_overflow(axes->shape[axes->rank - 1], size, &joint)) {
        axes->shape[axes->rank - 1] = joint;
    } else {
        axes->shape[axes->rank++] = size;
    }
    for (int k = 0; k < count; k++) {
        axes->strides[k][axes->rank - 1] = strides[k];
    }
}

void us_axes_complete(Axes *axes, int count)
{
    if (axes->rank == 0) {
        axes->rank = 1;
        axes->shape[0] = 1;
        for (int k = 0; k < count; k++) {
            axes->strides[k][0] = 1;
        }
    }
}

void us_axes_add(Axes *axes, const View *const *views, int count, int32_t first, int32_t end)
{
    const bool is_placeholder = axes->rank == 1 && axes->shape[0] == 1;
    axes->rank = is_placeholder ? 0 : axes->rank;
    for (int32_t axis = first; axis < end; axis++) {
        int64_t strides[AXES_OPERAND_LIMIT];
        for (int k = 0; k < count; k++) {
            strides[k] = views[k]->strides[axis];
        }
        if (views[0]->shape[axis] != 1) {
            us_axes_append(axes, views[0]->shape[axis], strides, count);
        }
    }
    us_axes_complete(axes, count);
}

int32_t us_axes_order(const View *view, uint32_t chosen, bool by_memory, int32_t order[VIEW_RANK_LIMIT])
{
    int32_t count = 0;
    for (int32_t axis = 0; axis < view->rank; axis++) {
        if (view->shape[axis] == 1 || !(chosen >> axis & 1)) {
            continue;
        }
        int32_t place = count++;
        while (by_memory && place > 0 && llabs(view->strides[order[place - 1]]) < llabs(view->strides[axis])) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = axis;
    }
    return count;
}

int64_t us_axes_offset(const Axes *axes, int operand, int64_t position)
{
    int64_t offset = 0;
    for (int32_t axis = axes->rank - 1; axis > 0; axis--) {
        offset += position % axes->shape[axis] * axes->strides[operand][axis];
        position /= axes->shape[axis];
    }
    return offset + position * axes->strides[operand][0];
}

void us_axes_walk(AxesWalk *walk, const Axes *axes, int operand, int64_t begin, int64_t count)
{
    walk->axes = axes;
    walk->strides = axes->strides[operand];
    walk->offset = 0;
    walk->remaining = count;
    for (int32_t axis = axes->rank - 1; count > 0 && axis >= 0; axis--) { /* of nothing, sizes may be 0 */
        walk->index[axis] = axis > 0 ? begin % axes->shape[axis] : begin;
        begin = axis > 0 ? begin / axes->shape[axis] : 0;
        walk->offset += walk->index[axis] * walk->strides[axis];
    }
}

AxesRun us_axes_next(AxesWalk *walk)
{
    const int32_t last = walk->axes->rank - 1;
    const int64_t *shape = walk->axes->shape;
    int64_t left = shape[last] - walk->index[last];
    AxesRun run = {walk->offset, left < walk->remaining ? left : walk->remaining};
    walk->remaining -= run.length;
    walk->index[last] += run.length;
    walk->offset += run.length * walk->strides[last];
    for (int32_t axis = last; axis > 0 && walk->index[axis] == shape[axis]; axis--) {
        walk->offset += walk->strides[axis - 1] - shape[axis] * walk->strides[axis];
        walk->index[axis] = 0;
        walk->index[axis - 1]++;
    }
    return run;
}

void us_axes_load(const Axes *axes, int operand, const void *data, DType dtype, int64_t begin, int64_t count, Lane lane,
                  void *to)
{
    const int64_t stride = axes->strides[operand][axes->rank - 1], size = (int64_t)us_dtype_size(dtype);
    const int64_t wide = (int64_t)us_dtype_size(us_lane_dtype(lane));
    char *values = to;
    AxesWalk walk;
    for (us_axes_walk(&walk, axes, operand, begin, count); walk.remaining > 0;) {
        AxesRun run = us_axes_next(&walk);
        us_lane_load(lane, values, (const char *)data + run.offset * size, dtype, stride, run.length);
        values += run.length * wide;
    }
}

void us_axes_store(const Axes *axes, int operand, void *data, DType dtype, int64_t begin, int64_t count, Lane lane,
                   const void *from)
{
    const int64_t stride = axes->strides[operand][axes->rank - 1], size = (int64_t)us_dtype_size(dtype);
    const int64_t wide = (int64_t)us_dtype_size(us_lane_dtype(lane));
    const char *values = from;
    AxesWalk walk;
    for (us_axes_walk(&walk, axes, operand, begin, count); walk.remaining > 0;) {
        AxesRun run = us_axes_next(&walk);
        us_lane_store(lane, (char *)data + run.offset * size, dtype, stride, values, run.length);
        values += run.length * wide;
    }
}
