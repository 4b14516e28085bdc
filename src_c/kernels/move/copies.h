/* A kernel that works on copies of tensors, which lie otherwise than it can read. */
#ifndef UNDERSTUDY_KERNEL_COPIES_H
#define UNDERSTUDY_KERNEL_COPIES_H

#include "kernels/kernels.h"

/* Views: `count` of the kernel, then those that are copied, row-major. A view of the kernel that has the number of a copy
 * lies as far behind the copy's first element as its data lies behind that of the copied view. */
typedef struct KernelCopies {
    Kernel *kernel;
    int32_t count, copies;
    size_t attributes; /* of the kernel: so many bytes behind this structure's begin */
    int32_t copy_of[]; /* of each of the kernel's views: -1, none */
} KernelCopies;
Kernel us_kernel_with_copies;

#endif
