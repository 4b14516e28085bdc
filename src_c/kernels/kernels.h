/* The maths, on views. A kernel gets opened views (data is a usable address) and a copy of its attributes. */
#ifndef UNDERSTUDY_KERNELS_H
#define UNDERSTUDY_KERNELS_H

#include "tensor/view.h"

typedef enum KernelStatus {
    KERNEL_OK,
    KERNEL_NO_MEMORY,
    KERNEL_FAULT,   /* us_kernel_fault said why */
    KERNEL_TIMEOUT, /* the same, of a kernel that waits for others */
} KernelStatus;
typedef KernelStatus Kernel(const View *views, const void *attributes);

/* For data that a kernel cannot go on with, such as an index outside its dimension: keeps the sentence for the thread and
 * is KERNEL_FAULT. Only the thread that runs the kernel may call it. */
__attribute__((format(printf, 1, 2))) KernelStatus us_kernel_fault(const char *format, ...);
const char *us_kernel_fault_text(void);

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
