#include "kernels/scan/scan.h"

#include "kernels/move/transpose.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

/* A unit of work is some lines along the axis, or COLUMNS of them where they lie side by side. Lines of up to
 * TURNED_LENGTH, or of less than TURNED_SUM_BYTES where integers are summed up, and groups of a few lines that take turns
 * in memory, are turned into columns: so many that TURNED_ROWS of each fit a tile. A few groups are scanned as they lie. */
enum {
    COLUMNS = 1024,
    TURNED_LENGTH = 256,
    TURNED_SUM_BYTES = 2048,
    TURNED_ROWS = 16,
    TILE_ELEMENTS = 1024,
    WIDEST = 16, /* bytes of the largest element */
    PIECE_ELEMENTS = 16 * 1024,
    SERIAL_BYTES = 128 * 1024,
    CONVERTED_BYTES = 2048, /* of a run that is converted where it belongs; memcpy need not read what a longer one replaces */
    VIEWS = 3,
};

typedef struct Tile {
    _Alignas(64) char bytes[TILE_ELEMENTS * WIDEST];
} Tile;

typedef struct Work {
    const ScanCall *call;
    View views[VIEWS]; /* input, values, indices: from the element that is taken first */
    DType array, wide;
    Axes kept;         /* the other axes; operands: the views */
    int64_t along[VIEWS], length; /* strides and size of the axis */
    bool by_columns;
    int64_t together;  /* lines of a group, which take turns; `kept` are the groups. 1: there are none */
    bool turned;       /* groups, or lines by themselves, come side by side */
    int64_t unit_lines, units_per_run, units, units_per_piece;
} Work;

static int64_t whole_lanes(int64_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}

static int64_t size_of(const Work *work, int k)
{
    return (int64_t)us_dtype_size(work->views[k].dtype);
}

static char *at(const Work *work, int k, int64_t offset)
{
    return (char *)work->views[k].data + offset * size_of(work, k);
}

/* Part of a unit: `rows` elements of each of `lines` lines, and their steps in a tile. */
typedef struct Part {
    int64_t rows, lines, width; /* groups, where lines have some; lines in a tile */
    ScanSteps steps;
} Part;

static int64_t across(const Work *work, int k)
{
    return work->kept.strides[k][work->kept.rank - 1];
}

/* The elements of a part between a view and a tile. */
static void move(const Work *work, int k, char *place, char *tile, const Part *part, bool store)
{
    const int64_t size = size_of(work, k), along = work->along[k], beside = across(work, k);
    if (work->turned) {
        const int64_t row = part->width / work->together * size, elements = part->rows * work->together;
        if (store) {
            us_transpose(place, beside * size, tile, row, elements, part->lines, size);
        } else {
            us_transpose(tile, row, place, beside * size, part->lines, elements, size);
        }
        return;
    }
    if (work->together > 1) {
        us_copy_elements(store ? place : tile, 1, store ? tile : place, 1, size, part->rows * part->width);
        return;
    }
    const int64_t outer = work->by_columns ? part->rows : part->lines, outer_step = work->by_columns ? along : beside;
    const int64_t count = work->by_columns ? part->lines : part->rows, stride = work->by_columns ? beside : along;
    const int64_t tile_step = work->by_columns ? part->steps.row : part->steps.column;
    for (int64_t i = 0; i < outer; i++, place += outer_step * size, tile += tile_step * size) {
        if (store) {
            us_copy_elements(place, stride, tile, 1, size, count);
        } else {
            us_copy_elements(tile, 1, place, stride, size, count);
        }
    }
}

/* The elements of a part as the bodies read them, and their steps: where they are, or in a tile. */
static const char *load(const Work *work, char *place, const Part *part, Tile *elements, ScanSteps *steps)
{
    const DType compute = work->call->compute, dtype = work->views[0].dtype;
    const int64_t count = part->rows * part->width;
    const bool is_ready = dtype == compute && compute == work->array;
    if (is_ready && work->together > 1 && !work->turned) {
        *steps = part->steps;
        return place;
    }
    const bool neighbours = (work->by_columns ? across(work, 0) : work->along[0]) == 1;
    if (is_ready && !work->turned && part->lines == part->width && neighbours) {
        *steps = work->by_columns ? (ScanSteps){work->along[0], 1} : (ScanSteps){1, across(work, 0)};
        return place;
    }
    Tile raw, rounded;
    *steps = part->steps;
    char *moved = is_ready ? elements->bytes : raw.bytes;
    if (part->width > part->lines * work->together) {
        memset(moved, 0, (size_t)(count * size_of(work, 0)));
    }
    move(work, 0, place, moved, part, false);
    if (!is_ready) {
        const bool is_rounded = compute == work->array;
        us_convert(is_rounded ? elements->bytes : rounded.bytes, compute, raw.bytes, dtype, count);
        if (!is_rounded) {
            us_convert(elements->bytes, work->array, rounded.bytes, compute, count);
        }
    }
    return elements->bytes;
}

/* Values to the result's type and to the output's, `count` neighbours. */
static void convert_values(const Work *work, int k, void *to, const void *values, int64_t count)
{
    const DType dtype = work->views[k].dtype, result = k == 2 ? dtype : work->call->result;
    Tile rounded;
    us_convert(dtype != result ? rounded.bytes : to, result, values, work->wide, count);
    if (dtype != result) {
        us_convert(to, dtype, rounded.bytes, result, count);
    }
}

static void store(const Work *work, int k, char *place, const Part *part, const Tile *values)
{
    const int64_t size = size_of(work, k), wide = (int64_t)us_dtype_size(work->wide);
    const int64_t runs = work->by_columns ? part->rows : part->lines, count = work->by_columns ? part->lines : part->rows;
    const int64_t step = work->by_columns ? work->along[k] : across(work, k);
    const int64_t tile_step = work->by_columns ? part->steps.row : part->steps.column;
    const bool neighbours = work->together == 1 && (work->by_columns ? across(work, k) : work->along[k]) == 1;
    if (work->turned || !neighbours || count * size > CONVERTED_BYTES) {
        Tile converted;
        convert_values(work, k, converted.bytes, values->bytes, part->rows * part->width);
        move(work, k, place, converted.bytes, part, true);
        return;
    }
    for (int64_t run = 0; run < runs; run++) {
        convert_values(work, k, place + run * step * size, values->bytes + run * tile_step * wide, count);
    }
}

/* The places of a part come into the cache: where it will be stored, and those of the next one. Inline, or GCC takes it out. */
US_ALWAYS_INLINE void fetch(const Work *work, int k, const char *place, const Part *part)
{
    const int64_t size = size_of(work, k), along = work->along[k], beside = across(work, k);
    const int64_t runs = work->by_columns ? part->rows : part->lines, run_step = work->by_columns ? along : beside;
    const int64_t length = size * (work->by_columns ? part->lines : part->rows);
    if (work->together > 1 || (work->by_columns ? beside : along) != 1) {
        return;
    }
    for (int64_t run = 0; run < runs; run++) {
        for (int64_t byte = 0; byte < length; byte += CACHE_LINE_BYTES) {
            const char *const line = place + run * run_step * size + byte;
            if (k == 0) {
                __builtin_prefetch(line, 0, 3);
            } else {
                __builtin_prefetch(line, 1, 3);
            }
        }
    }
}

/* Whether the bodies can write the values where they belong. */
static bool puts_in_place(const Work *work, const Part *part)
{
    return work->call->outputs == 1 && work->call->result == work->wide && work->views[1].dtype == work->wide &&
           !work->turned && work->together == 1 && part->lines == part->width &&
           (work->by_columns ? across(work, 1) : work->along[1]) == 1;
}

static void run_unit(const Work *work, int64_t unit)
{
    const int64_t run = work->kept.shape[work->kept.rank - 1], begin = unit % work->units_per_run * work->unit_lines;
    const int64_t first = unit / work->units_per_run * run + begin, lines = smaller(run - begin, work->unit_lines);
    const int64_t together = work->together, width = together * (work->by_columns ? whole_lanes(lines) : lines);
    const ScanLanes *scan = work->call->scan->lanes();
    const Lane lane = us_lane_of(work->call->compute);
    _Alignas(64) char a[COLUMNS * WIDEST], b[COLUMNS * WIDEST];
    Tile elements, values[2];
    int64_t offsets[VIEWS];
    for (int k = 0; k <= work->call->outputs; k++) {
        offsets[k] = us_axes_offset(&work->kept, k, first);
    }
    scan->start[lane](width, a, b);
    Part part = {TILE_ELEMENTS / width, lines, width, {1, 1}};
    const bool fetches = !work->by_columns || !us_finds_rows(); /* Zen 4: 1.1 times as fast without */
    const bool in_place = puts_in_place(work, &part);
    ScanPanel panel = {.width = width, .by_columns = work->by_columns, .exclusive = work->call->exclusive};
    for (int64_t done = 0; done < work->length; done += part.rows) {
        part.rows = smaller(work->length - done, part.rows);
        /* Member by member: a copy of what was just written in parts waits until all stores before it are done. */
        part.steps.row = panel.to.row = work->by_columns || together > 1 ? width : 1;
        part.steps.column = panel.to.column = work->by_columns || together > 1 ? 1 : part.rows;
        panel.rows = part.rows;
        panel.position = done;
        for (int k = 1; fetches && k <= work->call->outputs; k++) {
            fetch(work, k, at(work, k, offsets[k] + done * work->along[k]), &part);
        }
        if (fetches && work->by_columns && done + 2 * part.rows <= work->length) {
            fetch(work, 0, at(work, 0, offsets[0] + (done + part.rows) * work->along[0]), &part);
        }
        char *const from = at(work, 0, offsets[0] + done * work->along[0]);
        const char *x = load(work, from, &part, &elements, &panel.x);
        if (in_place) {
            panel.to.row = work->by_columns ? work->along[1] : 1;
            panel.to.column = work->by_columns ? 1 : across(work, 1);
            scan->body[lane](&panel, x, a, b, at(work, 1, offsets[1] + done * work->along[1]), NULL);
            continue;
        }
        scan->body[lane](&panel, x, a, b, values[0].bytes, values[1].bytes);
        for (int k = 1; k <= work->call->outputs; k++) {
            store(work, k, at(work, k, offsets[k] + done * work->along[k]), &part, &values[k - 1]);
        }
    }
}

static void run_units(void *context, int64_t piece)
{
    const Work *work = context;
    const int64_t begin = piece * work->units_per_piece, end = smaller(begin + work->units_per_piece, work->units);
    for (int64_t unit = begin; unit < end; unit++) {
        run_unit(work, unit);
    }
}

/* The axes but the scanned one, in the order of the output's memory. */
static void collect_axes(Work *work)
{
    const View *out = &work->views[1];
    int32_t order[VIEW_RANK_LIMIT];
    const int32_t rank = us_axes_order(out, ~(1u << work->call->axis), true, order);
    const int count = 1 + work->call->outputs;
    for (int32_t i = 0; i < rank; i++) {
        int64_t strides[VIEWS];
        for (int k = 0; k < count; k++) {
            strides[k] = work->views[k].strides[order[i]];
        }
        us_axes_append(&work->kept, out->shape[order[i]], strides, count);
    }
    us_axes_complete(&work->kept, count);
}

/* Groups of less than LANES lines that take turns are what is kept. */
static void form_groups(Work *work)
{
    const int32_t last = work->kept.rank - 1;
    const int64_t run = work->kept.shape[last];
    work->together = 1;
    for (int k = 0; k <= work->call->outputs; k++) {
        if (run == 1 || run >= LANES || work->kept.strides[k][last] != 1 || work->along[k] != run) {
            return;
        }
    }
    work->together = run;
    work->kept.rank--;
    us_axes_complete(&work->kept, 1 + work->call->outputs);
}

/* Sums that hardly wait for each other: one line after the other, they are read and written in the order of memory. */
static bool sums_integers(const ScanCall *call)
{
    const Lane lane = us_lane_of(call->compute);
    return call->scan == &us_scan_sum && (lane == LANE_INT32 || lane == LANE_INT64 || lane == LANE_UINT64);
}

/* Whether lines by themselves are short and many, or groups many. */
static bool are_turned(const Work *work)
{
    const int64_t lines = work->kept.shape[work->kept.rank - 1];
    const bool is_short = sums_integers(work->call) ? work->length < TURNED_SUM_BYTES / size_of(work, 0)
                                                    : work->length <= TURNED_LENGTH;
    bool neighbours = lines >= LANES && (work->together > 1 || is_short);
    for (int k = 0; k <= work->call->outputs; k++) {
        neighbours &= work->along[k] == work->together;
    }
    return neighbours;
}

/* A scalar is scanned as an axis of one element. */
static void take_axis(Work *work)
{
    const int32_t axis = work->call->axis;
    work->length = work->views[0].rank > 0 ? work->views[0].shape[axis] : 1;
    for (int k = 0; k <= work->call->outputs; k++) {
        View *view = &work->views[k];
        work->along[k] = view->rank > 0 ? view->strides[axis] : 1;
        if (work->call->reverse) {
            view->data = at(work, k, (work->length - 1) * work->along[k]);
            work->along[k] = -work->along[k];
        }
    }
}

/* Of a unit: lines, or groups of them. */
static int64_t most_lines(const Work *work)
{
    const int64_t turned = TILE_ELEMENTS / (smaller(work->length, TURNED_ROWS) * work->together) / LANES * LANES;
    if (work->turned) {
        return larger(turned, LANES);
    }
    return work->by_columns ? COLUMNS : work->together > 1 || sums_integers(work->call) ? 1 : SCAN_LINES;
}

KernelStatus us_scan(const View *views, const void *attributes)
{
    const ScanCall *call = attributes;
    Work work = {.call = call};
    memcpy(work.views, views, (size_t)(1 + call->outputs) * sizeof *views);
    const int64_t elements = us_view_elements(&views[0]);
    if (elements == 0) {
        return KERNEL_OK;
    }
    work.array = us_lane_dtype(us_lane_of(call->compute));
    work.wide = us_wide_dtype(call->compute);
    take_axis(&work);
    collect_axes(&work);
    form_groups(&work);
    work.turned = are_turned(&work);
    const int64_t run = work.kept.shape[work.kept.rank - 1], group = work.together * work.length;
    const int64_t beside = llabs(across(&work, 1));
    work.by_columns = work.turned || (work.together == 1 && run > 1 && beside < llabs(work.along[1]));
    work.unit_lines = smaller(run, most_lines(&work));
    work.units_per_run = (run + work.unit_lines - 1) / work.unit_lines;
    work.units = elements / group / run * work.units_per_run;
    work.units_per_piece = PIECE_ELEMENTS / (work.unit_lines * group) + 1;
    const int64_t pieces = (work.units + work.units_per_piece - 1) / work.units_per_piece;
    if (elements * size_of(&work, 0) > SERIAL_BYTES) {
        us_parallel(pieces, run_units, &work);
        return KERNEL_OK;
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        run_units(&work, piece);
    }
    return KERNEL_OK;
}

bool us_scan_has_lane(const Scan *scan, DType compute)
{
    return compute > DTYPE_NONE && compute < DTYPE_COUNT && scan->lanes()->body[us_lane_of(compute)] != NULL;
}
