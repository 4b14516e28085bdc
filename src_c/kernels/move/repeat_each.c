#include "kernels/move/repeat_each.h"

#include "kernels/index/indexing.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"
#include "tensor/lane.h"

#include <string.h>

/* Numbers that are looked at together. */
enum { SLICES = 512 };

/* How often slices from `first` on stand in out. */
static void load_times(const View *repeats, const Axes *axes, int64_t first, int64_t count, int64_t *to)
{
    if (us_view_elements(repeats) != 1) {
        us_axes_load(axes, 0, repeats->data, repeats->dtype, first, count, LANE_INT64, to);
        return;
    }
    int64_t times;
    us_axes_load(axes, 0, repeats->data, repeats->dtype, 0, 1, LANE_INT64, &times);
    for (int64_t i = 0; i < count; i++) {
        to[i] = times;
    }
}

/* The slice that stands at each place of out's axis. */
static KernelStatus find_sources(const View *repeats, int64_t slices, int64_t *sources, int64_t size)
{
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){repeats}, 1, 0, repeats->rank);
    int64_t place = 0, counts[SLICES];
    for (int64_t index = 0; index < slices; index++) {
        if (index % SLICES == 0) {
            load_times(repeats, &axes, index, smaller(slices - index, SLICES), counts);
        }
        const int64_t count = counts[index % SLICES];
        if (count < 0 || count > size - place) {
            return count < 0 ? us_kernel_fault("slice %lld is to stand %lld times", (long long)index, (long long)count)
                             : us_kernel_fault("the numbers of repeats add to more than %lld", (long long)size);
        }
        for (int64_t i = 0; i < count; i++) {
            sources[place++] = index;
        }
    }
    return place == size ? KERNEL_OK
                         : us_kernel_fault("the numbers of repeats add to %lld, not %lld", (long long)place,
                                           (long long)size);
}

/* `many` = the slices of `few` that `sources` names; or these are the sums of many's. */
static KernelStatus index_slices(const RepeatEach *call, IndexAction action, const View *few, const View *many,
                                 int64_t *sources)
{
    const int32_t axis = call->flat ? 0 : call->axis;
    Indexing places = {.action = action, .clears = action == INDEX_ADD, .mask_axis = -1, .rank = many->rank,
                       .index_count = 1, .axis_count = 1};
    memcpy(places.shape, many->shape, sizeof places.shape);
    places.axes[0] = call->flat ? (IndexedAxis){us_view_elements(few), 1}
                                : (IndexedAxis){few->shape[axis], few->strides[axis]};
    for (int32_t d = 0; d < many->rank && !call->flat; d++) {
        places.steps[d] = d == axis ? 0 : few->strides[d];
    }
    View index = {.data = sources, .dtype = DTYPE_INT64, .rank = many->rank};
    memcpy(index.shape, many->shape, sizeof index.shape);
    index.strides[axis] = 1;
    const View views[] = {us_view_absent(), *few, *many, index};
    return (call->flat ? us_flat_indexing : us_indexing)(views, &places);
}

/* `few` and `many`: the slices, and what repeats them; `few` absent: their numbers. */
static KernelStatus run(const RepeatEach *call, IndexAction action, const View *few, const View *repeats,
                        const View *many)
{
    const int64_t slices = us_view_is_absent(few) ? us_view_elements(repeats)
                           : call->flat           ? us_view_elements(few)
                                                  : few->shape[call->axis];
    const int64_t size = many->shape[call->flat ? 0 : call->axis];
    int64_t *sources = us_scratch_array(size, sizeof *sources);
    if (sources == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = find_sources(repeats, slices, sources, size);
    if (status == KERNEL_OK && us_view_is_absent(few)) {
        us_lane_store(LANE_INT64, many->data, many->dtype, many->strides[0], sources, size);
    } else if (status == KERNEL_OK) {
        status = index_slices(call, action, few, many, sources);
    }
    us_scratch_give_back(sources);
    return status;
}

KernelStatus us_repeat_each(const View *views, const void *attributes)
{
    return run(attributes, INDEX_READ, &views[0], &views[1], &views[2]);
}

KernelStatus us_repeat_each_gradient(const View *views, const void *attributes)
{
    return run(attributes, INDEX_ADD, &views[2], &views[1], &views[0]);
}
