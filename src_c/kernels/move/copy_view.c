#include "kernels/move/copy_view.h"

#include "kernels/move/copy_lines.h"
#include "kernels/move/copy_run.h"
#include "kernels/move/copy_runs.h"
#include "kernels/move/moved.h"
#include "kernels/move/past.h"
#include "kernels/move/transpose.h"
#include "kernels/move/weave.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

/* A tile is moved through an array that stays in the nearest cache. */
enum {
    TILE_BYTES = 16 * 1024,
    TILE_SIDE_BYTES = 256,
    LEAST_TILE = 64, /* elements */
    TABLE_LIMIT = 256,
    TABLE_LEAST = 16,
    FEW_ROWS = 4,
    AHEAD_BYTES = 512, /* where the next tile continues the rows */
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

/* `count` elements of a run from `first` on; or whole runs, as many of up to `limit` as the axis before has. How many
 * elements. */
static int64_t copy_long_runs(const Move *move, Place *place, int64_t first, int64_t count, int64_t limit)
{
    const int inner = move->rank - 2;
    const Axis *last = &move->axes[move->rank - 1];
    Lines lines = {.to = move->to + place->to + first * last->to, .from = move->from + place->from + first * last->from,
                   .lines = 1, .count = count, .to_step = last->to, .from_step = last->from, .element = move->element};
    if (inner >= 0 && count == last->size) {
        lines.lines = smaller(limit, move->axes[inner].size - place->index[inner]);
        lines.line_to = move->axes[inner].to;
        lines.line_from = move->axes[inner].from;
    }
    advance(move, place, inner, lines.lines);
    us_copy_lines(&lines);
    return lines.lines * count;
}

/* Elements in the order of the axes, a run along the last one at a time. */
static void copy_piece(void *context, int64_t piece)
{
    const Move *move = context;
    const Axis *last = &move->axes[move->rank - 1];
    int64_t at = piece * move->piece, first = at % last->size;
    const int64_t end = move->count - at < move->piece ? move->count : at + move->piece;
    const bool are_short = move->rank > 1 && last->to == move->element && last->from == move->element &&
                           last->size * move->element <= SHORT_RUN;
    Place place = place_of(move, at / last->size);
    while (at < end) {
        const int64_t count = smaller(end - at, last->size - first), limit = (end - at) / last->size;
        if (move->table != NULL) {
            copy_by_table(move->to + place.to, move->from + place.from, move->table, count, move->element);
            advance(move, &place, move->rank - 2, 1);
            at += count;
        } else if (are_short && count == last->size) {
            at += copy_short_runs(move, &place, limit) * last->size;
        } else {
            at += copy_long_runs(move, &place, first, count, limit);
        }
        first = 0;
    }
}

/* ---- tiles ---- */

/* Runs of `run` elements along along_to, one for each of `columns` of the tile. */
static void scatter_tile(const Move *move, char *to, const char *held, int64_t columns, int64_t run)
{
    const int64_t size = move->element, held_row = run * size, step = move->along_from.to;
    const bool whole_lines = move->along_to.to == size && held_row % CACHE_LINE_BYTES == 0;
    if (move->past && whole_lines && (uintptr_t)to % CACHE_LINE_BYTES == 0 && step % CACHE_LINE_BYTES == 0) {
        for (int64_t c = 0; c < columns; c++) {
            us_copy_past(to + c * step, held + c * held_row, (size_t)held_row, held);
        }
    } else {
        us_copy_lines(&(Lines){to, held, columns, step, held_row, run, move->along_to.to, size, size});
    }
}

/* The first place of a tile along one axis, whose tiles are counted down in `rest`; how many places there are. */
static int64_t cut(const Axis *axis, int64_t side, int64_t tiles, int64_t *rest, char **to, const char **from)
{
    const int64_t first = *rest % tiles * side;
    *rest /= tiles;
    *to += first * axis->to;
    *from += first * axis->from;
    return smaller(side, axis->size - first);
}

typedef struct Tile {
    char *to;
    const char *from;
    int64_t rows, columns, groups;
} Tile;

static Tile tile_at(const Move *move, int64_t number)
{
    Tile tile = {.to = move->to, .from = move->from};
    tile.columns = cut(&move->along_from, move->side_from, move->tiles_from, &number, &tile.to, &tile.from);
    tile.rows = cut(&move->along_to, move->side_to, move->tiles_to, &number, &tile.to, &tile.from);
    tile.groups = cut(&move->along_groups, move->side_groups, move->tiles_groups, &number, &tile.to, &tile.from);
    for (int64_t d = move->rank - 1; d >= 0; d--) {
        cut(&move->axes[d], 1, move->axes[d].size, &number, &tile.to, &tile.from);
    }
    return tile;
}

/* Elements of the groups, one behind another, into runs of groups x rows elements. */
static void gather_tile(const Move *move, char *held, const Tile *tile, int64_t next)
{
    const Axis *along_to = &move->along_to, *along_from = &move->along_from;
    const int64_t size = move->element, held_row = tile->groups * tile->rows * size;
    const char *from = tile->from;
    for (int64_t g = 0; g < tile->groups; g++, held += tile->rows * size, from += move->along_groups.from) {
        if (along_from->from == size) {
            const Transposed group = {held, from, held_row, along_to->from, tile->rows, tile->columns, next, false, 0};
            us_transpose_part(&group, size);
        } else {
            us_copy_lines(&(Lines){held, from, tile->rows, size, along_to->from, tile->columns, held_row, along_from->from,
                                   size});
        }
    }
}

/* A tile that is not held. Where lines of a packed `to` begin inside its rows, they are written from the first one of the first
 * column to the last one that ends in the last column; the few elements around them by themselves. */
static void transpose_tile(const Move *move, const Tile *tile, int64_t next)
{
    const int64_t size = move->element, row = move->along_from.to, from_row = move->along_to.from, last = tile->columns - 1;
    const int64_t skew = (int64_t)(-(uintptr_t)tile->to % CACHE_LINE_BYTES) / size;
    Transposed whole = {tile->to, tile->from, row, from_row, tile->rows, tile->columns, next, move->past && skew == 0, 0};
    if (move->past && skew > 0 && last >= SQUARE_BYTES / size) {
        const char *from = tile->from + skew * from_row + last * size;
        us_copy_lines(&(Lines){tile->to, tile->from, 1, 0, 0, skew, size, from_row, size});
        us_copy_lines(&(Lines){tile->to + last * row + skew * size, from, 1, 0, 0, tile->rows - skew, size, from_row, size});
        whole.to += skew * size;
        whole.first = skew;
        whole.columns = last;
        whole.past = true;
    }
    us_transpose_part(&whole, size);
}

/* `next`: bytes from what the tile reads to what is read after it. */
static void copy_tile(const Move *move, const Tile *tile, int64_t next)
{
    _Alignas(64) char held[TILE_BYTES];
    const Axis *along_to = &move->along_to, *along_from = &move->along_from;
    const int64_t size = move->element, run = tile->groups * tile->rows, held_row = run * size;
    const bool packed = along_to->to == size && along_from->to == held_row;
    if (move->direct) {
        transpose_tile(move, tile, next);
        return;
    }
    if (run <= FEW_ROWS && tile->groups == 1 && !packed) { /* too few neighbours in `to` to be worth gathering */
        us_copy_lines(&(Lines){tile->to, tile->from, tile->rows, along_to->to, along_to->from, tile->columns, along_from->to,
                               along_from->from, size});
        return;
    }
    gather_tile(move, held, tile, next);
    if (packed && move->past) {
        us_copy_past(tile->to, held, (size_t)(tile->columns * held_row), held);
    } else if (packed) { /* small rows of `to` */
        memcpy(tile->to, held, (size_t)(tile->columns * held_row));
    } else {
        scatter_tile(move, tile->to, held, tile->columns, run);
    }
}

static void copy_tiles(void *context, int64_t piece)
{
    const Move *move = context;
    const int64_t first = piece * move->tiles_of_piece, end = smaller(move->tiles, first + move->tiles_of_piece);
    Tile tile = tile_at(move, first);
    for (int64_t number = first; number < end; number++) {
        const Tile after = number + 1 < move->tiles ? tile_at(move, number + 1) : tile;
        const int64_t step = after.from - tile.from;
        const bool continues = step > 0 && step <= tile.columns * move->element;
        copy_tile(move, &tile, continues ? AHEAD_BYTES : step);
        tile = after;
    }
    if (move->past) {
        us_past_is_done();
    }
}

/* Whether tiles are not held on their way: elements that are neighbours in both views, in lines of which the nearest cache keeps
 * those that are written at once; or past the caches, where all lines are whole. */
static bool is_direct(const Move *move)
{
    const Axis *along_to = &move->along_to, *along_from = &move->along_from;
    const int64_t size = move->element, row = magnitude(along_from->to), tile_row = move->side_to * size;
    const int64_t beside = (int64_t)((uintptr_t)move->to % CACHE_LINE_BYTES);
    if (along_to->to != size || along_from->from != size || move->side_groups > 1) {
        return false;
    }
    if (!move->past) {
        return tile_row == row || us_lines_fit(move->side_from, row);
    }
    int64_t steps = row | along_to->size * size | tile_row;
    for (int d = 0; d < move->rank; d++) {
        steps |= move->axes[d].to;
    }
    return us_transposes_lines() && steps % CACHE_LINE_BYTES == 0 && beside % size == 0 &&
           (beside == 0 || (along_from->to == tile_row && move->side_to == along_to->size));
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
    const int64_t line = CACHE_LINE_BYTES / move->element, side = TILE_SIDE_BYTES / move->element;
    const int64_t elements = TILE_BYTES / move->element, run = move->along_to.size;
    move->along_groups = (Axis){.size = 1};
    if (move->rank > 0 && move->along_to.to == move->element && 2 * run <= side &&
        move->axes[move->rank - 1].to == run * move->element) {
        move->along_groups = move->axes[--move->rank];
    }
    move->side_groups = smaller(move->along_groups.size, ceiling(side, run));
    move->side_to = smaller(smaller(run, side), elements / move->side_groups);
    move->side_from = smaller(move->along_from.size, elements / move->side_groups / move->side_to);
    if (move->side_groups == 1) {
        /* longer where the other is short */
        move->side_to = smaller(run, larger(move->side_to, elements / move->side_from / line * line));
    }
    move->direct = is_direct(move);
    if (move->direct && move->side_to == run && us_transposes_lines()) {
        move->side_from = smaller(move->along_from.size, larger(move->side_from, PIECE_BYTES / move->element / run));
    }
    move->tiles_of_piece = larger(1, PIECE_BYTES / (move->element * move->side_from * move->side_to * move->side_groups));
    move->tiles_to = ceiling(run, move->side_to);
    move->tiles_from = ceiling(move->along_from.size, move->side_from);
    move->tiles_groups = ceiling(move->along_groups.size, move->side_groups);
    move->tiles = move->count / run / move->along_from.size / move->along_groups.size * move->tiles_to * move->tiles_from *
                  move->tiles_groups;
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
    tiled.past = move.count >= PAST_BYTES / move.element;
    if (us_weave(&move)) {
        return;
    }
    if (cut_into_tiles(&tiled) &&
        (tiled.side_groups * tiled.side_to * tiled.side_from >= LEAST_TILE || !join_by_table(&move, table))) {
        us_parallel(ceiling(tiled.tiles, tiled.tiles_of_piece), copy_tiles, &tiled);
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
