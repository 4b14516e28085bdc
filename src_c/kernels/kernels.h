/* The maths, on views. A kernel gets opened views (data is a usable address) and a copy of its attributes. */
#ifndef UNDERSTUDY_KERNELS_H
#define UNDERSTUDY_KERNELS_H

#include "tensor/view.h"

typedef enum KernelStatus { KERNEL_OK, KERNEL_NO_MEMORY, KERNEL_FAULT /* us_kernel_fault said why */ } KernelStatus;
typedef KernelStatus Kernel(const View *views, const void *attributes);

/* For data that a kernel cannot go on with, such as an index outside its dimension: keeps the sentence for the thread and
 * is KERNEL_FAULT. Only the thread that runs the kernel may call it. */
__attribute__((format(printf, 1, 2))) KernelStatus us_kernel_fault(const char *format, ...);
const char *us_kernel_fault_text(void);

/* out = -y*e^(-x*y) / (1+e^(-x*y)) * g * factor, evaluated in this order in fp32 (aclnn-ops 1.2):
 * n=-y; e=exp(x*n); q=e/(e+1); r=(n*q)*g; r*factor. views: gradOutput, self, target (each broadcastable to out), out.
 * Results are rounded to `promoted` first and then to out's type. */
typedef struct SoftMarginLossBackward {
    float factor;    /* fl32(1/N) for mean, else 1 */
    DType promoted;
} SoftMarginLossBackward;
Kernel us_soft_margin_loss_backward;

/* dx = dloss * w * (x - y) / (x*(1-x) + eps), eps = 1e-12 (ft-dsp 3.2). views: x, y, weight, dloss, dx; an absent
 * weight means 1; all [N] except dloss, which is [N] or has stride 0. Evaluated in fp32 (float64 views in fp64):
 * ((w*(x-y)) / (x*(1-x)+eps)) * d. For mean, d = dloss[0]/N is formed in the compute type first (`divide_by`, else 1). */
typedef struct BinaryCrossEntropyBackward {
    int64_t divide_by;
} BinaryCrossEntropyBackward;
Kernel us_binary_cross_entropy_backward;

/* Softmax over one group of axes (mcdnn 6.16). dst = alpha*result + beta*prior; beta 0 never reads the prior value.
 * Views are shaped [outer, group, inner] in logical order by the caller through `group_axes`: axes first_axis …
 * last_axis of the views form the group. Float32 arithmetic for 16-bit and fp32 data, fp64 for float64. */
typedef enum SoftmaxAlgorithm { SOFTMAX_FAST, SOFTMAX_ACCURATE, SOFTMAX_LOG } SoftmaxAlgorithm;
typedef struct Softmax {
    SoftmaxAlgorithm algorithm;
    int32_t first_axis, last_axis;
    double alpha, beta;
} Softmax;
Kernel us_softmax_forward;  /* views: x, y */
Kernel us_softmax_backward; /* views: y, dy, dx */

#endif
