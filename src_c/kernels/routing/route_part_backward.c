#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/part.h"
#include "kernels/routing/pick.h"
#include "kernels/scratch.h"

enum { ROUTED_GRADIENT, PLACES, TOKEN_GRADIENT, ROUTED_GATE_GRADIENT, GATE_GRADIENT };

static KernelStatus form_gates(const View *views, const CombineTokens *call)
{
    const int64_t count = us_view_elements(&views[GATE_GRADIENT]), rows = us_view_elements(&views[ROUTED_GATE_GRADIENT]);
    int64_t *places = us_scratch_array(count, sizeof(int64_t));
    if (places == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_reshape((const View[]){views[PLACES], us_view_contiguous(places, DTYPE_INT64, 1, &count)}, NULL);
    us_take_part(&call->part, places, count);
    for (int64_t i = 0; i < count; i++) {
        places[i] = places[i] < rows ? places[i] : -1;
    }
    const KernelStatus status = us_pick_tokens(places, count, &views[ROUTED_GATE_GRADIENT], &views[GATE_GRADIENT]);
    us_scratch_give_back(places);
    return status;
}

KernelStatus us_route_part_backward(const View *views, const void *attributes)
{
    const View absent = us_view_absent();
    const View sums[] = {views[ROUTED_GRADIENT], views[PLACES], views[TOKEN_GRADIENT], absent, absent, absent, absent, absent};
    const KernelStatus status = us_combine_tokens(sums, attributes);
    const bool gated = !us_view_is_absent(&views[GATE_GRADIENT]) && !us_view_is_empty(&views[GATE_GRADIENT]);
    return status == KERNEL_OK && gated ? form_gates(views, attributes) : status;
}
