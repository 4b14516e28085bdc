#include "kernels/quantize/quantize.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/quantize/nibbles.h"
#include "kernels/quantize/rows.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/sort/lines.h"
#include "tensor/axes.h"

#include <math.h>
#include <string.h>

enum { TILE = 1024, PIECE_ELEMENTS = 16384, HIGHEST = 127, HIGHEST_PACKED = 7 };

/* Integers with two in a byte, the walk of whose bytes is `bytes`: row-major neighbours, an even number of them. */
static void load_packed(const Axes *bytes, const View *view, int64_t begin, int64_t count, float *numbers)
{
    us_axes_load(bytes, 0, view->data, view->dtype, begin / 2, count / 2, LANE_FLOAT, numbers);
    us_bytes_to_nibbles(numbers, count / 2, numbers);
}

static void store_packed(const Axes *bytes, const View *view, int64_t begin, int64_t count, float *numbers)
{
    us_nibbles_to_bytes(numbers, count / 2, numbers);
    us_axes_store(bytes, 0, view->data, view->dtype, begin / 2, count / 2, LANE_FLOAT, numbers);
}

/* ---- element by element ---- */

static void round_all(float *y, int64_t count, Rounding rounding)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = rounding == ROUND_EVEN ? __builtin_rintf(y[i]) : rounding == ROUND_UP ? __builtin_ceilf(y[i])
               : rounding == ROUND_DOWN ? __builtin_floorf(y[i]) : rounding == ROUND_AWAY ? __builtin_roundf(y[i])
                                                                                          : __builtin_truncf(y[i]);
    }
}

static void scale_all(float *y, const float *scale, int64_t count, bool twice)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] *= scale[i];
    }
    for (int64_t i = 0; twice && i < count; i++) {
        y[i] *= scale[i];
    }
}

static void divide_all(float *y, const float *scale, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] /= scale[i];
    }
}

static void add_all(float *y, const float *offset, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] += offset[i];
    }
}

static void shift_all(float *y, float offset, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] += offset;
    }
}

enum { X, SCALE, OFFSET, Y, OPERANDS };

typedef struct Elements {
    const Quantize *how;
    const View *views;
    Axes axes, bytes; /* of whole numbers; of packed ones */
    int64_t count;
    bool back;
} Elements;

static void load(const Elements *work, int k, int64_t begin, int64_t count, float *to)
{
    us_axes_load(&work->axes, k, work->views[k].data, work->views[k].dtype, begin, count, LANE_FLOAT, to);
}

static void convert_tile(const Elements *work, int64_t begin, int64_t count)
{
    float y[TILE], scale[TILE], offset[TILE];
    const bool shifts = !us_view_is_absent(&work->views[OFFSET]);
    if (work->back && work->how->packed) {
        load_packed(&work->bytes, &work->views[X], begin, count, y);
    } else {
        load(work, X, begin, count, y);
    }
    load(work, SCALE, begin, count, scale);
    if (shifts) {
        load(work, OFFSET, begin, count, offset);
    }
    if (shifts && work->back) {
        add_all(y, offset, count);
    }
    if (work->how->divides && !work->back) {
        divide_all(y, scale, count);
    } else {
        scale_all(y, scale, count, work->how->twice);
    }
    if (shifts && !work->back) {
        add_all(y, offset, count);
    }
    if (!work->back) {
        round_all(y, count, work->how->rounding);
    }
    const View *to = &work->views[Y];
    if (!work->back && work->how->packed) {
        store_packed(&work->bytes, to, begin, count, y);
    } else {
        us_axes_store(&work->axes, Y, to->data, to->dtype, begin, count, LANE_FLOAT, y);
    }
}

static void convert_piece(void *context, int64_t piece)
{
    const Elements *work = context;
    const int64_t first = piece * PIECE_ELEMENTS, left = work->count - first;
    const int64_t end = first + (left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS);
    for (int64_t begin = first; begin < end; begin += TILE) {
        convert_tile(work, begin, end - begin < TILE ? end - begin : TILE);
    }
}

static KernelStatus convert_elements(const View *views, const Quantize *how, bool back)
{
    const View *pointers[] = {&views[X], &views[SCALE], &views[OFFSET], &views[Y]}, *whole = &views[back ? Y : X];
    Elements work = {.how = how, .views = views, .count = us_view_elements(whole), .back = back};
    if (us_view_is_absent(&views[OFFSET])) {
        pointers[OFFSET] = whole;
    }
    if (how->packed) {
        us_axes_add(&work.bytes, &pointers[back ? X : Y], 1, 0, whole->rank);
        pointers[back ? X : Y] = whole;
    }
    us_axes_add(&work.axes, pointers, OPERANDS, 0, whole->rank);
    run_pieces((work.count + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS, work.count, convert_piece, &work);
    return KERNEL_OK;
}

KernelStatus us_quantize(const View *views, const void *attributes)
{
    return convert_elements(views, attributes, false);
}

KernelStatus us_dequantize(const View *views, const void *attributes)
{
    return convert_elements(views, attributes, true);
}

/* ---- row by row ---- */

typedef struct Rows {
    const View *x;
    Axes of_x;
    QuantizedRows to;
    const View *smooth;  /* NULL: none */
    const int64_t *ends; /* rising; NULL: one group */
    float offset;
    int64_t groups, count, length, piece_rows;
    bool shifts, fixed; /* fixed: by `smooth` and `offset` alone */
    bool out_of_memory;
} Rows;

/* Floats are ordered as these integers are, which are their own inverse, and NaNs lie beyond the infinities: so vectors find
 * the largest one, and NaN wins. */
static inline int32_t order(int32_t bits)
{
    return bits ^ ((bits >> 31) & INT32_MAX);
}

static float largest_magnitude(const float *x, int64_t count)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t magnitude = (int32_t)float_bits(x[i]) & INT32_MAX;
        largest = magnitude > largest ? magnitude : largest;
    }
    return bits_float((uint32_t)largest);
}

static void find_range(const float *x, int64_t count, float *lowest, float *highest)
{
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (int64_t i = 0; i < count; i++) {
        const int32_t at = order((int32_t)float_bits(x[i]));
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    *lowest = bits_float((uint32_t)order(low));
    *highest = bits_float((uint32_t)order(high));
}

static void divide_row(float *x, int64_t count, float scale, float offset, Rounding rounding)
{
    if (scale == 0) {
        memset(x, 0, (size_t)count * sizeof *x);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const float level = x[i] / scale + offset;
        x[i] = rounding == ROUND_EVEN ? __builtin_rintf(level) : level;
    }
    if (rounding != ROUND_EVEN) {
        round_all(x, count, rounding);
    }
}

int64_t us_hold_ends(const View *ends, bool sizes, int64_t rows, int64_t *held)
{
    int64_t behind = 0;
    for (int64_t group = 0; group < ends->shape[0]; group++) {
        const int64_t at = group * ends->strides[0];
        const int64_t number = ends->dtype == DTYPE_INT64 ? ((const int64_t *)ends->data)[at] : ((const int32_t *)ends->data)[at];
        behind += bounded(sizes ? number : number > behind ? number - behind : 0, 0, rows - behind);
        if (held != NULL) {
            held[group] = behind;
        }
    }
    return behind;
}

int64_t us_group_of(const int64_t *held, int64_t groups, int64_t row)
{
    int64_t first = 0, behind = groups;
    while (first < behind) {
        const int64_t middle = first + (behind - first) / 2;
        if (held[middle] > row) {
            behind = middle;
        } else {
            first = middle + 1;
        }
    }
    return first;
}

/* The smooth numbers of a group, for rows that follow each other. */
typedef struct Factors {
    int64_t group; /* -1: of none yet */
    float *numbers;
} Factors;

static void smooth_row(const Rows *rows, int64_t row, Factors *factors, float *x)
{
    const int64_t group = rows->ends != NULL ? us_group_of(rows->ends, rows->groups, row) : 0;
    if (group == rows->groups) {
        memset(x, 0, (size_t)rows->length * sizeof *x);
        return;
    }
    if (factors->group != group) {
        us_row_load(rows->smooth, group, 0, rows->length, factors->numbers);
        factors->group = group;
    }
    scale_all(x, factors->numbers, rows->length, false);
    if (rows->shifts) {
        shift_all(x, rows->offset, rows->length);
    }
}

static void store_number(const Axes *axes, const View *view, int64_t row, float value)
{
    us_axes_store(axes, 0, view->data, view->dtype, row, 1, LANE_FLOAT, &value);
}

QuantizedRows us_quantized_rows(const View *y, const View *scale, const View *offset, const QuantizeRows *how)
{
    QuantizedRows rows = {.y = *y, .scale = *scale, .offset = *offset, .how = *how};
    us_axes_add(&rows.of_y, &y, 1, 0, y->rank);
    us_axes_add(&rows.of_scale, &scale, 1, 0, scale->rank);
    us_axes_add(&rows.of_offset, &offset, 1, 0, offset->rank);
    return rows;
}

static void store_row(const QuantizedRows *rows, int64_t row, int64_t length, float *x)
{
    if (rows->how.packed) {
        store_packed(&rows->of_y, &rows->y, row * length, length, x);
    } else {
        us_axes_store(&rows->of_y, 0, rows->y.data, rows->y.dtype, row * length, length, LANE_FLOAT, x);
    }
}

void us_round_row(const QuantizedRows *rows, int64_t row, int64_t length, float *x)
{
    round_all(x, length, rows->how.rounding);
    store_row(rows, row, length, x);
}

/* The difference of two large numbers is no float. */
static float extent_step(float lowest, float highest, float steps)
{
    const float extent = highest - lowest;
    return isfinite(extent) ? extent / steps : (float)(((double)highest - (double)lowest) / (double)steps);
}

void us_quantize_row(const QuantizedRows *rows, int64_t row, int64_t length, float *x)
{
    const bool shifts = !us_view_is_absent(&rows->offset);
    const float limit = rows->how.packed ? HIGHEST_PACKED : HIGHEST, most = rows->how.most, clip = rows->how.clip;
    float lowest = 0, highest = 0;
    if (shifts && length > 0) {
        find_range(x, length, &lowest, &highest);
    }
    float scale = shifts ? extent_step(lowest, highest, 2 * limit + 1)
                         : largest_magnitude(x, length) / (clip > 0 ? limit / clip : limit);
    scale = most > 0 && scale > most ? most : scale;
    const float offset = !shifts || scale == 0 ? 0 : limit - highest / scale;
    divide_row(x, length, scale, offset, rows->how.rounding);
    store_row(rows, row, length, x);
    store_number(&rows->of_scale, &rows->scale, row, scale);
    if (shifts) {
        store_number(&rows->of_offset, &rows->offset, row, offset);
    }
}

static void convert_row(const Rows *rows, int64_t row, Factors *factors, float *x)
{
    us_axes_load(&rows->of_x, 0, rows->x->data, rows->x->dtype, row * rows->length, rows->length, LANE_FLOAT, x);
    if (rows->smooth != NULL) {
        smooth_row(rows, row, factors, x);
    }
    (rows->fixed ? us_round_row : us_quantize_row)(&rows->to, row, rows->length, x);
}

static void convert_rows(void *context, int64_t piece)
{
    Rows *rows = context;
    float *space = us_scratch_array(us_scratch_count(rows->length, 2), sizeof *space);
    Factors factors = {-1, space != NULL ? space + rows->length : NULL};
    if (space == NULL) {
        __atomic_store_n(&rows->out_of_memory, true, __ATOMIC_RELAXED);
        return;
    }
    const int64_t begin = piece * rows->piece_rows, left = rows->count - begin;
    for (int64_t i = 0; i < rows->piece_rows && i < left; i++) {
        convert_row(rows, begin + i, &factors, space);
    }
    us_scratch_give_back(space);
}

/* `smooth`, `ends`: absent where there are none. */
static KernelStatus run_rows(Rows *rows, const View *x, const View *smooth, const View *ends)
{
    rows->x = x;
    rows->smooth = us_view_is_absent(smooth) ? NULL : smooth;
    rows->length = x->shape[x->rank - 1];
    rows->count = us_shape_elements(x->rank - 1, x->shape);
    us_axes_add(&rows->of_x, &x, 1, 0, x->rank);
    const bool grouped = rows->smooth != NULL && !us_view_is_absent(ends);
    rows->groups = grouped ? ends->shape[0] : 1;
    int64_t *held = us_scratch_array(grouped ? rows->groups : 0, sizeof *held);
    if (held == NULL) {
        return KERNEL_NO_MEMORY;
    }
    if (grouped) {
        us_hold_ends(ends, false, rows->count, held);
        rows->ends = held;
    }
    rows->piece_rows = rows->length >= PIECE_ELEMENTS ? 1 : PIECE_ELEMENTS / larger(rows->length, 1);
    run_pieces(ceiling(rows->count, rows->piece_rows), us_view_elements(x), convert_rows, rows);
    us_scratch_give_back(held);
    return rows->out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_quantize_rows(const View *views, const void *attributes)
{
    Rows rows = {.to = us_quantized_rows(&views[2], &views[3], &views[4], attributes)};
    return run_rows(&rows, &views[0], &views[1], &views[5]);
}

KernelStatus us_quantize_groups(const View *views, const void *attributes)
{
    const QuantizeGroups *how = attributes;
    const View *offset = &views[2], absent = us_view_absent();
    Rows rows = {.fixed = true, .shifts = !us_view_is_absent(offset),
                 .to = us_quantized_rows(&views[4], &absent, &absent, &(QuantizeRows){.packed = how->packed})};
    if (rows.shifts) {
        us_lane_load(LANE_FLOAT, &rows.offset, offset->data, offset->dtype, 1, 1);
    }
    return run_rows(&rows, &views[0], &views[1], &views[3]);
}

/* ---- blocks ---- */

/* The last axis from `begin` on, as `blocks` times `size`. */
static View blocks_of(const View *view, int64_t begin, int64_t blocks, int64_t size)
{
    const int32_t last = view->rank - 1;
    View part = us_view_insert_axis(*view, last, blocks, size * view->strides[last]);
    part.data = (char *)view->data + begin * view->strides[last] * (int64_t)us_dtype_size(view->dtype);
    part.shape[last + 1] = size;
    return part;
}

KernelStatus us_quantize_blocks(const View *views, const void *attributes)
{
    const QuantizeBlocks *how = attributes;
    const View *x = &views[0], absent = us_view_absent();
    const int64_t size = x->shape[x->rank - 1], whole = size / how->block, rest = size % how->block;
    KernelStatus status = KERNEL_OK;
    for (int i = 0; i < 2 && status == KERNEL_OK; i++) {
        const int64_t begin = i == 0 ? 0 : whole * how->block, blocks = i == 0 ? whole : 1, width = i == 0 ? how->block : rest;
        View scale = blocks_of(&views[2], i == 0 ? 0 : whole, 1, blocks); /* […, 1, blocks] */
        scale = us_view_remove_axis(scale, scale.rank - 2);
        if (blocks > 0 && width > 0) {
            const View from = blocks_of(x, begin, blocks, width), to = blocks_of(&views[1], begin, blocks, width);
            status = us_quantize_rows((const View[]){from, absent, to, scale, absent, absent},
                                      &(QuantizeRows){.most = how->most});
        }
    }
    return status;
}
