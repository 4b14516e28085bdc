/* The slopes of the filter by Winograd's method. */
#include "kernels/conv/winograd.h"

#include "kernels/matmul/matmul.h"
#include "kernels/scratch.h"
#include "tensor/parallel.h"

typedef struct Slopes {
    const Gather *gather;
    Mapped patches, slopes;
    float *products; /* [place][result][channel] */
    int64_t pitch;   /* of their rows */
    void *sums;
    bool adds;
    atomic_bool no_memory;
} Slopes;

static void map_piece(void *context, int64_t piece)
{
    Slopes *slopes = context;
    const int64_t pieces = ceiling(slopes->patches.lines, LINES);
    const bool of_x = piece < pieces;
    us_winograd_map_lines(of_x ? &slopes->patches : &slopes->slopes, (of_x ? piece : piece - pieces) * LINES,
                   &slopes->no_memory);
}

static void product_piece(void *context, int64_t place)
{
    Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const Mapped *x = &slopes->patches, *dy = &slopes->slopes;
    const float *a = dy->values + place * dy->lines * dy->pitch, *b = x->values + place * x->lines * x->pitch;
    float *c = slopes->products + place * gather->results * slopes->pitch;
    const bool last = gather->channels_last;
    Matmul product = {.m = gather->results, .n = gather->channels, .k = x->count,
                      .a = last ? matrix_transposed(a, DTYPE_FLOAT32, dy->pitch)
                                : matrix_of_rows(a, DTYPE_FLOAT32, dy->pitch),
                      .b = last ? matrix_of_rows(b, DTYPE_FLOAT32, x->pitch)
                                : matrix_transposed(b, DTYPE_FLOAT32, x->pitch),
                      .c = matrix_of_rows(c, DTYPE_FLOAT32, slopes->pitch), .compute = DTYPE_FLOAT32, .alpha = {1},
                      .beta = {slopes->adds ? 1 : 0}, .undivided = true};
    product.addend = product.c;
    if (us_matmul(&product) != KERNEL_OK) {
        atomic_store(&slopes->no_memory, true);
    }
}

/* The slopes of one result of a group, in the order of a packed filter. */
static void unmap_piece(void *context, int64_t result)
{
    Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const int64_t channels = gather->channels, pitch = slopes->pitch;
    float *memory = us_scratch_array(pitch, TAPS * TAPS * sizeof *memory);
    if (memory == NULL) {
        atomic_store(&slopes->no_memory, true);
        return;
    }
    us_winograd_map(TO_FILTER_SLOPES, slopes->patches.tile, slopes->products + result * pitch, gather->results * pitch,
                memory, pitch, channels);
    float *to = (float *)slopes->sums + (slopes->patches.group * gather->results + result) * channels * TAPS * TAPS;
    for (int64_t tap = 0; tap < TAPS * TAPS; tap++) {
        for (int64_t c = 0; c < channels; c++) {
            to[gather->channels_last ? tap * channels + c : c * TAPS * TAPS + tap] = memory[tap * pitch + c];
        }
    }
    us_scratch_give_back(memory);
}

static void add_chunk(Slopes *slopes, int64_t group, int64_t begin)
{
    slopes->patches.group = slopes->slopes.group = group;
    slopes->patches.begin = slopes->slopes.begin = begin;
    slopes->adds = begin > 0;
    us_parallel(ceiling(slopes->patches.lines, LINES) + ceiling(slopes->slopes.lines, LINES), map_piece, slopes);
    us_parallel(slopes->patches.places, product_piece, slopes);
}

KernelStatus us_gather_slopes_by_winograd(const Gather *gather, const void *dy, DType target, void *sums)
{
    const int tile = us_winograd_tile(gather, target);
    const Gather squares = us_winograd_squares(gather, tile, tile + TAPS - 1);
    Gather tiles = us_winograd_squares(gather, tile, tile);
    tiles.in = dy;
    tiles.channels = gather->results;
    tiles.taps[0] = (TapAxis){1, 0, 0};
    tiles.step[0] = 1;
    for (int axis = 0; axis < CONV_AXES; axis++) {
        tiles.in_size[axis] = gather->out_size[axis];
        tiles.taps[axis].offset = 0;
    }
    const int64_t places = (tile + TAPS - 1) * (tile + TAPS - 1), all = gather_positions(&squares);
    const int64_t fitting = CHUNK_ELEMENTS / (places * (gather->channels + gather->results)) / LANES * LANES;
    const int64_t chunk = smaller(all, bounded(fitting, LEAST, INT64_MAX));
    Slopes slopes = {.gather = gather, .sums = sums, .pitch = whole_vectors(gather->channels),
                     .patches = us_winograd_mapped(&squares, OF_PATCHES, tile, 0, chunk),
                     .slopes = us_winograd_mapped(&tiles, OF_SLOPES, tile, 0, chunk)};
    atomic_init(&slopes.no_memory, false);
    const size_t product_bytes = us_scratch_bytes(us_scratch_count(places * gather->results, slopes.pitch), sizeof(float));
    const size_t patch_bytes = us_winograd_mapped_bytes(&slopes.patches);
    const size_t slope_bytes = us_winograd_mapped_bytes(&slopes.slopes);
    char *memory = us_scratch_take(patch_bytes + slope_bytes + product_bytes);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    slopes.patches.values = (float *)memory;
    slopes.slopes.values = (float *)(memory + patch_bytes);
    slopes.products = (float *)(memory + patch_bytes + slope_bytes);
    for (int64_t group = 0; group < gather->groups; group++) {
        for (int64_t begin = 0; begin < all; begin += chunk) {
            const int64_t count = smaller(chunk, all - begin);
            float *patches = slopes.patches.values, *mapped_slopes = slopes.slopes.values;
            slopes.patches = us_winograd_mapped(&squares, OF_PATCHES, tile, begin, count);
            slopes.slopes = us_winograd_mapped(&tiles, OF_SLOPES, tile, begin, count);
            slopes.patches.values = patches;
            slopes.slopes.values = mapped_slopes;
            add_chunk(&slopes, group, begin);
        }
        us_parallel(gather->results, unmap_piece, &slopes);
    }
    us_scratch_give_back(memory);
    return atomic_load(&slopes.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
