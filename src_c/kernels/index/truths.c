#include "kernels/index/truths.h"

#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"
#include "tensor/lane.h"

#include <string.h>

/* The elements are handled in pieces of rows of PIECE; a piece knows how many true ones lie before it. */
enum { PIECE = 16 * 1024, TILE = 1024, ELEMENT_BYTES = 16 };

typedef struct Truths {
    const View *view;
    Axes axes;
    int64_t elements, pieces;
    int64_t *before; /* per piece: its true elements, then those of the pieces before it */
    void (*found)(const struct Truths *truths, int64_t begin, int64_t count, const uint8_t *truth, int64_t before);
    const View *from, *to;
    Axes from_axes, to_axes;
    int64_t *coordinates, step, pitch;
} Truths;

static Axes axes_of(const View *view)
{
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){view}, 1, 0, view->rank);
    return axes;
}

/* 1 for each true element of a tile, else 0. */
static void load_truths(const Truths *truths, int64_t begin, int64_t count, uint8_t *to)
{
    _Alignas(64) unsigned char values[TILE * ELEMENT_BYTES];
    const DType dtype = truths->view->dtype;
    const Lane lane = us_lane_of(dtype);
    us_axes_load(&truths->axes, 0, truths->view->data, dtype, begin, count, lane, values);
    us_convert(to, DTYPE_BOOL, values, us_lane_dtype(lane), count);
}

static int64_t sum_of(const uint8_t *truth, int64_t count)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += truth[i];
    }
    return sum;
}

static int64_t next_tile(const Truths *truths, int64_t piece, int64_t begin)
{
    const int64_t end = truths->elements < (piece + 1) * PIECE ? truths->elements : (piece + 1) * PIECE;
    return end - begin < TILE ? end - begin : TILE;
}

static void count_piece(void *context, int64_t piece)
{
    const Truths *truths = context;
    uint8_t truth[TILE];
    int64_t sum = 0, count = 0;
    for (int64_t begin = piece * PIECE; (count = next_tile(truths, piece, begin)) > 0; begin += count) {
        load_truths(truths, begin, count, truth);
        sum += sum_of(truth, count);
    }
    truths->before[piece] = sum;
}

static void find_piece(void *context, int64_t piece)
{
    const Truths *truths = context;
    uint8_t truth[TILE];
    int64_t before = truths->before[piece], count = 0;
    for (int64_t begin = piece * PIECE; (count = next_tile(truths, piece, begin)) > 0; begin += count) {
        load_truths(truths, begin, count, truth);
        truths->found(truths, begin, count, truth, before);
        before += sum_of(truth, count);
    }
}

/* Counts; -1: no memory. Afterwards `before` is there and to be given back. */
static int64_t count_truths(Truths *truths)
{
    truths->axes = axes_of(truths->view);
    truths->elements = us_view_elements(truths->view);
    truths->pieces = (truths->elements + PIECE - 1) / PIECE;
    truths->before = us_scratch_array(truths->pieces, sizeof *truths->before);
    if (truths->before == NULL) {
        return -1;
    }
    run_pieces(truths->pieces, truths->elements, count_piece, truths);
    int64_t total = 0;
    for (int64_t piece = 0; piece < truths->pieces; piece++) {
        const int64_t own = truths->before[piece];
        truths->before[piece] = total;
        total += own;
    }
    return total;
}

static void find_truths(Truths *truths)
{
    run_pieces(truths->pieces, truths->elements, find_piece, truths);
}

bool us_count_true(const View *view, int64_t *count)
{
    Truths truths = {.view = view};
    *count = count_truths(&truths);
    us_scratch_give_back(truths.before);
    return *count >= 0;
}

/* ---- coordinates ---- */

static void write_coordinates(const Truths *truths, int64_t begin, int64_t count, const uint8_t *truth, int64_t before)
{
    const View *view = truths->view;
    const int32_t last = view->rank - 1;
    const int64_t columns = last >= 0 ? view->shape[last] : 1;
    int64_t *to = truths->coordinates + before * truths->step;
    int64_t row = begin / columns, column = begin % columns, coordinates[VIEW_RANK_LIMIT], known = -1;
    for (int64_t i = 0; i < count; i++) {
        if (truth[i] != 0 && last >= 0) {
            for (int64_t rest = row, d = last - 1; known != row && d >= 0; d--) {
                coordinates[d] = rest % view->shape[d];
                rest /= view->shape[d];
            }
            known = row;
            coordinates[last] = column;
            for (int32_t d = 0; d <= last; d++) {
                to[d * truths->pitch] = coordinates[d];
            }
            to += truths->step;
        }
        if (++column == columns) {
            column = 0;
            row++;
        }
    }
}

bool us_true_coordinates(const View *view, int64_t *to, int64_t step, int64_t pitch)
{
    Truths truths = {.view = view, .found = write_coordinates, .coordinates = to, .step = step, .pitch = pitch};
    const int64_t count = count_truths(&truths);
    if (count > 0) {
        find_truths(&truths);
    }
    us_scratch_give_back(truths.before);
    return count >= 0;
}

/* Rows of coordinates along `row_axis` of out. */
static KernelStatus nonzero(const View *views, int32_t row_axis)
{
    View *result = views[2].data;
    const View *out = &views[1];
    Truths truths = {.view = &views[0], .found = write_coordinates, .coordinates = out->data};
    const int64_t count = count_truths(&truths);
    if (count < 0) {
        return KERNEL_NO_MEMORY;
    }
    if (count > out->shape[row_axis]) {
        us_scratch_give_back(truths.before);
        return us_kernel_fault("self has %lld non-zero elements, out has room for %lld", (long long)count,
                               (long long)out->shape[row_axis]);
    }
    const int64_t rank = views[0].rank, shape[2] = {row_axis == 0 ? count : rank, row_axis == 0 ? rank : count};
    *result = us_view_contiguous(NULL, DTYPE_INT64, 2, shape);
    if (!us_view_is_contiguous(out)) {
        memcpy(result->strides, out->strides, 2 * sizeof *out->strides);
    }
    truths.step = result->strides[row_axis];
    truths.pitch = result->strides[1 - row_axis];
    find_truths(&truths);
    us_scratch_give_back(truths.before);
    return KERNEL_OK;
}

KernelStatus us_nonzero(const View *views, const void *attributes)
{
    (void)attributes;
    return nonzero(views, 0);
}

KernelStatus us_nonzero_columns(const View *views, const void *attributes)
{
    (void)attributes;
    return nonzero(views, 1);
}

/* ---- elements ---- */

#define PACK_CASE(type) \
    case sizeof(type): \
        for (int64_t i = 0; i < count; i++) { \
            ((type *)values)[kept] = ((const type *)values)[i]; \
            kept += truth[i]; \
        } \
        break;
/* The values that are true, at the front. */
static int64_t pack(void *values, const uint8_t *truth, int64_t count, size_t size)
{
    int64_t kept = 0;
    switch (size) {
        PACK_CASE(uint8_t)
        PACK_CASE(uint16_t)
        PACK_CASE(uint32_t)
        PACK_CASE(uint64_t)
        PACK_CASE(Sixteen)
    }
    return kept;
}

static char *element_at(const View *view, int64_t number)
{
    return (char *)view->data + number * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
}

static void select_tile(const Truths *truths, int64_t begin, int64_t count, const uint8_t *truth, int64_t before)
{
    _Alignas(64) unsigned char values[TILE * ELEMENT_BYTES];
    const View *from = truths->from, *to = truths->to;
    const Lane lane = us_lane_of(from->dtype);
    us_axes_load(&truths->from_axes, 0, from->data, from->dtype, begin, count, lane, values);
    const int64_t kept = pack(values, truth, count, us_dtype_size(us_lane_dtype(lane)));
    us_lane_store(lane, element_at(to, before), to->dtype, to->strides[0], values, kept);
}

KernelStatus us_masked_select(const View *views, const void *attributes)
{
    (void)attributes;
    View *result = views[3].data;
    Truths truths = {.view = &views[1], .found = select_tile, .from = &views[0], .to = &views[2]};
    const int64_t count = count_truths(&truths);
    if (count < 0) {
        return KERNEL_NO_MEMORY;
    }
    truths.from_axes = axes_of(truths.from);
    *result = *truths.to;
    result->shape[0] = count;
    find_truths(&truths);
    us_scratch_give_back(truths.before);
    return KERNEL_OK;
}

/* `one` where `truth` is 1, `other` where it is 0: without a branch, which nobody could foretell. */
static inline const void *chosen(uint8_t truth, const void *one, const void *other)
{
    const uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;
    return (const void *)(b ^ ((a ^ b) & (0 - (uintptr_t)truth)));
}

/* Elements of `to`, `to_stride` apart, take those of a line where they are true; others take themselves. */
#define SCATTER_CASE(type) \
    case sizeof(type): \
        for (int64_t i = 0; i < count; i++) { \
            type *const own = (type *)to + i * to_stride; \
            *own = *(const type *)chosen(truth[i], (const type *)from + taken * from_stride, own); \
            taken += truth[i]; \
        } \
        break;
static int64_t scatter_line(void *to, int64_t to_stride, const void *from, int64_t from_stride, const uint8_t *truth,
                            int64_t count, size_t size)
{
    int64_t taken = 0;
    switch (size) {
        SCATTER_CASE(uint8_t)
        SCATTER_CASE(uint16_t)
        SCATTER_CASE(uint32_t)
        SCATTER_CASE(uint64_t)
        SCATTER_CASE(Sixteen)
    }
    return taken;
}

/* A source that is a line; of others each element is looked for. */
static void scatter_tile(const Truths *truths, int64_t begin, int64_t count, const uint8_t *truth, int64_t before)
{
    const View *from = truths->from, *to = truths->to;
    const int64_t size = (int64_t)us_dtype_size(to->dtype);
    const int64_t stride = truths->to_axes.strides[0][truths->to_axes.rank - 1], line = truths->from_axes.strides[0][0];
    const bool is_line = truths->from_axes.rank == 1;
    int64_t source = before;
    AxesWalk walk;
    for (us_axes_walk(&walk, &truths->to_axes, 0, begin, count); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        char *const place = (char *)to->data + run.offset * size;
        if (is_line) {
            source += scatter_line(place, stride, (const char *)from->data + source * line * size, line, truth, run.length,
                                   (size_t)size);
        }
        for (int64_t i = 0; i < run.length && !is_line; i++) {
            if (truth[i] != 0) {
                const int64_t offset = us_axes_offset(&truths->from_axes, 0, source++);
                memcpy(place + i * stride * size, (const char *)from->data + offset * size, (size_t)size);
            }
        }
        truth += run.length;
    }
}

KernelStatus us_masked_scatter(const View *views, const void *attributes)
{
    (void)attributes;
    Truths truths = {.view = &views[1], .found = scatter_tile, .from = &views[2], .to = &views[0]};
    const int64_t count = count_truths(&truths), there = us_view_elements(truths.from);
    KernelStatus status = count < 0 ? KERNEL_NO_MEMORY : KERNEL_OK;
    if (count > there) {
        status = us_kernel_fault("the mask has %lld true elements, source has %lld", (long long)count,
                                 (long long)there);
    } else if (count > 0) {
        truths.from_axes = axes_of(truths.from);
        truths.to_axes = axes_of(truths.to);
        find_truths(&truths);
    }
    us_scratch_give_back(truths.before);
    return status;
}
