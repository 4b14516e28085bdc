#include "kernels/reduce/work.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

/* A unit of work reduces to neighbouring outputs: COLUMNS of them side by side where the kept axis is the innermost
 * (REDUCE_COLUMNS of light states, from far memory), else a batch of rows, one after the other in STRIP states (SHORT_STRIP
 * of rows shorter than LONG_ROW). With fewer than FEW_UNITS units each is cut into chunks of its elements; into more where
 * they are read twice, as long as a chunk has BYTES_READ_TWICE for each output, beside which what is kept of it is little.
 * Units of indices are INDEXED_COLUMNS wide, for long columns: the farther down, the fewer elements replace a state. Of
 * MANY_ROWS a unit has at least LANES. Rows of less than SHORT_ROW bytes are turned into columns. Where rows are folded as
 * they lie, those of less than SHORT_FOLDED_ROW elements are, or than SHORT_HALF_ROW of 16 bits or less, or than
 * SHORT_INDEXED_ROW bytes where an index is looked for, too; so are TURNED_BLOCK elements of a few outputs. An index is
 * looked for among NEAR elements, which are still in the cache. */
enum {
    COLUMNS = 1024,
    INDEXED_COLUMNS = 128,
    LONG_ROW = 1024,
    MANY_ROWS = 1024,
    FEW_UNITS = 32,
    MOST_CHUNKS = 64,
    MOST_CHUNKS_READ_TWICE = 256,
    BYTES_READ_TWICE = 512,
    CHUNK_BYTES = 64 * 1024,
    PIECE_ELEMENTS = 16 * 1024,
    SERIAL_BYTES = 128 * 1024,
    FAR_BYTES = 32 << 20,
    SHORT_ROW = 1024,
    SHORT_INDEXED_ROW = 512,
    SHORT_FOLDED_ROW = 32,
    SHORT_HALF_ROW = 128,
    TURNED_BLOCK = 512,
    NEAR = 8 * 1024,
};

typedef struct Wide {
    _Alignas(64) char bytes[COLUMNS * WIDEST];
} Wide;

/* States of a unit's outputs, and what they are guessed to be. */
typedef struct States {
    Wide a, b, guess;
} States;

/* ---- the plan ---- */

static bool is_reduced(const ReduceCall *call, int32_t axis)
{
    return call->axes >> axis & 1;
}

/* The axes of one kind, outermost first: in the order of the input's memory; where elements are counted, as given. */
static void collect_axes(ReduceWork *work, bool reduced, bool sorts, Axes *axes)
{
    const View *input = work->input;
    const uint32_t chosen = reduced ? work->call->axes : ~work->call->axes;
    int32_t order[VIEW_RANK_LIMIT];
    const int32_t rank = us_axes_order(input, chosen, sorts, order);
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

static bool has_own_body(const Reduction *reduction, int body)
{
    return reduction == NULL || (reduction->lanes()->step[body] != NULL && has_own_body(reduction->first, body));
}

static void choose_types(ReduceWork *work)
{
    const DType compute = work->call->compute;
    const Lane lane = us_lane_of(compute);
    const int own = us_own_body(compute);
    const bool has_own = own != 0 && work->input->dtype == compute && has_own_body(work->call->reduction, own);
    work->body = has_own ? own : (int)lane;
    work->array = has_own ? compute : us_lane_dtype(lane);
    work->wide = us_wide_dtype(compute);
    work->wide_size = (int64_t)us_dtype_size(work->wide);
    work->size = (int64_t)us_dtype_size(work->input->dtype);
    work->in_place = work->input->dtype == work->array && compute == work->array;
}

static void choose_reduction(ReduceWork *work, const Reduction *reduction)
{
    const int lane = (int)us_lane_of(work->call->compute);
    const ReduceLanes *lanes = reduction->lanes();
    work->reduction = reduction;
    work->start = lanes->start[lane];
    work->step = lanes->step[work->body];
    work->merge = lanes->merge[lane];
    work->finish = lanes->finish[lane];
    work->fold = (reduction->values != NULL ? reduction->values : reduction)->lanes()->fold[work->body];
    work->find = lanes->find[work->body];
    work->move = lanes->move[lane];
    work->has_b = reduction->outputs > 1;
}

/* Outputs of a few neighbours whose elements lie together, one such block behind the other: blocks are the columns. */
static void turn_blocks(ReduceWork *work)
{
    Axes *kept = &work->kept;
    const int32_t last = kept->rank - 1;
    const int64_t run = kept->shape[last];
    work->turned_runs = 1;
    const bool are_blocks = last > 0 && work->in_place && work->reduced.rank == 1 && run > 1 &&
                            kept->strides[0][last] == 1 && work->reduced.strides[0][0] == run;
    if (!are_blocks || run >= LANES || kept->shape[last - 1] < LANES || work->elements >= TURNED_BLOCK / run) {
        return;
    }
    work->turned_runs = run;
    kept->shape[last] = kept->shape[last - 1];
    kept->shape[last - 1] = run;
    for (int k = 0; k <= work->call->outputs; k++) {
        const int64_t stride = kept->strides[k][last];
        kept->strides[k][last] = kept->strides[k][last - 1];
        kept->strides[k][last - 1] = stride;
    }
}

/* The states of a unit stay in the nearest cache. From far memory long parts of rows come faster, those of 16-bit elements on
 * processors that find rows by themselves (Zen 4: 0.8 of the time). */
static int64_t most_columns(const ReduceWork *work)
{
    int64_t size = larger(work->wide_size, (int64_t)us_dtype_size(work->call->result));
    for (int k = 0; k < work->call->outputs; k++) {
        size = larger(size, (int64_t)us_dtype_size(work->outputs[k].dtype));
    }
    const bool are_light = size <= 8 && !work->has_b && work->reduction->first == NULL;
    const bool come_faster = work->is_far && (work->size >= 4 || us_finds_rows());
    return are_light && come_faster ? REDUCE_COLUMNS : COLUMNS;
}

/* The outputs of a unit: as many of a run as it may have, and where these are few all, of several runs. */
static void cut_outputs(ReduceWork *work, int64_t elements, int64_t columns)
{
    const int32_t last = work->kept.rank - 1;
    const int64_t run = work->kept.shape[last], runs = last > 0 ? work->kept.shape[last - 1] : 1;
    const int64_t wanted = ceiling(PIECE_ELEMENTS, elements), together = run < MANY_ROWS ? 1 : LANES;
    const int64_t batch = smaller(larger(wanted, together), COLUMNS);
    if (work->turned_runs > 1) {
        work->unit_runs = runs;
        work->unit_columns = smaller(run, larger(columns / runs / LANES, 1) * LANES);
    } else {
        work->unit_columns = smaller(run, work->by_columns ? columns : batch);
        const int64_t room = columns / whole_lanes(run), light = wanted / run;
        work->unit_runs = work->unit_columns == run ? bounded(smaller(room, light), 1, runs) : 1;
    }
    work->units_per_run = ceiling(run, work->unit_columns);
    work->units_per_plane = ceiling(runs, work->unit_runs) * work->units_per_run;
    work->units = work->groups / run / runs * work->units_per_plane;
}

/* Elements of rows that are longer than those which are turned. */
static int64_t short_row(const ReduceWork *work)
{
    if (work->fold == NULL || work->reduction->first != NULL || !us_reduce_row_in_place(work)) {
        return SHORT_ROW / work->size;
    }
    return work->reduction->values != NULL ? SHORT_INDEXED_ROW / work->size
           : work->size > 2                ? SHORT_FOLDED_ROW
                                           : SHORT_HALF_ROW;
}

static void cut(ReduceWork *work)
{
    turn_blocks(work);
    const int64_t run = work->kept.shape[work->kept.rank - 1], elements = work->elements > 0 ? work->elements : 1;
    const int64_t along_kept = llabs(work->kept.strides[0][work->kept.rank - 1]);
    const int64_t along_reduced = llabs(work->reduced.strides[0][work->reduced.rank - 1]);
    const bool is_short = elements < short_row(work) && run > elements;
    work->by_columns = work->turned_runs > 1 || (run > 1 && (along_kept < along_reduced || elements == 1 || is_short));
    work->strip = elements < LONG_ROW ? SHORT_STRIP : STRIP;
    const bool is_indexed = work->reduction->values != NULL;
    const int64_t columns = is_indexed ? INDEXED_COLUMNS : COLUMNS, wide = is_indexed ? columns : most_columns(work);
    cut_outputs(work, elements, columns);
    int64_t unit_elements = elements * work->unit_columns * work->unit_runs, chunks = 1;
    if (work->units < FEW_UNITS) {
        int64_t most = ceiling(MOST_CHUNKS, work->units);
        if (work->reduction->first != NULL) {
            most = bounded(elements * work->size / BYTES_READ_TWICE, most, ceiling(MOST_CHUNKS_READ_TWICE, work->units));
        }
        chunks = bounded(unit_elements / (CHUNK_BYTES / work->size), 1, most);
    }
    work->chunk_elements = ceiling(elements, smaller(chunks, elements));
    work->chunks = ceiling(elements, work->chunk_elements);
    if (wide > columns) { /* of the same chunks: the sums do not depend on it, nor on the processor */
        cut_outputs(work, elements, wide);
        unit_elements = elements * work->unit_columns * work->unit_runs;
    }
    work->units_per_piece = ceiling(PIECE_ELEMENTS, unit_elements);
}

/* The outputs of a unit: number of the first one, runs and how many neighbours each. States of a run begin at whole
 * LANES. */
typedef struct Unit {
    int64_t first, runs, columns;
} Unit;

static Unit unit_of(const ReduceWork *work, int64_t number)
{
    const int32_t last = work->kept.rank - 1;
    const int64_t run = work->kept.shape[last], runs = last > 0 ? work->kept.shape[last - 1] : 1;
    const int64_t in_plane = number % work->units_per_plane;
    const int64_t row = in_plane / work->units_per_run * work->unit_runs;
    const int64_t column = in_plane % work->units_per_run * work->unit_columns;
    return (Unit){(number / work->units_per_plane * runs + row) * run + column, smaller(runs - row, work->unit_runs),
                  smaller(run - column, work->unit_columns)};
}

static int64_t states_of(const Unit *unit)
{
    return unit->runs > 1 ? unit->runs * whole_lanes(unit->columns) : unit->columns;
}

/* ---- units ---- */

/* `count` states, of so many elements each. */
static void finish(const ReduceWork *work, int64_t elements, int64_t count, States *states)
{
    work->finish(work->call->numbers, elements, count, states->guess.bytes, states->a.bytes, states->b.bytes);
}

/* The states of a strip to as many as are left of them, a power of two. */
static void merge_strip(const ReduceWork *work, int64_t left, char *a, char *b)
{
    for (int64_t half = work->strip / 2; half >= left; half /= 2) {
        work->merge(half, a, b, a + half * work->wide_size, b + half * work->wide_size);
    }
}

static void store_index(const ReduceWork *work, int64_t position, void *index)
{
    us_number_store(index, work->wide, (Number){.real = (double)position, .integer = position});
}

/* Elements for one state of value and index, the first of the strip's: an index is looked for only where the value is
 * better. */
static void locate(const ReduceWork *work, int64_t position, int64_t count, const char *elements,
                   const ReduceStates *states)
{
    const int64_t size = (int64_t)us_dtype_size(work->array);
    for (int64_t done = 0, part; done < count; done += part) {
        part = smaller(count - done, NEAR);
        _Alignas(64) char a[LANES * WIDEST] = {0}, index[LANES * WIDEST] = {0};
        const ReduceRows row = {elements + done * size, 1, 0, part, work->strip, 0};
        work->fold(&row, a);
        store_index(work, position + done, index);
        work->merge(1, states->a, states->b, a, index);
        if (memcmp(states->b, index, (size_t)work->wide_size) == 0) {
            const int64_t found = work->find(elements + done * size, part, states->a);
            store_index(work, position + done + found, states->b);
        }
    }
}

static void reduce_indexed_row(const ReduceWork *work, const char *row, int64_t begin, int64_t end, char *to_a, char *to_b)
{
    _Alignas(64) char a[LANES * WIDEST], b[LANES * WIDEST];
    work->start(LANES, a, b);
    us_reduce_take_row(work, row, begin, end, locate, &(ReduceStates){NULL, a, b});
    memcpy(to_a, a, (size_t)work->wide_size);
    memcpy(to_b, b, (size_t)work->wide_size);
}

/* The same one of the last LANES states of `rows` strips, neighbours, for each of these states. */
typedef struct Turned {
    _Alignas(64) char bytes[LANES * LANES * WIDEST];
} Turned;

static void turn_strip(const ReduceWork *work, int64_t row, const char *states, Turned *turned)
{
    us_copy_elements(turned->bytes + row * work->wide_size, LANES, states, 1, work->wide_size, LANES);
}

/* Two loops: a search ends where the processor did not expect it, which would undo its work on the next row. */
static void fold_rows(const ReduceWork *work, const char *data, int64_t along, int64_t rows, int64_t begin, int64_t end,
                      char *to_a, char *to_b)
{
    const int64_t size = work->wide_size, bytes = (end - begin) * work->size;
    const char *const elements = data + begin * work->size;
    const int64_t behind = work->end - elements - larger(0, (rows - 1) * along) - bytes;
    const int64_t ahead = bounded(behind, 0, us_fetch_ahead(FETCHED_AHEAD));
    const ReduceRows given = {elements, rows, along / work->size, end - begin, work->strip, ahead};
    work->fold(&given, to_a);
    for (int64_t row = 0; row < rows && work->find != NULL; row++) {
        const int64_t found = work->find(elements + row * along, end - begin, to_a + row * size);
        store_index(work, begin + found, to_b + row * size);
    }
}

/* Up to LANES rows to a state each. What is left of their strips is merged for all of them side by side. */
static void reduce_rows(const ReduceWork *work, const char *data, int64_t along, int64_t rows, int64_t begin, int64_t end,
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
        us_reduce_take_row(work, data + row * along, begin, end, us_reduce_step_strip, &(ReduceStates){guesses, a, b});
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

/* Elements begin … end-1 of outputs each of which has a row. */
static void reduce_run(const ReduceWork *work, const char *data, int64_t count, int64_t begin, int64_t end, char *guess,
                       char *a, char *b)
{
    const int64_t along = work->kept.strides[0][work->kept.rank - 1] * work->size, size = work->wide_size;
    const bool is_indexed = work->reduction->values != NULL;
    const int64_t near_rows = begin < end ? NEAR / (end - begin) : 0, at_once = is_indexed ? smaller(near_rows, LANES) : LANES;
    const bool folds = work->fold != NULL && us_reduce_row_in_place(work) && begin < end && at_once > 0;
    for (int64_t i = 0, rows; i < count; i += rows, data += rows * along, a += rows * size, b += rows * size) {
        rows = is_indexed && !folds ? 1 : smaller(count - i, at_once);
        if (folds) {
            fold_rows(work, data, along, rows, begin, end, a, b);
        } else if (is_indexed) {
            reduce_indexed_row(work, data, begin, end, a, b);
        } else {
            reduce_rows(work, data, along, rows, begin, end, guess + i * size, a, b);
        }
    }
}

/* Elements begin … end-1 of all outputs of a unit. */
static void reduce_unit(const ReduceWork *work, const Unit *unit, int64_t begin, int64_t end, States *states)
{
    const int32_t last = work->kept.rank - 1;
    const char *data = (const char *)work->input->data + us_axes_offset(&work->kept, 0, unit->first) * work->size;
    const int64_t between = last > 0 ? work->kept.strides[0][last - 1] * work->size : 0;
    const int64_t step = whole_lanes(unit->columns) * work->wide_size;
    char *a = states->a.bytes, *b = states->b.bytes, *guess = states->guess.bytes;
    if (work->by_columns) {
        work->start(whole_lanes(states_of(unit)), a, b);
    }
    const bool turns = us_reduce_takes_turned(work);
    const int64_t together = work->turned_runs > 1 ? unit->runs : 1;
    for (int64_t run = 0; run < unit->runs; run += together, data += between, a += step, b += step, guess += step) {
        if (turns) {
            us_reduce_step_turned(work, data, together, unit->columns, begin, end, &(ReduceStates){guess, a, b});
        } else if (work->by_columns) {
            us_reduce_step_columns(work, data, unit->columns, begin, end, guess, a, b);
        } else {
            reduce_run(work, data, unit->columns, begin, end, guess, a, b);
        }
    }
}

static void store_output(const ReduceWork *work, const Unit *unit, int k, const void *values)
{
    const View *out = &work->outputs[k];
    const int32_t last = work->kept.rank - 1;
    const int64_t size = (int64_t)us_dtype_size(out->dtype), stride = work->kept.strides[1 + k][last];
    const int64_t between = last > 0 ? work->kept.strides[1 + k][last - 1] : 0;
    const int64_t step = whole_lanes(unit->columns) * size;
    const DType result = k == 1 && work->call->reduction->values != NULL ? out->dtype : work->call->result;
    Wide rounded, converted;
    us_convert(rounded.bytes, result, values, work->wide, states_of(unit));
    us_convert(converted.bytes, out->dtype, rounded.bytes, result, states_of(unit));
    char *data = (char *)out->data + us_axes_offset(&work->kept, 1 + k, unit->first) * size;
    for (int64_t run = 0; run < unit->runs; run++) {
        us_copy_elements(data + run * between * size, stride, converted.bytes + run * step, 1, size, unit->columns);
    }
}

static void store(const ReduceWork *work, const Unit *unit, const States *states)
{
    for (int k = 0; k < work->call->outputs; k++) {
        if (!us_view_is_absent(&work->outputs[k])) {
            store_output(work, unit, k, k == 0 ? states->a.bytes : states->b.bytes);
        }
    }
}

/* Elements begin … end-1 of a unit: what runs first comes to `first`, as it is before it is finished, and then to guesses. */
static void reduce_both(const ReduceWork *given, const Unit *unit, int64_t begin, int64_t end, States *states, char *first)
{
    ReduceWork work = *given;
    if (work.call->reduction->first != NULL) {
        const int64_t count = states_of(unit);
        const size_t size = (size_t)(count * work.wide_size);
        choose_reduction(&work, work.call->reduction->first);
        reduce_unit(&work, unit, begin, end, states);
        if (first != NULL) {
            memcpy(first, states->a.bytes, size);
        }
        finish(&work, end - begin, count, states);
        memcpy(states->guess.bytes, states->a.bytes, size);
        choose_reduction(&work, work.call->reduction);
    }
    reduce_unit(&work, unit, begin, end, states);
}

static void run_unit(const ReduceWork *work, int64_t number)
{
    States states;
    const Unit unit = unit_of(work, number);
    reduce_both(work, &unit, 0, work->elements, &states, NULL);
    finish(work, work->elements, states_of(&unit), &states);
    store(work, &unit, &states);
}

static void run_units(void *context, int64_t piece)
{
    const ReduceWork *work = context;
    const int64_t begin = piece * work->units_per_piece, end = smaller(begin + work->units_per_piece, work->units);
    for (int64_t unit = begin; unit < end; unit++) {
        run_unit(work, unit);
    }
}

/* ---- units that are cut into chunks ---- */

/* What is kept of a chunk: its states, and where another reduction runs first, that one's and the guesses they came to. A
 * chunk is still in its thread's cache when the guesses are there. */
typedef enum Kept { KEPT_A, KEPT_B, KEPT_FIRST, KEPT_GUESS, KEPT_COUNT } Kept;

static size_t kept_size(const ReduceWork *work)
{
    return (size_t)(work->unit_runs * whole_lanes(work->unit_columns) * work->wide_size);
}

static char *kept(const ReduceWork *work, int64_t unit, int64_t chunk, Kept what)
{
    return work->partial + (size_t)((unit * work->chunks + chunk) * KEPT_COUNT + what) * kept_size(work);
}

static int64_t chunk_end(const ReduceWork *work, int64_t chunk)
{
    return smaller((chunk + 1) * work->chunk_elements, work->elements);
}

static void run_chunk(void *context, int64_t piece)
{
    const ReduceWork *work = context;
    const int64_t number = piece / work->chunks, chunk = piece % work->chunks;
    const Unit unit = unit_of(work, number);
    const size_t size = kept_size(work);
    States states;
    reduce_both(work, &unit, chunk * work->chunk_elements, chunk_end(work, chunk), &states,
                kept(work, number, chunk, KEPT_FIRST));
    memcpy(kept(work, number, chunk, KEPT_A), states.a.bytes, size);
    if (work->has_b) {
        memcpy(kept(work, number, chunk, KEPT_B), states.b.bytes, size);
    }
    if (work->reduction->first != NULL) {
        memcpy(kept(work, number, chunk, KEPT_GUESS), states.guess.bytes, size);
    }
}

/* What ran first in the chunks of a unit comes to the guesses of all of it, to which the chunks' states are moved. */
static void merge_firsts(const ReduceWork *given, int64_t number, int64_t count, States *states)
{
    ReduceWork work = *given;
    choose_reduction(&work, given->reduction->first);
    memcpy(states->a.bytes, kept(given, number, 0, KEPT_FIRST), kept_size(given));
    for (int64_t chunk = 1; chunk < work.chunks; chunk++) {
        work.merge(count, states->a.bytes, NULL, kept(given, number, chunk, KEPT_FIRST), NULL); /* it has no b */
    }
    finish(&work, work.elements, count, states);
    memcpy(states->guess.bytes, states->a.bytes, kept_size(given));
    for (int64_t chunk = 0; chunk < work.chunks; chunk++) {
        given->move(count, chunk_end(given, chunk) - chunk * given->chunk_elements, kept(given, number, chunk, KEPT_GUESS),
                    states->guess.bytes, kept(given, number, chunk, KEPT_A), kept(given, number, chunk, KEPT_B));
    }
}

/* The states of a unit's chunks, merged in order, finished. */
static void merge_chunks(void *context, int64_t number)
{
    const ReduceWork *work = context;
    const Unit unit = unit_of(work, number);
    const int64_t count = states_of(&unit);
    States states;
    if (work->reduction->first != NULL) {
        merge_firsts(work, number, count, &states);
    }
    memcpy(states.a.bytes, kept(work, number, 0, KEPT_A), kept_size(work));
    if (work->has_b) {
        memcpy(states.b.bytes, kept(work, number, 0, KEPT_B), kept_size(work));
    }
    for (int64_t chunk = 1; chunk < work->chunks; chunk++) {
        work->merge(count, states.a.bytes, states.b.bytes, kept(work, number, chunk, KEPT_A), kept(work, number, chunk, KEPT_B));
    }
    finish(work, work->elements, count, &states);
    store(work, &unit, &states);
}

static KernelStatus run_in_chunks(ReduceWork *work)
{
    work->partial = us_scratch_array(us_scratch_count(work->units, work->chunks), KEPT_COUNT * kept_size(work));
    if (work->partial == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_parallel(work->units * work->chunks, run_chunk, work);
    us_parallel(work->units, merge_chunks, work);
    us_scratch_give_back(work->partial);
    return KERNEL_OK;
}

KernelStatus us_reduce(const View *views, const void *attributes)
{
    const ReduceCall *call = attributes;
    ReduceWork work = {.call = call, .input = &views[0], .outputs = &views[1]};
    work.groups = work.elements = 1;
    for (int32_t axis = 0; axis < views[0].rank; axis++) {
        *(is_reduced(call, axis) ? &work.elements : &work.groups) *= views[0].shape[axis];
    }
    if (work.groups == 0) {
        return KERNEL_OK;
    }
    choose_types(&work);
    int64_t lowest, highest;
    us_view_extent(work.input, &lowest, &highest);
    work.end = (const char *)work.input->data + (highest + 1) * work.size;
    work.is_far = work.groups * work.elements >= FAR_BYTES / work.size;
    choose_reduction(&work, call->reduction);
    collect_axes(&work, false, true, &work.kept);
    collect_axes(&work, true, call->reduction->values == NULL, &work.reduced);
    cut(&work);
    if (work.chunks > 1) {
        return run_in_chunks(&work);
    }
    const int64_t pieces = ceiling(work.units, work.units_per_piece);
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
    return compute > DTYPE_NONE && compute < DTYPE_COUNT && reduction->lanes()->step[us_lane_of(compute)] != NULL;
}
