#include "kernels/routing/routing.h"

#include "kernels/routing/integers.h"

enum { X, BIAS, WEIGHTS, CHOSEN, COUNTS, TABLE };

static KernelStatus map_expert(const View *views, int64_t row, int64_t i)
{
    const Line line = us_line_of(&views[CHOSEN], 1, row);
    int32_t *chosen = (int32_t *)us_line_element(&line, i);
    const int64_t count = us_integer_at(&views[COUNTS], 0, *chosen), limit = views[TABLE].shape[1];
    if (count < 1 || count > limit) {
        return us_kernel_fault("expert %lld has %lld others in its place, which is not in 1 … %lld", (long long)*chosen,
                               (long long)count, (long long)limit);
    }
    *chosen = (int32_t)us_integer_at(&views[TABLE], *chosen, row % count);
    return KERNEL_OK;
}

KernelStatus us_gate_mapped(const View *views, const void *attributes)
{
    const View absent = us_view_absent();
    const View gate[] = {views[X], views[BIAS], views[WEIGHTS], views[CHOSEN], absent, absent, absent};
    KernelStatus status = us_gate_tokens(gate, attributes);
    for (int64_t row = 0; row < views[CHOSEN].shape[0] && status == KERNEL_OK; row++) {
        for (int64_t i = 0; i < views[CHOSEN].shape[1] && status == KERNEL_OK; i++) {
            status = map_expert(views, row, i);
        }
    }
    return status;
}
