/* Gradients to the data in float32 as products of the filter, as it lies, with dy: what each tap of each channel gives every
 * position. These rows are then added up where the taps belong. No filter is turned round, and steps cost nothing. */
#include "kernels/conv/gather.h"
#include "kernels/matmul/matmul.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* Products of one piece, which stay in the second cache; positions that share one, and most of an image; rows of a product
 * that are worth reading dy; work for a few threads. */
enum { ELEMENTS = 192 * 1024, POSITIONS = 512, MOST_POSITIONS = 1024, LEAST_ROWS = 128, FEW = 4 };

typedef struct Folding {
    const Gather *gather; /* of the forward direction, whose input is made */
    Gather rows;          /* dy: every position sees itself */
    float *joined;        /* dy of blocks of several images: [group][block][result][image][position] */
    const Finish *finish;
    int64_t taps;
    int64_t images, blocks;   /* of a block; blocks */
    int64_t channels, chunks; /* of a chunk; chunks of a group */
    atomic_bool no_memory;
} Folding;

bool us_folds(const Gather *gather)
{
    int64_t stride;
    const int64_t taps = gather_taps(gather), positions = conv_product3(gather->out_size);
    return gather->compute == DTYPE_FLOAT32 && gather->column_type == DTYPE_FLOAT32 && !gather->channels_last && taps > 1 &&
           positions > 0 && positions <= MOST_POSITIONS && taps <= ELEMENTS / positions && gather->channels > 0 &&
           gather->results > 0 && us_gather_filter_stride(gather, &stride) && stride == 1;
}

static Folding divide(const Gather *gather, const void *dy, const Finish *finish)
{
    const int64_t positions = conv_product3(gather->out_size);
    Folding folding = {.gather = gather, .rows = us_gather_of_rows(gather, dy, DTYPE_FLOAT32), .finish = finish,
                       .taps = gather_taps(gather)};
    folding.images = bounded(POSITIONS / positions, 1, gather->images);
    folding.blocks = ceiling(gather->images, folding.images);
    const int64_t fitting = ELEMENTS / (folding.images * positions * folding.taps);
    const int64_t shared = ceiling(gather->channels, ceiling(FEW, folding.blocks * gather->groups));
    folding.channels = bounded(smaller(fitting, larger(shared, LEAST_ROWS / folding.taps)), 1, gather->channels);
    folding.chunks = ceiling(gather->channels, folding.channels);
    return folding;
}

/* ---- sums over taps ---------------------------------------------------------------------------------------------- */

/* Positions along an axis whose tap lies inside: begin … end - 1. */
typedef struct Span {
    int64_t begin, end;
} Span;

static Span inside(const Gather *gather, int axis, int64_t tap)
{
    const int64_t first = gather->taps[axis].offset + tap * gather->taps[axis].offset_step, step = gather->step[axis];
    const int64_t size = gather->in_size[axis], begin = first < 0 ? ceiling(-first, step) : 0;
    const int64_t end = first < size ? smaller(ceiling(size - first, step), gather->out_size[axis]) : 0;
    return (Span){begin, larger(begin, end)};
}

static int64_t place(const Gather *gather, int axis, int64_t position, int64_t tap)
{
    return position * gather->step[axis] + gather->taps[axis].offset + tap * gather->taps[axis].offset_step;
}

static void add_run(float *restrict to, const float *restrict from, int64_t count, int64_t step)
{
    for (int64_t i = 0; step == 1 && i < count; i++) {
        to[i] += from[i];
    }
    for (int64_t i = 0; step != 1 && i < count; i++) {
        to[i * step] += from[i];
    }
}

/* Some images, and channels of a group. */
typedef struct Chunk {
    int64_t group, image, images, first, channels;
    const float *products; /* [channel][tap][image][position] */
    float *planes;         /* [channel][image][place] */
} Chunk;

/* Adds what a tap gives the planes. */
static void add_tap(const Gather *gather, const Chunk *chunk, int64_t number, int64_t taps)
{
    const int64_t *out = gather->out_size, *in = gather->in_size, across = gather->taps[2].count, down = gather->taps[1].count;
    const int64_t tap[] = {number / across / down, number / across % down, number % across};
    const Span spans[] = {inside(gather, 0, tap[0]), inside(gather, 1, tap[1]), inside(gather, 2, tap[2])};
    const int64_t column = place(gather, 2, spans[2].begin, tap[2]), count = spans[2].end - spans[2].begin;
    for (int64_t i = 0; count > 0 && i < chunk->channels * chunk->images; i++) {
        const int64_t product = (i / chunk->images * taps + number) * chunk->images + i % chunk->images;
        const float *from = chunk->products + product * conv_product3(out) + spans[2].begin;
        float *to = chunk->planes + i * conv_product3(in) + column;
        for (int64_t o0 = spans[0].begin; o0 < spans[0].end; o0++) {
            const int64_t i0 = place(gather, 0, o0, tap[0]);
            for (int64_t o1 = spans[1].begin; o1 < spans[1].end; o1++) {
                const int64_t i1 = place(gather, 1, o1, tap[1]);
                add_run(to + (i0 * in[1] + i1) * in[2], from + (o0 * out[1] + o1) * out[2], count, gather->step[2]);
            }
        }
    }
}

/* The sums over the taps, to where they belong. */
static void fold(const Folding *folding, const Chunk *chunk)
{
    const Gather *gather = folding->gather;
    const int64_t plane = conv_product3(gather->in_size), count = chunk->images * plane;
    memset(chunk->planes, 0, (size_t)(chunk->channels * count) * sizeof *chunk->planes);
    for (int64_t tap = 0; tap < folding->taps; tap++) {
        add_tap(gather, chunk, tap, folding->taps);
    }
    for (int64_t c = 0; c < chunk->channels; c++) {
        us_finish_positions(folding->finish, DTYPE_FLOAT32, chunk->group * gather->channels + chunk->first + c,
                            chunk->image * plane, count, chunk->planes + c * count);
    }
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* dy of a group and block: [result][image][position]. */
static void join_images(void *context, int64_t number)
{
    const Folding *folding = context;
    const Gather *rows = &folding->rows;
    const int64_t group = number / folding->blocks, first = number % folding->blocks * folding->images;
    const int64_t images = smaller(folding->images, rows->images - first), positions = conv_product3(rows->out_size);
    const int64_t before = (group * rows->images + first) * rows->channels * positions;
    us_gather_columns(rows, group, 0, rows->channels, first * positions, images * positions, folding->joined + before);
}

/* One image's is a matrix as it lies. */
static Matrix dy_of(const Folding *folding, const Chunk *chunk)
{
    const Gather *rows = &folding->rows;
    const int64_t positions = conv_product3(rows->out_size), of_image = rows->channels * positions;
    const float *image = (const float *)rows->in + (chunk->image * rows->groups + chunk->group) * of_image;
    const float *block = folding->joined + (chunk->group * rows->images + chunk->image) * of_image;
    return matrix_of_rows(folding->images == 1 ? image : block, DTYPE_FLOAT32, chunk->images * positions);
}

static void fold_piece(void *context, int64_t piece)
{
    Folding *folding = context;
    const Gather *gather = folding->gather;
    const int64_t of = piece / folding->chunks, plane = conv_product3(gather->in_size);
    Chunk chunk = {.group = of / folding->blocks, .image = of % folding->blocks * folding->images,
                   .first = piece % folding->chunks * folding->channels};
    chunk.images = smaller(folding->images, gather->images - chunk.image);
    chunk.channels = smaller(folding->channels, gather->channels - chunk.first);
    const int64_t count = chunk.images * conv_product3(gather->out_size), rows = chunk.channels * folding->taps;
    const size_t of_products = us_scratch_bytes(us_scratch_count(rows, count), sizeof(float));
    const size_t of_planes = us_scratch_bytes(us_scratch_count(chunk.channels * chunk.images, plane), sizeof(float));
    char *memory = us_scratch_take(of_products + of_planes);
    if (memory == NULL) {
        atomic_store(&folding->no_memory, true);
        return;
    }
    chunk.products = (float *)memory;
    chunk.planes = (float *)(memory + of_products);
    const int64_t first = chunk.group * gather->filter.strides[0] + chunk.first * folding->taps;
    const Matmul product = {.m = rows, .n = count, .k = gather->results,
                            .a = matrix_transposed((const float *)gather->filter.data + first, DTYPE_FLOAT32,
                                                   gather->filter.strides[1]),
                            .b = dy_of(folding, &chunk), .c = matrix_of_rows(chunk.products, DTYPE_FLOAT32, count),
                            .compute = DTYPE_FLOAT32, .alpha = {1}, .undivided = true};
    if (us_matmul(&product) != KERNEL_OK) {
        atomic_store(&folding->no_memory, true);
    }
    fold(folding, &chunk);
    us_scratch_give_back(memory);
}

KernelStatus us_gather_folded(const Gather *gather, const void *dy, const Finish *finish)
{
    Folding folding = divide(gather, dy, finish);
    if (folding.images > 1) {
        const int64_t elements = gather->groups * gather->results * gather_positions(gather);
        folding.joined = us_scratch_array(elements, sizeof *folding.joined);
        if (folding.joined == NULL) {
            return KERNEL_NO_MEMORY;
        }
        us_parallel(gather->groups * folding.blocks, join_images, &folding);
    }
    atomic_init(&folding.no_memory, false);
    us_parallel(gather->groups * folding.blocks * folding.chunks, fold_piece, &folding);
    us_scratch_give_back(folding.joined);
    return atomic_load(&folding.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
