#include "kernels/norm/renorm.h"

#include "kernels/map/formulas.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"

KernelStatus us_renorm(const View *views, const void *attributes)
{
    const Renorm *how = attributes;
    const int64_t slices = views[0].shape[how->axis];
    View norms = us_view_contiguous(NULL, DTYPE_FLOAT32, views[0].rank, views[0].shape);
    ReduceCall reduce = {.reduction = us_reduce_norm(how->p), .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32,
                         .outputs = 1, .numbers = {{how->p, 0, 0}}};
    for (int32_t axis = 0; axis < norms.rank; axis++) {
        const bool kept = axis == how->axis;
        reduce.axes |= (uint32_t)!kept << axis;
        norms.shape[axis] = kept ? slices : 1;
        norms.strides[axis] = kept;
    }
    float *factors = us_scratch_take((size_t)slices * sizeof *factors);
    if (factors == NULL) {
        return KERNEL_NO_MEMORY;
    }
    norms.data = factors;
    KernelStatus status = us_reduce((const View[]){views[0], norms}, &reduce);
    for (int64_t i = 0; i < slices && status == KERNEL_OK; i++) {
        const double norm = (double)factors[i];
        factors[i] = norm > how->limit ? (float)(how->limit / (norm + 1e-7)) : 1;
    }
    const MapCall scale = {.formula = &us_map_mul, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 2,
                           .outputs = 1, .items = 1};
    status = status != KERNEL_OK ? status : us_map((const View[]){views[0], norms, views[1]}, &scale);
    us_scratch_give_back(factors);
    return status;
}
