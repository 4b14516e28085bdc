#include "kernels/sort/median.h"

#include "kernels/scratch.h"
#include "kernels/sort/keys.h"
#include "tensor/axes.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>

/* Lines shorter than PIECE_ELEMENTS are handled several in a piece of work. */
enum { PIECE_ELEMENTS = 16 * 1024, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, VIEWS = 3 };

typedef struct Work {
    const View *views;
    const Median *median;
    Axes kept, reduced; /* operands of `kept`: the views */
    KeyRule rule;
    int64_t lines, elements, lines_per_piece;
    _Atomic bool no_memory;
} Work;

/* Key number `rank` in ascending order, digit by digit from the top; keys that share the digits so far move to the
 * front. */
static uint64_t select_key(uint64_t *keys, int64_t count, int64_t rank, int bits)
{
    for (int shift = bits - DIGIT_BITS; shift >= 0 && count > 1; shift -= DIGIT_BITS) {
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

/* The place of the wanted one among the line's keys, -1 for none; `room` for as many keys. */
static int64_t wanted_place(const Work *work, const uint64_t *keys, uint64_t *room)
{
    const int bits = 8 * (int)us_dtype_size(work->views[0].dtype);
    int64_t count = 0;
    bool has_nan = false;
    for (int64_t i = 0; i < work->elements; i++) {
        const bool is_nan = us_key_is_nan(keys[i], work->rule);
        room[count] = keys[i];
        count += !is_nan;
        has_nan |= is_nan;
    }
    uint64_t wanted = work->rule.mask; /* NaN's, where there is one */
    if (work->median->rank > 0) {
        wanted = work->median->rank <= count ? select_key(room, count, work->median->rank - 1, bits) : wanted;
    } else if (count > 0 && (!has_nan || work->median->skips_nan)) {
        wanted = select_key(room, count, (count - 1) / 2, bits);
    }
    for (int64_t i = 0; i < work->elements; i++) {
        if (keys[i] == wanted) {
            return i;
        }
    }
    return -1;
}

static char *data_of(const Work *work, int k, int64_t line)
{
    const View *view = &work->views[k];
    return (char *)view->data + us_axes_offset(&work->kept, k, line) * (int64_t)us_dtype_size(view->dtype);
}

static void load_keys(const Work *work, const char *line, uint64_t *keys)
{
    const DType dtype = work->views[0].dtype;
    const int64_t stride = work->reduced.strides[0][work->reduced.rank - 1];
    AxesWalk walk;
    for (us_axes_walk(&walk, &work->reduced, 0, 0, work->elements); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        us_load_keys(keys, line + run.offset * (int64_t)us_dtype_size(dtype), dtype, stride, run.length, work->rule);
        keys += run.length;
    }
}

static void run_line(const Work *work, int64_t line, uint64_t *keys, uint64_t *room)
{
    const char *data = data_of(work, 0, line);
    const DType dtype = work->views[0].dtype;
    const double nothing = NAN;
    load_keys(work, data, keys);
    const int64_t place = wanted_place(work, keys, room);
    if (place >= 0) {
        const int64_t offset = us_axes_offset(&work->reduced, 0, place) * (int64_t)us_dtype_size(dtype);
        us_convert(data_of(work, 1, line), work->views[1].dtype, data + offset, dtype, 1);
    } else {
        us_convert(data_of(work, 1, line), work->views[1].dtype, &nothing, DTYPE_FLOAT64, 1);
    }
    if (work->median->outputs > 1) {
        us_convert(data_of(work, 2, line), work->views[2].dtype, &place, DTYPE_INT64, 1);
    }
}

static void run_piece(void *context, int64_t piece)
{
    Work *work = context;
    const int64_t begin = piece * work->lines_per_piece, end = begin + work->lines_per_piece;
    uint64_t *keys = us_scratch_array(work->elements + 1, 2 * sizeof *keys);
    if (keys == NULL) {
        atomic_store_explicit(&work->no_memory, true, memory_order_relaxed);
        return;
    }
    for (int64_t line = begin; line < end && line < work->lines; line++) {
        run_line(work, line, keys, keys + work->elements + 1);
    }
    us_scratch_give_back(keys);
}

KernelStatus us_median(const View *views, const void *attributes)
{
    Work work = {.views = views, .median = attributes};
    const int count = 1 + work.median->outputs;
    const View *input = &views[0];
    int64_t sizes[2][VIEW_RANK_LIMIT]; /* of the kept axes, of the reduced ones */
    for (int32_t axis = 0; axis < input->rank; axis++) {
        const bool is_reduced = (work.median->axes >> axis & 1) != 0;
        int64_t strides[VIEWS];
        for (int k = 0; k < count; k++) {
            strides[k] = views[k].strides[axis];
        }
        sizes[is_reduced][axis] = input->shape[axis];
        sizes[!is_reduced][axis] = 1;
        us_axes_append(is_reduced ? &work.reduced : &work.kept, input->shape[axis], strides, is_reduced ? 1 : count);
    }
    us_axes_complete(&work.kept, count);
    us_axes_complete(&work.reduced, 1);
    work.lines = us_shape_elements(input->rank, sizes[0]);
    work.elements = us_shape_elements(input->rank, sizes[1]);
    if (work.lines == 0) {
        return KERNEL_OK;
    }
    work.rule = us_key_rule(input->dtype, false);
    work.lines_per_piece = PIECE_ELEMENTS / (work.elements + 1) + 1;
    us_parallel((work.lines + work.lines_per_piece - 1) / work.lines_per_piece, run_piece, &work);
    return atomic_load_explicit(&work.no_memory, memory_order_relaxed) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
