#include "kernels/matmul/activated.h"

#include "kernels/scratch.h"

#include <string.h>

enum { RESULT = 3, OPERANDS = 9 };

KernelStatus us_activate_result(Kernel *kernel, const void *attributes, View *operands, View *result,
                                const MapFormula *activation)
{
    const View to = *result;
    void *space = us_scratch_array(us_view_elements(result), sizeof(float));
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    *result = us_view_contiguous(space, DTYPE_FLOAT32, to.rank, to.shape);
    KernelStatus status = kernel(operands, attributes);
    if (status == KERNEL_OK) {
        const MapCall map = {.formula = activation, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 1,
                             .outputs = 1, .items = 1};
        status = us_map((const View[]){*result, to}, &map);
    }
    us_scratch_give_back(space);
    return status;
}

KernelStatus us_activated_product(const View *views, const void *attributes)
{
    const ActivatedProduct *call = attributes;
    View own[OPERANDS];
    memcpy(own, views, sizeof own);
    return us_activate_result(us_quantized_product, &call->product, own, &own[RESULT], call->activation);
}
