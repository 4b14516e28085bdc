#include "kernels/resample/spatial_transformer.h"

#include "kernels/detach.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <stdatomic.h>
#include <string.h>

/* ---- grids ---- */

/* Coordinate of position i of `size`; a single position is in the middle. */
US_ALWAYS_INLINE double coordinate(int64_t i, int64_t size)
{
    return size > 1 ? -1 + 2 * (double)i / (double)(size - 1) : 0;
}

/* POINTS of the grid are handled at a time. */
enum { POINTS = 256, GRID_AXES = 3 };

typedef struct GridCall {
    const View *theta, *grid;
    bool align_corners;
    int64_t rows, rows_per_piece;
} GridCall;

US_ALWAYS_INLINE double point_at(bool align_corners, int64_t i, int64_t size)
{
    return align_corners ? coordinate(i, size) : (2 * (double)i + 1) / (double)size - 1;
}

static void place_columns(bool align_corners, int64_t first, int64_t count, int64_t size, double *columns)
{
    for (int64_t j = 0; align_corners && j < count; j++) {
        columns[j] = point_at(true, first + j, size);
    }
    for (int64_t j = 0; !align_corners && j < count; j++) {
        columns[j] = point_at(false, first + j, size);
    }
}

/* points[j][row] = theta[row] * (columns[j], rest ..., 1) */
US_ALWAYS_INLINE void make_points_by(int32_t axes, int64_t count, const double *theta, const double *rest,
                                     const double *restrict columns, double *restrict points)
{
    for (int64_t j = 0; j < count; j++) {
        for (int32_t row = 0; row < axes; row++) {
            double point = theta[row * (axes + 1)] * columns[j] + 0;
            for (int32_t k = 1; k <= axes; k++) {
                point += theta[row * (axes + 1) + k] * rest[k - 1];
            }
            points[j * axes + row] = point;
        }
    }
}

static void make_points(int32_t axes, int64_t count, const double *theta, const double *rest, const double *columns,
                        double *points)
{
    if (axes == 2) {
        make_points_by(2, count, theta, rest, columns, points);
    } else {
        make_points_by(3, count, theta, rest, columns, points);
    }
}

/* The points along the last axis. */
static void grid_forward_row(const GridCall *call, int64_t line)
{
    const View *grid = call->grid;
    const int32_t axes = grid->rank - 2;
    const int64_t h = grid->shape[axes - 1], w = grid->shape[axes], d = axes == 3 ? grid->shape[1] : 1;
    double theta[GRID_AXES * (GRID_AXES + 1)], rest[GRID_AXES], columns[POINTS], points[GRID_AXES * POINTS];
    us_linear_load_double(call->theta, line / (d * h) * axes * (axes + 1), axes * (axes + 1), theta);
    rest[0] = point_at(call->align_corners, line % h, h);
    if (axes == 3) {
        rest[1] = point_at(call->align_corners, line / h % d, d);
    }
    rest[axes - 1] = 1;
    for (int64_t j = 0; j < w; j += POINTS) {
        const int64_t count = w - j < POINTS ? w - j : POINTS;
        place_columns(call->align_corners, j, count, w, columns);
        make_points(axes, count, theta, rest, columns, points);
        us_linear_store_double(grid, (line * w + j) * axes, count * axes, points);
    }
}

static void grid_forward_piece(void *context, int64_t piece)
{
    const GridCall *call = context;
    const int64_t first = piece * call->rows_per_piece, left = call->rows - first;
    for (int64_t row = 0; row < (left < call->rows_per_piece ? left : call->rows_per_piece); row++) {
        grid_forward_row(call, first + row);
    }
}

KernelStatus us_grid_forward(const View *views, const void *attributes)
{
    const int32_t last = views[1].rank - 2;
    GridCall call = {&views[0], &views[1], ((const AffineGrid *)attributes)->align_corners, .rows = 1};
    for (int32_t axis = 0; axis < last; axis++) {
        call.rows *= views[1].shape[axis];
    }
    call.rows_per_piece = views[1].shape[last] > 0 ? 16 * POINTS / views[1].shape[last] + 1 : 1;
    run_pieces((call.rows + call.rows_per_piece - 1) / call.rows_per_piece, us_view_elements(&views[1]),
               grid_forward_piece, &call);
    return KERNEL_OK;
}

/* Sums over points that lie one after the other, x and y in turn: of the elements, and of these times their column's and
 * their row's coordinate. Element k of a row belongs to sum k % SUMS. */
enum { SUMS = 16 };
typedef struct GridSums {
    double by_column[SUMS], by_row[SUMS], all[SUMS];
} GridSums;

US_ALWAYS_INLINE void add_element(GridSums *sums, int64_t k, double element, double column, double row)
{
    sums->by_column[k] += element * column;
    sums->by_row[k] += element * row;
    sums->all[k] += element;
}

static void add_points(GridSums *sums, int64_t count, const double *points, const double *columns, double row)
{
    GridSums own = *sums;
    int64_t j = 0;
    for (; j + SUMS / 2 <= count; j += SUMS / 2) {
        for (int64_t k = 0; k < SUMS; k++) {
            add_element(&own, k, points[2 * j + k], columns[2 * j + k], row);
        }
    }
    for (int64_t k = 0; k < 2 * (count - j); k++) {
        add_element(&own, k, points[2 * j + k], columns[2 * j + k], row);
    }
    *sums = own;
}

/* The sum of every second one. */
static double sum_from(const double *sums, int64_t first)
{
    double sum = 0;
    for (int64_t k = first; k < SUMS; k += 2) {
        sum += sums[k];
    }
    return sum;
}

static void grid_backward_image(void *context, int64_t n)
{
    const View *dgrid = context, *dtheta = dgrid + 1;
    const int64_t h = dgrid->shape[1], w = dgrid->shape[2];
    GridSums sums = {0};
    double columns[POINTS], twice[2 * POINTS], points[2 * POINTS], results[6];
    for (int64_t j = 0; j < w; j += POINTS) {
        const int64_t count = w - j < POINTS ? w - j : POINTS;
        place_columns(true, j, count, w, columns);
        for (int64_t k = 0; k < 2 * count; k++) {
            twice[k] = columns[k / 2];
        }
        for (int64_t i = 0; i < h; i++) {
            us_linear_load_double(dgrid, ((n * h + i) * w + j) * 2, 2 * count, points);
            add_points(&sums, count, points, twice, coordinate(i, h));
        }
    }
    for (int64_t r = 0; r < 2; r++) {
        results[3 * r] = sum_from(sums.by_column, r);
        results[3 * r + 1] = sum_from(sums.by_row, r);
        results[3 * r + 2] = sum_from(sums.all, r);
    }
    us_linear_store_double(dtheta, n * 6, 6, results);
}

KernelStatus us_grid_backward(const View *views, const void *attributes)
{
    (void)attributes;
    run_pieces(views[0].shape[0], us_view_elements(&views[0]), grid_backward_image, (void *)views);
    return KERNEL_OK;
}

/* ---- sampling ---- */

enum { CHANNELS_PER_PIECE = 16 };

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
#include "kernels/resample/spatial_transformer_body.inc"

#define ELEMENT double
#define NAME(name) name##_double
#include "kernels/resample/spatial_transformer_body.inc"

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
