#include "kernels/index/jagged.h"

enum { PERMUTATION, BEGINS, ENDS, RESULTS };

static int32_t number_at(const View *numbers, int64_t place)
{
    return ((const int32_t *)numbers->data)[place * numbers->strides[0]];
}

static KernelStatus check_lists(const View *views)
{
    const int64_t lists = views[PERMUTATION].shape[0], size = views[RESULTS].shape[0];
    if (number_at(&views[ENDS], 0) != 0 || number_at(&views[ENDS], lists) != size) {
        return us_kernel_fault("the lists lie from %lld to %lld of %lld", (long long)number_at(&views[ENDS], 0),
                               (long long)number_at(&views[ENDS], lists), (long long)size);
    }
    for (int64_t i = 0; i < lists; i++) {
        const int64_t from = number_at(&views[PERMUTATION], i);
        const int64_t begin = number_at(&views[ENDS], i), end = number_at(&views[ENDS], i + 1);
        if (from < 0 || from >= lists || begin > end) {
            return us_kernel_fault("list %lld, from %lld to %lld, is to be list %lld of %lld", (long long)i, (long long)begin,
                                   (long long)end, (long long)from, (long long)lists);
        }
    }
    return KERNEL_OK;
}

KernelStatus us_expand_permutation(const View *views, const void *attributes)
{
    (void)attributes;
    const KernelStatus status = check_lists(views);
    const View *results = &views[RESULTS];
    for (int64_t i = 0; i < views[PERMUTATION].shape[0] && status == KERNEL_OK; i++) {
        uint32_t number = (uint32_t)number_at(&views[BEGINS], number_at(&views[PERMUTATION], i)); /* wraps as int32 */
        const int64_t end = number_at(&views[ENDS], i + 1);
        for (int64_t place = number_at(&views[ENDS], i); place < end; place++) {
            ((int32_t *)results->data)[place * results->strides[0]] = (int32_t)number++;
        }
    }
    return status;
}
