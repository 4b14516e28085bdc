#include "kernels/dropout.h"

#include "kernels/detach.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

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
    float probability;
    bool draws;
    State state;
} Drop;

static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* An element is kept when a number of (0, 1], (r + 1) / 2^32, is larger than p: r >= p * 2^32. */
KERNEL_CLONES static void draw(uint64_t key, float probability, uint8_t *keeps)
{
    const double scaled = (double)probability * 0x1p32;
    const uint32_t before = (uint32_t)key, after = (uint32_t)(key >> 32);
    const bool none = !(scaled < 0x1p32); /* also where p is NaN */
    const uint32_t least = none || scaled < 0 ? 0 : (uint32_t)scaled;
    for (uint32_t i = 0; i < TILE; i++) {
        uint32_t r = i * UINT32_C(0x9e3779b9) + before;
        r = (r ^ r >> 16) * UINT32_C(0x7feb352d);
        r = (r ^ r >> 15) * UINT32_C(0x846ca68b);
        r = (r ^ r >> 16) ^ after;
        keeps[i] = r >= least;
    }
    if (none) {
        memset(keeps, 0, TILE);
    }
}

static void pack(const uint8_t *keeps, uint8_t *mask, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) {
        uint64_t eight;
        memcpy(&eight, keeps + 8 * i, sizeof eight);
        mask[i] = (uint8_t)(eight * UINT64_C(0x0102040810204080) >> 56);
    }
}

KERNEL_CLONES static void unpack(const uint8_t *mask, int64_t bytes, uint8_t *keeps)
{
    for (int64_t i = 0; i < 8 * bytes; i++) {
        keeps[i] = mask[i / 8] >> (i % 8) & 1;
    }
}

KERNEL_CLONES static void apply_float(const uint8_t *keeps, float scale, int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = keeps[i] ? values[i] * scale : 0;
    }
}

KERNEL_CLONES static void apply_double(const uint8_t *keeps, double scale, int64_t count, double *values)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = keeps[i] ? values[i] * scale : 0;
    }
}

static void drop_tile(Drop *drop, int64_t begin, int64_t count)
{
    uint8_t keeps[TILE];
    uint8_t *mask = drop->mask + begin / 8;
    const int64_t bytes = (count + 7) / 8;
    if (drop->draws) {
        draw(mix(mix(drop->state.seed) ^ mix(drop->state.masks_drawn ^ mix((uint64_t)begin / TILE))), drop->probability,
             keeps);
        memset(keeps + count, 0, (size_t)(8 * bytes - count));
        pack(keeps, mask, bytes);
    } else {
        unpack(mask, bytes, keeps);
    }
    if (drop->from.dtype == DTYPE_FLOAT64) {
        double values[TILE];
        us_linear_load_double(&drop->from, begin, count, values);
        apply_double(keeps, 1 / (1 - (double)drop->probability), count, values);
        us_linear_store_double(&drop->to, begin, count, values);
    } else {
        float values[TILE];
        us_linear_load_float(&drop->from, begin, count, values);
        apply_float(keeps, 1 / (1 - drop->probability), count, values);
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
        run_pieces((drop->elements + PIECE - 1) / PIECE, drop->elements, drop_piece, drop);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_dropout_forward(const View *views, const void *attributes)
{
    Drop drop = {.mask = views[2].data, .probability = ((const Dropout *)attributes)->probability, .draws = true};
    memcpy(&drop.state, views[3].data, sizeof drop.state);
    KernelStatus status = run(&drop, &views[0], &views[1]);
    drop.state.masks_drawn++;
    memcpy(views[3].data, &drop.state, sizeof drop.state);
    return status;
}

KernelStatus us_dropout_backward(const View *views, const void *attributes)
{
    Drop drop = {.mask = views[2].data, .probability = ((const Dropout *)attributes)->probability};
    return run(&drop, &views[0], &views[1]);
}
