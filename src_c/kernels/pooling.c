#include "kernels/pooling.h"

#include "kernels/detach.h"
#include "kernels/pieces.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Output rows of one piece of work; windows are separable, so a row is made from whole rows of the input. */
enum { PIECE_ELEMENTS = 16 * 1024 };

/* One call. Planes are the images' channels; every view is seen as [n, c, d, h, w]. */
typedef struct Pool {
    const Pooling *pooling;
    View x, y, dy, dx; /* forward: x and y */
    int64_t in[3], out[3];
    int64_t planes, rows_per_piece, pieces_per_plane;
    double lowest; /* the finite value nearest to minus infinity */
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

static void *row_at(const View *view, int64_t plane, int64_t d, int64_t h)
{
    const int64_t n = plane / view->shape[1], c = plane % view->shape[1];
    const int64_t offset = n * view->strides[0] + c * view->strides[1] + d * view->strides[2] + h * view->strides[3];
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* The taps of output position `o` on one axis that lie inside. */
typedef struct Span {
    int64_t begin, end;
} Span;

static Span inside(const Pool *pool, int axis, int64_t o)
{
    const Pooling *pooling = pool->pooling;
    int64_t begin = o * pooling->stride[axis] - pooling->padding[axis];
    int64_t end = begin + pooling->window[axis];
    Span span = {begin < 0 ? 0 : begin, end > pool->in[axis] ? pool->in[axis] : end};
    span.end = span.end < span.begin ? span.begin : span.end;
    return span;
}

/* What an average over these taps is divided by; windows without a tap inside give 0. */
static double divisor(const Pool *pool, Span d, Span h, Span w)
{
    const int64_t *window = pool->pooling->window;
    if (pool->pooling->mode == POOLING_AVERAGE) {
        return (double)window[0] * (double)window[1] * (double)window[2];
    }
    double taps = (double)(d.end - d.begin) * (double)(h.end - h.begin) * (double)(w.end - w.begin);
    return taps > 0 ? taps : 1;
}

#define ELEMENT float
#define NAME(name) name##_float
#define DTYPE DTYPE_FLOAT32
#include "kernels/pooling_body.inc"

#define ELEMENT double
#define NAME(name) name##_double
#define DTYPE DTYPE_FLOAT64
#include "kernels/pooling_body.inc"

static void begin(Pool *pool, const Pooling *pooling, const View *in, const View *out)
{
    pool->pooling = pooling;
    pool->planes = in->shape[0] * in->shape[1];
    for (int axis = 0; axis < 3; axis++) {
        pool->in[axis] = in->shape[2 + axis];
        pool->out[axis] = out->shape[2 + axis];
    }
    pool->lowest = lowest_of(in->dtype);
    atomic_init(&pool->out_of_memory, 0);
    const int64_t rows = pool->out[0] * pool->out[1];
    pool->rows_per_piece = PIECE_ELEMENTS / pool->in[2] + 1;
    pool->pieces_per_plane = (rows + pool->rows_per_piece - 1) / pool->rows_per_piece;
}

static KernelStatus end(Pool *pool)
{
    return atomic_load(&pool->out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_pooling_forward(const View *views, const void *attributes)
{
    Detached detached;
    Pool pool;
    KernelStatus status = us_detach(&detached, 1, views, 1, &views[1]);
    if (status == KERNEL_OK) {
        pool.x = five_axes(&detached.inputs[0]);
        pool.y = five_axes(&views[1]);
        begin(&pool, attributes, &pool.x, &pool.y);
        run_pieces(pool.planes * pool.pieces_per_plane, us_view_elements(&pool.x),
                   pool.x.dtype == DTYPE_FLOAT64 ? forward_piece_double : forward_piece_float, &pool);
        status = end(&pool);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_pooling_backward(const View *views, const void *attributes)
{
    Detached detached;
    Pool pool;
    KernelStatus status = us_detach(&detached, 3, views, 1, &views[3]);
    if (status == KERNEL_OK) {
        pool.y = five_axes(&detached.inputs[0]);
        pool.dy = five_axes(&detached.inputs[1]);
        pool.x = five_axes(&detached.inputs[2]);
        pool.dx = five_axes(&views[3]);
        begin(&pool, attributes, &pool.dx, &pool.dy);
        run_pieces(pool.planes, us_view_elements(&pool.dx),
                   pool.dx.dtype == DTYPE_FLOAT64 ? backward_plane_double : backward_plane_float, &pool);
        status = end(&pool);
    }
    us_detach_end(&detached);
    return status;
}
