#include "kernels/packed.h"

#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"

#include <string.h>

enum { WORTH_PACKING = 4096 }; /* elements */

static bool repeats(const View *view)
{
    for (int32_t axis = 0; axis < view->rank; axis++) {
        if (view->shape[axis] > 1 && view->strides[axis] == 0) {
            return true;
        }
    }
    return false;
}

/* Room for a copy, if one is worth its while and there is memory. */
static Packed room_for(const View *view)
{
    Packed packed = {*view, NULL};
    if (us_view_is_absent(view) || us_view_is_contiguous(view) || repeats(view) || us_view_elements(view) < WORTH_PACKING) {
        return packed;
    }
    packed.copy = us_scratch_array(us_view_elements(view), us_dtype_size(view->dtype));
    if (packed.copy != NULL) {
        packed.view = us_view_contiguous(packed.copy, view->dtype, view->rank, view->shape);
    }
    return packed;
}

Packed us_pack(const View *view)
{
    const Packed packed = room_for(view);
    if (packed.copy != NULL) {
        us_copy_view(&packed.view, view);
    }
    return packed;
}

void us_pack_end(const Packed *packed)
{
    us_scratch_give_back(packed->copy);
}

static bool lies_apart(const View *view)
{
    return !us_view_is_absent(view) && view->rank > 0 && view->shape[view->rank - 1] > 1 && view->strides[view->rank - 1] != 1;
}

bool us_rows_differ(const View *views, int count)
{
    int apart = 0, present = 0;
    for (int k = 0; k < count; k++) {
        apart += lies_apart(&views[k]);
        present += !us_view_is_absent(&views[k]);
    }
    return apart > 0 && apart < present;
}

KernelStatus us_run_on_rows(Kernel *kernel, int inputs, int outputs, int count, const View *views, const void *attributes)
{
    enum { VIEW_LIMIT = 10 };
    View own[VIEW_LIMIT];
    Packed packed[VIEW_LIMIT];
    memcpy(own, views, (size_t)count * sizeof *own);
    for (int k = 0; k < inputs + outputs; k++) {
        packed[k] = (Packed){views[k], NULL};
        if (lies_apart(&views[k])) {
            packed[k] = k < inputs ? us_pack(&views[k]) : room_for(&views[k]);
        }
        own[k] = packed[k].view;
    }
    const KernelStatus status = kernel(own, attributes);
    bool copied = false;
    for (int k = inputs + outputs - 1; k >= 0; k--) {
        if (k >= inputs && packed[k].copy != NULL && status == KERNEL_OK) {
            us_copy_view(&views[k], &own[k]);
        }
        copied |= packed[k].copy != NULL;
        us_pack_end(&packed[k]);
    }
    return status == KERNEL_NO_MEMORY && copied ? kernel(views, attributes) : status;
}
