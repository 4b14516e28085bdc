#include "kernels/reduce/reduce.h"

#include "tensor/axes.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

/* A unit of work reduces to neighbouring outputs: COLUMNS of them side by side where the kept axis is the innermost,
 * else a batch of rows, one after the other in STRIP states (SHORT_STRIP of rows shorter than LONG_ROW). With fewer
 * than FEW_UNITS units each is cut into chunks of its elements. Of MANY_ROWS a unit has at least LANES. Rows shorter
 * than SHORT_ROW are gathered into columns. An index is looked for among NEAR elements, which are still in the cache. */
enum {
    COLUMNS = 1024,
    STRIP = 64,
    SHORT_STRIP = 2 * LANES,
    LONG_ROW = 1024,
    MANY_ROWS = 1024,
    FEW_UNITS = 32,
    MOST_CHUNKS = 64,
    CHUNK_ELEMENTS = 16 * 1024,
    PIECE_ELEMENTS = 16 * 1024,
    SERIAL_BYTES = 128 * 1024,
    SHORT_ROW = 96,
    NEAR = 8 * 1024,
    TILE_ELEMENTS = 1024,
    WIDEST = 16, /* bytes of the largest element */
};

typedef struct Wide {
    _Alignas(64) char bytes[COLUMNS * WIDEST];
} Wide;

typedef struct Tile {
    _Alignas(64) char bytes[TILE_ELEMENTS * WIDEST];
} Tile;

/* States of a unit's outputs, and what they are guessed to be. */
typedef struct States {
    Wide a, b, guess;
} States;

typedef struct Work {
    const ReduceCall *call;
    const View *input, *outputs;
    DType array;       /* of the elements that the bodies read */
    DType wide;        /* of states */
    int64_t wide_size, size; /* bytes of a state's value, of an element of the input */
    int body;          /* lane, or a fused one */
    bool in_place;     /* the bodies can read the input's own elements */
    Axes kept, reduced; /* operands of `kept`: input, outputs */
    int64_t groups, elements;
    bool by_columns;
    int64_t strip;     /* states of a row */
    int64_t unit_groups, units_per_run, units, chunk_elements, chunks, units_per_piece;
    const Reduction *reduction; /* the one that runs now, and its bodies */
    ReduceStart *start;
    ReduceStep *step;
    ReduceMerge *merge;
    ReduceFinish *finish;
    ReduceFold *fold;  /* of rows that lie in memory as it reads them; NULL: there is none */
    bool has_b;        /* its states have a second value */
    char *partial;     /* of units cut into chunks: states of every chunk */
    char *guesses;     /* of these units: the results of the first reduction */
} Work;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t whole_lanes(int64_t count)
{
    return divide_up(count, LANES) * LANES;
}

/* ---- the plan ---- */

static bool is_reduced(const ReduceCall *call, int32_t axis)
{
    return call->axes >> axis & 1;
}

/* The axes of one kind, outermost first: in the order of the input's memory; where elements are counted, as given. */
static void collect_axes(Work *work, bool reduced, bool sorts, Axes *axes)
{
    const View *input = work->input;
    int32_t order[VIEW_RANK_LIMIT], rank = 0;
    for (int32_t axis = 0; axis < input->rank; axis++) {
        if (is_reduced(work->call, axis) != reduced || input->shape[axis] == 1) {
            continue;
        }
        int32_t place = rank++;
        while (sorts && place > 0 && llabs(input->strides[order[place - 1]]) < llabs(input->strides[axis])) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = axis;
    }
    const int operands = reduced ? 1 : 1 + work->call->outputs;
    axes->rank = 0;
    for (int32_t i = 0; i < rank; i++) {
        int64_t strides[1 + REDUCE_OUTPUTS] = {input->strides[order[i]]};
        for (int k = 1; k < operands; k++) {
            strides[k] = us_view_is_absent(&work->outputs[k - 1]) ? 0 : work->outputs[k - 1].strides[order[i]];
        }
        us_axes_append(axes, input->shape[order[i]], strides, operands);
    }
    us_axes_complete(axes, operands);
}

static bool has_fused_body(const Reduction *reduction, int body)
{
    return reduction == NULL || (reduction->step[LEVEL_BASE][body] != NULL && has_fused_body(reduction->first, body));
}

static void choose_types(Work *work)
{
    const DType compute = work->call->compute;
    const Lane lane = us_lane_of(compute);
    const bool is_16_bit = compute == DTYPE_FLOAT16 || compute == DTYPE_BFLOAT16;
    const int fused = compute == DTYPE_FLOAT16 ? FUSED_HALF : FUSED_BFLOAT;
    const bool is_fused = is_16_bit && work->input->dtype == compute && has_fused_body(work->call->reduction, fused);
    work->body = is_fused ? fused : (int)lane;
    work->array = is_fused ? compute : us_lane_dtype(lane);
    work->wide = us_wide_dtype(compute);
    work->wide_size = (int64_t)us_dtype_size(work->wide);
    work->size = (int64_t)us_dtype_size(work->input->dtype);
    work->in_place = work->input->dtype == work->array && compute == work->array;
}

static void choose_reduction(Work *work, const Reduction *reduction)
{
    const int level = us_level(), lane = (int)us_lane_of(work->call->compute);
    work->reduction = reduction;
    work->start = reduction->start[level][lane];
    work->step = reduction->step[level][work->body];
    work->merge = reduction->merge[level][lane];
    work->finish = reduction->finish[level][lane];
    work->fold = reduction->fold[level][work->body];
    work->has_b = reduction->outputs > 1;
}

static void cut(Work *work)
{
    const int64_t run = work->kept.shape[work->kept.rank - 1], elements = work->elements > 0 ? work->elements : 1;
    const int64_t along_kept = llabs(work->kept.strides[0][work->kept.rank - 1]);
    const int64_t along_reduced = llabs(work->reduced.strides[0][work->reduced.rank - 1]);
    const bool is_short = elements < SHORT_ROW && run > elements;
    work->by_columns = run > 1 && (along_kept < along_reduced || elements == 1 || is_short);
    work->strip = elements < LONG_ROW ? SHORT_STRIP : STRIP;
    const int64_t wanted = divide_up(PIECE_ELEMENTS, elements), together = run < MANY_ROWS ? 1 : LANES;
    const int64_t batch = smaller(wanted < together ? together : wanted, COLUMNS);
    work->unit_groups = smaller(run, work->by_columns ? COLUMNS : batch);
    work->units_per_run = divide_up(run, work->unit_groups);
    work->units = work->groups / run * work->units_per_run;
    const int64_t unit_elements = elements * work->unit_groups;
    work->units_per_piece = divide_up(PIECE_ELEMENTS, unit_elements);
    int64_t chunks = 1;
    if (work->units < FEW_UNITS) {
        chunks = smaller(divide_up(MOST_CHUNKS, work->units), divide_up(unit_elements, CHUNK_ELEMENTS));
    }
    work->chunk_elements = divide_up(elements, smaller(chunks, elements));
    work->chunks = divide_up(elements, work->chunk_elements);
}

/* The outputs of a unit: number of the first one and how many. */
static int64_t unit_groups(const Work *work, int64_t unit, int64_t *first)
{
    const int64_t run = work->kept.shape[work->kept.rank - 1];
    const int64_t begin = unit % work->units_per_run * work->unit_groups;
    *first = unit / work->units_per_run * run + begin;
    return smaller(run - begin, work->unit_groups);
}

/* ---- steps ---- */

static void step(const Work *work, const ReducePanel *panel, const void *elements, const char *guess, char *a, char *b)
{
    work->step(work->call->numbers, panel, elements, guess, a, b);
}

/* Elements `stride` apart to neighbours that the bodies read. */
static void fetch(const Work *work, const char *from, int64_t stride, int64_t count, char *to)
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

/* A row's states, and what is done to them with `count` elements side by side, from number `position` on. */
typedef struct RowStates {
    const char *guess;
    char *a, *b;
} RowStates;
typedef void TakeElements(const Work *work, int64_t position, int64_t count, const char *elements,
                          const RowStates *states);

/* Rows of `width` neighbours, each for the next state. */
static ReducePanel panel_of(int64_t rows, int64_t width, int64_t row_stride, int64_t position)
{
    return (ReducePanel){rows, width, position, row_stride, LANES, REDUCE_ROWS * row_stride};
}

/* Each element for the next state of a strip; as far as they fill groups, blocks in the order of memory. */
static void step_strip(const Work *work, int64_t position, int64_t count, const char *elements, const RowStates *states)
{
    const int64_t size = (int64_t)us_dtype_size(work->array), strip = work->strip, group = strip * REDUCE_ROWS;
    const int64_t all = count >> __builtin_ctzll((uint64_t)strip), rest = count & (strip - 1);
    const int64_t groups = all / REDUCE_ROWS, strips = all % REDUCE_ROWS;
    const int64_t whole = rest / LANES * LANES, last = rest - whole;
    const char *guess = states->guess;
    if (groups > 0) {
        const ReducePanel panel = {groups * REDUCE_ROWS, strip, position, LANES, REDUCE_ROWS * LANES, group};
        step(work, &panel, elements, guess, states->a, states->b);
        elements += groups * group * size;
    }
    if (strips > 0) {
        const ReducePanel panel = panel_of(strips, strip, strip, position);
        step(work, &panel, elements, guess, states->a, states->b);
        elements += strips * strip * size;
    }
    if (whole > 0) {
        const ReducePanel panel = panel_of(1, whole, whole, position);
        step(work, &panel, elements, guess, states->a, states->b);
    }
    if (last > 0) { /* in states of which only as many count */
        const size_t held = (size_t)(LANES * work->wide_size), used = (size_t)(last * work->wide_size);
        char *const a = states->a + whole * work->wide_size, *const b = states->b + whole * work->wide_size;
        _Alignas(64) char padded[LANES * WIDEST] = {0}, own_a[LANES * WIDEST], own_b[LANES * WIDEST];
        memcpy(padded, elements + whole * size, (size_t)(last * size));
        memcpy(own_a, a, held);
        memcpy(own_b, b, held);
        const ReducePanel panel = panel_of(1, LANES, LANES, position);
        step(work, &panel, padded, guess, own_a, own_b);
        memcpy(a, own_a, used);
        memcpy(b, own_b, used);
    }
}

/* Whether the bodies can read a row as it is. */
static bool is_row_in_place(const Work *work)
{
    return work->in_place && work->reduced.rank == 1 && work->reduced.strides[0][0] == 1;
}

/* Takes elements begin … end-1 of a row. */
static void take_row(const Work *work, const char *row, int64_t begin, int64_t end, TakeElements *take,
                     const RowStates *states)
{
    const int64_t stride = work->reduced.strides[0][work->reduced.rank - 1];
    if (is_row_in_place(work)) {
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
static void gather_columns(const Work *work, const char *from, int64_t rows, int64_t row_stride, int64_t position,
                           int64_t columns, const char *guess, char *a, char *b)
{
    Tile tile;
    const int64_t width = whole_lanes(columns), array_size = (int64_t)us_dtype_size(work->array);
    const int64_t stride = work->kept.strides[0][work->kept.rank - 1], at_once = TILE_ELEMENTS / width;
    for (int64_t done = 0, part; done < rows; done += part) {
        part = smaller(rows - done, at_once);
        for (int64_t r = 0; r < part; r++) {
            char *row = tile.bytes + r * width * array_size;
            fetch(work, from + (done + r) * row_stride * work->size, stride, columns, row);
            memset(row + columns * array_size, 0, (size_t)((width - columns) * array_size));
        }
        const ReducePanel panel = panel_of(part, width, width, position + done);
        step(work, &panel, tile.bytes, guess, a, b);
    }
}

/* Reduces elements begin … end-1 of columns side by side. */
static void step_columns(const Work *work, const char *first, int64_t columns, int64_t begin, int64_t end,
                         const char *guess, char *a, char *b)
{
    const int64_t along = work->reduced.strides[0][work->reduced.rank - 1];
    const bool neighbours = work->in_place && work->kept.strides[0][work->kept.rank - 1] == 1;
    const int64_t whole = neighbours ? columns / LANES * LANES : 0;
    const int64_t rest = columns - whole, states = whole * work->wide_size;
    int64_t position = begin;
    AxesWalk walk;
    for (us_axes_walk(&walk, &work->reduced, 0, begin, end - begin); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        for (int64_t done = 0, rows; done < run.length; done += rows, position += rows) {
            rows = smaller(run.length - done, whole > 0 ? REDUCE_ROWS : run.length);
            const char *from = first + (run.offset + done * along) * work->size;
            const ReducePanel panel = panel_of(rows, whole, along, position);
            if (whole > 0) {
                step(work, &panel, from, guess, a, b);
            }
            if (rest > 0) {
                const int64_t skipped = whole * work->kept.strides[0][work->kept.rank - 1] * work->size;
                gather_columns(work, from + skipped, rows, along, position, rest, guess + states, a + states,
                               b + states);
            }
        }
    }
}

/* ---- units ---- */

static void finish(const Work *work, int64_t count, States *states)
{
    work->finish(work->call->numbers, work->elements, count, states->guess.bytes, states->a.bytes, states->b.bytes);
}

/* The states of a strip to as many as are left of them, a power of two. */
static void merge_strip(const Work *work, int64_t left, char *a, char *b)
{
    for (int64_t half = work->strip / 2; half >= left; half /= 2) {
        work->merge(half, a, b, a + half * work->wide_size, b + half * work->wide_size);
    }
}

static void store_index(const Work *work, int64_t position, void *index)
{
    us_number_store(index, work->wide, (Number){.real = (double)position, .integer = position});
}

/* Elements for one state of value and index, the first of the strip's: an index is looked for only where the value is better. */
static void locate(const Work *work, int64_t position, int64_t count, const char *elements, const RowStates *states)
{
    const int64_t size = (int64_t)us_dtype_size(work->array);
    const int level = us_level();
    ReduceFold *fold = work->reduction->values->fold[level][work->body];
    ReduceFind *find = work->reduction->find[level][work->body];
    for (int64_t done = 0, part; done < count; done += part) {
        part = smaller(count - done, NEAR);
        _Alignas(64) char a[LANES * WIDEST] = {0}, index[LANES * WIDEST] = {0};
        fold(elements + done * size, part, a);
        store_index(work, position + done, index);
        work->merge(1, states->a, states->b, a, index);
        if (memcmp(states->b, index, (size_t)work->wide_size) == 0) {
            const int64_t found = find(elements + done * size, part, states->a);
            store_index(work, position + done + found, states->b);
        }
    }
}

static void reduce_indexed_row(const Work *work, const char *row, int64_t begin, int64_t end, char *to_a, char *to_b)
{
    _Alignas(64) char a[LANES * WIDEST], b[LANES * WIDEST];
    work->start(LANES, a, b);
    take_row(work, row, begin, end, locate, &(RowStates){NULL, a, b});
    memcpy(to_a, a, (size_t)work->wide_size);
    memcpy(to_b, b, (size_t)work->wide_size);
}

/* The same one of the last LANES states of `rows` strips, neighbours, for each of these states. */
typedef struct Turned {
    _Alignas(64) char bytes[LANES * LANES * WIDEST];
} Turned;

static void turn_strip(const Work *work, int64_t row, const char *states, Turned *turned)
{
    us_copy_elements(turned->bytes + row * work->wide_size, LANES, states, 1, work->wide_size, LANES);
}

static void fold_rows(const Work *work, const char *data, int64_t along, int64_t rows, int64_t begin, int64_t end,
                      char *to_a)
{
    for (int64_t row = 0; row < rows; row++) {
        work->fold(data + row * along + begin * work->size, end - begin, to_a + row * work->wide_size);
    }
}

/* Up to LANES rows to a state each. What is left of their strips is merged for all of them side by side. */
static void reduce_rows(const Work *work, const char *data, int64_t along, int64_t rows, int64_t begin, int64_t end,
                        const char *guess, char *to_a, char *to_b)
{
    _Alignas(64) char a[STRIP * WIDEST], b[STRIP * WIDEST], guesses[STRIP * WIDEST];
    _Alignas(64) char fresh_a[STRIP * WIDEST], fresh_b[STRIP * WIDEST];
    Turned turned_a, turned_b;
    const int64_t size = work->wide_size;
    work->start(work->strip, fresh_a, fresh_b);
    memset(&turned_a, 0, rows < LANES ? sizeof turned_a : 0);
    memset(&turned_b, 0, rows < LANES && work->has_b ? sizeof turned_b : 0);
    for (int64_t row = 0; row < rows; row++) {
        if (work->reduction->first != NULL) {
            us_copy_elements(guesses, 1, guess + row * size, 0, size, work->strip);
        }
        memcpy(a, fresh_a, (size_t)(work->strip * size));
        if (work->has_b) {
            memcpy(b, fresh_b, (size_t)(work->strip * size));
        }
        take_row(work, data + row * along, begin, end, step_strip, &(RowStates){guesses, a, b});
        merge_strip(work, LANES, a, b);
        turn_strip(work, row, a, &turned_a);
        if (work->has_b) {
            turn_strip(work, row, b, &turned_b);
        }
    }
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        const int64_t other = half * LANES * size;
        work->merge(half * LANES, turned_a.bytes, turned_b.bytes, turned_a.bytes + other, turned_b.bytes + other);
    }
    memcpy(to_a, turned_a.bytes, (size_t)(rows * size));
    if (work->has_b) {
        memcpy(to_b, turned_b.bytes, (size_t)(rows * size));
    } else {
        memset(to_b, 0, (size_t)(rows * size));
    }
}

/* Elements begin … end-1 of all outputs of a unit. */
static void reduce_unit(const Work *work, int64_t unit, int64_t begin, int64_t end, States *states)
{
    int64_t first;
    const int64_t count = unit_groups(work, unit, &first);
    const char *data = (const char *)work->input->data + us_axes_offset(&work->kept, 0, first) * work->size;
    const int64_t along = work->kept.strides[0][work->kept.rank - 1] * work->size;
    if (work->by_columns) {
        work->start(whole_lanes(count), states->a.bytes, states->b.bytes);
        step_columns(work, data, count, begin, end, states->guess.bytes, states->a.bytes, states->b.bytes);
        return;
    }
    const bool is_indexed = work->reduction->values != NULL;
    const bool folds = work->fold != NULL && is_row_in_place(work) && begin < end;
    for (int64_t i = 0, rows; i < count; i += rows) {
        const int64_t place = i * work->wide_size;
        char *const a = states->a.bytes + place, *const b = states->b.bytes + place;
        rows = is_indexed ? 1 : smaller(count - i, LANES);
        if (folds) {
            fold_rows(work, data + i * along, along, rows, begin, end, a);
        } else if (is_indexed) {
            reduce_indexed_row(work, data + i * along, begin, end, a, b);
        } else {
            reduce_rows(work, data + i * along, along, rows, begin, end, states->guess.bytes + place, a, b);
        }
    }
}

static void store_output(const Work *work, int64_t first, int64_t count, int k, const void *values)
{
    const View *out = &work->outputs[k];
    const int64_t size = (int64_t)us_dtype_size(out->dtype), stride = work->kept.strides[1 + k][work->kept.rank - 1];
    const DType result = k == 1 && work->call->reduction->values != NULL ? out->dtype : work->call->result;
    Wide rounded, converted;
    us_convert(rounded.bytes, result, values, work->wide, count);
    us_convert(converted.bytes, out->dtype, rounded.bytes, result, count);
    char *data = (char *)out->data + us_axes_offset(&work->kept, 1 + k, first) * size;
    us_copy_elements(data, stride, converted.bytes, 1, size, count);
}

static void store(const Work *work, int64_t unit, const States *states)
{
    int64_t first;
    const int64_t count = unit_groups(work, unit, &first);
    for (int k = 0; k < work->call->outputs; k++) {
        if (!us_view_is_absent(&work->outputs[k])) {
            store_output(work, first, count, k, k == 0 ? states->a.bytes : states->b.bytes);
        }
    }
}

/* A unit from beginning to end, with what runs first. */
static void run_unit(const Work *given, int64_t unit)
{
    States states;
    int64_t first;
    const int64_t count = unit_groups(given, unit, &first);
    Work work = *given;
    if (work.call->reduction->first != NULL) {
        choose_reduction(&work, work.call->reduction->first);
        reduce_unit(&work, unit, 0, work.elements, &states);
        finish(&work, count, &states);
        memcpy(states.guess.bytes, states.a.bytes, (size_t)(count * work.wide_size));
        choose_reduction(&work, work.call->reduction);
    }
    reduce_unit(&work, unit, 0, work.elements, &states);
    finish(&work, count, &states);
    store(&work, unit, &states);
}

static void run_units(void *context, int64_t piece)
{
    const Work *work = context;
    const int64_t begin = piece * work->units_per_piece, end = smaller(begin + work->units_per_piece, work->units);
    for (int64_t unit = begin; unit < end; unit++) {
        run_unit(work, unit);
    }
}

/* ---- units that are cut into chunks ---- */

static int64_t states_size(const Work *work)
{
    return whole_lanes(work->unit_groups) * work->wide_size;
}

static void run_chunk(void *context, int64_t piece)
{
    const Work *work = context;
    const int64_t unit = piece / work->chunks, begin = piece % work->chunks * work->chunk_elements;
    const size_t size = (size_t)states_size(work);
    char *partial = work->partial + (size_t)piece * 2 * size;
    States states;
    if (work->reduction->first != NULL) {
        memcpy(states.guess.bytes, work->guesses + (size_t)unit * size, size);
    }
    reduce_unit(work, unit, begin, smaller(begin + work->chunk_elements, work->elements), &states);
    memcpy(partial, states.a.bytes, size);
    memcpy(partial + size, states.b.bytes, size);
}

/* The states of a unit's chunks, merged in order, finished. */
static void merge_chunks(const Work *work, int64_t unit, States *states)
{
    const size_t size = (size_t)states_size(work);
    int64_t first;
    const int64_t count = unit_groups(work, unit, &first);
    const char *partial = work->partial + (size_t)(unit * work->chunks) * 2 * size;
    memcpy(states->a.bytes, partial, size);
    memcpy(states->b.bytes, partial + size, size);
    for (int64_t chunk = 1; chunk < work->chunks; chunk++) {
        const char *other = partial + (size_t)chunk * 2 * size;
        work->merge(count, states->a.bytes, states->b.bytes, other, other + size);
    }
    if (work->reduction->first != NULL) {
        memcpy(states->guess.bytes, work->guesses + (size_t)unit * size, size);
    }
    finish(work, count, states);
}

static KernelStatus run_in_chunks(Work *work)
{
    const size_t size = (size_t)states_size(work), units = (size_t)work->units;
    work->partial = malloc(units * (size_t)work->chunks * 2 * size);
    work->guesses = malloc(units * size);
    const bool has_memory = work->partial != NULL && work->guesses != NULL;
    States states;
    if (has_memory && work->call->reduction->first != NULL) {
        choose_reduction(work, work->call->reduction->first);
        us_parallel(work->units * work->chunks, run_chunk, work);
        for (int64_t unit = 0; unit < work->units; unit++) {
            merge_chunks(work, unit, &states);
            memcpy(work->guesses + (size_t)unit * size, states.a.bytes, size);
        }
        choose_reduction(work, work->call->reduction);
    }
    if (has_memory) {
        us_parallel(work->units * work->chunks, run_chunk, work);
        for (int64_t unit = 0; unit < work->units; unit++) {
            merge_chunks(work, unit, &states);
            store(work, unit, &states);
        }
    }
    free(work->partial);
    free(work->guesses);
    return has_memory ? KERNEL_OK : KERNEL_NO_MEMORY;
}

KernelStatus us_reduce(const View *views, const void *attributes)
{
    const ReduceCall *call = attributes;
    Work work = {.call = call, .input = &views[0], .outputs = &views[1]};
    work.groups = work.elements = 1;
    for (int32_t axis = 0; axis < views[0].rank; axis++) {
        *(is_reduced(call, axis) ? &work.elements : &work.groups) *= views[0].shape[axis];
    }
    if (work.groups == 0) {
        return KERNEL_OK;
    }
    choose_types(&work);
    choose_reduction(&work, call->reduction);
    collect_axes(&work, false, true, &work.kept);
    collect_axes(&work, true, call->reduction->values == NULL, &work.reduced);
    cut(&work);
    if (work.chunks > 1) {
        return run_in_chunks(&work);
    }
    const int64_t pieces = divide_up(work.units, work.units_per_piece);
    if (work.groups * work.elements * work.size > SERIAL_BYTES) {
        us_parallel(pieces, run_units, &work);
        return KERNEL_OK;
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        run_units(&work, piece);
    }
    return KERNEL_OK;
}

bool us_reduce_has_lane(const Reduction *reduction, DType compute)
{
    return compute > DTYPE_NONE && compute < DTYPE_COUNT && reduction->step[LEVEL_BASE][us_lane_of(compute)] != NULL;
}
