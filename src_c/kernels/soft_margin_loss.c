#include "kernels/soft_margin_loss.h"

#include "kernels/maths/maths.h"
#include "tensor/axes.h"
#include "tensor/clones.h"
#include "tensor/parallel.h"
#include "tensor/tile.h"

#include <stdlib.h>

enum { BLOCK = 16 * TILE_ELEMENTS }; /* elements of a partial sum */

KERNEL_CLONES static void body(const void *attributes, int64_t count, const float *const *inputs, float *const *outputs)
{
    (void)attributes;
    const float *x = inputs[0], *y = inputs[1];
    float *out = outputs[0];
    for (int64_t i = 0; i < count; i++) {
        out[i] = log_float(1.0f + exp_float(-y[i] * x[i]));
    }
}

typedef struct Reduction {
    const View *views;
    Axes axes;
    int64_t count;
    double *sums; /* one per block */
} Reduction;

static void sum_block(void *context, int64_t block)
{
    Reduction *reduction = context;
    float x[TILE_ELEMENTS], y[TILE_ELEMENTS], losses[TILE_ELEMENTS];
    int64_t first = block * BLOCK;
    int64_t end = reduction->count - first < BLOCK ? reduction->count : first + BLOCK;
    double sum = 0.0;
    for (int64_t begin = first; begin < end; begin += TILE_ELEMENTS) {
        int64_t count = end - begin < TILE_ELEMENTS ? end - begin : TILE_ELEMENTS;
        us_axes_load(&reduction->axes, 0, reduction->views[0].data, reduction->views[0].dtype, begin, count, false, x);
        us_axes_load(&reduction->axes, 1, reduction->views[1].data, reduction->views[1].dtype, begin, count, false, y);
        body(NULL, count, (const float *const[]){x, y}, (float *const[]){losses});
        for (int64_t i = 0; i < count; i++) {
            sum += (double)losses[i];
        }
    }
    reduction->sums[block] = sum;
}

static KernelStatus reduce(const SoftMarginLoss *parameters, const View *inputs, const View *out)
{
    Reduction reduction = {.views = inputs, .count = us_view_elements(&inputs[0])};
    const View *both[] = {&inputs[0], &inputs[1]};
    us_axes_add(&reduction.axes, both, 2, 0, inputs[0].rank);
    int64_t blocks = reduction.count / BLOCK + (reduction.count % BLOCK != 0); /* a view may have 2^63 - 1 elements */
    reduction.sums = malloc((size_t)(blocks > 0 ? blocks : 1) * sizeof *reduction.sums);
    if (reduction.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_parallel(blocks, sum_block, &reduction);
    double sum = 0.0;
    for (int64_t block = 0; block < blocks; block++) {
        sum += reduction.sums[block];
    }
    free(reduction.sums);
    /* Without elements: 0/0 = NaN for the mean, 0 for the sum. */
    float result = (float)(parameters->reduction == LOSS_MEAN ? sum / (double)reduction.count : sum);
    uint64_t rounded;
    us_store_float(&rounded, parameters->promoted, 1, &result, 1);
    us_load_float(&result, &rounded, parameters->promoted, 1, 1);
    us_store_float(out->data, out->dtype, 1, &result, 1);
    return KERNEL_OK;
}

KernelStatus us_soft_margin_loss(const View *views, const void *attributes)
{
    static const TileKernel kernel = TILE_KERNEL_OF_CLONES(body, NULL, NULL, NULL);
    const SoftMarginLoss *parameters = attributes;
    const View *pair[] = {&views[0], &views[1]};
    int32_t rank;
    int64_t shape[VIEW_RANK_LIMIT];
    us_broadcast_shape(pair, 2, &rank, shape, NULL);
    View inputs[] = {us_view_broadcast(&views[0], rank, shape), us_view_broadcast(&views[1], rank, shape)};
    if (parameters->reduction != LOSS_NONE) {
        return reduce(parameters, inputs, &views[2]);
    }
    us_tile_run(&kernel, parameters, 2, inputs, 1, &views[2], parameters->promoted);
    return KERNEL_OK;
}
