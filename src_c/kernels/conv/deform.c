#include "kernels/conv/deform.h"

#include "kernels/conv/conv.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"

#include <math.h>

enum { X, MOVES, W, BIAS, SAMPLES, Y };
enum { TILE = 256 };

typedef struct Sampling {
    const DeformableConvolution *how;
    View x, moves, samples;
    int64_t rows, columns, places[2]; /* of the filter, of the result */
} Sampling;

static float pixel(const View *x, const char *plane, int64_t row, int64_t column)
{
    float value = 0;
    if (row >= 0 && row < x->shape[2] && column >= 0 && column < x->shape[3]) {
        const int64_t at = row * x->strides[2] + column * x->strides[3];
        us_load_float(&value, plane + at * (int64_t)us_dtype_size(x->dtype), x->dtype, 1, 1);
    }
    return value;
}

static double between(const View *x, const char *plane, double row, double column)
{
    if (!(row > -1 && row < (double)x->shape[2] && column > -1 && column < (double)x->shape[3])) {
        return 0;
    }
    const double top = floor(row), left = floor(column), down = row - top, across = column - left;
    const int64_t i = (int64_t)top, j = (int64_t)left;
    return (1 - down) * ((1 - across) * (double)pixel(x, plane, i, j) + across * (double)pixel(x, plane, i, j + 1)) +
           down * ((1 - across) * (double)pixel(x, plane, i + 1, j) + across * (double)pixel(x, plane, i + 1, j + 1));
}

/* Moves begin … begin + count - 1 of a row of the result; kind 0 across, 1 down, 2 the factors. */
static void load_moves(const Sampling *work, int64_t image, int64_t kind, int64_t part, int64_t tap, int64_t row, int64_t begin,
                       int64_t count, float *moves)
{
    const int64_t taps = work->rows * work->columns, channel = (kind * work->how->parts + part) * taps + tap;
    us_row_load(&work->moves, (image * work->moves.shape[1] + channel) * work->places[0] + row, begin, count, moves);
}

static void sample_row(const Sampling *work, int64_t image, int64_t channel, int64_t tap, int64_t row, int64_t begin,
                       int64_t count)
{
    const DeformableConvolution *how = work->how;
    const int64_t part = channel / (work->x.shape[1] / how->parts), i = tap / work->columns, j = tap % work->columns;
    float across[TILE], down[TILE], factors[TILE];
    load_moves(work, image, 0, part, tap, row, begin, count, across);
    load_moves(work, image, 1, part, tap, row, begin, count, down);
    load_moves(work, image, 2, part, tap, row, begin, count, factors);
    const int64_t at = image * work->x.strides[0] + channel * work->x.strides[1];
    const char *plane = (const char *)work->x.data + at * (int64_t)us_dtype_size(work->x.dtype);
    const double top = (double)(row * how->stride[0] - how->padding[0] + i * how->dilation[0]);
    for (int64_t o = 0; o < count; o++) {
        const double left = (double)((begin + o) * how->stride[1] - how->padding[1] + j * how->dilation[1]);
        factors[o] = (float)((double)factors[o] * between(&work->x, plane, top + (double)down[o], left + (double)across[o]));
    }
    const int64_t channels = work->x.shape[1], height = work->places[0] * work->rows;
    const Line line = us_line_of(&work->samples, 3, (image * channels + channel) * height + row * work->rows + i);
    us_store_float(us_line_element(&line, begin * work->columns + j), line.dtype, line.stride * work->columns, factors, count);
}

static void sample_plane(void *context, int64_t piece)
{
    const Sampling *work = context;
    const int64_t channels = work->x.shape[1];
    for (int64_t row = 0; row < work->places[0]; row++) {
        for (int64_t tap = 0; tap < work->rows * work->columns; tap++) {
            for (int64_t begin = 0; begin < work->places[1]; begin += TILE) {
                const int64_t rest = work->places[1] - begin;
                sample_row(work, piece / channels, piece % channels, tap, row, begin, rest < TILE ? rest : TILE);
            }
        }
    }
}

KernelStatus us_conv_deformable(const View *views, const void *attributes)
{
    const DeformableConvolution *how = attributes;
    const View *y = &views[Y], *x = &views[X];
    Sampling work = {how, *x, views[MOVES], views[SAMPLES], views[W].shape[2], views[W].shape[3], {y->shape[2], y->shape[3]}};
    const int64_t shape[] = {x->shape[0], x->shape[1], y->shape[2] * work.rows, y->shape[3] * work.columns};
    const int64_t elements = shape[0] * shape[1] * shape[2] * shape[3];
    void *scratch = NULL;
    if (us_view_is_absent(&work.samples)) {
        scratch = us_scratch_take((size_t)elements * us_dtype_size(x->dtype));
        if (scratch == NULL) {
            return KERNEL_NO_MEMORY;
        }
        work.samples = us_view_contiguous(scratch, x->dtype, 4, shape);
    }
    run_pieces(shape[0] * shape[1], elements * 16, sample_plane, &work);
    const Convolution conv = {.axes = 2, .stride = {work.rows, work.columns}, .dilation = {1, 1}, .groups = how->groups,
                              .alpha = 1};
    const View operands[] = {work.samples, views[W], views[BIAS], us_view_absent(), *y};
    const KernelStatus status = us_conv_forward(operands, &conv);
    us_scratch_give_back(scratch);
    return status;
}
