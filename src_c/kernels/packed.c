#include "kernels/packed.h"

#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"

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

Packed us_pack(const View *view)
{
    Packed packed = {*view, NULL};
    if (us_view_is_absent(view) || us_view_is_contiguous(view) || repeats(view)) {
        return packed;
    }
    const int64_t elements = us_view_elements(view);
    if (elements < WORTH_PACKING) {
        return packed;
    }
    packed.copy = us_scratch_array(elements, us_dtype_size(view->dtype));
    if (packed.copy != NULL) {
        packed.view = us_view_contiguous(packed.copy, view->dtype, view->rank, view->shape);
        us_copy_view(&packed.view, view);
    }
    return packed;
}

void us_pack_end(const Packed *packed)
{
    us_scratch_give_back(packed->copy);
}
