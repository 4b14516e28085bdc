#include "kernels/spatial_transformer.h"

#include "kernels/detach.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- grids ---- */

/* Coordinate of position i of `size`; a single position is in the middle. */
static double coordinate(int64_t i, int64_t size)
{
    return size > 1 ? -1 + 2 * (double)i / (double)(size - 1) : 0;
}

static void grid_forward_row(void *context, int64_t piece)
{
    const View *theta_view = context, *grid = theta_view + 1;
    const int64_t h = grid->shape[1], w = grid->shape[2], n = piece / h;
    double theta[6], pair[2];
    us_linear_load_double(theta_view, n * 6, 6, theta);
    const double y = coordinate(piece % h, h);
    for (int64_t j = 0; j < w; j++) {
        const double x = coordinate(j, w);
        pair[0] = theta[0] * x + theta[1] * y + theta[2];
        pair[1] = theta[3] * x + theta[4] * y + theta[5];
        us_linear_store_double(grid, (piece * w + j) * 2, 2, pair);
    }
}

KernelStatus us_grid_forward(const View *views, const void *attributes)
{
    (void)attributes;
    run_pieces(views[1].shape[0] * views[1].shape[1], us_view_elements(&views[1]), grid_forward_row, (void *)views);
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

enum { CHANNELS_PER_PIECE = 16 };

/* Where one output element looks: four corners of the input plane, their weights, and the fractions. */
typedef struct Tap {
    int32_t inside[4]; /* corners (x0,y0) (x1,y0) (x0,y1) (x1,y1) */
    int64_t index[4];
    double weight[4], fx, fy;
} Tap;

typedef struct Sampler {
    const Sampling *sampling;
    View x, y, grid, dy, dx, dgrid;
    int64_t h, w, in_h, in_w, chunks;
    atomic_int out_of_memory;
} Sampler;

static void find_taps(const Sampler *sampler, int64_t n, Tap *taps)
{
    const int64_t in_w = sampler->in_w, in_h = sampler->in_h;
    for (int64_t i = 0; i < sampler->h * sampler->w; i++) {
        double pair[2];
        us_linear_load_double(&sampler->grid, (n * sampler->h * sampler->w + i) * 2, 2, pair);
        const double px = (pair[0] + 1) * (double)(in_w - 1) / 2, py = (pair[1] + 1) * (double)(in_h - 1) / 2;
        Tap *tap = &taps[i];
        memset(tap, 0, sizeof *tap);
        if (!(px >= -1 && px < (double)in_w && py >= -1 && py < (double)in_h)) {
            continue; /* all corners outside; also NaN */
        }
        const int64_t x0 = (int64_t)floor(px), y0 = (int64_t)floor(py);
        tap->fx = px - (double)x0;
        tap->fy = py - (double)y0;
        for (int corner = 0; corner < 4; corner++) {
            const int right = corner & 1, below = corner >> 1;
            const int64_t cx = x0 + right, cy = y0 + below;
            if (cx >= 0 && cx < in_w && cy >= 0 && cy < in_h) {
                tap->inside[corner] = 1;
                tap->index[corner] = cy * in_w + cx;
                tap->weight[corner] = (right ? tap->fx : 1 - tap->fx) * (below ? tap->fy : 1 - tap->fy);
            }
        }
    }
}

static char *row_at(const View *view, int64_t n, int64_t c, int64_t i)
{
    const int64_t offset = n * view->strides[0] + c * view->strides[1] + i * view->strides[2];
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

static void load_plane(const View *view, int64_t n, int64_t c, double *values)
{
    for (int64_t i = 0; i < view->shape[2]; i++) {
        us_load_double(values + i * view->shape[3], row_at(view, n, c, i), view->dtype, view->strides[3],
                       view->shape[3]);
    }
}

static void store_plane(const View *view, int64_t n, int64_t c, double alpha, double beta, double *values,
                        double *prior)
{
    const int64_t elements = view->shape[2] * view->shape[3];
    if (beta != 0) {
        load_plane(view, n, c, prior);
    }
    for (int64_t i = 0; i < elements; i++) {
        values[i] = alpha * values[i] + (beta != 0 ? beta * prior[i] : 0);
    }
    for (int64_t i = 0; i < view->shape[2]; i++) {
        us_store_double(row_at(view, n, c, i), view->dtype, view->strides[3], values + i * view->shape[3],
                        view->shape[3]);
    }
}

/* Taps of an image, and room for `doubles` numbers behind them. */
static Tap *scratch(Sampler *sampler, int64_t doubles)
{
    const size_t taps = (size_t)(sampler->h * sampler->w) * sizeof(Tap);
    Tap *memory = malloc(taps + (size_t)doubles * sizeof(double));
    if (memory == NULL) {
        atomic_store(&sampler->out_of_memory, 1);
    }
    return memory;
}

static void sample_forward_piece(void *context, int64_t piece)
{
    Sampler *sampler = context;
    const int64_t n = piece / sampler->chunks, channels = sampler->x.shape[1];
    const int64_t first = piece % sampler->chunks * CHANNELS_PER_PIECE;
    const int64_t last = channels - first < CHANNELS_PER_PIECE ? channels : first + CHANNELS_PER_PIECE;
    const int64_t out = sampler->h * sampler->w, in = sampler->in_h * sampler->in_w;
    Tap *taps = scratch(sampler, in + 2 * out);
    if (taps == NULL) {
        return;
    }
    double *x = (double *)(taps + out), *y = x + in, *prior = y + out;
    find_taps(sampler, n, taps);
    for (int64_t c = first; c < last; c++) {
        load_plane(&sampler->x, n, c, x);
        for (int64_t i = 0; i < out; i++) {
            const Tap *tap = &taps[i];
            double sum = 0;
            for (int corner = 0; corner < 4; corner++) {
                sum += tap->inside[corner] ? tap->weight[corner] * x[tap->index[corner]] : 0;
            }
            y[i] = sum;
        }
        store_plane(&sampler->y, n, c, sampler->sampling->alpha, sampler->sampling->beta, y, prior);
    }
    free(taps);
}

/* Adds one element's share to dx and to the derivatives by px and py. */
static void spread(const Tap *tap, double dy, const double *x, double *dx, double *by_x, double *by_y)
{
    for (int corner = 0; corner < 4; corner++) {
        if (!tap->inside[corner]) {
            continue;
        }
        const int right = corner & 1, below = corner >> 1;
        const double value = x[tap->index[corner]];
        dx[tap->index[corner]] += tap->weight[corner] * dy;
        *by_x += dy * value * (right ? 1 : -1) * (below ? tap->fy : 1 - tap->fy);
        *by_y += dy * value * (below ? 1 : -1) * (right ? tap->fx : 1 - tap->fx);
    }
}

static void store_grid_gradient(const Sampler *sampler, int64_t n, const double *by_x, const double *by_y)
{
    const double alpha = sampler->sampling->alpha_grid, beta = sampler->sampling->beta_grid;
    const int64_t out = sampler->h * sampler->w;
    for (int64_t i = 0; i < out; i++) {
        double pair[2] = {alpha * by_x[i] * (double)(sampler->in_w - 1) / 2,
                          alpha * by_y[i] * (double)(sampler->in_h - 1) / 2};
        double prior[2];
        if (beta != 0) {
            us_linear_load_double(&sampler->dgrid, (n * out + i) * 2, 2, prior);
            pair[0] += beta * prior[0];
            pair[1] += beta * prior[1];
        }
        us_linear_store_double(&sampler->dgrid, (n * out + i) * 2, 2, pair);
    }
}

static void sample_backward_image(void *context, int64_t n)
{
    Sampler *sampler = context;
    const int64_t out = sampler->h * sampler->w, in = sampler->in_h * sampler->in_w;
    Tap *taps = scratch(sampler, 3 * in + 3 * out);
    if (taps == NULL) {
        return;
    }
    double *x = (double *)(taps + out), *dx = x + in, *prior = dx + in;
    double *dy = prior + in, *by_x = dy + out, *by_y = by_x + out;
    memset(by_x, 0, 2 * (size_t)out * sizeof *by_x);
    find_taps(sampler, n, taps);
    for (int64_t c = 0; c < sampler->x.shape[1]; c++) {
        load_plane(&sampler->x, n, c, x);
        load_plane(&sampler->dy, n, c, dy);
        memset(dx, 0, (size_t)in * sizeof *dx);
        for (int64_t i = 0; i < out; i++) {
            spread(&taps[i], dy[i], x, dx, &by_x[i], &by_y[i]);
        }
        store_plane(&sampler->dx, n, c, sampler->sampling->alpha, sampler->sampling->beta, dx, prior);
    }
    store_grid_gradient(sampler, n, by_x, by_y);
    free(taps);
}

static KernelStatus run(Sampler *sampler, const Sampling *sampling, const View *out, bool forward)
{
    sampler->sampling = sampling;
    sampler->h = out->shape[2];
    sampler->w = out->shape[3];
    sampler->in_h = sampler->x.shape[2];
    sampler->in_w = sampler->x.shape[3];
    sampler->chunks = forward ? (sampler->x.shape[1] + CHANNELS_PER_PIECE - 1) / CHANNELS_PER_PIECE : 1;
    atomic_init(&sampler->out_of_memory, 0);
    run_pieces(out->shape[0] * sampler->chunks, us_view_elements(out),
               forward ? sample_forward_piece : sample_backward_image,
               sampler);
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
