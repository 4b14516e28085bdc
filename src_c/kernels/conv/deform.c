#include "kernels/conv/deform.h"

#include "kernels/conv/conv.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

enum { X, MOVES, W, BIAS, SAMPLES, Y };
enum { TILE = 256, BLOCK = 8 /* channels, which share their places */ };

typedef struct Sampling {
    const DeformableConvolution *how;
    View x, moves, samples;
    int64_t rows, columns, places[2]; /* of the filter, of the result */
    bool no_memory;
} Sampling;

/* Planes of x in float32 with zeros about them: a row above and two below, a column on either side. */
typedef struct Planes {
    float *data;
    int64_t width, size;
} Planes;

/* Between which pixels the places of a tile lie: `at` is the first one of four, `down` and `across` are how far they are from
 * it. Places outside lie between zeros. */
typedef struct Places {
    int64_t at[TILE];
    double down[TILE], across[TILE], factors[TILE];
} Places;

static void load_plane(const Sampling *work, int64_t image, int64_t channel, const Planes *planes, float *to)
{
    const int64_t height = work->x.shape[2], width = work->x.shape[3];
    memset(to, 0, (size_t)planes->size * sizeof *to);
    const int64_t first = (image * work->x.shape[1] + channel) * height;
    for (int64_t row = 0; row < height; row++) {
        us_row_load(&work->x, first + row, 0, width, to + (row + 1) * planes->width + 1);
    }
}

/* Moves begin … begin + count - 1 of a row of the result; kind 0 across, 1 down, 2 the factors. */
static void load_moves(const Sampling *work, int64_t image, int64_t kind, int64_t part, int64_t tap, int64_t row, int64_t begin,
                       int64_t count, float *moves)
{
    const int64_t taps = work->rows * work->columns, channel = (kind * work->how->parts + part) * taps + tap;
    us_row_load(&work->moves, (image * work->moves.shape[1] + channel) * work->places[0] + row, begin, count, moves);
}

static void find_places(const Sampling *work, int64_t image, int64_t part, int64_t tap, int64_t output_row, int64_t begin,
                        int64_t count, Places *places)
{
    const DeformableConvolution *how = work->how;
    const int64_t i = tap / work->columns, j = tap % work->columns, width = work->x.shape[3] + 2;
    const double rows = (double)work->x.shape[2], columns = (double)work->x.shape[3];
    const double top = (double)(output_row * how->stride[0] - how->padding[0] + i * how->dilation[0]);
    float across[TILE], down[TILE], factors[TILE];
    load_moves(work, image, 0, part, tap, output_row, begin, count, across);
    load_moves(work, image, 1, part, tap, output_row, begin, count, down);
    load_moves(work, image, 2, part, tap, output_row, begin, count, factors);
    for (int64_t o = 0; o < count; o++) {
        const double left = (double)((begin + o) * how->stride[1] - how->padding[1] + j * how->dilation[1]);
        const double row = top + (double)down[o], column = left + (double)across[o];
        const bool inside = row > -1 && row < rows && column > -1 && column < columns;
        const double first_row = inside ? floor(row) : rows, first_column = inside ? floor(column) : -1;
        places->at[o] = ((int64_t)first_row + 1) * width + (int64_t)first_column + 1;
        places->down[o] = inside ? row - first_row : 0;
        places->across[o] = inside ? column - first_column : 0;
        places->factors[o] = (double)factors[o];
    }
}

static void sample(const Places *places, const float *plane, int64_t width, int64_t count, float *samples)
{
    for (int64_t o = 0; o < count; o++) {
        const float *first = plane + places->at[o], *second = first + width;
        const double down = places->down[o], across = places->across[o];
        const double value = (1 - down) * ((1 - across) * (double)first[0] + across * (double)first[1]) +
                             down * ((1 - across) * (double)second[0] + across * (double)second[1]);
        samples[o] = (float)(places->factors[o] * value);
    }
}

static void sample_tile(const Sampling *work, const Planes *planes, int64_t image, int64_t channel, int64_t channels,
                        int64_t row, int64_t tap, int64_t begin)
{
    const int64_t i = tap / work->columns, j = tap % work->columns, height = work->places[0] * work->rows;
    const int64_t rest = work->places[1] - begin, count = rest < TILE ? rest : TILE;
    Places places;
    float samples[TILE];
    find_places(work, image, channel / (work->x.shape[1] / work->how->parts), tap, row, begin, count, &places);
    for (int64_t c = 0; c < channels; c++) {
        const int64_t line_number = (image * work->x.shape[1] + channel + c) * height + row * work->rows + i;
        const Line line = us_line_of(&work->samples, 3, line_number);
        sample(&places, planes->data + c * planes->size, planes->width, count, samples);
        char *to = us_line_element(&line, begin * work->columns + j);
        us_store_float(to, line.dtype, line.stride * work->columns, samples, count);
    }
}

/* A block of channels of one part. */
static void sample_block(void *context, int64_t piece)
{
    Sampling *work = context;
    const int64_t of_part = work->x.shape[1] / work->how->parts, blocks = (of_part + BLOCK - 1) / BLOCK;
    const int64_t image = piece / blocks / work->how->parts, part = piece / blocks % work->how->parts;
    const int64_t first = piece % blocks * BLOCK;
    const int64_t channel = part * of_part + first, channels = of_part - first < BLOCK ? of_part - first : BLOCK;
    Planes planes = {.width = work->x.shape[3] + 2};
    planes.size = (work->x.shape[2] + 3) * planes.width;
    planes.data = us_scratch_array(us_scratch_count(channels, planes.size), sizeof *planes.data);
    if (planes.data == NULL) {
        __atomic_store_n(&work->no_memory, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t c = 0; c < channels; c++) {
        load_plane(work, image, channel + c, &planes, planes.data + c * planes.size);
    }
    for (int64_t row = 0; row < work->places[0]; row++) {
        for (int64_t tap = 0; tap < work->rows * work->columns; tap++) {
            for (int64_t begin = 0; begin < work->places[1]; begin += TILE) {
                sample_tile(work, &planes, image, channel, channels, row, tap, begin);
            }
        }
    }
    us_scratch_give_back(planes.data);
}

static Sampling sampling_of(const DeformableConvolution *how, const View *x, const View *moves, const View *samples)
{
    return (Sampling){.how = how, .x = *x, .moves = *moves, .samples = *samples,
                      .rows = samples->shape[2] / moves->shape[2], .columns = samples->shape[3] / moves->shape[3],
                      .places = {moves->shape[2], moves->shape[3]}};
}

static KernelStatus take_samples(Sampling *work)
{
    const int64_t channels = work->x.shape[1], of_part = channels / work->how->parts;
    run_pieces(work->x.shape[0] * work->how->parts * ((of_part + BLOCK - 1) / BLOCK),
               us_view_elements(&work->samples) * 16, sample_block, work);
    return work->no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_deformed_samples(const View *views, const void *attributes)
{
    enum { TO = 2 };
    Sampling work = sampling_of(attributes, &views[X], &views[MOVES], &views[TO]);
    return take_samples(&work);
}

/* ---- gradient ---- */

typedef struct SampleSlopes {
    Sampling sampling; /* its samples are slopes */
    View to_x, to_moves;
} SampleSlopes;

/* What a part of an image's channels gathers: slopes of its moves [kind, tap, row, column], of planes as they are
 * padded. */
typedef struct Gathered {
    double *moves, *planes;
    int64_t kind; /* elements of a kind of moves */
} Gathered;

/* A tile of one channel: `slopes` of its samples go to the four pixels about each place and to what moved it there. */
static void spread(const Places *places, const float *plane, int64_t width, const float *slopes, int64_t count,
                   int64_t kind, double *to_moves, double *to_plane)
{
    for (int64_t o = 0; o < count; o++) {
        const float *first = plane + places->at[o], *second = first + width;
        double *to_first = to_plane + places->at[o], *to_second = to_first + width;
        const double down = places->down[o], across = places->across[o], slope = (double)slopes[o] * places->factors[o];
        const double top = (1 - across) * (double)first[0] + across * (double)first[1];
        const double bottom = (1 - across) * (double)second[0] + across * (double)second[1];
        const double rise = (double)first[1] - (double)first[0], rise_below = (double)second[1] - (double)second[0];
        to_moves[o] += slope * ((1 - down) * rise + down * rise_below);
        to_moves[kind + o] += slope * (bottom - top);
        to_moves[2 * kind + o] += (double)slopes[o] * ((1 - down) * top + down * bottom);
        to_first[0] += slope * (1 - down) * (1 - across);
        to_first[1] += slope * (1 - down) * across;
        to_second[0] += slope * down * (1 - across);
        to_second[1] += slope * down * across;
    }
}

static void spread_tile(const Sampling *work, const Planes *planes, const Gathered *to, int64_t image, int64_t part,
                        int64_t channel, int64_t row, int64_t tap, int64_t begin)
{
    const int64_t i = tap / work->columns, j = tap % work->columns, height = work->places[0] * work->rows;
    const int64_t rest = work->places[1] - begin, count = rest < TILE ? rest : TILE;
    const int64_t line_number = (image * work->x.shape[1] + channel) * height + row * work->rows + i;
    const Line line = us_line_of(&work->samples, 3, line_number);
    Places places;
    float slopes[TILE];
    find_places(work, image, part, tap, row, begin, count, &places);
    const char *from = us_line_element(&line, begin * work->columns + j);
    us_load_float(slopes, from, line.dtype, line.stride * work->columns, count);
    spread(&places, planes->data, planes->width, slopes, count, to->kind,
           to->moves + (tap * work->places[0] + row) * work->places[1] + begin, to->planes);
}

static void spread_channel(const SampleSlopes *slopes, const Planes *planes, const Gathered *to, int64_t image,
                           int64_t part, int64_t channel)
{
    const Sampling *work = &slopes->sampling;
    const int64_t height = work->x.shape[2], width = work->x.shape[3];
    load_plane(work, image, channel, planes, planes->data);
    memset(to->planes, 0, (size_t)planes->size * sizeof *to->planes);
    for (int64_t row = 0; row < work->places[0]; row++) {
        for (int64_t tap = 0; tap < work->rows * work->columns; tap++) {
            for (int64_t begin = 0; begin < work->places[1]; begin += TILE) {
                spread_tile(work, planes, to, image, part, channel, row, tap, begin);
            }
        }
    }
    for (int64_t row = 0; row < height; row++) {
        us_linear_store_double(&slopes->to_x, ((image * work->x.shape[1] + channel) * height + row) * width, width,
                               to->planes + (row + 1) * planes->width + 1);
    }
}

/* A part of an image's channels, which have their moves in common. */
static void spread_part(void *context, int64_t piece)
{
    SampleSlopes *slopes = context;
    Sampling *work = &slopes->sampling;
    const int64_t parts = work->how->parts, of_part = work->x.shape[1] / parts;
    const int64_t image = piece / parts, part = piece % parts;
    Planes planes = {.width = work->x.shape[3] + 2};
    planes.size = (work->x.shape[2] + 3) * planes.width;
    Gathered to = {.kind = work->rows * work->columns * work->places[0] * work->places[1]};
    const size_t sizes[] = {us_scratch_bytes(planes.size, sizeof *planes.data),
                            us_scratch_bytes(planes.size, sizeof *to.planes),
                            us_scratch_bytes(us_scratch_count(3, to.kind), sizeof *to.moves)};
    char *block = us_scratch_take(us_scratch_sum(sizes, 3)), *cursor = block;
    if (block == NULL) {
        __atomic_store_n(&work->no_memory, true, __ATOMIC_RELAXED);
        return;
    }
    planes.data = us_scratch_part(&cursor, sizes[0]);
    to.planes = us_scratch_part(&cursor, sizes[1]);
    to.moves = us_scratch_part(&cursor, sizes[2]);
    memset(to.moves, 0, 3 * (size_t)to.kind * sizeof *to.moves);
    for (int64_t channel = part * of_part; channel < (part + 1) * of_part; channel++) {
        spread_channel(slopes, &planes, &to, image, part, channel);
    }
    for (int64_t kind = 0; kind < 3; kind++) {
        us_linear_store_double(&slopes->to_moves, (image * 3 + kind) * parts * to.kind + part * to.kind, to.kind,
                               to.moves + kind * to.kind);
    }
    us_scratch_give_back(block);
}

KernelStatus us_deformed_samples_gradient(const View *views, const void *attributes)
{
    enum { SLOPES, OF_X, OF_MOVES, TO_X, TO_MOVES };
    SampleSlopes slopes = {.sampling = sampling_of(attributes, &views[OF_X], &views[OF_MOVES], &views[SLOPES]),
                           .to_x = views[TO_X], .to_moves = views[TO_MOVES]};
    run_pieces(views[OF_X].shape[0] * slopes.sampling.how->parts, us_view_elements(&views[SLOPES]) * 32, spread_part,
               &slopes);
    return slopes.sampling.no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- convolution ---- */

KernelStatus us_conv_deformable(const View *views, const void *attributes)
{
    const DeformableConvolution *how = attributes;
    const View *y = &views[Y], *x = &views[X], *w = &views[W];
    const int64_t shape[] = {x->shape[0], x->shape[1], y->shape[2] * w->shape[2], y->shape[3] * w->shape[3]};
    View samples = views[SAMPLES];
    void *scratch = NULL;
    if (us_view_is_absent(&samples)) {
        const int64_t elements = us_shape_elements(4, shape); /* -1: more than can be counted, or taken */
        scratch = us_scratch_array(elements, us_dtype_size(x->dtype));
        if (scratch == NULL) {
            return KERNEL_NO_MEMORY;
        }
        samples = us_view_contiguous(scratch, x->dtype, 4, shape);
    }
    Sampling work = sampling_of(how, x, &views[MOVES], &samples);
    const KernelStatus sampled = take_samples(&work);
    const Convolution conv = {.axes = 2, .stride = {w->shape[2], w->shape[3]}, .dilation = {1, 1},
                              .groups = how->groups, .alpha = 1};
    const View operands[] = {samples, *w, views[BIAS], us_view_absent(), *y};
    const KernelStatus status = sampled == KERNEL_OK ? us_conv_forward(operands, &conv) : sampled;
    us_scratch_give_back(scratch);
    return status;
}
