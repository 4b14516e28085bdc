#include "kernels/sort/sort.h"

#include "kernels/detach.h"
#include "kernels/scratch.h"
#include "kernels/sort/keys.h"
#include "kernels/sort/lines.h"
#include "tensor/lane.h"
#include "tensor/parallel.h"

#include <stdatomic.h>

enum { TILE = 1024, CHUNK = 1 << 16, LONG_LINE = 1 << 18, LINES_AT_ONCE = 8, DIGITS = 2048, DIGIT_BITS = 11, FEW = 32 };

typedef struct LineRun {
    const View *self, *values, *indices;
    int32_t axis;
    KeyRule rule;
    int64_t size, kept; /* of a line: elements, and those of the result */
    int64_t lines, lines_at_once;
    bool narrow;
    atomic_bool no_memory;
} LineRun;

static void put_entry(void *entries, bool narrow, int64_t at, uint64_t key, int64_t place)
{
    if (narrow) {
        ((NarrowEntry *)entries)[at] = key << 32 | (uint64_t)place;
    } else {
        ((WideEntry *)entries)[at] = (WideEntry){key, (uint64_t)place};
    }
}

static int64_t place_of(const void *entries, bool narrow, int64_t at)
{
    return (int64_t)(narrow ? ((const NarrowEntry *)entries)[at] & UINT32_MAX : ((const WideEntry *)entries)[at].place);
}

/* ---- entries of a line, in chunks ---- */

typedef struct LineWork {
    const LineRun *run;
    Line self, values, indices;
    void *entries;
    /* For a selection: keys whose first bits are up to `limit`; per chunk, where they go. */
    int shift;
    uint64_t limit;
    uint32_t (*counts)[DIGITS];
    int64_t *begins;
} LineWork;

static int64_t chunk_count(int64_t size)
{
    return (size + CHUNK - 1) / CHUNK;
}

static int64_t tile_of(const LineWork *work, int64_t chunk, int64_t begin, uint64_t *keys)
{
    const int64_t size = work->run->size, end = size < (chunk + 1) * CHUNK ? size : (chunk + 1) * CHUNK;
    const int64_t count = end - begin < TILE ? end - begin : TILE;
    if (count > 0) {
        us_load_keys(keys, us_line_element(&work->self, begin), work->self.dtype, work->self.stride, count,
                     work->run->rule);
    }
    return count;
}

static void enter_chunk(void *context, int64_t chunk)
{
    const LineWork *work = context;
    uint64_t keys[TILE];
    int64_t count = 0;
    for (int64_t begin = chunk * CHUNK; (count = tile_of(work, chunk, begin, keys)) > 0; begin += count) {
        for (int64_t i = 0; i < count; i++) {
            put_entry(work->entries, work->run->narrow, begin + i, keys[i], begin + i);
        }
    }
}

static void count_chunk(void *context, int64_t chunk)
{
    const LineWork *work = context;
    uint64_t keys[TILE];
    uint32_t *counts = work->counts[chunk];
    int64_t count = 0;
    memset(counts, 0, sizeof work->counts[chunk]);
    for (int64_t begin = chunk * CHUNK; (count = tile_of(work, chunk, begin, keys)) > 0; begin += count) {
        for (int64_t i = 0; i < count; i++) {
            counts[keys[i] >> work->shift]++;
        }
    }
}

static void select_chunk(void *context, int64_t chunk)
{
    const LineWork *work = context;
    uint64_t keys[TILE];
    int64_t at = work->begins[chunk], count = 0;
    for (int64_t begin = chunk * CHUNK; (count = tile_of(work, chunk, begin, keys)) > 0; begin += count) {
        for (int64_t i = 0; i < count; i++) {
            if (keys[i] >> work->shift <= work->limit) {
                put_entry(work->entries, work->run->narrow, at++, keys[i], begin + i);
            }
        }
    }
}

/* ---- results ---- */

typedef struct LineOutput {
    const LineWork *work;
    const void *sorted;
    bool narrow; /* these entries */
} LineOutput;

#define PICK_CASE(type) \
    case sizeof(type): \
        for (int64_t i = 0; i < count; i++) { \
            ((type *)to)[i] = ((const type *)(const void *)self->data)[places[i] * self->stride]; \
        } \
        break;

static void pick(void *to, const Line *self, const int64_t *places, int64_t count)
{
    switch (us_dtype_size(self->dtype)) {
        PICK_CASE(uint8_t)
        PICK_CASE(uint16_t)
        PICK_CASE(uint32_t)
        PICK_CASE(uint64_t)
    }
}

static void store(const Line *line, int64_t begin, const void *from, DType dtype, int64_t count)
{
    _Alignas(64) unsigned char converted[TILE * sizeof(uint64_t)];
    const void *values = from;
    if (line->dtype != dtype) {
        us_convert(converted, line->dtype, from, dtype, count);
        values = converted;
    }
    us_copy_elements(us_line_element(line, begin), line->stride, values, 1, (int64_t)us_dtype_size(line->dtype), count);
}

static void output_chunk(void *context, int64_t chunk)
{
    const LineOutput *output = context;
    const LineWork *work = output->work;
    const int64_t kept = work->run->kept, end = kept < (chunk + 1) * CHUNK ? kept : (chunk + 1) * CHUNK;
    int64_t places[TILE];
    _Alignas(64) unsigned char values[TILE * sizeof(uint64_t)];
    for (int64_t begin = chunk * CHUNK; begin < end; begin += TILE) {
        const int64_t count = end - begin < TILE ? end - begin : TILE;
        for (int64_t i = 0; i < count; i++) {
            places[i] = place_of(output->sorted, output->narrow, begin + i);
        }
        if (work->values.data != NULL) {
            pick(values, &work->self, places, count);
            store(&work->values, begin, values, work->self.dtype, count);
        }
        if (work->indices.data != NULL) {
            store(&work->indices, begin, places, DTYPE_INT64, count);
        }
    }
}

/* ---- a line ---- */

static void *sort_entries(const LineRun *run, void *entries, int64_t count)
{
    const int bits = 8 * (int)us_dtype_size(run->self->dtype);
    return run->narrow ? (void *)us_sort_narrow(entries, (NarrowEntry *)entries + count, count, bits)
                       : (void *)us_sort_wide(entries, (WideEntry *)entries + count, count, bits);
}

static size_t entry_size(const LineRun *run)
{
    return run->narrow ? sizeof(NarrowEntry) : sizeof(WideEntry);
}

static bool finish_line(LineWork *work, int64_t entered)
{
    void *sorted = sort_entries(work->run, work->entries, entered);
    LineOutput output = {work, sorted, work->run->narrow};
    if (sorted != NULL) {
        us_parallel(chunk_count(work->run->kept), output_chunk, &output);
    }
    return sorted != NULL;
}

static bool sort_whole(LineWork *work)
{
    const int64_t size = work->run->size;
    work->entries = us_scratch_array(size, 2 * entry_size(work->run));
    bool done = work->entries != NULL;
    if (done) {
        us_parallel(chunk_count(size), enter_chunk, work);
        done = finish_line(work, size);
    }
    us_scratch_give_back(work->entries);
    return done;
}

/* How many entries a selection has: all whose first bits are those of the last one kept, or less. */
static int64_t limit_selection(LineWork *work, int64_t chunks)
{
    int64_t entered = 0;
    for (work->limit = 0; work->limit < DIGITS; work->limit++) {
        for (int64_t chunk = 0; chunk < chunks; chunk++) {
            entered += work->counts[chunk][work->limit];
        }
        if (entered >= work->run->kept) {
            break;
        }
    }
    int64_t next = 0;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        work->begins[chunk] = next;
        for (uint64_t digit = 0; digit <= work->limit; digit++) {
            next += work->counts[chunk][digit];
        }
    }
    return entered;
}

/* Only the elements that may be among the kept ones are sorted: a count of their first bits tells which. */
static bool sort_selection(LineWork *work)
{
    const LineRun *run = work->run;
    const int64_t chunks = chunk_count(run->size);
    const int bits = 8 * (int)us_dtype_size(run->self->dtype);
    work->shift = bits > DIGIT_BITS ? bits - DIGIT_BITS : 0;
    const size_t counts = us_scratch_bytes(chunks, sizeof *work->counts);
    char *block = us_scratch_take(counts + us_scratch_bytes(chunks, sizeof *work->begins));
    if (block == NULL) {
        return false;
    }
    work->counts = (void *)block;
    work->begins = (void *)(block + counts);
    us_parallel(chunks, count_chunk, work);
    const int64_t entered = limit_selection(work, chunks);
    work->entries = us_scratch_array(entered, 2 * entry_size(run));
    bool done = work->entries != NULL;
    if (done) {
        us_parallel(chunks, select_chunk, work);
        done = finish_line(work, entered);
    }
    us_scratch_give_back(work->entries);
    us_scratch_give_back(block);
    return done;
}

/* A few: kept in order while the line goes by. Of many, most elements cost one comparison. */
static bool keep_few(LineWork *work)
{
    const LineRun *run = work->run;
    WideEntry best[FEW];
    uint64_t keys[TILE];
    int64_t filled = 0;
    for (int64_t begin = 0; begin < run->size; begin += TILE) {
        const int64_t rest = run->size - begin, count = rest < TILE ? rest : TILE;
        us_load_keys(keys, us_line_element(&work->self, begin), work->self.dtype, work->self.stride, count, run->rule);
        for (int64_t i = 0; i < count; i++) {
            if (filled == run->kept && keys[i] >= best[filled - 1].key) { /* of equal ones the first is kept */
                continue;
            }
            int64_t at = filled < run->kept ? filled++ : filled - 1;
            for (; at > 0 && best[at - 1].key > keys[i]; at--) {
                best[at] = best[at - 1];
            }
            best[at] = (WideEntry){keys[i], (uint64_t)(begin + i)};
        }
    }
    LineOutput output = {work, best, false};
    output_chunk(&output, 0);
    return true;
}

static void sort_lines(void *context, int64_t piece)
{
    LineRun *run = context;
    const int64_t end = run->lines < (piece + 1) * run->lines_at_once ? run->lines : (piece + 1) * run->lines_at_once;
    for (int64_t number = piece * run->lines_at_once; number < end; number++) {
        LineWork work = {.run = run, .self = us_line_of(run->self, run->axis, number),
                         .values = us_line_of(run->values, run->axis, number),
                         .indices = us_line_of(run->indices, run->axis, number)};
        const bool selects = run->kept < run->size / 4 && run->size >= 4 * DIGITS;
        if (!(run->kept <= FEW && run->size < LONG_LINE ? keep_few(&work)
              : selects                                 ? sort_selection(&work)
                                                        : sort_whole(&work))) {
            atomic_store(&run->no_memory, true);
        }
    }
}

static KernelStatus sort_views(const View *self, const View *values, const View *indices, const SortLines *call)
{
    const View *result = us_view_is_absent(values) ? indices : values;
    LineRun run = {.self = self, .values = values, .indices = indices, .axis = call->axis};
    run.rule = us_key_rule(run.self->dtype, call->descending);
    run.size = run.self->rank > 0 ? run.self->shape[call->axis] : 1;
    run.kept = result->rank > 0 ? result->shape[call->axis] : 1;
    const int64_t elements = us_view_elements(run.self);
    if (elements <= 0 || run.kept == 0) {
        return KERNEL_OK;
    }
    run.lines = elements / run.size;
    run.narrow = us_dtype_size(run.self->dtype) <= 4 && run.size <= UINT32_MAX;
    run.lines_at_once = run.size < TILE ? TILE / run.size + 1 : 1;
    const int64_t pieces = (run.lines + run.lines_at_once - 1) / run.lines_at_once;
    if (run.size >= LONG_LINE && run.lines < LINES_AT_ONCE) { /* all threads on one line after the other */
        for (int64_t piece = 0; piece < pieces; piece++) {
            sort_lines(&run, piece);
        }
    } else {
        us_parallel(pieces, sort_lines, &run);
    }
    return atomic_load(&run.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_topk(const View *views, const void *attributes)
{
    /* Values are read from self when the first ones of them are written. */
    Detached detached;
    KernelStatus status = us_detach_same(&detached, 1, views, 2, &views[1]);
    if (status == KERNEL_OK) {
        status = sort_views(&detached.inputs[0], &views[1], &views[2], attributes);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_sort(const View *views, const void *attributes)
{
    return us_topk(views, attributes);
}
