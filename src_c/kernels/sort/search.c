#include "kernels/sort/search.h"

#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"

#include <math.h>
#include <string.h>

/* A piece of a histogram has so many elements at least for each of its intervals: the counts of all pieces stay fewer than
 * the elements. */
enum { TILE = 1024, PIECE = 16 * 1024, PER_BIN = 8 };

static Axes axes_of(const View *view)
{
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){view}, 1, 0, view->rank);
    return axes;
}

/* ---- search ---- */

typedef struct SearchRun {
    const SortedSearch *call;
    const View *values, *out;
    Axes values_axes, out_axes;
    Lane lane;
    const char *sequences; /* unit stride, of the lane, line after line */
    int64_t length, count, per_line; /* per_line: values that are looked up in a line */
} SearchRun;

static int64_t place_of_real(const double *sequence, int64_t length, double value, bool right)
{
    int64_t begin = 0;
    while (length > 0) {
        const int64_t half = length / 2;
        const double middle = sequence[begin + half];
        const bool below = right ? !(middle > value) : !(middle >= value);
        begin += below ? half + 1 : 0;
        length = below ? length - half - 1 : half;
    }
    return begin;
}

static int64_t place_of_whole(const int64_t *sequence, int64_t length, int64_t value, bool right)
{
    int64_t begin = 0;
    while (length > 0) {
        const int64_t half = length / 2, middle = sequence[begin + half];
        const bool below = right ? middle <= value : middle < value;
        begin += below ? half + 1 : 0;
        length = below ? length - half - 1 : half;
    }
    return begin;
}

static void search_piece(void *context, int64_t piece)
{
    const SearchRun *run = context;
    const int64_t begin = piece * TILE, rest = run->count - begin, count = rest < TILE ? rest : TILE;
    union {
        double real[TILE];
        int64_t whole[TILE];
    } values;
    int64_t places[TILE];
    if (us_view_is_absent(run->values)) {
        values.whole[0] = run->call->value.integer;
        if (!run->call->whole) {
            values.real[0] = run->call->value.real;
        }
    } else {
        us_axes_load(&run->values_axes, 0, run->values->data, run->values->dtype, begin, count, run->lane, &values);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t line = (begin + i) / run->per_line;
        const void *sequence = run->sequences + line * run->length * (int64_t)sizeof(int64_t);
        places[i] = run->call->whole ? place_of_whole(sequence, run->length, values.whole[i], run->call->right)
                                     : place_of_real(sequence, run->length, values.real[i], run->call->right);
    }
    us_axes_store(&run->out_axes, 0, run->out->data, run->out->dtype, begin, count, LANE_INT64, places);
}

/* Line `index` of a view, as one of rank 1. */
static View line_of(const View *view, int64_t index)
{
    View line = *view;
    if (us_view_is_absent(view)) {
        return line;
    }
    const int32_t last = view->rank - 1;
    for (int32_t axis = last - 1; axis >= 0; axis--) {
        const int64_t at = index % view->shape[axis] * view->strides[axis];
        line.data = (char *)line.data + at * (int64_t)us_dtype_size(view->dtype);
        index /= view->shape[axis];
    }
    line.rank = 1;
    line.shape[0] = view->shape[last];
    line.strides[0] = view->strides[last];
    return line;
}

/* The sequence in its order, in the lane; false: the sorter names a place that there is not. */
static bool load_sequence(const View *sequence, const View *sorter, Lane lane, char *to, int64_t *outside)
{
    const int64_t size = (int64_t)us_dtype_size(sequence->dtype), wide = sizeof(int64_t);
    if (us_view_is_absent(sorter)) {
        us_lane_load(lane, to, sequence->data, sequence->dtype, sequence->strides[0], sequence->shape[0]);
        return true;
    }
    for (int64_t i = 0; i < sequence->shape[0]; i++) {
        int64_t place = 0;
        us_lane_load(LANE_INT64, &place,
                     (const char *)sorter->data + i * sorter->strides[0] * (int64_t)us_dtype_size(sorter->dtype),
                     sorter->dtype, 1, 1);
        if (place < 0 || place >= sequence->shape[0]) {
            *outside = place;
            return false;
        }
        us_lane_load(lane, to + i * wide, (const char *)sequence->data + place * sequence->strides[0] * size,
                     sequence->dtype, 1, 1);
    }
    return true;
}

static KernelStatus load_sequences(SearchRun *run, const View *views, int64_t lines, char *to)
{
    int64_t outside = 0;
    for (int64_t i = 0; i < lines; i++) {
        const View sequence = line_of(&views[0], i), sorter = line_of(&views[1], i);
        if (!load_sequence(&sequence, &sorter, run->lane, to + i * run->length * (int64_t)sizeof(int64_t), &outside)) {
            return us_kernel_fault("sorter names place %lld of %lld", (long long)outside, (long long)run->length);
        }
    }
    return KERNEL_OK;
}

KernelStatus us_sorted_search(const View *views, const void *attributes)
{
    const View *sequence = &views[0];
    SearchRun run = {.call = attributes, .values = &views[2], .out = &views[3],
                     .length = sequence->shape[sequence->rank - 1]};
    const int64_t lines = us_shape_elements(sequence->rank - 1, sequence->shape);
    run.lane = run.call->whole ? LANE_INT64 : LANE_DOUBLE;
    run.count = us_view_elements(run.out);
    if (run.count == 0) {
        return KERNEL_OK;
    }
    run.per_line = run.count / lines;
    char *copy = us_scratch_array(us_scratch_count(lines, run.length), sizeof(int64_t));
    if (copy == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const KernelStatus status = load_sequences(&run, views, lines, copy);
    if (status == KERNEL_OK) {
        run.sequences = copy;
        run.out_axes = axes_of(run.out);
        if (!us_view_is_absent(run.values)) {
            run.values_axes = axes_of(run.values);
        }
        run_pieces((run.count + TILE - 1) / TILE, run.count, search_piece, &run);
    }
    us_scratch_give_back(copy);
    return status;
}

/* ---- histogram ---- */

typedef struct HistogramRun {
    const View *self;
    Axes axes;
    int64_t elements, bins, piece; /* piece: elements */
    double least, greatest;
    int64_t *counts; /* per piece */
    double *limits;  /* per piece: its least and greatest element */
} HistogramRun;

static int64_t load_tile(const HistogramRun *run, int64_t piece, int64_t begin, double *values)
{
    const int64_t first = piece * run->piece, count = smaller(smaller(run->elements - first, run->piece) - (begin - first), TILE);
    if (count > 0) {
        us_axes_load(&run->axes, 0, run->self->data, run->self->dtype, begin, count, LANE_DOUBLE, values);
    }
    return count;
}

static void limits_piece(void *context, int64_t piece)
{
    const HistogramRun *run = context;
    double values[TILE], least = INFINITY, greatest = -INFINITY;
    int64_t count = 0;
    for (int64_t begin = piece * run->piece; (count = load_tile(run, piece, begin, values)) > 0; begin += count) {
        for (int64_t i = 0; i < count; i++) {
            least = values[i] < least ? values[i] : least;
            greatest = values[i] > greatest ? values[i] : greatest;
        }
    }
    run->limits[2 * piece] = least;
    run->limits[2 * piece + 1] = greatest;
}

static void count_piece(void *context, int64_t piece)
{
    const HistogramRun *run = context;
    int64_t *counts = run->counts + piece * run->bins, count = 0;
    double values[TILE];
    memset(counts, 0, (size_t)run->bins * sizeof *counts);
    for (int64_t begin = piece * run->piece; (count = load_tile(run, piece, begin, values)) > 0; begin += count) {
        for (int64_t i = 0; i < count; i++) {
            if (values[i] >= run->least && values[i] <= run->greatest) {
                const double place = (values[i] - run->least) * (double)run->bins / (run->greatest - run->least);
                counts[place < (double)run->bins ? (int64_t)place : run->bins - 1]++;
            }
        }
    }
}

static void find_limits(HistogramRun *run, int64_t pieces)
{
    run_pieces(pieces, run->elements, limits_piece, run);
    run->least = run->elements > 0 ? INFINITY : 0;
    run->greatest = run->elements > 0 ? -INFINITY : 0;
    for (int64_t piece = 0; piece < pieces; piece++) {
        run->least = run->limits[2 * piece] < run->least ? run->limits[2 * piece] : run->least;
        run->greatest = run->limits[2 * piece + 1] > run->greatest ? run->limits[2 * piece + 1] : run->greatest;
    }
    if (run->least >= run->greatest) { /* as for elements that are all alike */
        run->least -= 1;
        run->greatest += 1;
    }
}

KernelStatus us_histogram(const View *views, const void *attributes)
{
    const Histogram *call = attributes;
    const View *out = &views[1];
    HistogramRun run = {.self = &views[0], .axes = axes_of(&views[0]), .elements = us_view_elements(&views[0]),
                        .bins = out->shape[0], .least = call->least, .greatest = call->greatest};
    run.piece = larger(PIECE, smaller(run.bins, INT64_MAX / PER_BIN) * PER_BIN);
    const int64_t pieces = ceiling(run.elements, run.piece);
    const size_t limits = us_scratch_bytes(pieces, 2 * sizeof *run.limits);
    char *block = us_scratch_take(limits + us_scratch_bytes(us_scratch_count(pieces + 1, run.bins), sizeof *run.counts));
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run.limits = (void *)block;
    run.counts = (void *)(block + limits);
    if (run.least >= run.greatest) {
        find_limits(&run, pieces);
    }
    KernelStatus status = KERNEL_OK;
    if (!isfinite(run.least) || !isfinite(run.greatest)) {
        status = us_kernel_fault("the limits of the intervals are %g and %g", run.least, run.greatest);
    } else {
        int64_t *totals = run.counts + pieces * run.bins;
        memset(totals, 0, (size_t)run.bins * sizeof *totals);
        run_pieces(pieces, run.elements, count_piece, &run);
        for (int64_t piece = 0; piece < pieces; piece++) {
            for (int64_t i = 0; i < run.bins; i++) {
                totals[i] += run.counts[piece * run.bins + i];
            }
        }
        us_lane_store(LANE_INT64, out->data, out->dtype, out->strides[0], totals, run.bins);
    }
    us_scratch_give_back(block);
    return status;
}
