#include "kernels/index/coalesce.h"

#include "kernels/index/indexing.h"

enum { GROUP, COORDINATES, VALUES, NEW_COORDINATES, NEW_VALUES };

/* The slices of `from` along an axis, put or added at those of `to` that the groups name. */
static KernelStatus send(IndexAction action, const View *group, const View *from, const View *to, int32_t axis)
{
    Indexing call = {.action = action, .rank = from->rank, .index_count = 1, .axis_count = 1, .mask_axis = -1,
                     .axes = {{to->shape[axis], to->strides[axis]}}};
    View index = *from;
    index.data = group->data;
    index.dtype = group->dtype;
    for (int32_t d = 0; d < from->rank; d++) {
        call.shape[d] = from->shape[d];
        call.steps[d] = d == axis ? 0 : to->strides[d];
        index.strides[d] = d == axis ? group->strides[0] : 0;
    }
    return us_indexing((const View[]){us_view_absent(), *to, *from, index}, &call);
}

KernelStatus us_coalesce(const View *views, const void *attributes)
{
    (void)attributes;
    const View *group = &views[GROUP];
    const KernelStatus status = send(INDEX_PUT, group, &views[COORDINATES], &views[NEW_COORDINATES], 1);
    return status == KERNEL_OK ? send(INDEX_ADD, group, &views[VALUES], &views[NEW_VALUES], 0) : status;
}
