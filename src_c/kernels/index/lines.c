#include "kernels/index/lines.h"

#include "tensor/convert.h"
#include "tensor/levels.h"

#include <string.h>

/* Positions for which memory is asked together; how many positions ahead a far place is asked for; bytes of the tensor that
 * stay in the first-level cache. */
enum { CHUNK = 16, AHEAD = 16, NEAR_BYTES = 16 * 1024 };

US_ALWAYS_INLINE uint64_t index_at(const void *indices, bool narrow, int64_t position)
{
    return narrow ? (uint64_t)(int64_t)((const int32_t *)indices)[position]
                  : (uint64_t)((const int64_t *)indices)[position];
}

US_ALWAYS_INLINE void act(LineAction action, char *place, char *other, size_t size)
{
    if (action == LINE_READ) {
        memcpy(other, place, size);
    } else if (action == LINE_PUT) {
        memcpy(place, other, size);
    } else if (action == LINE_ADD || action == LINE_MULTIPLY) {
        double *sum = (double *)(void *)place;
        const double value = *(const double *)(const void *)other;
        *sum = action == LINE_ADD ? *sum + value : *sum * value;
    } else {
        uint64_t *sum = (uint64_t *)(void *)place;
        const uint64_t value = *(const uint64_t *)(const void *)other;
        *sum = action == LINE_ADD_INTEGERS ? *sum + value : *sum * value;
    }
}

US_ALWAYS_INLINE void ask(const char *at, size_t bytes)
{
#pragma GCC unroll 4
    for (size_t byte = 0; byte < bytes; byte += CACHE_LINE_BYTES) {
        __builtin_prefetch(at + byte);
    }
}

/* Everything but the line is known where this is compiled. */
US_ALWAYS_INLINE int64_t go_along(const PlaceLine *line, LineAction action, size_t size, bool narrow, bool far,
                                  int64_t tensor_step, int64_t stride, int64_t other_step)
{
    const uint64_t limit = (uint64_t)line->axis.size;
    const int64_t element = (int64_t)size, count = line->count;
    char *const tensor = line->tensor, *const other = line->other;
    const char *const indices = line->indices, *const next_indices = indices + line->ahead_index;
    const char *const next_other = other + line->ahead_other, *const next_tensor = tensor + line->ahead_tensor;
    int64_t begin = 0;
    for (; begin + CHUNK <= count; begin += CHUNK) {
        ask(next_indices + begin * (narrow ? 4 : 8), CHUNK * (narrow ? 4 : 8));
        ask(next_other + begin * other_step * element, CHUNK * size);
        if (!far) {
            ask(next_tensor + begin * element, CHUNK * size);
        }
        for (int64_t i = begin; far && i < begin + CHUNK && i + AHEAD < count; i++) {
            const uint64_t steps = (uint64_t)(i + AHEAD) * (uint64_t)tensor_step; /* the index may be any number yet */
            const uint64_t place = steps + index_at(indices, narrow, i + AHEAD) * (uint64_t)stride;
            __builtin_prefetch((const void *)((uintptr_t)tensor + place * size), 1);
        }
#pragma GCC unroll 16
        for (int64_t i = begin; i < begin + CHUNK; i++) {
            const uint64_t index = index_at(indices, narrow, i);
            if (index >= limit) { /* one by one: put together in a vector to be compared they take longer */
                return i;
            }
            act(action, tensor + (i * tensor_step + (int64_t)index * stride) * element, other + i * other_step * element, size);
        }
    }
    for (; begin < count; begin++) {
        const uint64_t index = index_at(indices, narrow, begin);
        if (index >= limit) {
            break;
        }
        act(action, tensor + (begin * tensor_step + (int64_t)index * stride) * element, other + begin * other_step * element,
            size);
    }
    return begin;
}

US_ALWAYS_INLINE int64_t go_by_steps(const PlaceLine *line, LineAction action, size_t size, bool narrow)
{
    if (line->tensor_step == 0 && line->axis.stride == 1 && line->other_step == 1 && !line->far) {
        return go_along(line, action, size, narrow, false, 0, 1, 1);
    }
    return go_along(line, action, size, narrow, line->far, line->tensor_step, line->axis.stride, line->other_step);
}

US_ALWAYS_INLINE int64_t go_by_index(const PlaceLine *line, LineAction action, size_t size)
{
    return line->narrow ? go_by_steps(line, action, size, true) : go_by_steps(line, action, size, false);
}

static int64_t copy_line(const PlaceLine *line, LineAction action, size_t size)
{
    const bool reads = action == LINE_READ;
    switch (size) {
    case 1:
        return reads ? go_by_index(line, LINE_READ, 1) : go_by_index(line, LINE_PUT, 1);
    case 2:
        return reads ? go_by_index(line, LINE_READ, 2) : go_by_index(line, LINE_PUT, 2);
    case 4:
        return reads ? go_by_index(line, LINE_READ, 4) : go_by_index(line, LINE_PUT, 4);
    case 8:
        return reads ? go_by_index(line, LINE_READ, 8) : go_by_index(line, LINE_PUT, 8);
    default:
        return reads ? go_by_index(line, LINE_READ, 16) : go_by_index(line, LINE_PUT, 16);
    }
}

int64_t us_place_line(const PlaceLine *line, LineAction action, size_t size)
{
    switch (action) {
    case LINE_ADD:
        return go_by_index(line, LINE_ADD, sizeof(double));
    case LINE_MULTIPLY:
        return go_by_index(line, LINE_MULTIPLY, sizeof(double));
    case LINE_ADD_INTEGERS:
        return go_by_index(line, LINE_ADD_INTEGERS, sizeof(uint64_t));
    case LINE_MULTIPLY_INTEGERS:
        return go_by_index(line, LINE_MULTIPLY_INTEGERS, sizeof(uint64_t));
    default:
        return copy_line(line, action, size);
    }
}

void us_place_line_ask(const PlaceLine *line, size_t size)
{
    const int64_t bytes = line->other_step == 1 ? line->count * (int64_t)size : 0;
    for (int64_t byte = 0; byte < bytes; byte += CACHE_LINE_BYTES) {
        __builtin_prefetch(line->other + line->ahead_other + byte);
    }
}

/* Whether the elements that a line may name are not all in the first-level cache. */
static bool is_far(const Places *places)
{
    const IndexedAxis axis = places->axes[0].axis;
    const int64_t bytes = axis.size * axis.stride * (int64_t)us_dtype_size(places->tensor.dtype);
    return bytes > NEAR_BYTES || bytes < 0;
}

bool us_places_have_lines(const Places *places, const Axes *outer)
{
    const int32_t last = outer->rank - 1;
    const DType dtype = places->axes[0].index.dtype;
    return places->count == 1 && outer->shape[last] >= (is_far(places) ? LEAST_FAR_LINE : LEAST_LINE) &&
           outer->strides[PLACE_INDEX][last] == 1 && (dtype == DTYPE_INT64 || dtype == DTYPE_INT32);
}

/* How far ahead to ask for an operand of lines: later in the line, or in a line that comes soon. */
static int64_t ahead_of(const Axes *outer, int operand, int64_t element)
{
    const int32_t last = outer->rank - 1;
    const int64_t bytes = outer->shape[last] * outer->strides[operand][last] * element;
    if (last == 0 || bytes <= 0 || bytes >= 2 * READ_AHEAD_BYTES) {
        return READ_AHEAD_BYTES;
    }
    return (READ_AHEAD_BYTES / bytes + 1) * outer->strides[operand][last - 1] * element;
}

/* The same for the elements that a line may name, all of which are near: in a line that comes soon. */
static int64_t ahead_of_row(const Axes *outer, int64_t bytes, int64_t element)
{
    const int32_t last = outer->rank - 1;
    return last == 0 || bytes <= 0 ? 0 : (READ_AHEAD_BYTES / bytes + 1) * outer->strides[PLACE_TENSOR][last - 1] * element;
}

/* Of short lines. Where they are long there is little to gain, and stores hold up the reads of a line that begins at once. */
static void find_next(PlaceLine *line, const Axes *outer, int64_t begin, int64_t element, int64_t other_element,
                      int64_t index_element)
{
    const int32_t before = outer->rank - 2;
    if (line->count == outer->shape[before + 1]) {
        line->lines = outer->shape[before] - 1 - begin / line->count % outer->shape[before];
        line->next_tensor = outer->strides[PLACE_TENSOR][before] * element;
        line->next_other = outer->strides[PLACE_OTHER][before] * other_element;
        line->next_index = outer->strides[PLACE_INDEX][before] * index_element;
    }
}

PlaceLine us_place_line_at(const Places *places, const Axes *outer, char *const *data, const void *index_data, int64_t begin)
{
    const int32_t last = outer->rank - 1;
    const IndexedAxis axis = places->axes[0].axis;
    const int64_t element = (int64_t)us_dtype_size(places->tensor.dtype), bytes = axis.size * axis.stride * element;
    const int64_t other_element = (int64_t)us_dtype_size(places->other.dtype);
    const DType dtype = places->axes[0].index.dtype;
    const int64_t index_element = dtype == DTYPE_INT32 ? (int64_t)sizeof(int32_t) : (int64_t)sizeof(int64_t);
    int64_t at[PLACE_INDEX + 1] = {0}, rest = begin; /* of the three operands: one division for all of them */
    for (int32_t d = last; d >= 0; d--) {
        const int64_t before = d > 0 ? rest / outer->shape[d] : 0, step = rest - before * outer->shape[d];
        for (int operand = PLACE_TENSOR; operand <= PLACE_INDEX; operand++) {
            at[operand] += step * outer->strides[operand][d];
        }
        rest = before;
    }
    PlaceLine line = {
        .tensor = data[PLACE_TENSOR] + at[PLACE_TENSOR] * element,
        .other = data[PLACE_OTHER] + at[PLACE_OTHER] * other_element,
        .indices = (const char *)index_data + at[PLACE_INDEX] * index_element,
        .narrow = dtype == DTYPE_INT32,
        .far = is_far(places),
        .tensor_step = outer->strides[PLACE_TENSOR][last],
        .other_step = outer->strides[PLACE_OTHER][last],
        .count = outer->shape[last] - begin % outer->shape[last],
        .ahead_index = ahead_of(outer, PLACE_INDEX, index_element),
        .ahead_other = ahead_of(outer, PLACE_OTHER, other_element),
        .ahead_tensor = axis.stride == 1 ? ahead_of_row(outer, bytes, element) : 0,
        .axis = axis,
    };
    if (last > 0 && outer->shape[last] < LEAST_FAR_LINE) {
        find_next(&line, outer, begin, element, other_element, index_element);
    }
    return line;
}
