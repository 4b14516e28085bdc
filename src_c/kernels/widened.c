#include "kernels/widened.h"

#include "tensor/clones.h"
#include "tensor/tile.h"

#include <math.h>
#include <stdlib.h>

enum { VIEW_LIMIT = 4 };

static void copy_body(const void *attributes, int64_t count, const float *const *inputs, float *const *outputs)
{
    (void)attributes;
    for (int64_t i = 0; i < count; i++) {
        outputs[0][i] = inputs[0][i];
    }
}

static void round_body(const void *attributes, int64_t count, const float *const *inputs, float *const *outputs)
{
    (void)attributes;
    for (int64_t i = 0; i < count; i++) {
        outputs[0][i] = rintf(inputs[0][i]);
    }
}

KernelStatus us_run_widened(Kernel *kernel, int count, const View *views, const void *attributes, bool reads_prior)
{
    static const TileKernel copy = TILE_KERNEL_OF_CLONES(copy_body, NULL, NULL, NULL);
    static const TileKernel round = TILE_KERNEL_OF_CLONES(round_body, NULL, NULL, NULL);
    View wide[VIEW_LIMIT];
    int64_t elements = 0, used = 0;
    for (int k = 0; k < count; k++) {
        elements += us_view_is_absent(&views[k]) ? 0 : us_view_elements(&views[k]);
    }
    float *memory = malloc((size_t)elements * sizeof *memory);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int k = 0; k < count; k++) {
        wide[k] = views[k];
        if (us_view_is_absent(&views[k])) {
            continue;
        }
        wide[k] = us_view_contiguous(memory + used, DTYPE_FLOAT32, views[k].rank, views[k].shape);
        used += us_view_elements(&views[k]);
        if (k < count - 1 || reads_prior) {
            us_tile_run(&copy, NULL, 1, &views[k], 1, &wide[k], DTYPE_NONE);
        }
    }
    const KernelStatus status = kernel(wide, attributes);
    if (status == KERNEL_OK) {
        const View *result = &views[count - 1];
        us_tile_run(result->dtype == DTYPE_INT8 ? &round : &copy, NULL, 1, &wide[count - 1], 1, result, DTYPE_NONE);
    }
    free(memory);
    return status;
}
