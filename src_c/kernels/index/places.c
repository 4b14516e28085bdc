#include "kernels/index/places.h"

#include "kernels/move/copy_view.h"
#include "tensor/convert.h"

#include <string.h>

enum { LEAST_RUN = 64 }; /* positions of a piece side by side, at least */

static int64_t elements_of(const Axes *axes)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < axes->rank; axis++) {
        count *= axes->shape[axis];
    }
    return count;
}

static bool indices_vary(const Axes *axes, int operands, int32_t axis)
{
    for (int k = PLACE_INDEX; k < operands; k++) {
        if (axes->strides[k][axis] != 0) {
            return true;
        }
    }
    return false;
}

/* Axes first … end-1 of `all`. */
static Axes part_of(const Axes *all, int32_t first, int32_t end, int operands)
{
    Axes part = {0};
    for (int32_t axis = first; axis < end; axis++) {
        part.shape[part.rank] = all->shape[axis];
        for (int k = 0; k < operands; k++) {
            part.strides[k][part.rank] = all->strides[k][axis];
        }
        part.rank++;
    }
    us_axes_complete(&part, operands);
    return part;
}

PlaceAxes us_place_axes(const Places *places)
{
    const View *views[PLACE_INDEX + INDEX_LIMIT] = {&places->tensor, &places->other};
    const int operands = PLACE_INDEX + places->count;
    for (int32_t k = 0; k < places->count; k++) {
        views[PLACE_INDEX + k] = &places->axes[k].index;
    }
    Axes all = {0};
    us_axes_add(&all, views, operands, 0, places->tensor.rank);
    int32_t split = all.rank;
    /* An axis of positions that all name one element is no slice, even where an index repeats along it (an expanded one). */
    while (split > 0 && !indices_vary(&all, operands, split - 1) && all.strides[PLACE_TENSOR][split - 1] != 0) {
        split--;
    }
    PlaceAxes axes = {.outer = part_of(&all, 0, split, operands), .inner = part_of(&all, split, all.rank, PLACE_INDEX)};
    axes.outer_count = elements_of(&axes.outer);
    axes.inner_count = elements_of(&axes.inner);
    return axes;
}

/* The first axis that gives as many pieces as are wanted, since pieces of outer axes are long runs of memory; else the longest. */
static void consider(PlaceCut *cut, const Axes *axes, bool inner, bool ordered, int64_t wanted, int64_t *largest)
{
    for (int32_t axis = 0; axis < axes->rank && *largest < wanted; axis++) {
        if ((!ordered || axes->strides[PLACE_TENSOR][axis] != 0) && axes->shape[axis] > *largest) {
            *largest = axes->shape[axis];
            *cut = (PlaceCut){.inner = inner, .axis = axis};
        }
    }
}

PlaceCut us_place_cut(const PlaceAxes *axes, bool ordered, int64_t positions)
{
    PlaceCut cut = {.axis = -1};
    int64_t largest = 1;
    const int64_t wanted = axes->outer_count * axes->inner_count / positions + 1;
    consider(&cut, &axes->outer, false, ordered, wanted, &largest);
    consider(&cut, &axes->inner, true, ordered, wanted, &largest);
    cut.size = wanted >= largest ? 1 : (largest + wanted - 1) / wanted;
    const Axes *axes_of_cut = cut.inner ? &axes->inner : &axes->outer;
    if (cut.axis == axes_of_cut->rank - 1 && cut.size < LEAST_RUN && (cut.inner || axes->inner_count == 1)) {
        cut.size = LEAST_RUN;
    }
    cut.pieces = (largest + cut.size - 1) / cut.size;
    return cut;
}

PlacePiece us_place_piece(const Places *places, const PlaceAxes *axes, const PlaceCut *cut, int64_t piece)
{
    PlacePiece part = {.axes = *axes, .data = {places->tensor.data, places->other.data}};
    for (int32_t k = 0; k < places->count; k++) {
        part.index_data[k] = places->axes[k].index.data;
    }
    if (cut->axis < 0) {
        return part;
    }
    Axes *restricted = cut->inner ? &part.axes.inner : &part.axes.outer;
    const int64_t begin = piece * cut->size, rest = restricted->shape[cut->axis] - begin;
    restricted->shape[cut->axis] = rest < cut->size ? rest : cut->size;
    for (int operand = 0; operand < 2; operand++) {
        part.data[operand] += begin * restricted->strides[operand][cut->axis] * (int64_t)us_dtype_size(
                                  operand == PLACE_TENSOR ? places->tensor.dtype : places->other.dtype);
    }
    for (int32_t k = 0; k < places->count && !cut->inner; k++) {
        const int64_t bytes = (int64_t)us_dtype_size(places->axes[k].index.dtype);
        part.index_data[k] =
            (const char *)part.index_data[k] + begin * restricted->strides[PLACE_INDEX + k][cut->axis] * bytes;
    }
    part.axes.outer_count = elements_of(&part.axes.outer);
    part.axes.inner_count = elements_of(&part.axes.inner);
    return part;
}

/* How far the places of an axis lie from its first one; `all` becomes false where one lies before it. */
static int64_t span_of(int64_t size, int64_t stride, bool *all)
{
    *all = *all && stride >= 0;
    return size > 0 ? (size - 1) * stride : 0;
}

/* Whether pieces write parts of the tensor that lie one after the other and together are all of it. */
static bool parts_are_all(const Places *places, const PlaceAxes *axes, const PlaceCut *cut)
{
    if (cut->inner || cut->axis < 0) {
        return false;
    }
    const int64_t step = axes->outer.strides[PLACE_TENSOR][cut->axis];
    bool follow = step > 0 && axes->outer.shape[cut->axis] * step == us_view_elements(&places->target);
    int64_t span = 0;
    for (int32_t axis = 0; axis < axes->outer.rank; axis++) {
        span += axis == cut->axis ? 0 : span_of(axes->outer.shape[axis], axes->outer.strides[PLACE_TENSOR][axis], &follow);
    }
    for (int32_t axis = 0; axis < axes->inner.rank; axis++) {
        span += span_of(axes->inner.shape[axis], axes->inner.strides[PLACE_TENSOR][axis], &follow);
    }
    for (int32_t k = 0; k < places->count; k++) {
        span += span_of(places->axes[k].axis.size, places->axes[k].axis.stride, &follow);
    }
    return follow && span < step;
}

bool us_place_copies_parts(const Places *places, const PlaceAxes *axes, const PlaceCut *cut)
{
    if (us_view_is_absent(&places->before)) {
        return false;
    }
    if (parts_are_all(places, axes, cut)) {
        return true;
    }
    us_copy_view(&places->target, &places->before);
    return false;
}

const char *us_place_part(const Places *places, const PlacePiece *part, const PlaceCut *cut, int64_t *count)
{
    const Axes *outer = &part->axes.outer;
    *count = outer->shape[cut->axis] * outer->strides[PLACE_TENSOR][cut->axis];
    return (const char *)places->before.data + (part->data[PLACE_TENSOR] - (char *)places->target.data);
}

void us_place_copy_part(const Places *places, const PlacePiece *part, const PlaceCut *cut)
{
    int64_t count;
    const char *from = us_place_part(places, part, cut, &count);
    memcpy(part->data[PLACE_TENSOR], from, (size_t)count * us_dtype_size(places->target.dtype));
}

static void offsets_of(const Axes *axes, int operand, int64_t begin, int64_t count, int64_t *offsets)
{
    const int64_t stride = axes->strides[operand][axes->rank - 1];
    AxesWalk walk;
    for (us_axes_walk(&walk, axes, operand, begin, count); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        for (int64_t i = 0; i < run.length; i++) {
            *offsets++ = run.offset + i * stride;
        }
    }
}

/* offsets[i] += i * step + index * stride, from `base` where they are not `given`; false: some index is outside. */
US_ALWAYS_INLINE bool add_indices_to(bool given, int64_t base, int64_t step, int64_t *offsets, const int64_t *indices,
                                     int64_t count, IndexedAxis axis, bool from_end)
{
    const uint64_t size = (uint64_t)axis.size, turn = from_end ? size : 0;
    uint64_t outside = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t index = (uint64_t)indices[i] + (indices[i] < 0 ? turn : 0);
        outside |= index >= size;
        offsets[i] = (int64_t)((uint64_t)(given ? offsets[i] : base + i * step) + index * (uint64_t)axis.stride);
    }
    return outside == 0;
}

static bool add_indices(int64_t *offsets, const int64_t *indices, int64_t count, IndexedAxis axis, bool from_end)
{
    return add_indices_to(true, 0, 0, offsets, indices, count, axis, from_end);
}

static bool place_indices(int64_t base, int64_t step, int64_t *offsets, const int64_t *indices, int64_t count, IndexedAxis axis,
                          bool from_end)
{
    if (axis.stride == 1) { /* products of 64 bits take several instructions */
        return add_indices_to(false, base, step, offsets, indices, count, (IndexedAxis){axis.size, 1}, from_end);
    }
    return add_indices_to(false, base, step, offsets, indices, count, axis, from_end);
}

static int64_t first_outside(const int64_t *indices, int64_t count, IndexedAxis axis, bool from_end)
{
    int64_t i = 0;
    while (i + 1 < count && indices[i] < axis.size && indices[i] >= (from_end ? -axis.size : 0)) {
        i++;
    }
    return indices[i];
}

bool us_place_tile(const Places *places, const Axes *outer, const void *const *index_data, int64_t begin, int64_t count,
                   int64_t *tensor, int64_t *other, int64_t piece, OutsideIndex *outside)
{
    int64_t loaded[PLACE_TILE];
    const bool from_end = places->call->from_end;
    const int32_t last = outer->rank - 1;
    const bool is_line = places->count == 1 && begin % outer->shape[last] + count <= outer->shape[last];
    if (!is_line) {
        offsets_of(outer, PLACE_TENSOR, begin, count, tensor);
    }
    if (other != NULL) {
        offsets_of(outer, PLACE_OTHER, begin, count, other);
    }
    for (int32_t k = 0; k < places->count; k++) {
        const IndexedAxis axis = places->axes[k].axis;
        const DType dtype = places->axes[k].index.dtype;
        const int64_t *indices = loaded;
        if (is_line && dtype == DTYPE_INT64 && outer->strides[PLACE_INDEX][last] == 1) {
            indices = (const int64_t *)index_data[0] + us_axes_offset(outer, PLACE_INDEX, begin);
        } else {
            us_axes_load(outer, PLACE_INDEX + k, index_data[k], dtype, begin, count, LANE_INT64, loaded);
        }
        const int64_t base = is_line ? us_axes_offset(outer, PLACE_TENSOR, begin) : 0;
        const int64_t step = outer->strides[PLACE_TENSOR][last];
        if (!(is_line ? place_indices(base, step, tensor, indices, count, axis, from_end)
                      : add_indices(tensor, indices, count, axis, from_end))) {
            us_outside_met(outside, piece, first_outside(indices, count, axis, from_end), axis.size);
            return false;
        }
    }
    return true;
}

#define GATHER_CASE(type) \
    case sizeof(type): \
        for (int64_t i = 0; i < count; i++) { \
            memcpy((type *)to + i, (const type *)from + offsets[i], sizeof(type)); \
        } \
        break;

void us_place_gather(void *to, const void *from, const int64_t *offsets, int64_t count, size_t size)
{
    switch (size) {
        GATHER_CASE(uint8_t)
        GATHER_CASE(uint16_t)
        GATHER_CASE(uint32_t)
        GATHER_CASE(uint64_t)
        GATHER_CASE(Sixteen)
    }
}
