#include "kernels/pool/copies.h"

#include "kernels/detach.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

enum { COPIED_VIEWS = 4, COPIED_RESULT = 3, COPIED_BYTES = 256 * 1024 };

typedef struct Copied {
    const View *views;
    const Pooling *pooling;
    Kernel *run;
    int64_t images; /* at a time */
    atomic_int status;
} Copied;

static View images_of(const View *view, int64_t first, int64_t count)
{
    View result = *view;
    if (!us_view_is_absent(view)) {
        result.data = (char *)view->data + first * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
        result.shape[0] = count;
    }
    return result;
}

static size_t packed_bytes(const View *view)
{
    return us_view_is_absent(view) ? 0 : us_scratch_bytes(us_view_elements(view), us_dtype_size(view->dtype));
}

static KernelStatus run_packed(Kernel *run, const View *views, const Pooling *pooling)
{
    size_t size = 0;
    for (int k = 0; k < COPIED_VIEWS; k++) {
        size += packed_bytes(&views[k]);
    }
    char *memory = us_scratch_take(size), *cursor = memory;
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    View packed[COPIED_VIEWS];
    for (int k = 0; k < COPIED_VIEWS; k++) {
        packed[k] = views[k];
        if (!us_view_is_absent(&views[k])) {
            packed[k] = us_view_contiguous(us_scratch_part(&cursor, packed_bytes(&views[k])), views[k].dtype, views[k].rank,
                                           views[k].shape);
            if (k != COPIED_RESULT || pooling->beta != 0) {
                us_copy_view(&packed[k], &views[k]);
            }
        }
    }
    const KernelStatus status = run(packed, pooling);
    if (status == KERNEL_OK) {
        us_copy_view(&views[COPIED_RESULT], &packed[COPIED_RESULT]);
    }
    us_scratch_give_back(memory);
    return status;
}

static void run_images(void *context, int64_t piece)
{
    Copied *work = context;
    const int64_t first = piece * work->images, left = work->views[COPIED_RESULT].shape[0] - first;
    View views[COPIED_VIEWS];
    for (int k = 0; k < COPIED_VIEWS; k++) {
        views[k] = images_of(&work->views[k], first, left < work->images ? left : work->images);
    }
    const KernelStatus status = run_packed(work->run, views, work->pooling);
    if (status != KERNEL_OK) {
        atomic_store(&work->status, (int)status);
    }
}

KernelStatus us_pooling_of_copies(Kernel *run, const View *views, const Pooling *pooling)
{
    const int64_t images = views[COPIED_RESULT].shape[0];
    const int64_t bytes = images > 0 ? (int64_t)packed_bytes(&views[COPIED_RESULT]) / images : 0;
    if (bytes == 0 || bytes > COPIED_BYTES) {
        return run_packed(run, views, pooling);
    }
    Detached detached; /* no image's result is what another one reads */
    const KernelStatus status = us_detach(&detached, COPIED_RESULT, views, 1, &views[COPIED_RESULT]);
    View apart[COPIED_VIEWS];
    memcpy(apart, detached.inputs, COPIED_RESULT * sizeof *apart);
    apart[COPIED_RESULT] = views[COPIED_RESULT];
    Copied work = {.views = apart, .pooling = pooling, .run = run, .images = COPIED_BYTES / bytes, .status = (int)status};
    if (status == KERNEL_OK) {
        us_parallel((images + work.images - 1) / work.images, run_images, &work);
    }
    us_detach_end(&detached);
    return (KernelStatus)atomic_load(&work.status);
}
