#include "kernels/random/dropout.h"

#include "kernels/detach.h"
#include "kernels/linear.h"
#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <string.h>

enum { TILE = 1024, PIECE = 16 * TILE };

/* What the state's bytes hold: the numbers are made from seed, number of the mask and number of the element, so the
 * order in which threads draw them does not matter. */
typedef struct State {
    uint64_t seed, masks_drawn;
} State;

int64_t us_dropout_mask_bytes(int64_t elements)
{
    return (elements + 31) / 32 * 4;
}

KernelStatus us_dropout_seed(const View *views, const void *attributes)
{
    State state = {((const Dropout *)attributes)->seed, 0};
    memset(views[0].data, 0, DROPOUT_STATE_BYTES);
    memcpy(views[0].data, &state, sizeof state);
    return KERNEL_OK;
}

typedef struct Drop {
    View from, to;
    uint8_t *mask;
    int64_t elements;
    float probability; /* where it draws */
    double scale;
    bool draws, packed; /* packed: both tensors are arrays of one type */
    State state;
} Drop;

static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* What decides about the elements of a tile. An element is kept when a number of (0, 1], (r + 1) / 2^32, is larger than
 * p: r >= p * 2^32. r is made from the element's number by two rounds of multiplying and mixing. */
typedef struct Draw {
    uint32_t before, after;
    uint32_t least;    /* of the r that are kept */
    uint32_t possible; /* bits of a vector that may be 1: none when p is 1, more, or NaN */
} Draw;

#define DRAW_STEP UINT32_C(0x9e3779b9)
#define DRAW_FACTOR UINT32_C(0x7feb352d)
#define DRAW_FACTOR_2 UINT32_C(0x846ca68b)
#define LOOPS "kernels/random/dropout.inc"
#include "tensor/instantiate.inc"

typedef void DropTile(const void *from, void *to, int64_t count, double scale, const Draw *draw, uint8_t *mask);

static DropTile *const loops[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = drop_tile_float, [DTYPE_FLOAT16] = drop_tile_half, [DTYPE_BFLOAT16] = drop_tile_bfloat,
    [DTYPE_FLOAT64] = drop_tile_double,
};

static Draw draw_of(const Drop *drop, int64_t tile)
{
    const uint64_t key = mix(mix(drop->state.seed) ^ mix(drop->state.masks_drawn ^ mix((uint64_t)tile)));
    const double scaled = (double)drop->probability * 0x1p32;
    const bool none = !(scaled < 0x1p32); /* also where p is NaN */
    return (Draw){.before = (uint32_t)key,
                  .after = (uint32_t)(key >> 32),
                  .least = none || scaled < 0 ? 0 : (uint32_t)scaled,
                  .possible = none ? 0 : 0xffff};
}

static void drop_tile(const Drop *drop, int64_t begin, int64_t count)
{
    const Draw draw = drop->draws ? draw_of(drop, begin / TILE) : (Draw){0};
    const Draw *drawn = drop->draws ? &draw : NULL;
    uint8_t *mask = drop->mask + begin / 8;
    const DType dtype = drop->from.dtype;
    if (drop->packed) {
        const size_t at = (size_t)begin * us_dtype_size(dtype);
        loops[dtype]((const char *)drop->from.data + at, (char *)drop->to.data + at, count, drop->scale, drawn, mask);
    } else if (dtype == DTYPE_FLOAT64) {
        double values[TILE];
        us_linear_load_double(&drop->from, begin, count, values);
        drop_tile_double(values, values, count, drop->scale, drawn, mask);
        us_linear_store_double(&drop->to, begin, count, values);
    } else {
        float values[TILE];
        us_linear_load_float(&drop->from, begin, count, values);
        drop_tile_float(values, values, count, drop->scale, drawn, mask);
        us_linear_store_float(&drop->to, begin, count, values);
    }
}

static void drop_piece(void *context, int64_t piece)
{
    Drop *drop = context;
    int64_t begin = piece * PIECE, end = drop->elements - begin > PIECE ? begin + PIECE : drop->elements;
    for (; begin < end; begin += TILE) {
        drop_tile(drop, begin, end - begin < TILE ? end - begin : TILE);
    }
}

static KernelStatus run(Drop *drop, const View *from, const View *to)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 1, from, 1, to);
    if (status == KERNEL_OK) {
        drop->from = detached.inputs[0];
        drop->to = *to;
        drop->elements = us_view_elements(to);
        drop->packed = drop->from.dtype == to->dtype && us_view_is_contiguous(&drop->from) && us_view_is_contiguous(to);
        run_pieces((drop->elements + PIECE - 1) / PIECE, drop->elements, drop_piece, drop);
    }
    us_detach_end(&detached);
    return status;
}

/* Of what is kept, in the type of the arithmetic. */
static double scale_of(float probability, const View *to)
{
    return to->dtype == DTYPE_FLOAT64 ? 1 / (1 - (double)probability) : (double)(1 / (1 - probability));
}

KernelStatus us_dropout_forward(const View *views, const void *attributes)
{
    Drop drop = {.mask = views[2].data, .probability = ((const Dropout *)attributes)->probability, .draws = true};
    drop.scale = scale_of(drop.probability, &views[1]);
    memcpy(&drop.state, views[3].data, sizeof drop.state);
    KernelStatus status = run(&drop, &views[0], &views[1]);
    drop.state.masks_drawn++;
    memcpy(views[3].data, &drop.state, sizeof drop.state);
    return status;
}

KernelStatus us_dropout_backward(const View *views, const void *attributes)
{
    Drop drop = {.mask = views[2].data, .scale = scale_of(((const Dropout *)attributes)->probability, &views[1])};
    return run(&drop, &views[0], &views[1]);
}

KernelStatus us_dropout_masked(const View *views, const void *attributes)
{
    Drop drop = {.mask = views[2].data, .scale = ((const DropoutScale *)attributes)->scale};
    uint8_t *own = NULL;
    if (!us_view_is_contiguous(&views[2])) {
        own = us_scratch_array(us_view_elements(&views[2]), 1);
        if (own == NULL) {
            return KERNEL_NO_MEMORY;
        }
        View packed = us_view_contiguous(own, DTYPE_UINT8, views[2].rank, views[2].shape);
        us_copy_view(&packed, &views[2]);
        drop.mask = own;
    }
    const KernelStatus status = run(&drop, &views[0], &views[1]);
    us_scratch_give_back(own);
    return status;
}
