#include "kernels/reduce/median.h"

#include "kernels/scratch.h"
#include "tensor/axes.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Lines shorter than this are handled several in a piece of work. */
enum { PIECE_ELEMENTS = 16 * 1024, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, KEY_BITS = 64, VIEWS = 3 };

static const uint64_t SIGN = UINT64_C(1) << 63;

typedef struct Work {
    const View *views;
    const Median *median;
    Axes kept, reduced; /* operands of `kept`: the views */
    DType wide;         /* int64 or float64: what the elements are compared as */
    int64_t lines, elements, lines_per_piece;
    _Atomic bool no_memory;
} Work;

/* Numbers in the order of their values: integers, and doubles other than NaN. */
static uint64_t key_of(uint64_t bits, bool is_float)
{
    return !is_float || (bits & SIGN) == 0 ? bits ^ SIGN : ~bits;
}

static uint64_t bits_of(uint64_t key, bool is_float)
{
    return !is_float || (key & SIGN) != 0 ? key ^ SIGN : ~key;
}

/* Key number `rank` in ascending order, digit by digit from the top; keys that share the digits so far move to the
 * front. */
static uint64_t select_key(uint64_t *keys, int64_t count, int64_t rank)
{
    for (int shift = KEY_BITS - DIGIT_BITS; shift >= 0 && count > 1; shift -= DIGIT_BITS) {
        int64_t counts[DIGITS] = {0}, kept = 0;
        for (int64_t i = 0; i < count; i++) {
            counts[keys[i] >> shift & (DIGITS - 1)]++;
        }
        uint64_t digit = 0;
        while (rank >= counts[digit]) {
            rank -= counts[digit++];
        }
        for (int64_t i = 0; i < count; i++) {
            const uint64_t key = keys[i];
            keys[kept] = key;
            kept += (key >> shift & (DIGITS - 1)) == digit;
        }
        count = kept;
    }
    return keys[0];
}

static bool is_nan(uint64_t bits)
{
    return (bits & ~SIGN) > UINT64_C(0x7ff0000000000000);
}

/* Of the elements as wide bits; `keys` is room for as many. */
static uint64_t middle(const Work *work, const uint64_t *elements, uint64_t *keys)
{
    const bool is_float = work->wide == DTYPE_FLOAT64;
    int64_t count = 0;
    for (int64_t i = 0; i < work->elements; i++) {
        if (is_float && is_nan(elements[i])) {
            if (!work->median->skips_nan) {
                return elements[i];
            }
            continue;
        }
        keys[count++] = key_of(elements[i], is_float);
    }
    const double nothing = NAN;
    uint64_t bits = 0;
    if (count > 0) {
        bits = bits_of(select_key(keys, count, (count - 1) / 2), is_float);
    } else if (is_float) {
        memcpy(&bits, &nothing, sizeof bits);
    }
    return bits;
}

/* 0 and -0 are equal, and so are any two NaNs. */
static int64_t place_of(const Work *work, const uint64_t *elements, uint64_t value)
{
    const bool is_float = work->wide == DTYPE_FLOAT64, seeks_nan = is_float && is_nan(value);
    const bool seeks_zero = is_float && (value & ~SIGN) == 0;
    for (int64_t i = 0; i < work->elements; i++) {
        if (elements[i] == value || (seeks_zero && (elements[i] & ~SIGN) == 0) || (seeks_nan && is_nan(elements[i]))) {
            return i;
        }
    }
    return -1;
}

static void *data_of(const Work *work, int k, int64_t line)
{
    const View *view = &work->views[k];
    return (char *)view->data + us_axes_offset(&work->kept, k, line) * (int64_t)us_dtype_size(view->dtype);
}

static void run_line(const Work *work, int64_t line, uint64_t *elements, uint64_t *keys)
{
    const DType dtype = work->views[0].dtype;
    const Lane lane = us_lane_of(dtype);
    us_axes_load(&work->reduced, 0, data_of(work, 0, line), dtype, 0, work->elements, lane, keys);
    us_convert(elements, work->wide, keys, us_lane_dtype(lane), work->elements);
    const uint64_t value = middle(work, elements, keys);
    us_convert(data_of(work, 1, line), work->views[1].dtype, &value, work->wide, 1);
    if (work->median->outputs > 1) {
        const int64_t place = place_of(work, elements, value);
        us_convert(data_of(work, 2, line), work->views[2].dtype, &place, DTYPE_INT64, 1);
    }
}

static void run_piece(void *context, int64_t piece)
{
    Work *work = context;
    const int64_t begin = piece * work->lines_per_piece, end = begin + work->lines_per_piece;
    uint64_t *elements = us_scratch_take(2 * (size_t)(work->elements + 1) * sizeof *elements);
    if (elements == NULL) {
        atomic_store_explicit(&work->no_memory, true, memory_order_relaxed);
        return;
    }
    for (int64_t line = begin; line < end && line < work->lines; line++) {
        run_line(work, line, elements, elements + work->elements);
    }
    us_scratch_give_back(elements);
}

KernelStatus us_median(const View *views, const void *attributes)
{
    Work work = {.views = views, .median = attributes, .lines = 1, .elements = 1};
    const int count = 1 + work.median->outputs;
    const View *input = &views[0];
    for (int32_t axis = 0; axis < input->rank; axis++) {
        const bool is_reduced = (work.median->axes >> axis & 1) != 0;
        int64_t strides[VIEWS];
        for (int k = 0; k < count; k++) {
            strides[k] = views[k].strides[axis];
        }
        *(is_reduced ? &work.elements : &work.lines) *= input->shape[axis];
        us_axes_append(is_reduced ? &work.reduced : &work.kept, input->shape[axis], strides, is_reduced ? 1 : count);
    }
    us_axes_complete(&work.kept, count);
    us_axes_complete(&work.reduced, 1);
    work.wide = us_wide_dtype(input->dtype);
    work.lines_per_piece = PIECE_ELEMENTS / (work.elements + 1) + 1;
    us_parallel((work.lines + work.lines_per_piece - 1) / work.lines_per_piece, run_piece, &work);
    return atomic_load_explicit(&work.no_memory, memory_order_relaxed) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
