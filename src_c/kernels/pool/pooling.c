#include "kernels/pool/pooling.h"

#include "kernels/detach.h"
#include "kernels/packed.h"
#include "kernels/pieces.h"
#include "kernels/pool/average_gradient.h"
#include "kernels/pool/copies.h"
#include "kernels/pool/side_by_side.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/widened.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Elements of the input in one piece of work. Rows of a window are taken ROWS at a time, and several rows of windows
 * together while they have no more than GROUP_ELEMENTS: what was written is then read when it has reached the cache.
 * Planes of no more than BESIDE_LIMIT elements are taken side by side, gradients of averages of
 * GRADIENT_BESIDE_LIMIT. */
enum { PIECE_ELEMENTS = 16 * 1024, GROUP_ELEMENTS = 2048, ROWS = 8, AHEAD = 512 };
enum { BESIDE_LIMIT = 400, GRADIENT_BESIDE_LIMIT = 4096 };

typedef struct Span {
    int64_t begin, end;
} Span;

/* Backward, of the maximum: rows of x are kept as `parts` arrays of `part` numbers, rows of windows have a margin in front.
 * Both are rows of working memory, a power of two of them that are used in turn. */
typedef struct MaximumRows {
    int64_t taps; /* along a row that windows can see */
    int64_t parts, part, pitch, count;
    int64_t windows_margin, windows_pitch, windows_count;
    int64_t line, group; /* room for a row; rows of dx that are stored together */
} MaximumRows;

/* One call. Every view is seen as [n, c, d, h, w]. A row is what lies along the last axis: of one channel, or, where
 * channels are innermost, of all `inner` channels. Planes are made of such rows. */
typedef struct Pool {
    const Pooling *pooling;
    View x, y, dy, dx; /* forward: x and y */
    int64_t in[3], out[3];
    int64_t planes, inner, element_size;
    /* Rows are unit-stride arrays of the loops' type; otherwise they are gathered and scattered one by one. */
    bool direct;
    bool packed; /* rows of the result follow each other without gaps */
    const char *x_end; /* behind the last element of x that the program gave */
    Span within[3]; /* outputs on an axis whose windows lie inside */
    int64_t pitch; /* of working copies of input rows: loops handle LANES outputs even where fewer are left */
    bool averages_all; /* what an average is divided by is the same for all windows: `divisor` */
    double divisor;
    double lowest; /* the finite value nearest to minus infinity */
    int64_t rows_per_piece; /* forward */
    int axis; /* backward: planes are cut into bands along this axis */
    int64_t band, bands, bands_per_piece, sums; /* of a band: sums are the numbers that are kept for it */
    MaximumRows maximum; /* backward */
    atomic_int out_of_memory;
} Pool;

static View five_axes(const View *view)
{
    if (us_view_is_absent(view) || view->rank == 5) {
        return *view;
    }
    View five = *view;
    five.rank = 5;
    five.shape[2] = 1;
    five.strides[2] = 0;
    for (int axis = 3; axis < 5; axis++) {
        five.shape[axis] = view->shape[axis - 1];
        five.strides[axis] = view->strides[axis - 1];
    }
    return five;
}

static double lowest_of(DType dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT16: return -65504.0;
    case DTYPE_BFLOAT16: return -0x1.fep127;
    case DTYPE_FLOAT64: return -0x1.fffffffffffffp1023;
    default: return -0x1.fffffep127;
    }
}

static int64_t whole_lanes(int64_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}

/* Rows of windows handled together. */
static int64_t group_of(const Pool *pool)
{
    return larger(GROUP_ELEMENTS / pool->pitch, 1);
}

static void *row_at(const Pool *pool, const View *view, int64_t plane, int64_t d, int64_t h)
{
    const int64_t channels = pool->inner > 1 ? 1 : view->shape[1], stride = view->strides[1];
    int64_t offset = d * view->strides[2] + h * view->strides[3];
    if (channels == 1) {
        offset += plane * view->strides[0];
    } else if (view->strides[0] == channels * stride) { /* saves a division */
        offset += plane * stride;
    } else {
        offset += plane / channels * view->strides[0] + plane % channels * stride;
    }
    return (char *)view->data + offset * pool->element_size;
}

/* A row of windows: its place among all, counted up without dividing. */
typedef struct Place {
    int64_t plane, d, h;
} Place;

static Place place_of(const Pool *pool, int64_t row)
{
    const int64_t h = row % pool->out[1], rest = row / pool->out[1];
    return (Place){rest / pool->out[0], rest % pool->out[0], h};
}

static void next_place(const Pool *pool, Place *place)
{
    if (++place->h == pool->out[1]) {
        place->h = 0;
        if (++place->d == pool->out[0]) {
            place->d = 0;
            place->plane++;
        }
    }
}

/* The taps of output position `o` on one axis that lie inside. */
static Span inside(const Pool *pool, int axis, int64_t o)
{
    const Pooling *pooling = pool->pooling;
    const int64_t begin = o * pooling->stride[axis] - pooling->padding[axis];
    Span span = {larger(begin, 0), smaller(begin + pooling->window[axis], pool->in[axis])};
    span.end = larger(span.end, span.begin);
    return span;
}

static int64_t length(Span span)
{
    return span.end - span.begin;
}

/* The output positions on one axis whose windows reach into begin … end - 1 of the input. */
static Span reaching(const Pool *pool, int axis, int64_t begin, int64_t end)
{
    const Pooling *pooling = pool->pooling;
    const int64_t before = begin + pooling->padding[axis] - pooling->window[axis];
    Span span = {before < 0 ? 0 : before / pooling->stride[axis] + 1,
                 smaller((end - 1 + pooling->padding[axis]) / pooling->stride[axis] + 1, pool->out[axis])};
    span.end = larger(span.end, span.begin);
    return span;
}

static bool is_maximum(const Pool *pool)
{
    return pool->pooling->mode == POOLING_MAX || pool->pooling->mode == POOLING_MAX_BY_RESULT;
}

/* The taps of output position `o` on one axis that an average is divided by. */
static int64_t counted(const Pool *pool, int axis, int64_t o)
{
    const Pooling *pooling = pool->pooling;
    const int64_t begin = o * pooling->stride[axis] - pooling->padding[axis];
    return pooling->mode == POOLING_AVERAGE_PADDED
               ? smaller(pooling->window[axis], pool->in[axis] + pooling->padding[axis] - begin)
               : length(inside(pool, axis, o));
}

/* How many windows of a row from `o` on can be handled together, because they lie inside it or are alike anyway. */
static int64_t together(const Pool *pool, int64_t o, bool are_alike)
{
    const Span within = pool->within[2];
    return are_alike ? pool->out[2] - o : o == within.begin && o < within.end ? length(within) : 1;
}

/* The taps that count of the other axes. */
static double counted_rows(const Pool *pool, int64_t d, int64_t h)
{
    return (double)counted(pool, 0, d) * (double)counted(pool, 1, h);
}

/* What the average over a window with so many taps that count is divided by; without any it is 0. */
static double divisor(const Pool *pool, double rows, int64_t taps)
{
    const double all = rows * (double)taps;
    return pool->averages_all ? pool->divisor : all > 1 ? all : 1;
}

/* Division by a power of two is the same as multiplication, which is faster. */
static bool is_power_of_two(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits << 12 == 0;
}

/* Whether no tap of the window is a number. */
static bool only_nan(const Pool *pool, const Place *place, int64_t o, int64_t channel)
{
    const View *x = &pool->x;
    const Span d = inside(pool, 0, place->d), h = inside(pool, 1, place->h), w = inside(pool, 2, o);
    for (int64_t z = d.begin; z < d.end; z++) {
        for (int64_t y = h.begin; y < h.end; y++) {
            const char *row = row_at(pool, x, place->plane, z, y);
            for (int64_t tap = w.begin; tap < w.end; tap++) {
                const int64_t at = tap * x->strides[4] + channel * x->strides[1];
                double value;
                us_load_double(&value, row + at * pool->element_size, x->dtype, 1, 1);
                if (!isnan(value)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* What joins two taps of a window. A NaN never replaces what is there, or always does. */
typedef enum Joining { JOIN_SUM, JOIN_LARGER, JOIN_LARGER_OR_NAN } Joining;

static Joining joining_of(const Pool *pool)
{
    return !is_maximum(pool) ? JOIN_SUM : pool->pooling->propagate_nan ? JOIN_LARGER_OR_NAN : JOIN_LARGER;
}

/* Squares of two axes, two elements apart, and nothing to blend. */
static bool is_maximum_of_squares(const Pool *pool, int64_t side, int64_t most_padding)
{
    const Pooling *pooling = pool->pooling;
    bool is = is_maximum(pool) && pool->in[0] == 1 && pool->out[0] == 1;
    for (int axis = 1; axis < 3; axis++) {
        is &= pooling->window[axis] == side && pooling->stride[axis] == 2 && pooling->padding[axis] <= most_padding;
    }
    return is && pooling->alpha == 1 && pooling->beta == 0;
}

/* 2 x 2 elements side by side, all inside, in rows of at least LANES windows. */
static bool is_maximum_of_four(const Pool *pool)
{
    return is_maximum_of_squares(pool, 2, 0) && pool->out[2] >= LANES && 2 * pool->out[1] <= pool->in[1] &&
           2 * pool->out[2] <= pool->in[2];
}

static bool is_maximum_of_nine(const Pool *pool)
{
    return is_maximum_of_squares(pool, 3, 1);
}

/* Backward: where a band lies on the axes d and h, and the windows that reach into it. Gives its plane. */
static int64_t place_band(const Pool *pool, int64_t number, Span in[2], Span out[2])
{
    for (int axis = 0; axis < 2; axis++) {
        const int64_t begin = axis == pool->axis ? number % pool->bands * pool->band : 0;
        const int64_t size = axis == pool->axis ? pool->band : pool->in[axis];
        in[axis] = (Span){begin, smaller(begin + size, pool->in[axis])};
        out[axis] = reaching(pool, axis, in[axis].begin, in[axis].end);
    }
    return number / pool->bands;
}

#define LOOPS "kernels/pool/pooling_body.inc"
#include "tensor/instantiate.inc"

/* The loops of one type. */
typedef struct Loops {
    ParallelBody *forward_piece, *backward_piece;
} Loops;

#define LOOPS_OF(type) {forward_piece_##type, backward_piece_##type}

static const Loops loops[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = LOOPS_OF(float), [DTYPE_FLOAT16] = LOOPS_OF(half), [DTYPE_BFLOAT16] = LOOPS_OF(bfloat),
    [DTYPE_FLOAT64] = LOOPS_OF(double),
};

/* What forward and backward share; `in` and `out` are the larger and the smaller tensor. */
static void begin(Pool *pool, const Pooling *pooling, const View *in, const View *out)
{
    pool->pooling = pooling;
    pool->inner = 1;
    pool->planes = in->shape[0] * in->shape[1];
    for (int axis = 0; axis < 3; axis++) {
        pool->in[axis] = in->shape[2 + axis];
        pool->out[axis] = out->shape[2 + axis];
    }
    pool->element_size = (int64_t)us_dtype_size(in->dtype);
    pool->lowest = pooling->lowest != 0 ? pooling->lowest : lowest_of(in->dtype);
    atomic_init(&pool->out_of_memory, 0);

    const int64_t *window = pooling->window, *padding = pooling->padding;
    pool->averages_all = true;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t step = pooling->stride[axis], room = pool->in[axis] + padding[axis] - window[axis];
        const int64_t first = smaller((padding[axis] + step - 1) / step, pool->out[axis]);
        const int64_t last = room < 0 ? 0 : smaller(room / step + 1, pool->out[axis]);
        pool->within[axis] = (Span){first, larger(last, first)};
        const bool inside_only = pooling->mode == POOLING_AVERAGE_INSIDE;
        pool->averages_all = pool->averages_all && pool->out[axis] > 0 && (!inside_only || first == 0) &&
                             counted(pool, axis, pool->out[axis] - 1) == window[axis];
    }
    pool->averages_all = pool->averages_all || pooling->mode == POOLING_AVERAGE || pooling->divide_by != 0;
    const double taps = (double)window[0] * (double)window[1] * (double)window[2];
    pool->divisor = pooling->divide_by != 0 ? pooling->divide_by : taps;
}

/* Channels become the inner part of rows where both tensors have them innermost, between them no gaps. */
static void choose_layout(Pool *pool)
{
    const View *x = &pool->x, *y = &pool->y;
    const int64_t channels = x->shape[1];
    const bool rows = (x->strides[4] == 1 || pool->in[2] == 1) && (y->strides[4] == 1 || pool->out[2] == 1);
    const bool pixels = x->strides[1] == 1 && (x->strides[4] == channels || pool->in[2] == 1) && y->strides[1] == 1 &&
                        (y->strides[4] == channels || pool->out[2] == 1);
    if (pixels && channels > 1) {
        pool->inner = channels;
        pool->planes = x->shape[0];
    }
    pool->direct = rows || pixels;
    View logical = *y;
    if (pool->inner > 1) { /* the channels behind the space */
        for (int axis = 1; axis < 4; axis++) {
            logical.shape[axis] = y->shape[axis + 1];
            logical.strides[axis] = y->strides[axis + 1];
        }
        logical.shape[4] = channels;
        logical.strides[4] = 1;
    }
    pool->packed = pool->direct && us_view_is_contiguous(&logical);
}

static const char *end_of(const View *view)
{
    int64_t lowest, highest;
    if (us_view_is_absent(view)) {
        return NULL;
    }
    us_view_extent(view, &lowest, &highest);
    return (const char *)view->data + (highest + 1) * (int64_t)us_dtype_size(view->dtype);
}

/* Rows that no memory holds, of views that have one element for all, are not counted to their end. */
static int64_t working_pitch(const Pool *pool)
{
    const int64_t most = INT64_C(1) << 48, width = smaller(pool->in[2] * pool->inner, most);
    return whole_lanes(width) + LANES * (smaller(pool->pooling->stride[2], smaller(pool->in[2], most)) + 1);
}

/* Averages, or their gradient: x is the larger tensor. */
static bool lies_side_by_side(const Pool *pool, const View *x, const View *y, int64_t limit)
{
    return !is_maximum(pool) && pool->pooling->alpha == 1 && pool->pooling->beta == 0 &&
           us_lies_side_by_side(x, y, NULL, limit) && length(inside(pool, 0, 0)) == 1;
}

static PlaneWindow window_beside(const void *context, int axis, int64_t o)
{
    const Pool *pool = context;
    const Span span = inside(pool, axis, o);
    const double deep = axis == 1 ? (double)counted(pool, 0, 0) : 1;
    return (PlaneWindow){span.begin, span.end, deep * (double)counted(pool, axis, o)};
}

static KernelStatus pool_side_by_side(const Pool *pool, BesideMode mode, const View *x, const View *y)
{
    const Beside beside = {mode, x, y, NULL, window_beside, pool, pool->averages_all ? pool->divisor : 0};
    return us_pool_side_by_side(&beside);
}

static KernelStatus end(Pool *pool)
{
    return atomic_load(&pool->out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

static KernelStatus forward_alike(const View *views, const void *attributes)
{
    if (views[0].dtype == DTYPE_INT8) {
        Pooling widened = *(const Pooling *)attributes;
        widened.lowest = INT8_MIN;
        return us_run_widened(forward_alike, 2, views, &widened, widened.beta != 0);
    }
    Detached detached;
    Pool pool;
    KernelStatus status = us_detach_same(&detached, 1, views, 1, &views[1]); /* windows read neighbours of what is written */
    if (status == KERNEL_OK) {
        pool.x = five_axes(&detached.inputs[0]);
        pool.y = five_axes(&views[1]);
        begin(&pool, attributes, &pool.x, &pool.y);
    }
    if (status == KERNEL_OK && lies_side_by_side(&pool, &pool.x, &pool.y, BESIDE_LIMIT)) {
        status = pool_side_by_side(&pool, BESIDE_AVERAGE, &pool.x, &pool.y);
    } else if (status == KERNEL_OK) {
        choose_layout(&pool);
        pool.x_end = end_of(&pool.x);
        pool.pitch = working_pitch(&pool);
        pool.rows_per_piece = PIECE_ELEMENTS / (pool.in[2] * pool.inner) + 1;
        const int64_t rows = pool.planes * pool.out[0] * pool.out[1];
        const DType stored = pool.x.dtype, gathered = stored == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
        run_pieces((rows + pool.rows_per_piece - 1) / pool.rows_per_piece, us_view_elements(&pool.x),
                   loops[pool.direct ? stored : gathered].forward_piece, &pool);
        status = end(&pool);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_pooling_forward(const View *views, const void *attributes)
{
    return ((const Pooling *)attributes)->beta == 0 && us_rows_differ(views, 2)
               ? us_run_on_rows(forward_alike, 1, 1, 2, views, attributes)
               : forward_alike(views, attributes);
}

/* Planes are cut along their outermost axis. */
static void choose_bands(Pool *pool)
{
    pool->axis = pool->in[0] > 1 ? 0 : 1;
    const int64_t unit = pool->axis == 0 ? pool->in[1] * pool->in[2] : pool->in[2];
    const int64_t size = pool->in[pool->axis];
    /* windows that reach into two bands are looked at twice: bands are at least four times as long */
    const int64_t least = 4 * smaller(pool->pooling->window[pool->axis], size);
    pool->band = smaller(larger(PIECE_ELEMENTS / unit, larger(least, 1)), size);
    pool->band += pool->band % 2; /* of windows side by side none lies in two bands */
    pool->bands = (size + pool->band - 1) / pool->band;
    pool->bands_per_piece = PIECE_ELEMENTS / (unit * pool->band) + 1;
    pool->sums = unit * pool->band;
    if (!is_maximum(pool)) {
        const int64_t reach = pool->band + pool->pooling->window[pool->axis], step = pool->pooling->stride[pool->axis];
        const int64_t rows = smaller(reach / step + 2, pool->out[pool->axis]);
        pool->sums = us_scratch_count(us_scratch_count(rows, pool->out[1 - pool->axis]), pool->pitch);
    }
}

static int64_t power_of_two_from(int64_t count)
{
    int64_t power = 1;
    while (power < count) {
        power *= 2;
    }
    return power;
}

/* Of two axes the rows that are in use at a time, and one step ahead, of three all rows. False: too many taps to number,
 * for which 16-bit types have 16 bits. */
static bool place_maximum_rows(Pool *pool)
{
    const Pooling *pooling = pool->pooling;
    const int64_t step = pooling->stride[2], line = pooling->padding[2] + pool->in[2], *out = pool->out;
    const int64_t height = smaller(pooling->window[1], pool->in[1]), rise = smaller(pooling->stride[1], pool->in[1]);
    const bool flat = pool->in[0] == 1 && out[0] == 1;
    MaximumRows *rows = &pool->maximum;
    rows->taps = smaller(pooling->window[2], line);
    rows->parts = step == 2 ? 2 : smaller(step, rows->taps);
    rows->part = whole_lanes(larger(whole_lanes(out[2]) + rows->taps / step, line / step + 1 + 2 * LANES));
    rows->pitch = rows->parts * rows->part;
    rows->count = power_of_two_from(flat ? height + rise : pool->in[0] * pool->in[1]);
    rows->windows_margin = whole_lanes(rows->taps / step);
    rows->windows_pitch = rows->windows_margin + rows->part + LANES;
    const int64_t windows = smaller(pooling->window[1] / pooling->stride[1] + 3, out[1]); /* that reach a row, and one */
    rows->windows_count = power_of_two_from(flat ? windows : out[0] * out[1]);
    rows->line = whole_lanes(larger(pool->in[2], out[2])) + 3 * LANES;
    rows->group = larger(GROUP_ELEMENTS / pool->in[2], 1);
    const int64_t most = pool->element_size == sizeof(int16_t) ? INT16_MAX : INT32_MAX;
    return rows->count < INT32_MAX / rows->pitch && rows->count <= most / rows->taps;
}

/* Of views whose last axis has no gaps. */
static KernelStatus backward_of_rows(const View *views, const void *attributes)
{
    Detached detached;
    Pool pool;
    KernelStatus status = us_detach_same(&detached, 3, views, 1, &views[3]);
    bool is_numbered = true, is_done = false;
    if (status == KERNEL_OK) {
        pool.y = five_axes(&detached.inputs[0]);
        pool.dy = five_axes(&detached.inputs[1]);
        pool.x = five_axes(&detached.inputs[2]);
        pool.dx = five_axes(&views[3]);
        begin(&pool, attributes, &pool.dx, &pool.dy);
        pool.x_end = end_of(&pool.x);
        pool.direct = true;
        pool.packed = (pool.in[1] == 1 || pool.dx.strides[3] == pool.in[2]) &&
                      (pool.in[0] == 1 || pool.dx.strides[2] == pool.in[1] * pool.in[2]);
        pool.pitch = working_pitch(&pool);
        choose_bands(&pool);
        is_numbered = !is_maximum(&pool) || place_maximum_rows(&pool);
        is_done = lies_side_by_side(&pool, &pool.dx, &pool.dy, GRADIENT_BESIDE_LIMIT);
    }
    if (is_done) {
        status = pool_side_by_side(&pool, BESIDE_AVERAGE_GRADIENT, &pool.dx, &pool.dy);
    } else if (status == KERNEL_OK && is_numbered) {
        const int64_t bands = pool.planes * pool.bands;
        run_pieces((bands + pool.bands_per_piece - 1) / pool.bands_per_piece, us_view_elements(&pool.dx),
                   loops[pool.dx.dtype].backward_piece, &pool);
        status = end(&pool);
    }
    us_detach_end(&detached);
    if (is_numbered) {
        return status;
    }
    const bool is_short = us_dtype_size(views[3].dtype) == sizeof(int16_t), reads = ((const Pooling *)attributes)->beta != 0;
    return is_short ? us_run_widened(backward_of_rows, 4, views, attributes, reads) : KERNEL_NO_MEMORY;
}

static bool has_rows(const View *view)
{
    return us_view_is_absent(view) || view->shape[view->rank - 1] <= 1 || view->strides[view->rank - 1] == 1;
}

KernelStatus us_pooling_backward(const View *views, const void *attributes)
{
    const Pooling *pooling = attributes;
    const bool is_average = pooling->mode != POOLING_MAX && pooling->mode != POOLING_MAX_BY_RESULT;
    if (is_average && us_has_pixels(&views[1], &views[3])) {
        return us_average_gradient(&views[1], &views[3], pooling);
    }
    const bool rows = has_rows(&views[0]) && has_rows(&views[1]) && has_rows(&views[2]) && has_rows(&views[3]);
    return rows ? backward_of_rows(views, pooling) : us_pooling_of_copies(backward_of_rows, views, pooling);
}
