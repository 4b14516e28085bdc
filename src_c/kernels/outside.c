#include "kernels/outside.h"

#include <pthread.h>

void us_outside_met(OutsideIndex *outside, int64_t piece, int64_t index, int64_t size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!outside->found || piece < outside->piece) {
        *outside = (OutsideIndex){true, piece, index, size};
    }
    pthread_mutex_unlock(&lock);
}

KernelStatus us_outside_status(const OutsideIndex *outside)
{
    if (!outside->found) {
        return KERNEL_OK;
    }
    return us_kernel_fault("index %lld is outside a dimension of size %lld", (long long)outside->index,
                           (long long)outside->size);
}
