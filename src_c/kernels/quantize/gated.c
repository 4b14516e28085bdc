#include "kernels/quantize/gated.h"

#include "kernels/detach.h"
#include "kernels/maths/maths.h"
#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "kernels/quantize/rows.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"

#include <string.h>

enum { TILE = 512, PIECE_ELEMENTS = 16 * 1024 };
enum { A, B, SMOOTH, OFFSET, ENDS, Y, SCALE, ROW, WEIGHT_A, BIAS_A, WEIGHT_B, BIAS_B };

/* ---- gates ---- */

static float hold(float v, float limit)
{
    v = v < -limit ? -limit : v;
    return v > limit ? limit : v;
}

static float most(float v, float limit)
{
    return v > limit ? limit : v;
}

/* To a. */
static void gate(const GateForm *form, float *a, const float *b, int64_t count)
{
    const float limit = form->limit;
    for (int64_t i = 0; form->kind == GATE_SWISH && i < count; i++) {
        a[i] = silu_float(a[i]) * b[i];
    }
    for (int64_t i = 0; form->kind == GATE_CLIPPED && i < count; i++) {
        const float held = most(a[i], limit);
        a[i] = held * sigmoid_float(form->alpha * held) * (hold(b[i], limit) + form->bias);
    }
    for (int64_t i = 0; form->kind == GATE_SWISH_FIRST && i < count; i++) {
        a[i] = most(silu_float(a[i]), limit) * hold(b[i], limit);
    }
    for (int64_t i = 0; form->kind == GATE_BOUNDED && i < count; i++) {
        a[i] = bounded_float(a[i], form->alpha) * sigmoid_float(a[i]) * (limit > 0 ? bounded_float(b[i], limit) : b[i]);
    }
}

/* Of GATE_CLIPPED: a and b become the slopes by them, out of the slopes of the result. */
static void slope(const GateForm *form, float *a, float *b, const float *slopes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float held = most(a[i], form->limit), other = hold(b[i], form->limit), s = sigmoid_float(form->alpha * held);
        const float by_a = slopes[i] * (other + form->bias) * s * (1 + form->alpha * held * (1 - s));
        const float by_b = slopes[i] * held * s;
        a[i] = a[i] > form->limit ? 0 : by_a;
        b[i] = b[i] != other ? 0 : by_b;
    }
}

/* ---- groups ---- */

typedef struct Gated {
    const QuantizeGated *how;
    const View *views;
    int64_t rows, size, piece_rows;
    int64_t groups, *ends; /* NULL: one group */
    QuantizedRows to;
    bool no_memory;
} Gated;

/* ---- rows ---- */

static bool is_given(const Gated *work, int view)
{
    return !us_view_is_absent(&work->views[view]);
}

/* Numbers of a group, or the same one for all. */
static void load_numbers(const Gated *work, int view, int64_t group, int64_t begin, int64_t count, float missing, float *to)
{
    if (is_given(work, view)) {
        us_row_load(&work->views[view], work->views[view].shape[0] == 1 ? 0 : group, begin, count, to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = missing;
    }
}

static void load_half(const Gated *work, int half, int64_t row, int64_t group, int64_t begin, int64_t count, float *to)
{
    const int weights = half == A ? WEIGHT_A : WEIGHT_B, biases = weights + 1;
    float factors[TILE], bias[TILE], of_row = 1;
    us_row_load(&work->views[half], row, begin, count, to);
    if (!is_given(work, weights) && !is_given(work, biases) && !is_given(work, ROW)) {
        return;
    }
    load_numbers(work, weights, group, begin, count, 1, factors);
    load_numbers(work, biases, group, begin, count, 0, bias);
    if (is_given(work, ROW)) {
        const Line line = us_line_of(&work->views[ROW], work->views[ROW].rank, row);
        us_load_float(&of_row, line.data, line.dtype, 1, 1);
    }
    const bool first = is_given(work, biases) && work->views[biases].dtype == DTYPE_INT32;
    for (int64_t i = 0; i < count; i++) {
        to[i] = first ? (to[i] + bias[i]) * factors[i] * of_row : to[i] * factors[i] * of_row + bias[i];
    }
}

static void form_row(const Gated *work, int64_t row, float *out)
{
    const int64_t group = work->ends != NULL ? us_group_of(work->ends, work->groups, row) : 0;
    if (group == work->groups) {
        memset(out, 0, (size_t)work->size * sizeof *out);
        return;
    }
    for (int64_t begin = 0; begin < work->size; begin += TILE) {
        const int64_t count = work->size - begin < TILE ? work->size - begin : TILE;
        float b[TILE], numbers[TILE], *a = out + begin;
        if (row + 1 < work->rows) {
            us_row_fetch(&work->views[A], row + 1, begin, count);
            us_row_fetch(&work->views[B], row + 1, begin, count);
        }
        load_half(work, A, row, group, begin, count, a);
        load_half(work, B, row, group, begin, count, b);
        gate(&work->how->form, a, b, count);
        if (is_given(work, SMOOTH)) {
            load_numbers(work, SMOOTH, group, begin, count, 1, numbers);
            for (int64_t i = 0; i < count; i++) {
                a[i] = work->how->divides ? a[i] / numbers[i] : a[i] * numbers[i];
            }
        }
        if (is_given(work, OFFSET)) {
            load_numbers(work, OFFSET, group, begin, count, 0, numbers);
            for (int64_t i = 0; i < count; i++) {
                a[i] += numbers[i];
            }
        }
    }
}

static void convert_rows(void *context, int64_t piece)
{
    Gated *work = context;
    const int64_t begin = piece * work->piece_rows, left = work->rows - begin;
    float *line = us_scratch_array(work->size, sizeof *line);
    if (line == NULL) {
        __atomic_store_n(&work->no_memory, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t row = begin; row < begin + (left < work->piece_rows ? left : work->piece_rows); row++) {
        form_row(work, row, line);
        (work->how->fixed ? us_round_row : us_quantize_row)(&work->to, row, work->size, line);
    }
    us_scratch_give_back(line);
}

KernelStatus us_quantize_gated(const View *views, const void *attributes)
{
    const View *a = &views[A];
    const int64_t elements = us_view_elements(a);
    if (elements == 0) {
        return KERNEL_OK;
    }
    Gated work = {.how = attributes, .views = views, .size = a->shape[a->rank - 1]};
    const bool grouped = !us_view_is_absent(&views[ENDS]);
    work.rows = elements / work.size;
    work.groups = grouped ? views[ENDS].shape[0] : 1;
    work.piece_rows = PIECE_ELEMENTS / work.size + 1;
    const View absent = us_view_absent();
    const QuantizeRows rows = {.packed = work.how->packed, .rounding = work.how->rounding};
    work.to = us_quantized_rows(&views[Y], &views[SCALE], &absent, &rows);
    if (grouped) {
        work.ends = us_scratch_array(work.groups, sizeof(int64_t));
        if (work.ends == NULL) {
            return KERNEL_NO_MEMORY;
        }
        us_hold_ends(&views[ENDS], work.how->sizes, work.rows, work.ends);
    }
    run_pieces((work.rows + work.piece_rows - 1) / work.piece_rows, elements, convert_rows, &work);
    us_scratch_give_back(work.ends);
    return work.no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- without quantization ---- */

typedef struct Clipped {
    const ClippedGate *how;
    const char *x, *slopes; /* NULL: forwards */
    char *to;
    DType dtype;
    int64_t size, used, piece_rows; /* size: of half a row of x; used: rows that are not 0 */
} Clipped;

/* From column `begin` on of both halves of a row, or of its even and odd places. */
static void load_both(const Clipped *work, int64_t row, int64_t begin, int64_t count, float *a, float *b)
{
    const int64_t step = (int64_t)us_dtype_size(work->dtype);
    const char *x = work->x + row * 2 * work->size * step;
    if (!work->how->interleaved) {
        us_load_float(a, x + begin * step, work->dtype, 1, count);
        us_load_float(b, x + (work->size + begin) * step, work->dtype, 1, count);
        return;
    }
    float both[2 * TILE];
    us_load_float(both, x + 2 * begin * step, work->dtype, 1, 2 * count);
    for (int64_t i = 0; i < count; i++) {
        a[i] = both[2 * i];
        b[i] = both[2 * i + 1];
    }
}

static void store_both(const Clipped *work, int64_t row, int64_t begin, int64_t count, const float *a, const float *b)
{
    const int64_t step = (int64_t)us_dtype_size(work->dtype);
    char *to = work->to + row * 2 * work->size * step;
    if (!work->how->interleaved) {
        us_store_float(to + begin * step, work->dtype, 1, a, count);
        us_store_float(to + (work->size + begin) * step, work->dtype, 1, b, count);
        return;
    }
    float both[2 * TILE];
    for (int64_t i = 0; i < count; i++) {
        both[2 * i] = a[i];
        both[2 * i + 1] = b[i];
    }
    us_store_float(to + 2 * begin * step, work->dtype, 1, both, 2 * count);
}

static void clip_tile(const Clipped *work, int64_t row, int64_t begin, int64_t count)
{
    const int64_t half = (row * work->size + begin) * (int64_t)us_dtype_size(work->dtype);
    float a[TILE] = {0}, b[TILE] = {0}, slopes[TILE];
    const bool used = row < work->used;
    if (used) {
        load_both(work, row, begin, count, a, b);
    }
    if (work->slopes == NULL) {
        gate(&work->how->form, a, b, used ? count : 0);
        us_store_float(work->to + half, work->dtype, 1, a, count);
        return;
    }
    if (used) {
        us_load_float(slopes, work->slopes + half, work->dtype, 1, count);
        slope(&work->how->form, a, b, slopes, count);
    }
    store_both(work, row, begin, count, a, b);
}

static void clip_rows(void *context, int64_t piece)
{
    const Clipped *work = context;
    const int64_t first = piece * work->piece_rows;
    for (int64_t row = first; row < smaller(first + work->piece_rows, work->how->rows); row++) {
        for (int64_t begin = 0; begin < work->size; begin += TILE) {
            clip_tile(work, row, begin, smaller(TILE, work->size - begin));
        }
    }
}

static int64_t rows_used(const View *sizes, int64_t rows)
{
    return us_view_is_absent(sizes) ? rows : us_hold_ends(sizes, true, rows, NULL);
}

static size_t space_of(const View *view)
{
    return us_view_is_contiguous(view) ? 0 : us_scratch_bytes(us_view_elements(view), us_dtype_size(view->dtype));
}

/* The view itself where its elements lie in row-major order, else room for them. */
static View in_order(const View *view, char **cursor)
{
    const size_t size = space_of(view);
    return size == 0 ? *view : us_view_contiguous(us_scratch_part(cursor, size), view->dtype, view->rank, view->shape);
}

static View copied_in_order(const View *view, char **cursor)
{
    const View copy = in_order(view, cursor);
    if (copy.data != view->data) {
        us_copy_view(&copy, view);
    }
    return copy;
}

/* Forwards `slopes` is NULL. */
static KernelStatus clip(const View *x, const View *slopes, const View *sizes, const View *to, const ClippedGate *how)
{
    const View absent = us_view_absent(), *of_slopes = slopes != NULL ? slopes : &absent;
    const int64_t half = us_view_elements(x) / 2;
    if (half == 0) {
        return KERNEL_OK;
    }
    Detached detached;
    char *block = us_scratch_take(space_of(x) + (slopes != NULL ? space_of(slopes) : 0) + space_of(to)), *cursor = block;
    const KernelStatus status = us_detach(&detached, 2, (const View[]){*x, *of_slopes}, 1, to);
    if (block != NULL && status == KERNEL_OK) {
        Clipped work = {.how = how, .dtype = x->dtype, .size = half / how->rows, .used = rows_used(sizes, how->rows)};
        const View result = in_order(to, &cursor);
        work.x = copied_in_order(&detached.inputs[0], &cursor).data;
        work.slopes = slopes != NULL ? copied_in_order(&detached.inputs[1], &cursor).data : NULL;
        work.to = result.data;
        work.piece_rows = PIECE_ELEMENTS / work.size + 1;
        run_pieces(ceiling(how->rows, work.piece_rows), half, clip_rows, &work);
        if (result.data != to->data) {
            us_copy_view(to, &result);
        }
    }
    us_detach_end(&detached);
    us_scratch_give_back(block);
    return block != NULL ? status : KERNEL_NO_MEMORY;
}

KernelStatus us_clipped_gate(const View *views, const void *attributes)
{
    return clip(&views[0], NULL, &views[2], &views[1], attributes);
}

KernelStatus us_clipped_gate_backward(const View *views, const void *attributes)
{
    return clip(&views[0], &views[1], &views[2], &views[3], attributes);
}
