/* Ranges of an item, by tiles where the loop cannot use the operands where they lie. */
#include "kernels/map/item.h"
#include "kernels/move/copy_view.h"
#include "kernels/move/past.h"
#include "kernels/move/transpose.h"
#include "kernels/sizes.h"

#include <stdlib.h>
#include <string.h>

typedef struct Tile {
    _Alignas(64) char bytes[MAP_TILE_BYTES];
} Tile;

/* Tiles of the operands, and room for values on their way from type to type. */
typedef struct Tiles {
    Tile operands[MAP_OPERANDS], raw, values, results;
} Tiles;

/* ---- between views and tiles ---- */

/* Elements of an input's type to elements that the body reads, by way of the compute type. */
static void convert_input(const MapItem *item, const MapOperand *operand, const void *from, void *to, int64_t count,
                          Tiles *tiles)
{
    const DType compute = item->call->compute;
    if (operand->dtype == compute || operand->array == compute) {
        us_convert(to, operand->array, from, operand->dtype, count);
        return;
    }
    us_convert(tiles->values.bytes, compute, from, operand->dtype, count);
    us_convert(to, operand->array, tiles->values.bytes, compute, count);
}

/* Elements that the body wrote to elements of the output's type, by way of the result's. */
static void convert_output(const MapItem *item, const MapOperand *operand, const void *from, void *to, int64_t count,
                           Tiles *tiles)
{
    const DType result = item->call->result;
    if (result == operand->array) {
        us_convert(to, operand->dtype, from, result, count);
        return;
    }
    us_convert(operand->dtype == result ? to : tiles->values.bytes, result, from, operand->array, count);
    if (operand->dtype != result) {
        us_convert(to, operand->dtype, tiles->values.bytes, result, count);
    }
}

static char *place_of(const MapItem *item, int k, int64_t position)
{
    const MapOperand *operand = &item->operands[k];
    return operand->data + (operand->is_flat ? position : us_axes_offset(&item->axes, k, position)) * operand->size;
}

/* Rows of a block of an operand that lies across, read in the order of its memory. False: it is not such a case. */
static bool fetch_across(const MapItem *item, int k, int64_t position, int64_t count, char *to)
{
    if (!item->in_blocks) {
        return false;
    }
    const int64_t size = item->operands[k].size, *strides = &item->axes.strides[k][item->axes.rank - 2];
    const int64_t begin = position % (MAP_BLOCK * MAP_BLOCK);
    if (llabs(strides[0]) >= llabs(strides[1]) || begin % MAP_BLOCK != 0 || count % MAP_BLOCK != 0 ||
        begin + count > MAP_BLOCK * MAP_BLOCK) {
        return false;
    }
    const char *from = place_of(item, k, position);
    if (strides[0] == 1) {
        us_transpose(to, MAP_BLOCK * size, from, strides[1] * size, MAP_BLOCK, count / MAP_BLOCK, size);
        return true;
    }
    for (int64_t column = 0; column < MAP_BLOCK; column++) {
        us_copy_elements(to + column * size, MAP_BLOCK, from + column * strides[1] * size, strides[0], size,
                         count / MAP_BLOCK);
    }
    return true;
}

#define COPY_ROWS(type) \
    for (int64_t row = 0; row < rows; row++) { \
        for (int64_t i = 0; i < length; i++) { \
            memcpy(to + (row * length + i) * (int64_t)sizeof(type), from + row * row_step + i * step, sizeof(type)); \
        } \
    }

/* Rows that follow each other in `to`; steps in bytes. */
static void copy_rows(char *to, const char *from, int64_t rows, int64_t length, int64_t row_step, int64_t step, int64_t size)
{
    const int64_t row_bytes = length * size;
    if (step == size && row_step == row_bytes) {
        memcpy(to, from, (size_t)(rows * row_bytes));
    } else if (row_step == 0 && rows > 1) { /* the same row, in steps of all that is there */
        copy_rows(to, from, 1, length, 0, step, size);
        for (int64_t done = row_bytes, all = rows * row_bytes; done < all; done *= 2) {
            memcpy(to + done, to, (size_t)(done < all - done ? done : all - done));
        }
    } else if (size == sizeof(uint8_t)) {
        COPY_ROWS(uint8_t)
    } else if (size == sizeof(uint16_t)) {
        COPY_ROWS(uint16_t)
    } else if (size == sizeof(uint32_t)) {
        COPY_ROWS(uint32_t)
    } else if (size == sizeof(uint64_t)) {
        COPY_ROWS(uint64_t)
    } else {
        COPY_ROWS(Sixteen)
    }
}

/* Runs so short that each would cost more than its elements: many of them, along the two innermost axes, are copied in one
 * go. False: they are not short, or few follow each other. */
static bool fetch_rows(const MapItem *item, int k, int64_t position, int64_t count, char *to)
{
    enum { SHORT = 16, MANY = 16 };
    const Axes *axes = &item->axes;
    const int32_t last = axes->rank - 1;
    if (last == 0 || axes->shape[last] > SHORT || axes->shape[last - 1] < MANY) {
        return false;
    }
    const int64_t length = axes->shape[last], all_rows = axes->shape[last - 1], size = item->operands[k].size;
    const int64_t row_step = axes->strides[k][last - 1] * size, step = axes->strides[k][last] * size;
    while (count > 0) {
        const int64_t column = position % length, row = position / length % all_rows;
        const bool whole = column == 0 && count >= length;
        const int64_t rows = !whole ? 1 : count / length < all_rows - row ? count / length : all_rows - row;
        const int64_t columns = whole ? length : count < length - column ? count : length - column;
        copy_rows(to, place_of(item, k, position), rows, columns, row_step, step, size);
        position += rows * columns;
        count -= rows * columns;
        to += rows * columns * size;
    }
    return true;
}

static void fetch(const MapItem *item, int k, int64_t position, int64_t count, Tiles *tiles)
{
    const MapOperand *operand = &item->operands[k];
    const int64_t stride = item->axes.strides[k][item->axes.rank - 1];
    char *tile = tiles->operands[k].bytes;
    const bool as_it_is = operand->in_place;
    if (operand->is_flat) {
        const char *from = operand->data + position * operand->size;
        if (as_it_is) {
            memcpy(tile, from, (size_t)(count * operand->size));
        } else {
            convert_input(item, operand, from, tile, count, tiles);
        }
        return;
    }
    char *raw = as_it_is ? tile : tiles->raw.bytes, *to = raw;
    const bool is_read = fetch_across(item, k, position, count, raw) || fetch_rows(item, k, position, count, raw);
    AxesWalk walk;
    for (us_axes_walk(&walk, &item->axes, k, position, count); walk.remaining > 0 && !is_read;) {
        const AxesRun run = us_axes_next(&walk);
        char *from = operand->data + run.offset * operand->size;
        if (run.length == count && stride == 1 && !as_it_is) {
            raw = from;
            break;
        }
        us_copy_elements(to, 1, from, stride, operand->size, run.length);
        to += run.length * operand->size;
    }
    if (!as_it_is) {
        convert_input(item, operand, raw, tile, count, tiles);
    }
}

static void put_back(const MapItem *item, int k, int64_t position, int64_t count, Tiles *tiles)
{
    const MapOperand *operand = &item->operands[k];
    const int64_t stride = item->axes.strides[k][item->axes.rank - 1];
    char *from = tiles->operands[k].bytes;
    const bool converts = !operand->in_place;
    if (operand->is_flat) {
        char *to = operand->data + position * operand->size;
        if (converts) {
            convert_output(item, operand, from, to, count, tiles);
        } else {
            memcpy(to, from, (size_t)(count * operand->size));
        }
        return;
    }
    AxesWalk walk;
    for (us_axes_walk(&walk, &item->axes, k, position, count); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        char *to = operand->data + run.offset * operand->size;
        if (converts && run.length == count && stride == 1) {
            convert_output(item, operand, from, to, count, tiles);
            return;
        }
        if (converts && from == tiles->operands[k].bytes) {
            convert_output(item, operand, from, tiles->raw.bytes, count, tiles);
            from = tiles->raw.bytes;
        }
        us_copy_elements(to, stride, from, 1, operand->size, run.length);
        from += run.length * operand->size;
    }
}

/* ---- running ---- */

static int64_t whole_lanes(int64_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}

/* Elements from a position on, no more than a tile unless every operand is used in place. */
static void run_block(const MapItem *item, int64_t position, int64_t count, Tiles *tiles)
{
    const void *arrays[MAP_OPERANDS];
    const bool is_whole = count % LANES == 0, reads_outputs = item->blend != NULL && item->call->blend.beta != 0;
    const bool past = item->past && is_whole && us_map_in_line(&item->operands[item->inputs], position) == 0;
    for (int k = 0; k < item->count; k++) {
        const MapOperand *operand = &item->operands[k];
        const bool direct = operand->is_direct && is_whole, is_read = k < item->inputs || reads_outputs;
        arrays[k] = direct ? place_of(item, k, position) : tiles->operands[k].bytes;
        if (is_read && !direct && !operand->is_scalar && !operand->is_constant) {
            fetch(item, k, position, count, tiles);
            const size_t size = us_dtype_size(operand->array);
            memset(tiles->operands[k].bytes + (size_t)count * size, 0, (size_t)(whole_lanes(count) - count) * size);
        }
    }
    const int64_t whole = whole_lanes(count);
    if (item->blend == NULL) {
        item->body(item->numbers, whole, arrays, (void *const *)&arrays[item->inputs], past);
    } else {
        void *const output = (void *)arrays[item->inputs];
        item->body(item->numbers, whole, arrays, (void *const[]){tiles->results.bytes}, false);
        item->blend(&item->call->blend, whole, tiles->results.bytes, output, output);
    }
    for (int k = item->inputs; k < item->count; k++) {
        if (!item->operands[k].is_direct || !is_whole) {
            put_back(item, k, position, count, tiles);
        }
    }
}

/* One value to as many elements as blocks of up to `count` need. */
static void fill_tile(const MapItem *item, int k, const void *value, int64_t count, Tiles *tiles)
{
    const int64_t size = (int64_t)us_dtype_size(item->operands[k].array);
    us_copy_elements(tiles->operands[k].bytes, 1, value, 0, size, whole_lanes(count < item->tile ? count : item->tile));
}

/* What inputs that are constant in the run have there. */
static void fill_constants(const MapItem *item, int64_t position, int64_t count, Tiles *tiles)
{
    for (int k = 0; k < item->inputs; k++) {
        const MapOperand *operand = &item->operands[k];
        _Alignas(16) char value[16];
        if (operand->is_constant) {
            const void *place = place_of(item, k, position);
            if (!operand->in_place) {
                convert_input(item, operand, place, value, 1, tiles);
            }
            fill_tile(item, k, operand->in_place ? place : value, count, tiles);
        }
    }
}

static void fill_scalars(const MapItem *item, int64_t count, Tiles *tiles)
{
    int absent = 0;
    for (int k = 0; k < item->inputs; k++) {
        const MapOperand *operand = &item->operands[k];
        _Alignas(16) char value[16];
        if (!operand->is_scalar) {
            continue;
        }
        if (operand->dtype != DTYPE_NONE) {
            convert_input(item, operand, operand->data, value, 1, tiles);
        } else {
            const Number *number = &item->numbers[item->call->formula->numbers + absent++];
            const double parts[] = {number->real, number->imaginary};
            if (item->lane == LANE_INT32 || item->lane == LANE_INT64 || item->lane == LANE_UINT64) {
                us_convert(value, operand->array, &number->integer, DTYPE_INT64, 1);
            } else {
                us_convert(value, operand->array, parts, DTYPE_COMPLEX128, 1);
            }
        }
        fill_tile(item, k, value, count, tiles);
    }
}

void us_map_run(const MapItem *item, int64_t begin, int64_t end)
{
    Tiles tiles;
    fill_scalars(item, end - begin, &tiles);
    const int64_t run = item->axes.shape[item->axes.rank - 1];
    const bool by_run = item->by_run;
    bool all_direct = item->blend == NULL, any_direct = false;
    for (int k = 0; k < item->count; k++) {
        all_direct &= item->operands[k].is_direct;
        any_direct |= item->operands[k].is_direct;
    }
    int64_t left = by_run ? run - begin % run : end - begin; /* of the run */
    for (int64_t position = begin, count; position < end; position += count) {
        count = end - position < left ? end - position : left;
        if (by_run && (left == run || position == begin)) {
            fill_constants(item, position, count, &tiles);
        }
        count = !all_direct && count > item->tile ? item->tile : count;
        const int64_t in_line = item->past ? us_map_in_line(&item->operands[item->inputs], position) : 0;
        const int64_t to_line = (CACHE_LINE_BYTES - in_line) / item->operands[item->inputs].size;
        count = in_line > 0 && count > to_line ? to_line : count; /* from where on vectors are aligned */
        if (any_direct && count > LANES) {
            count -= count % LANES; /* the rest goes through tiles by itself */
        }
        run_block(item, position, count, &tiles);
        left = left > count || !by_run ? left - count : run;
    }
    if (item->past) {
        us_past_is_done();
    }
}
