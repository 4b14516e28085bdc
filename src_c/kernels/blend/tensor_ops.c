#include "kernels/blend/tensor_ops.h"

#include "kernels/axes.h"
#include "kernels/detach.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/tile.h"

#include <math.h>

US_ALWAYS_INLINE float root_float(float value)
{
    return sqrtf(value);
}

US_ALWAYS_INLINE double root_double(double value)
{
    return sqrt(value);
}

#define ELEMENT float
#define NAME(name) name##_float
#include "kernels/blend/tensor_ops_body.inc"

#define ELEMENT double
#define NAME(name) name##_double
#include "kernels/blend/tensor_ops_body.inc"

/* What is missing is replaced by c as a stand-in for its shape: the loop does not read it. The last input is the old
 * c. */
KernelStatus us_tensor_arithmetic(const View *views, const void *attributes)
{
    static const TileKernel kernel = TILE_KERNEL_OF_CLONES(arithmetic_float, arithmetic_double, NULL, NULL);
    const TensorArithmetic *arithmetic = attributes;
    const View *c = &views[2];
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, c);
    if (status == KERNEL_OK) {
        View operands[4];
        for (int i = 0; i < 2; i++) {
            const View *given = us_view_is_absent(&detached.inputs[i]) ? &detached.inputs[0] : &detached.inputs[i];
            operands[i] = us_view_is_absent(given) ? *c : us_view_broadcast(given, c->rank, c->shape);
        }
        operands[2] = operands[3] = *c;
        us_axes_in_memory_order(4, operands);
        const TensorOperation operation = arithmetic->operation;
        const bool pairs = operation >= TENSOR_ADD && operation <= TENSOR_MAXIMUM;
        int inputs = arithmetic->beta != 0 ? 3 : pairs ? 2 : operation != TENSOR_FILL;
        us_tile_run(&kernel, arithmetic, inputs, operands, 1, &operands[3], DTYPE_NONE);
    }
    us_detach_end(&detached);
    return status;
}
