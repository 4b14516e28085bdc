#include "kernels/widened.h"

#include "kernels/map/formulas.h"

#include <stdlib.h>

enum { VIEW_LIMIT = 4 };

static KernelStatus move(const MapFormula *formula, const View *from, const View *to)
{
    const MapCall call = {.formula = formula, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 1, .outputs = 1,
                          .items = 1};
    return us_map((const View[]){*from, *to}, &call);
}

KernelStatus us_run_widened(Kernel *kernel, int count, const View *views, const void *attributes, bool reads_prior)
{
    View wide[VIEW_LIMIT];
    int64_t elements = 0, used = 0;
    for (int k = 0; k < count; k++) {
        elements += us_view_is_absent(&views[k]) ? 0 : us_view_elements(&views[k]);
    }
    float *memory = malloc((size_t)elements * sizeof *memory);
    KernelStatus status = memory != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    for (int k = 0; k < count && status == KERNEL_OK; k++) {
        wide[k] = views[k];
        if (us_view_is_absent(&views[k])) {
            continue;
        }
        wide[k] = us_view_contiguous(memory + used, DTYPE_FLOAT32, views[k].rank, views[k].shape);
        used += us_view_elements(&views[k]);
        if (k < count - 1 || reads_prior) {
            status = move(&us_map_copy, &views[k], &wide[k]);
        }
    }
    status = status == KERNEL_OK ? kernel(wide, attributes) : status;
    if (status == KERNEL_OK) {
        const View *result = &views[count - 1];
        status = move(result->dtype == DTYPE_INT8 ? &us_map_round : &us_map_copy, &wide[count - 1], result);
    }
    free(memory);
    return status;
}
