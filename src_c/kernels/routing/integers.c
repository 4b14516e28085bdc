#include "kernels/routing/integers.h"

#include "kernels/move/move.h"

KernelStatus us_integer_fault(const char *name, const int64_t *integers, int64_t i, int64_t count, int64_t lowest, int64_t limit)
{
    return us_kernel_fault("%s %lld of %lld is %lld, which is not in %lld … %lld", name, (long long)i, (long long)count,
                           (long long)integers[i], (long long)lowest, (long long)limit - 1);
}

KernelStatus us_read_integers(const View *view, const char *name, int64_t lowest, int64_t limit, int64_t count, int64_t *to)
{
    us_reshape((const View[]){*view, us_view_contiguous(to, DTYPE_INT64, 1, &count)}, NULL);
    for (int64_t i = 0; i < count; i++) {
        if (to[i] < lowest || to[i] >= limit) {
            return us_integer_fault(name, to, i, count, lowest, limit);
        }
    }
    return KERNEL_OK;
}
