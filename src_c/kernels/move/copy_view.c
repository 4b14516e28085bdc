#include "kernels/move/copy_view.h"

#include "kernels/move/copy_runs.h"
#include "kernels/move/moved.h"
#include "kernels/move/past.h"
#include "kernels/move/shuffle.h"
#include "kernels/move/weave.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

/* A tile is moved through an array that stays in the nearest cache. */
enum {
    TILE_BYTES = 16 * 1024,
    TILE_SIDE_BYTES = 256,
    TILES_OF_PIECE = 8,
    LEAST_TILE = 64, /* elements */
    TABLE_LIMIT = 256,
    TABLE_LEAST = 16,
    FEW_ROWS = 4,
    SHORT_RUN = 512,
    BLOCK = 16, /* elements of a run that are turned round together */
};

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Axes of size 1 dropped, sorted by the distance of their elements in `to`, merged where both views allow it. */
static void arrange(Move *move, const View *to, const View *from)
{
    Axis sorted[VIEW_RANK_LIMIT];
    int count = 0;
    for (int d = 0; d < to->rank; d++) {
        if (to->shape[d] == 1) {
            continue;
        }
        const Axis axis = {to->shape[d], to->strides[d] * move->element, from->strides[d] * move->element};
        int place = count++;
        for (; place > 0 && magnitude(sorted[place - 1].to) < magnitude(axis.to); place--) {
            sorted[place] = sorted[place - 1];
        }
        sorted[place] = axis;
    }
    for (int k = 0; k < count; k++) {
        Axis *last = move->rank > 0 ? &move->axes[move->rank - 1] : NULL;
        const Axis *next = &sorted[k];
        if (last && last->to == next->size * next->to && last->from == next->size * next->from) {
            *last = (Axis){last->size * next->size, next->to, next->from};
        } else {
            move->axes[move->rank++] = *next;
        }
    }
    if (move->rank == 0) {
        move->axes[move->rank++] = (Axis){1, move->element, move->element};
    }
}

/* A few neighbours are one larger element. */
static void join_neighbours(Move *move)
{
    const Axis *last = &move->axes[move->rank - 1];
    const int64_t bytes = last->size <= 16 ? last->size * move->element : 0;
    if (move->rank > 1 && last->to == move->element && last->from == move->element && last->size > 1 &&
        (bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16)) {
        move->count /= last->size;
        move->element = bytes;
        move->rank--;
    }
}

/* ---- runs along the last axis ---- */

/* What lies backwards is turned round in blocks, for which compilers have one instruction. */
#define STRIDED_RUN(type) \
    { \
        int64_t i = 0; \
        for (; backwards && i + BLOCK <= count; i += BLOCK) { \
            type block[BLOCK], turned[BLOCK]; \
            memcpy(block, from - (i + BLOCK - 1) * (int64_t)sizeof(type), sizeof block); \
            for (int k = 0; k < BLOCK; k++) { \
                turned[k] = block[BLOCK - 1 - k]; \
            } \
            memcpy(to + i * (int64_t)sizeof(type), turned, sizeof turned); \
        } \
        for (; i < count; i++) { \
            memcpy(to + i * to_step, from + i * from_step, sizeof(type)); \
        } \
    }

static void copy_strided(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t element)
{
    const bool backwards = to_step == element && from_step == -element;
    switch (element) {
    case 1:
        STRIDED_RUN(uint8_t)
        break;
    case 2:
        STRIDED_RUN(uint16_t)
        break;
    case 4:
        STRIDED_RUN(uint32_t)
        break;
    case 8:
        STRIDED_RUN(uint64_t)
        break;
    default:
        STRIDED_RUN(Sixteen)
        break;
    }
}

static void copy_bytes(char *to, const char *from, int64_t bytes)
{
    int64_t i = 0;
    for (; bytes <= SHORT_RUN && i + 16 <= bytes; i += 16) { /* a call would cost more */
        memcpy(to + i, from + i, 16);
    }
    if (i < bytes) {
        memcpy(to + i, from + i, (size_t)(bytes - i));
    }
}

static void copy_run(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t element)
{
    if (to_step == element && from_step == element) {
        copy_bytes(to, from, count * element);
    } else {
        copy_strided(to, to_step, from, from_step, count, element);
    }
}

#define TABLE_RUN(type) \
    for (int64_t i = 0; i < count; i++) { \
        memcpy(to + i * (int64_t)sizeof(type), from + table[i], sizeof(type)); \
    }

static void copy_by_table(char *to, const char *from, const int64_t *table, int64_t count, int64_t element)
{
    switch (element) {
    case 1:
        TABLE_RUN(uint8_t)
        break;
    case 2:
        TABLE_RUN(uint16_t)
        break;
    case 4:
        TABLE_RUN(uint32_t)
        break;
    case 8:
        TABLE_RUN(uint64_t)
        break;
    default:
        TABLE_RUN(Sixteen)
        break;
    }
}

/* Short whole runs, as many of up to `limit` as two axes have; how many. */
static int64_t copy_short_runs(const Move *move, Place *place, int64_t limit)
{
    const int inner = move->rank - 2, outer = move->rank - 3;
    const Axis *axis = &move->axes[inner];
    Runs runs = {.to = move->to + place->to, .from = move->from + place->from, .groups = 1, .run_to = axis->to,
                 .run_from = axis->from, .bytes = move->axes[move->rank - 1].size * move->element};
    if (outer >= 0 && place->index[inner] == 0 && limit >= axis->size) {
        runs.groups = smaller(limit / axis->size, move->axes[outer].size - place->index[outer]);
        runs.group_to = move->axes[outer].to;
        runs.group_from = move->axes[outer].from;
        runs.count = axis->size;
        advance(move, place, outer, runs.groups);
    } else {
        runs.count = smaller(limit, axis->size - place->index[inner]);
        advance(move, place, inner, runs.count);
    }
    us_copy_runs(&runs);
    return runs.groups * runs.count;
}

/* Elements in the order of the axes, a run along the last one at a time. */
static void copy_piece(void *context, int64_t piece)
{
    const Move *move = context;
    const Axis *last = &move->axes[move->rank - 1];
    int64_t at = piece * move->piece, first = at % last->size;
    const int64_t end = move->count - at < move->piece ? move->count : at + move->piece;
    const bool are_short = move->rank > 1 && move->table == NULL && last->to == move->element &&
                           last->from == move->element && last->size * move->element <= SHORT_RUN;
    Place place = place_of(move, at / last->size);
    while (at < end) {
        const int64_t count = smaller(end - at, last->size - first);
        if (are_short && count == last->size) {
            at += copy_short_runs(move, &place, (end - at) / last->size) * last->size;
            continue;
        }
        if (move->table != NULL) {
            copy_by_table(move->to + place.to, move->from + place.from, move->table, count, move->element);
        } else {
            copy_run(move->to + place.to + first * last->to, last->to, move->from + place.from + first * last->from,
                     last->from, count, move->element);
        }
        at += count;
        first = 0;
        advance(move, &place, move->rank - 2, 1);
    }
}

/* ---- tiles ---- */

/* A square of 16 / size rows of 16 bytes. */
US_ALWAYS_INLINE void transpose_square(char *to, int64_t to_row, const char *from, int64_t from_row, int size)
{
    const int rows = 16 / size;
    Vector now[16];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        memcpy(&now[i], from + i * from_row, 16);
    }
    interleave_rows(now, rows, size);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        memcpy(to + i * to_row, &now[i], 16);
    }
}

enum { SQUARES = COLUMN_BYTES / 16 };

/* So many squares, one below the other. */
US_ALWAYS_INLINE void transpose_squares(char *to, int64_t to_row, const char *from, int64_t from_row, int size)
{
    const int rows = 16 / size;
    Column now[16];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        now[i] = load_column(from + i * from_row, rows * from_row);
    }
    interleave_rows_column(now, rows, size);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        memcpy(to + i * to_row, &now[i], sizeof now[i]);
    }
}

/* `tall` rows at a time, a constant: one or SQUARES squares. The last ones overlap the ones before. The next tile, which
 * continues the rows of `from`, is asked for meanwhile: so many rows at once are more than the processor follows by itself. */
US_ALWAYS_INLINE void transpose_in_squares(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows,
                                           int64_t columns, int64_t tall, int size)
{
    const int64_t side = 16 / size;
    for (int64_t begin = 0; begin < rows; begin += tall) {
        const int64_t r = smaller(begin, rows - tall);
        for (int64_t k = r; k < r + tall; k++) {
            for (int64_t ahead = 0; ahead < columns * size; ahead += CACHE_LINE_BYTES) {
                __builtin_prefetch(from + k * from_row + columns * size + ahead);
            }
        }
        for (int64_t i = 0; i < columns; i += side) {
            const int64_t c = smaller(i, columns - side);
            char *square = to + c * to_row + r * size;
            if (tall > side) {
                transpose_squares(square, to_row, from + r * from_row + c * size, from_row, size);
            } else {
                transpose_square(square, to_row, from + r * from_row + c * size, from_row, size);
            }
        }
    }
}

/* to[c][r] = from[r][c] for elements that follow each other in the rows of both. */
US_ALWAYS_INLINE void transpose(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns,
                                int size)
{
    const int64_t side = 16 / size;
    if (rows >= side * SQUARES && columns >= side) {
        transpose_in_squares(to, to_row, from, from_row, rows, columns, side * SQUARES, size);
    } else if (rows >= side && columns >= side) {
        transpose_in_squares(to, to_row, from, from_row, rows, columns, side, size);
    } else {
        for (int64_t r = 0; r < rows; r++) {
            copy_strided(to + r * size, to_row, from + r * from_row, size, columns, size);
        }
    }
}

void us_transpose(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns,
                  int64_t element)
{
    switch (element) {
    case 1:
        transpose(to, to_row, from, from_row, rows, columns, 1);
        break;
    case 2:
        transpose(to, to_row, from, from_row, rows, columns, 2);
        break;
    case 4:
        transpose(to, to_row, from, from_row, rows, columns, 4);
        break;
    case 8:
        transpose(to, to_row, from, from_row, rows, columns, 8);
        break;
    default:
        transpose(to, to_row, from, from_row, rows, columns, 16);
        break;
    }
}

static void copy_tile(const Move *move, int64_t tile)
{
    _Alignas(64) char held[TILE_BYTES];
    const Axis *along_to = &move->along_to, *along_from = &move->along_from;
    const int64_t first_from = tile % move->tiles_from * move->side_from;
    const int64_t first_to = tile / move->tiles_from % move->tiles_to * move->side_to;
    const int64_t rows = smaller(move->side_to, along_to->size - first_to);
    const int64_t columns = smaller(move->side_from, along_from->size - first_from);
    char *to = move->to + first_to * along_to->to + first_from * along_from->to;
    const char *from = move->from + first_to * along_to->from + first_from * along_from->from;
    for (int64_t d = move->rank - 1, rest = tile / move->tiles_to / move->tiles_from; d >= 0; d--) {
        to += rest % move->axes[d].size * move->axes[d].to;
        from += rest % move->axes[d].size * move->axes[d].from;
        rest /= move->axes[d].size;
    }
    const int64_t held_row = rows * move->element;
    const bool packed = along_to->to == move->element && along_from->to == held_row;
    if (rows <= FEW_ROWS && !packed) { /* too few neighbours in `to` to be worth gathering */
        for (int64_t r = 0; r < rows; r++) {
            copy_strided(to + r * along_to->to, along_from->to, from + r * along_to->from, along_from->from, columns,
                         move->element);
        }
        return;
    }
    if (along_from->from == move->element) {
        us_transpose(held, held_row, from, along_to->from, rows, columns, move->element);
    } else {
        for (int64_t r = 0; r < rows; r++) {
            copy_strided(held + r * move->element, held_row, from + r * along_to->from, along_from->from, columns,
                         move->element);
        }
    }
    if (packed && move->past) {
        us_copy_past(to, held, (size_t)(columns * held_row), held);
    } else if (packed) { /* small rows of `to` */
        copy_bytes(to, held, columns * held_row);
    }
    const bool whole_lines = along_to->to == move->element && held_row % CACHE_LINE_BYTES == 0;
    for (int64_t c = 0; c < columns && !packed; c++) {
        char *run = to + c * along_from->to;
        if (move->past && whole_lines && (uintptr_t)run % CACHE_LINE_BYTES == 0) {
            us_copy_past(run, held + c * held_row, (size_t)held_row, held);
        } else {
            copy_run(run, along_to->to, held + c * held_row, move->element, rows, move->element);
        }
    }
}

static void copy_tiles(void *context, int64_t piece)
{
    const Move *move = context;
    for (int64_t tile = piece * TILES_OF_PIECE; tile < move->tiles && tile < (piece + 1) * TILES_OF_PIECE; tile++) {
        copy_tile(move, tile);
    }
    if (move->past) {
        us_past_is_done();
    }
}

/* Tiles pay where reading along the last axis jumps, and another axis lies closer. False: they do not. */
static bool cut_into_tiles(Move *move)
{
    const int last = move->rank - 1;
    int nearest = -1;
    for (int d = 0; d < last; d++) {
        const int64_t step = magnitude(move->axes[d].from);
        if (step != 0 && (nearest < 0 || step < magnitude(move->axes[nearest].from))) {
            nearest = d;
        }
    }
    if (nearest < 0 || magnitude(move->axes[nearest].from) >= magnitude(move->axes[last].from)) {
        return false;
    }
    move->along_to = move->axes[last];
    move->along_from = move->axes[nearest];
    move->rank--;
    memmove(&move->axes[nearest], &move->axes[nearest + 1], (size_t)(move->rank - nearest) * sizeof *move->axes);
    move->rank--;
    const int64_t side = TILE_SIDE_BYTES / move->element, elements = TILE_BYTES / move->element;
    move->side_to = smaller(smaller(move->along_to.size, side), elements);
    move->side_from = smaller(move->along_from.size, elements / move->side_to);
    move->side_to = smaller(move->along_to.size, elements / move->side_from); /* longer where the other is short */
    move->tiles_to = (move->along_to.size + move->side_to - 1) / move->side_to;
    move->tiles_from = (move->along_from.size + move->side_from - 1) / move->side_from;
    move->tiles = move->count / move->along_to.size / move->along_from.size * move->tiles_to * move->tiles_from;
    return true;
}

/* Several short axes, packed in `to`, become one with a table. False: they would not be long enough. */
static bool join_by_table(Move *move, int64_t *table)
{
    int rank = move->rank;
    int64_t count = 1;
    table[0] = 0;
    for (; rank > 0; rank--) {
        const Axis *axis = &move->axes[rank - 1];
        if (axis->to != count * move->element || count * axis->size > TABLE_LIMIT) {
            break;
        }
        for (int64_t k = count; k < count * axis->size; k++) {
            table[k] = table[k - count] + axis->from;
        }
        count *= axis->size;
    }
    if (count < TABLE_LEAST) {
        return false;
    }
    move->axes[rank] = (Axis){count, move->element, 0};
    move->rank = rank + 1;
    move->table = table;
    return true;
}

void us_copy_view(const View *to, const View *from)
{
    Move move = {.to = to->data, .from = from->data, .element = (int64_t)us_dtype_size(to->dtype)};
    int64_t table[TABLE_LIMIT];
    move.count = us_view_elements(to);
    if (move.count <= 0) {
        return;
    }
    arrange(&move, to, from);
    join_neighbours(&move);
    Move tiled = move;
    if (us_weave(&move)) {
        return;
    }
    if (cut_into_tiles(&tiled) && (tiled.side_to * tiled.side_from >= LEAST_TILE || !join_by_table(&move, table))) {
        tiled.past = tiled.count >= PAST_BYTES / tiled.element;
        us_parallel((tiled.tiles + TILES_OF_PIECE - 1) / TILES_OF_PIECE, copy_tiles, &tiled);
        return;
    }
    const int64_t run = move.table != NULL ? move.axes[move.rank - 1].size : 1; /* which no piece cuts */
    move.piece = (PIECE_BYTES / move.element + run - 1) / run * run;
    us_parallel((move.count + move.piece - 1) / move.piece, copy_piece, &move);
}

void us_fill_view(const View *target, const void *element)
{
    View repeated = *target;
    repeated.data = (void *)(uintptr_t)element;
    memset(repeated.strides, 0, sizeof repeated.strides);
    us_copy_view(target, &repeated);
}

void us_clear_view(const View *target)
{
    static const _Alignas(16) unsigned char zero[16]; /* in every type */
    us_fill_view(target, zero);
}
