/* The sums of a gather by loops along rows: for depthwise filters of 3 x 3 taps, or with channels last, and for weights that are
 * not finite, which must not meet the zeros that columns and cells have outside the input. Others go over cells, or by vectors
 * of results. */
#include "kernels/conv/gather.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Taps that are summed without leaving the registers; channels of a depthwise piece; elements of a stretch of memory that is
 * read at a time, and most results that share it; bytes of a strip of rows, which stay in the first cache with their results. */
enum { TAPS = 32, CHANNELS = 32, VECTOR_BYTES = 64, STRETCH = 4096, MOST_RESULTS = 8, STRIP_BYTES = 12 * 1024 };

/* The taps of a 3 x 3 filter. */
enum { SIDE = 3, SQUARE = SIDE * SIDE };

/* A depthwise filter of 3 x 3 neighbouring taps, with steps of 1: planes are read where they lie, by vectors whose lanes
 * outside a row become zeros. */
typedef struct Square {
    int64_t in_height, in_width; /* of the input */
    int64_t height, width;       /* of results */
    int64_t top, left;           /* how far the first neighbour is above and left of its result */
    int64_t taps[SQUARE];        /* of the neighbours: they may be turned round */
    int64_t before, behind;      /* elements around planes that vectors reach */
} Square;

typedef struct Rows {
    const Gather *gather;
    const Finish *finish;
    const void *filter; /* packed; depthwise and channels last: [tap][channel] */
    const void *dy;
    DType dy_type;
    void *sums;
    bool is_square; /* or else row by row */
    Square square;
    int64_t results_per_piece; /* of slopes */
    atomic_bool no_memory;
} Rows;

static int64_t lowest_offset(const TapAxis *taps)
{
    return smaller(taps->offset + (taps->count - 1) * taps->offset_step, taps->offset);
}

static bool has_neighbours(const TapAxis *taps)
{
    return taps->count == SIDE && (taps->offset_step == 1 || taps->offset_step == -1);
}

static bool is_square(const Gather *gather)
{
    return gather->channels == 1 && gather->results == 1 && gather->step[1] == 1 && gather->step[2] == 1 &&
           gather->in_size[0] == 1 && gather->out_size[0] == 1 && gather->taps[0].count == 1 && gather->taps[0].offset == 0 &&
           has_neighbours(&gather->taps[1]) && has_neighbours(&gather->taps[2]) && gather->in_size[2] < INT32_MAX / 2 &&
           gather->out_size[2] < INT32_MAX / 2;
}

static Square square_of(const Gather *gather)
{
    Square square = {.in_height = gather->in_size[1], .in_width = gather->in_size[2],
                     .height = gather->out_size[1], .width = gather->out_size[2],
                     .top = -lowest_offset(&gather->taps[1]), .left = -lowest_offset(&gather->taps[2])};
    for (int64_t n = 0; n < SQUARE; n++) {
        const int64_t t1 = gather->taps[1].offset_step > 0 ? n / SIDE : SIDE - 1 - n / SIDE;
        const int64_t t2 = gather->taps[2].offset_step > 0 ? n % SIDE : SIDE - 1 - n % SIDE;
        square.taps[n] = t1 * SIDE + t2;
    }
    const int64_t reached = square.width + SIDE - square.left - square.in_width;
    square.before = square.left > 0 ? square.left : 0;
    square.behind = (reached > 0 ? reached : 0) + VECTOR_BYTES / (int64_t)us_dtype_size(gather->compute);
    return square;
}

typedef struct Span {
    int64_t begin, end;
} Span;

/* The result positions of a row whose tap `tap` lies inside the input. */
static Span inside(const Gather *gather, int64_t tap)
{
    const int64_t start = gather->taps[2].offset + tap * gather->taps[2].offset_step, step = gather->step[2];
    const int64_t size = gather->in_size[2], out = gather->out_size[2];
    Span span = {start < 0 ? (-start + step - 1) / step : 0, start >= size ? 0 : (size - 1 - start) / step + 1};
    span.end = span.end < out ? span.end : out;
    span.begin = span.begin < span.end ? span.begin : span.end;
    return span;
}

/* The result positions of a row whose taps all lie inside; empty at 0 when there are none. */
static Span interior(const Gather *gather)
{
    const Span first = inside(gather, 0), last = inside(gather, gather->taps[2].count - 1);
    Span span = {first.begin > last.begin ? first.begin : last.begin, first.end < last.end ? first.end : last.end};
    return span.begin < span.end ? span : (Span){0, 0};
}

/* The row of the input that a tap of a result row sees, counted in rows of a plane; -1: none. */
static int64_t input_row(const Gather *gather, int64_t o0, int64_t o1, int64_t t0, int64_t t1)
{
    const int64_t i0 = o0 * gather->step[0] + gather->taps[0].offset + t0 * gather->taps[0].offset_step;
    const int64_t i1 = o1 * gather->step[1] + gather->taps[1].offset + t1 * gather->taps[1].offset_step;
    const bool is_inside = i0 >= 0 && i0 < gather->in_size[0] && i1 >= 0 && i1 < gather->in_size[1];
    return is_inside ? i0 * gather->in_size[1] + i1 : -1;
}

#define LOOPS "kernels/conv/row_loops.inc"
#include "kernels/registers.inc"

#define ELEMENT float
#define NAME(name) name##_float
#include "kernels/conv/rows.inc"

#define ELEMENT double
#define NAME(name) name##_double
#include "kernels/conv/rows.inc"

static bool is_depthwise_last(const Gather *gather)
{
    return gather->channels_last; /* see conv.c: with channels last, only depthwise filters come here */
}

static KernelStatus end(Rows *rows)
{
    return atomic_load(&rows->no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_gather_by_rows(const Gather *gather, const Finish *finish)
{
    Rows rows = {.gather = gather, .finish = finish};
    const bool wide = gather->compute == DTYPE_FLOAT64;
    const int64_t elements = gather->groups * gather->results * gather->channels * gather_taps(gather);
    void *filter = us_scratch_take(us_scratch_bytes(elements, us_dtype_size(gather->compute)) + 64);
    atomic_init(&rows.no_memory, false);
    if (filter == NULL) {
        return KERNEL_NO_MEMORY;
    }
    rows.filter = filter;
    if (is_depthwise_last(gather)) {
        /* One result and channel a group: what is packed for one group of all channels has the order [tap][channel]. */
        Gather turned = *gather;
        turned.channels = gather->groups;
        turned.groups = 1;
        turned.filter.strides[2] = gather->filter.strides[0];
        us_gather_pack_filter(&turned, filter);
        us_parallel(gather->images * gather->out_size[0] * gather->out_size[1],
                    wide ? position_row_double : position_row_float, &rows);
    } else {
        us_gather_pack_filter(gather, filter);
        const bool finite = wide ? are_finite_double(filter, elements) : are_finite_float(filter, elements);
        rows.is_square = finite && is_square(gather); /* zeros beside planes must not meet filters that are not finite */
        rows.square = rows.is_square ? square_of(gather) : (Square){0};
        const bool by_lanes = us_lanes_take(gather);
        if (finite && !rows.is_square && (by_lanes || us_cells_take(gather))) {
            const KernelStatus status = (by_lanes ? us_gather_by_lanes : us_gather_by_cells)(gather, filter, finish);
            us_scratch_give_back(filter);
            return status;
        }
        us_parallel(gather->images * gather->groups * gather->results, wide ? plane_double : plane_float, &rows);
    }
    us_scratch_give_back(filter);
    return end(&rows);
}

KernelStatus us_gather_slopes_by_rows(const Gather *gather, const void *dy, DType dy_type, void *sums)
{
    Rows rows = {.gather = gather, .dy = dy, .dy_type = dy_type, .sums = sums};
    const bool wide = gather->compute == DTYPE_FLOAT64;
    rows.is_square = is_square(gather);
    rows.square = rows.is_square ? square_of(gather) : (Square){0};
    const bool by_lanes = gather->channels * gather->results > 1 && dy_type == DTYPE_FLOAT32 && us_lanes_take(gather);
    if (!rows.is_square && (by_lanes || us_cells_take(gather))) {
        const KernelStatus status = by_lanes ? us_gather_slopes_by_lanes(gather, dy, sums)
                                             : us_gather_slopes_by_cells(gather, dy, dy_type, sums);
        const int64_t elements = gather->groups * gather->results * gather->channels * gather_taps(gather);
        if (status != KERNEL_OK || (wide ? are_finite_double(sums, elements) : are_finite_float(sums, elements))) {
            return status;
        }
    }
    atomic_init(&rows.no_memory, false);
    if (is_depthwise_last(gather)) {
        us_parallel((gather->groups + CHANNELS - 1) / CHANNELS, wide ? channel_slopes_double : channel_slopes_float,
                    &rows);
    } else {
        /* Small planes of neighbours lie in one stretch of memory. */
        const int64_t results = gather->groups * gather->results, plane = conv_product3(gather->out_size);
        rows.results_per_piece = plane < STRETCH / MOST_RESULTS ? MOST_RESULTS : 1;
        us_parallel((results + rows.results_per_piece - 1) / rows.results_per_piece,
                    wide ? result_slopes_double : result_slopes_float, &rows);
    }
    return end(&rows);
}
