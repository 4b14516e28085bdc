#include "kernels/widened.h"

#include "kernels/map/formulas.h"
#include "kernels/scratch.h"

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
    size_t sizes[VIEW_LIMIT];
    for (int k = 0; k < count; k++) {
        sizes[k] = us_scratch_bytes(us_view_is_absent(&views[k]) ? 0 : us_view_elements(&views[k]), sizeof(float));
    }
    char *memory = us_scratch_take(us_scratch_sum(sizes, count)), *cursor = memory;
    KernelStatus status = memory != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    for (int k = 0; k < count && status == KERNEL_OK; k++) {
        wide[k] = views[k];
        if (us_view_is_absent(&views[k])) {
            continue;
        }
        wide[k] = us_view_contiguous(us_scratch_part(&cursor, sizes[k]), DTYPE_FLOAT32, views[k].rank, views[k].shape);
        if (k < count - 1 || reads_prior) {
            status = move(&us_map_copy, &views[k], &wide[k]);
        }
    }
    status = status == KERNEL_OK ? kernel(wide, attributes) : status;
    if (status == KERNEL_OK) {
        const View *result = &views[count - 1];
        status = move(result->dtype == DTYPE_INT8 ? &us_map_round : &us_map_copy, &wide[count - 1], result);
    }
    us_scratch_give_back(memory);
    return status;
}
