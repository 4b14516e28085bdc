#include "kernels/move/copies.h"

#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"

#include <string.h>

static size_t copy_size(const View *view)
{
    return us_scratch_bytes(us_view_elements(view), us_dtype_size(view->dtype));
}

KernelStatus us_kernel_with_copies(const View *views, const void *attributes)
{
    const KernelCopies *how = attributes;
    const View *from = views + how->count;
    size_t size = us_scratch_bytes(how->count, sizeof *views);
    for (int32_t i = 0; i < how->copies; i++) {
        size += copy_size(&from[i]);
    }
    char *const memory = us_scratch_take(size);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    char *cursor = memory;
    View *own = us_scratch_part(&cursor, (size_t)how->count * sizeof *own);
    memcpy(own, views, (size_t)how->count * sizeof *own);
    for (int32_t i = 0; i < how->copies; i++) {
        const View to = us_view_contiguous(us_scratch_part(&cursor, copy_size(&from[i])), from[i].dtype, from[i].rank,
                                           from[i].shape);
        us_copy_view(&to, &from[i]);
        for (int32_t k = 0; k < how->count; k++) {
            if (how->copy_of[k] == i) {
                own[k].data = (char *)to.data + ((const char *)views[k].data - (const char *)from[i].data);
            }
        }
    }
    const KernelStatus status = how->kernel(own, (const char *)attributes + how->attributes);
    us_scratch_give_back(memory);
    return status;
}
