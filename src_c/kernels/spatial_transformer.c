#include "kernels/spatial_transformer.h"

#include "kernels/detach.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- grids ---- */

/* Coordinate of position i of `size`; a single position is in the middle. */
static double coordinate(int64_t i, int64_t size)
{
    return size > 1 ? -1 + 2 * (double)i / (double)(size - 1) : 0;
}

typedef struct GridCall {
    const View *theta, *grid;
    bool align_corners;
} GridCall;

static double point_at(const GridCall *call, int64_t i, int64_t size)
{
    return call->align_corners ? coordinate(i, size) : (2 * (double)i + 1) / (double)size - 1;
}

/* The points along the last axis. */
static void grid_forward_row(void *context, int64_t piece)
{
    const GridCall *call = context;
    const View *grid = call->grid;
    const int32_t axes = grid->rank - 2;
    const int64_t h = grid->shape[axes - 1], w = grid->shape[axes], d = axes == 3 ? grid->shape[1] : 1;
    double theta[12], numbers[4] = {0}, point[3];
    us_linear_load_double(call->theta, piece / (d * h) * axes * (axes + 1), axes * (axes + 1), theta);
    numbers[axes] = 1;
    numbers[1] = point_at(call, piece % h, h);
    if (axes == 3) {
        numbers[2] = point_at(call, piece / h % d, d);
    }
    for (int64_t j = 0; j < w; j++) {
        numbers[0] = point_at(call, j, w);
        for (int32_t row = 0; row < axes; row++) {
            point[row] = 0;
            for (int32_t k = 0; k <= axes; k++) {
                point[row] += theta[row * (axes + 1) + k] * numbers[k];
            }
        }
        us_linear_store_double(grid, (piece * w + j) * axes, axes, point);
    }
}

KernelStatus us_grid_forward(const View *views, const void *attributes)
{
    const GridCall call = {&views[0], &views[1], ((const AffineGrid *)attributes)->align_corners};
    int64_t rows = 1;
    for (int32_t axis = 0; axis < views[1].rank - 2; axis++) {
        rows *= views[1].shape[axis];
    }
    run_pieces(rows, us_view_elements(&views[1]), grid_forward_row, (void *)&call);
    return KERNEL_OK;
}

static void grid_backward_image(void *context, int64_t n)
{
    const View *dgrid = context, *dtheta = dgrid + 1;
    const int64_t h = dgrid->shape[1], w = dgrid->shape[2];
    double sums[6] = {0}, pair[2];
    for (int64_t i = 0; i < h; i++) {
        const double y = coordinate(i, h);
        for (int64_t j = 0; j < w; j++) {
            const double x = coordinate(j, w);
            us_linear_load_double(dgrid, ((n * h + i) * w + j) * 2, 2, pair);
            for (int r = 0; r < 2; r++) {
                sums[3 * r] += pair[r] * x;
                sums[3 * r + 1] += pair[r] * y;
                sums[3 * r + 2] += pair[r];
            }
        }
    }
    us_linear_store_double(dtheta, n * 6, 6, sums);
}

KernelStatus us_grid_backward(const View *views, const void *attributes)
{
    (void)attributes;
    run_pieces(views[0].shape[0], us_view_elements(&views[0]), grid_backward_image, (void *)views);
    return KERNEL_OK;
}

/* ---- sampling ---- */

/* POINTS of the grid are loaded at a time. */
enum { CHANNELS_PER_PIECE = 16, POINTS = 256 };

typedef struct Sampler {
    const Sampling *sampling;
    View x, y, grid, dy, dx, dgrid;
    int64_t h, w, in_h, in_w, chunks;
    atomic_int out_of_memory;
} Sampler;

static char *row_at(const View *view, int64_t n, int64_t c, int64_t i)
{
    const int64_t offset = n * view->strides[0] + c * view->strides[1] + i * view->strides[2];
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* floor() without the call that it is on the oldest machines. */
US_ALWAYS_INLINE int64_t whole_below(double value)
{
    const int64_t whole = (int64_t)value;
    return whole - ((double)whole > value);
}

/* Elements of a plane with a border of one zero around it, and behind that two rows of zeros, for points whose corners
 * are all outside. */
static int64_t bordered(const Sampler *sampler)
{
    return (sampler->in_h + 4) * (sampler->in_w + 2);
}

#define ELEMENT float
#define NAME(name) name##_float
#include "kernels/spatial_transformer_body.inc"

#define ELEMENT double
#define NAME(name) name##_double
#include "kernels/spatial_transformer_body.inc"

static KernelStatus run(Sampler *sampler, const Sampling *sampling, const View *out, bool forward)
{
    sampler->sampling = sampling;
    sampler->h = out->shape[2];
    sampler->w = out->shape[3];
    sampler->in_h = sampler->x.shape[2];
    sampler->in_w = sampler->x.shape[3];
    sampler->chunks = forward ? (sampler->x.shape[1] + CHANNELS_PER_PIECE - 1) / CHANNELS_PER_PIECE : 1;
    atomic_init(&sampler->out_of_memory, 0);
    const bool wide = sampler->x.dtype == DTYPE_FLOAT64;
    ParallelBody *body = wide ? sample_backward_image_double : sample_backward_image_float;
    if (forward) {
        body = wide ? sample_forward_piece_double : sample_forward_piece_float;
    }
    run_pieces(out->shape[0] * sampler->chunks, us_view_elements(out), body, sampler);
    return atomic_load(&sampler->out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_sample_forward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        Sampler sampler = {.x = detached.inputs[0], .grid = detached.inputs[1], .y = views[2]};
        status = run(&sampler, attributes, &views[2], true);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_sample_backward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 3, views, 2, &views[3]);
    if (status == KERNEL_OK) {
        Sampler sampler = {.x = detached.inputs[0], .dy = detached.inputs[1], .grid = detached.inputs[2],
                           .dx = views[3], .dgrid = views[4]};
        status = run(&sampler, attributes, &views[1], false);
    }
    us_detach_end(&detached);
    return status;
}
