#include "kernels/pool/average_gradient.h"

#include "kernels/detach.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <stdatomic.h>
#include <string.h>

/* Elements of dx in a piece of work. */
enum { PIECE_ELEMENTS = 16 * 1024 };

typedef struct Span {
    int64_t begin, end;
} Span;

/* Axes: height and width. Rows are those of all images. */
typedef struct Averages {
    const Pooling *pooling;
    const char *dy;
    char *dx;
    int64_t images, channels, in[2], out[2];
    Span *windows[2]; /* of every row and column of dx: those that hold it */
    double *counts; /* the columns of every window of a row that count */
    int64_t rows_per_piece, slots; /* slots: a power of 2, as many as a row of dx needs rows of windows */
    int64_t room;   /* of a row of dx in the compute type */
    bool alike;     /* what is divided by is the same for all windows */
    atomic_bool out_of_memory;
} Averages;

/* Pooling has three spatial axes, of which the last two are these. */
static Span windows_at(const Averages *work, int axis, int64_t place)
{
    const Pooling *pooling = work->pooling;
    const int64_t step = pooling->stride[1 + axis], at = place + pooling->padding[1 + axis];
    const int64_t before = at - pooling->window[1 + axis];
    const Span span = {before < 0 ? 0 : before / step + 1, smaller(at / step + 1, work->out[axis])};
    return (Span){span.begin, larger(span.begin, span.end)};
}

/* The taps of a window along an axis that an average is divided by. */
static int64_t counted(const Averages *work, int axis, int64_t window)
{
    const Pooling *pooling = work->pooling;
    const int64_t size = pooling->window[1 + axis], padding = pooling->padding[1 + axis];
    const int64_t begin = window * pooling->stride[1 + axis] - padding;
    if (pooling->mode == POOLING_AVERAGE_PADDED) {
        return smaller(size, work->in[axis] + padding - begin);
    }
    return larger(smaller(begin + size, work->in[axis]) - larger(begin, 0), 0);
}

#define LOOPS "kernels/pool/average_gradient.inc"
#include "tensor/instantiate.inc"

static ParallelBody *const bodies[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = average_piece_float, [DTYPE_FLOAT16] = average_piece_half, [DTYPE_BFLOAT16] = average_piece_bfloat,
    [DTYPE_FLOAT64] = average_piece_double,
};

static bool is_pixels(const View *view)
{
    const int order[] = {1, 3, 2, 0}; /* from the innermost axis on */
    int64_t step = 1;
    for (int k = 0; k < 4; k++) {
        if (view->shape[order[k]] != 1 && view->strides[order[k]] != step) {
            return false;
        }
        step *= view->shape[order[k]];
    }
    return true;
}

bool us_has_pixels(const View *dy, const View *dx)
{
    return dy->rank == 4 && dx->rank == 4 && dx->shape[1] > 1 && is_pixels(dy) && is_pixels(dx);
}

static void prepare(Averages *work)
{
    const Pooling *pooling = work->pooling;
    work->alike = pooling->mode == POOLING_AVERAGE || pooling->divide_by != 0;
    for (int axis = 0; axis < 2; axis++) {
        for (int64_t place = 0; place < work->in[axis]; place++) {
            work->windows[axis][place] = windows_at(work, axis, place);
        }
    }
    for (int64_t o = 0; o < work->out[1]; o++) {
        work->counts[o] = (double)counted(work, 1, o);
    }
    const int64_t rows = smaller((pooling->window[1] - 1) / pooling->stride[1] + 1, work->out[0]);
    for (work->slots = 1; work->slots < rows; work->slots *= 2) {
    }
    const int64_t row = work->in[1] * work->channels;
    work->room = (larger(row, work->out[1] * work->channels) + LANES - 1) / LANES * LANES;
    work->rows_per_piece = PIECE_ELEMENTS / row + 1;
}

KernelStatus us_average_gradient(const View *dy, const View *dx, const Pooling *pooling)
{
    Averages work = {.pooling = pooling, .dx = dx->data, .images = dx->shape[0], .channels = dx->shape[1],
                     .in = {dx->shape[2], dx->shape[3]}, .out = {dy->shape[2], dy->shape[3]}};
    const int64_t elements = us_view_elements(dx);
    if (elements == 0) {
        return KERNEL_OK;
    }
    const View written = us_view_contiguous(dx->data, dx->dtype, 1, &elements);
    Detached detached; /* windows read neighbours of what is written, so the same view is copied, too */
    KernelStatus status = us_detach(&detached, 1, dy, 1, &written);
    const size_t of_rows = us_scratch_bytes(work.in[0], sizeof(Span));
    const size_t of_columns = us_scratch_bytes(work.in[1], sizeof(Span));
    const size_t counts = us_scratch_bytes(work.out[1], sizeof *work.counts);
    char *memory = us_scratch_take(of_rows + of_columns + counts), *cursor = memory;
    status = status == KERNEL_OK && memory == NULL ? KERNEL_NO_MEMORY : status;
    if (status == KERNEL_OK) {
        work.dy = detached.inputs[0].data;
        work.windows[0] = us_scratch_part(&cursor, of_rows);
        work.windows[1] = us_scratch_part(&cursor, of_columns);
        work.counts = us_scratch_part(&cursor, counts);
        prepare(&work);
        const int64_t rows = work.images * work.in[0];
        run_pieces((rows + work.rows_per_piece - 1) / work.rows_per_piece, elements, bodies[dx->dtype], &work);
        status = atomic_load(&work.out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
    }
    us_scratch_give_back(memory);
    us_detach_end(&detached);
    return status;
}
