#include "kernels/move/transpose.h"
#include "kernels/reduce/work.h"

#include <stdlib.h>
#include <string.h>

enum { TILE_ELEMENTS = 1024 };

typedef struct Tile {
    _Alignas(64) char bytes[TILE_ELEMENTS * WIDEST];
} Tile;

static void step(const ReduceWork *work, const ReducePanel *panel, const void *elements, const char *guess, char *a,
                 char *b)
{
    work->step(work->call->numbers, panel, elements, guess, a, b);
}

/* Elements `stride` apart to neighbours that the bodies read. */
static void fetch(const ReduceWork *work, const char *from, int64_t stride, int64_t count, char *to)
{
    const DType dtype = work->input->dtype, compute = work->call->compute;
    Tile raw, rounded;
    if (stride != 1) {
        us_copy_elements(work->in_place ? to : raw.bytes, 1, from, stride, work->size, count);
        from = raw.bytes;
    }
    if (work->in_place) {
        if (stride == 1) {
            memcpy(to, from, (size_t)(count * work->size));
        }
        return;
    }
    us_convert(work->array == compute ? to : rounded.bytes, compute, from, dtype, count);
    if (work->array != compute) {
        us_convert(to, work->array, rounded.bytes, compute, count);
    }
}

/* Rows of `width` neighbours, each for the next state. Of narrow ones the next are fetched. */
static ReducePanel panel_of(const ReduceWork *work, int64_t rows, int64_t width, int64_t row_stride, int64_t position)
{
    const int64_t size = (int64_t)us_dtype_size(work->array);
    return (ReducePanel){rows, width, position, row_stride, width <= FETCHED_WIDTH ? REDUCE_ROWS * row_stride * size : 0};
}

void us_reduce_step_strip(const ReduceWork *work, int64_t position, int64_t count, const char *elements,
                          const ReduceStates *states)
{
    const int64_t size = (int64_t)us_dtype_size(work->array), strip = work->strip;
    const int64_t strips = count >> __builtin_ctzll((uint64_t)strip), rest = count & (strip - 1);
    const int64_t first = rest % LANES, whole = rest - first;
    const char *guess = states->guess;
    if (strips > 0) {
        const ReducePanel panel = {strips, strip, position, strip, FETCHED_AHEAD};
        step(work, &panel, elements, guess, states->a, states->b);
        elements += strips * strip * size;
    }
    if (first > 0) { /* for the last ones of LANES states: those before stay as they are */
        const int64_t before = LANES - first, at = (strip - whole - LANES) * work->wide_size;
        const size_t held = (size_t)(before * work->wide_size);
        char *const a = states->a + at, *const b = states->b + at;
        _Alignas(64) char padded[LANES * WIDEST] = {0}, own_a[LANES * WIDEST], own_b[LANES * WIDEST];
        memcpy(padded + before * size, elements, (size_t)(first * size));
        memcpy(own_a, a, held);
        memcpy(own_b, b, held);
        const ReducePanel panel = panel_of(work, 1, LANES, LANES, position);
        step(work, &panel, padded, guess, a, b);
        memcpy(a, own_a, held);
        memcpy(b, own_b, held);
        elements += first * size;
    }
    if (whole > 0) {
        const int64_t at = (strip - whole) * work->wide_size;
        const ReducePanel panel = panel_of(work, 1, whole, whole, position);
        step(work, &panel, elements, guess, states->a + at, states->b + at);
    }
}

bool us_reduce_row_in_place(const ReduceWork *work)
{
    return work->in_place && work->reduced.rank == 1 && work->reduced.strides[0][0] == 1;
}

void us_reduce_take_row(const ReduceWork *work, const char *row, int64_t begin, int64_t end, ReduceTake *take,
                        const ReduceStates *states)
{
    const int64_t stride = work->reduced.strides[0][work->reduced.rank - 1];
    if (us_reduce_row_in_place(work)) {
        take(work, begin, end - begin, row + begin * work->size, states);
        return;
    }
    Tile tile;
    const int64_t array_size = (int64_t)us_dtype_size(work->array);
    int64_t held = 0, position = begin; /* elements in the tile, of numbers from `position` on */
    AxesWalk walk;
    for (us_axes_walk(&walk, &work->reduced, 0, begin, end - begin); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        const char *from = row + run.offset * work->size;
        if (work->in_place && stride == 1 && held == 0 && run.length >= STRIP) {
            take(work, position, run.length, from, states);
            position += run.length;
            continue;
        }
        for (int64_t done = 0, part; done < run.length; done += part) {
            part = smaller(run.length - done, TILE_ELEMENTS - held);
            fetch(work, from + done * stride * work->size, stride, part, tile.bytes + held * array_size);
            held += part;
            if (held == TILE_ELEMENTS) {
                take(work, position, held, tile.bytes, states);
                position += held;
                held = 0;
            }
        }
    }
    if (held > 0) {
        take(work, position, held, tile.bytes, states);
    }
}

/* Columns that are not read in place: panels of as many rows as a tile holds. */
static void gather_columns(const ReduceWork *work, const char *from, int64_t rows, int64_t row_stride, int64_t position,
                           int64_t columns, const char *guess, char *a, char *b)
{
    Tile tile;
    const int64_t width = whole_lanes(columns), array_size = (int64_t)us_dtype_size(work->array);
    const int64_t stride = work->kept.strides[0][work->kept.rank - 1];
    const int64_t at_once = (int64_t)sizeof tile.bytes / (width * array_size);
    for (int64_t done = 0, part; done < rows; done += part) {
        part = smaller(rows - done, at_once);
        for (int64_t r = 0; r < part; r++) {
            char *row = tile.bytes + r * width * array_size;
            fetch(work, from + (done + r) * row_stride * work->size, stride, columns, row);
            memset(row + columns * array_size, 0, (size_t)((width - columns) * array_size));
        }
        const ReducePanel panel = panel_of(work, part, width, width, position + done);
        step(work, &panel, tile.bytes, guess, a, b);
    }
}

/* Columns that are turned at once. */
enum { TURNED_COLUMNS = 256 };

bool us_reduce_takes_turned(const ReduceWork *work)
{
    return work->by_columns && work->in_place && work->reduced.rank == 1 &&
           work->reduced.strides[0][0] == work->turned_runs && (work->turned_runs > 1 || work->elements > 1);
}

/* `count` elements of each column to as many rows of `width`. Where they are less than a square has, elements behind
 * them are turned, too, as long as there are any. */
static void turn(const ReduceWork *work, const char *from, int64_t columns, int64_t count, int64_t width, char *to)
{
    const int64_t size = work->size, stride = work->kept.strides[0][work->kept.rank - 1] * size, row = width * size;
    const int64_t square = larger(count, SQUARE_BYTES / size);
    const bool has_square = from + larger(0, (columns - 1) * stride) + square * size <= work->end;
    us_transpose(to, row, from, stride, columns, has_square ? square : count, size);
    for (int64_t i = 0; i < count && columns < width; i++) {
        memset(to + i * row + columns * size, 0, (size_t)((width - columns) * size));
    }
}

void us_reduce_step_turned(const ReduceWork *work, const char *first, int64_t runs, int64_t columns, int64_t begin,
                           int64_t end, const ReduceStates *states)
{
    Tile tile;
    const int64_t stride = work->kept.strides[0][work->kept.rank - 1], size = work->size;
    const int64_t fits = (int64_t)sizeof tile.bytes / (size * larger((end - begin) * runs, SQUARE_BYTES / size));
    const int64_t most = bounded(fits / LANES * LANES, 4 * LANES, TURNED_COLUMNS);
    const int64_t most_rows = (int64_t)sizeof tile.bytes / (runs * most * size);
    const int64_t at_once = most_rows > REDUCE_ROWS ? most_rows / REDUCE_ROWS * REDUCE_ROWS : most_rows;
    for (int64_t column = 0; column < columns; column += most) {
        const int64_t part = smaller(columns - column, most), width = whole_lanes(part);
        for (int64_t at = begin, rows; at < end; at += rows) {
            rows = smaller(end - at, at_once);
            turn(work, first + (column * stride + at * runs) * size, part, rows * runs, width, tile.bytes);
            for (int64_t run = 0; run < runs; run++) {
                const ReducePanel panel = panel_of(work, rows, width, runs * width, at);
                const int64_t place = (run * whole_lanes(columns) + column) * work->wide_size;
                step(work, &panel, tile.bytes + run * width * size, states->guess + place, states->a + place,
                     states->b + place);
            }
        }
    }
}

/* States of so many rows of a few columns, side by side. */
enum { JOINED_COLUMNS = 64, JOINED_STATES = 1024 };

typedef struct JoinedStates {
    _Alignas(64) char bytes[JOINED_STATES * WIDEST];
} JoinedStates;

/* Few columns that lie one row behind the other: a power of two of rows at once are one row of as many more columns, whose
 * states are merged in the end. How many rows it has taken. */
static int64_t step_joined_rows(const ReduceWork *work, const char *from, int64_t columns, int64_t rows, char *a, char *b)
{
    int64_t joined = LANES;
    while (2 * joined * columns <= JOINED_STATES / 2) {
        joined *= 2;
    }
    const int64_t width = joined * columns, taken = rows / joined;
    if (taken < (columns < LANES ? 2 : REDUCE_ROWS)) { /* as they lie they fill more of whole LANES */
        return 0;
    }
    JoinedStates joined_a, joined_b;
    const ReducePanel panel = panel_of(work, taken, width, width, 0);
    work->start(width + LANES, joined_a.bytes, joined_b.bytes); /* merges look at whole lanes */
    step(work, &panel, from, joined_a.bytes, joined_a.bytes, joined_b.bytes); /* nothing is guessed */
    for (int64_t half = joined / 2; half > 0; half /= 2) {
        const int64_t other = half * columns * work->wide_size;
        work->merge(half * columns, joined_a.bytes, joined_b.bytes, joined_a.bytes + other, joined_b.bytes + other);
    }
    work->merge(columns, a, b, joined_a.bytes, joined_b.bytes);
    return taken * joined;
}

/* Whether a state depends neither on where an element is nor on a guess, and the columns are few and packed. */
static bool joins_rows(const ReduceWork *work, int64_t columns)
{
    return columns < JOINED_COLUMNS && work->in_place && work->reduction->values == NULL && work->reduction->first == NULL &&
           work->kept.strides[0][work->kept.rank - 1] == 1 &&
           work->reduced.strides[0][work->reduced.rank - 1] == columns;
}

/* How many rows can be read to the end of whole LANES: what is behind the last column is a row's, and of no state that
 * counts. */
static int64_t rows_of_whole_lanes(const ReduceWork *work, const char *from, int64_t rows, int64_t columns)
{
    const int64_t along = work->reduced.strides[0][work->reduced.rank - 1];
    const int64_t beyond = (work->end - from) / work->size - whole_lanes(columns);
    return beyond < 0 ? 0 : along <= 0 ? rows : smaller(rows, beyond / along + 1);
}

/* Rows of a panel of columns, as measured. Of wide ones of float from far memory, with one state and no guess, a few at once
 * are read fastest (but by Zen 4: 1.25 of the time), and the next ones are fetched; there is less to do for an integer or a
 * double, so that the processor looks far enough ahead by itself. */
static int64_t rows_at_once(const ReduceWork *work, int64_t columns)
{
    if (work->body >= NARROW_INT8) {
        return TALL_ROWS;
    }
    const bool is_plain = !work->has_b && work->reduction->first == NULL && work->array == DTYPE_FLOAT32;
    return is_plain && work->is_far && columns > FETCHED_WIDTH && !us_finds_rows() ? FEW_ROWS : REDUCE_ROWS;
}

static bool fetches_columns(const ReduceWork *work)
{
    const Lane lane = us_lane_of(work->call->compute);
    const bool is_float = lane == LANE_FLOAT && (work->is_far || work->size == 2);
    return us_fetches_columns() && (is_float || lane == LANE_COMPLEX64 || lane == LANE_COMPLEX128);
}

void us_reduce_step_columns(const ReduceWork *work, const char *first, int64_t columns, int64_t begin, int64_t end,
                            const char *guess, char *a, char *b)
{
    const int64_t along = work->reduced.strides[0][work->reduced.rank - 1];
    const bool neighbours = work->in_place && work->kept.strides[0][work->kept.rank - 1] == 1;
    const bool fetches = fetches_columns(work) && llabs(along) > columns, joins = joins_rows(work, columns);
    const int64_t at_once = rows_at_once(work, columns);
    int64_t position = begin;
    AxesWalk walk;
    for (us_axes_walk(&walk, &work->reduced, 0, begin, end - begin); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        const char *from = first + run.offset * work->size;
        int64_t done = joins ? step_joined_rows(work, from, columns, run.length, a, b) : 0;
        from += done * along * work->size;
        const int64_t whole = neighbours ? done + rows_of_whole_lanes(work, from, run.length - done, columns) : done;
        for (int64_t rows; done < whole; done += rows) { /* a group of rows at a time is faster than all of wide ones */
            rows = smaller(whole - done, at_once);
            ReducePanel panel = panel_of(work, rows, whole_lanes(columns), along, position + done);
            panel.ahead = fetches ? at_once * along * work->size : panel.ahead;
            step(work, &panel, from, guess, a, b);
            from += rows * along * work->size;
        }
        if (done < run.length) {
            gather_columns(work, from, run.length - done, along, position + done, columns, guess, a, b);
        }
        position += run.length;
    }
}
