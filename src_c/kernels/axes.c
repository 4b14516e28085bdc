#include "kernels/axes.h"

#include <stdlib.h>

static void swap_axes(View *view, int32_t a, int32_t b)
{
    int64_t size = view->shape[a], stride = view->strides[a];
    view->shape[a] = view->shape[b];
    view->strides[a] = view->strides[b];
    view->shape[b] = size;
    view->strides[b] = stride;
}

void us_axes_in_memory_order(int count, View *views)
{
    const View *model = &views[count - 1];
    for (int32_t end = model->rank - 1; end > 0; end--) {
        for (int32_t axis = 0; axis < end; axis++) {
            if (llabs(model->strides[axis]) >= llabs(model->strides[axis + 1])) {
                continue;
            }
            for (int k = 0; k < count; k++) {
                swap_axes(&views[k], axis, axis + 1);
            }
        }
    }
}
