#include "kernels/map/slices.h"

#include "kernels/packed.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

#include <stdlib.h>

/* Elements from which on a slice is copied; bytes of a slice, which are still in a cache when they are read again, and rows, of
 * which fewer would take little of each line of an input. */
enum { WORTH_SLICING = 16 * 1024, SLICE_BYTES = 8 << 20, LEAST_ROWS = 64 };

/* The axis along which neighbours lie closest or farthest apart in memory. */
static int32_t extreme_axis(const View *view, bool farthest)
{
    int32_t found = 0;
    for (int32_t axis = 0; axis < view->rank; axis++) {
        const int64_t stride = llabs(view->strides[axis]), best = llabs(view->strides[found]);
        if (view->shape[axis] > 1 && (view->shape[found] == 1 || (farthest ? stride > best : stride < best))) {
            found = axis;
        }
    }
    return found;
}

static bool lies_across(const View *input, const View *out)
{
    if (us_view_is_absent(input) || !us_view_same_shape(input, out)) {
        return false;
    }
    const int64_t along = llabs(input->strides[extreme_axis(out, false)]);
    bool across = false;
    for (int32_t axis = 0; axis < out->rank; axis++) {
        if (out->shape[axis] > 1 && input->strides[axis] == 0) {
            return false; /* what repeats elements is read again and again */
        }
        across |= out->shape[axis] > 1 && llabs(input->strides[axis]) < along;
    }
    return across;
}

bool us_map_lies_across(const MapCall *call, const View *views)
{
    const View *out = &views[call->inputs];
    bool across = false;
    for (int k = 0; k < call->formula->inputs && us_view_elements(out) >= WORTH_SLICING; k++) {
        across |= lies_across(&views[k], out);
    }
    return across;
}

/* Rows begin … begin + count - 1 of the output's axis, where the view has these. */
static View slice_of(const View *view, const View *out, int32_t axis, int64_t begin, int64_t count)
{
    View slice = *view;
    const int32_t own = axis - (out->rank - view->rank);
    if (!us_view_is_absent(view) && own >= 0 && view->shape[own] == out->shape[axis]) {
        slice.shape[own] = count;
        slice.data = (char *)view->data + begin * view->strides[own] * (int64_t)us_dtype_size(view->dtype);
    }
    return slice;
}

KernelStatus us_map_by_slices(const MapCall *call, const View *views, int64_t index, MapRun *run)
{
    const int inputs = call->formula->inputs, count = call->inputs + call->outputs;
    const View *out = &views[call->inputs];
    const int32_t axis = extreme_axis(out, true);
    const int64_t row = us_view_elements(out) / out->shape[axis] * (int64_t)us_dtype_size(out->dtype);
    const int64_t rows = larger(SLICE_BYTES / row, LEAST_ROWS);
    View *slices = us_scratch_array(count, sizeof *slices);
    if (slices == NULL) {
        return run(call, views, index);
    }
    KernelStatus status = KERNEL_OK;
    for (int64_t begin = 0; status == KERNEL_OK && begin < out->shape[axis]; begin += rows) {
        Packed packed[MAP_OPERANDS];
        for (int k = 0; k < count; k++) {
            slices[k] = slice_of(&views[k], out, axis, begin, smaller(rows, out->shape[axis] - begin));
        }
        for (int k = 0; k < inputs; k++) {
            packed[k] = lies_across(&views[k], out) ? us_pack(&slices[k]) : (Packed){slices[k], NULL};
            slices[k] = packed[k].view;
        }
        status = run(call, slices, index);
        for (int k = inputs - 1; k >= 0; k--) {
            us_pack_end(&packed[k]);
        }
    }
    us_scratch_give_back(slices);
    return status;
}
