#include "kernels/index/one_hot.h"

#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"

#include <string.h>

enum { SELF, ON, OFF, OUT };
enum { TILE = 1024 };

typedef struct Run {
    const View *self, *on;
    View rows; /* of out, at its first class */
    Axes axes; /* operands: self, rows */
    int64_t count, classes, stride;
} Run;

static void put_tile(void *context, int64_t tile)
{
    const Run *run = context;
    const int64_t begin = tile * TILE, count = smaller(run->count - begin, TILE);
    const size_t size = us_dtype_size(run->on->dtype);
    int64_t numbers[TILE];
    us_axes_load(&run->axes, 0, run->self->data, run->self->dtype, begin, count, LANE_INT64, numbers);
    for (int64_t i = 0; i < count; i++) {
        if (numbers[i] >= 0 && numbers[i] < run->classes) {
            const int64_t place = us_axes_offset(&run->axes, 1, begin + i) + numbers[i] * run->stride;
            memcpy((char *)run->rows.data + place * (int64_t)size, run->on->data, size);
        }
    }
}

KernelStatus us_one_hot(const View *views, const void *attributes)
{
    const int32_t axis = ((const OneHot *)attributes)->axis;
    const View *self = &views[SELF], *out = &views[OUT];
    View off = *out;
    off.data = views[OFF].data;
    memset(off.strides, 0, sizeof off.strides);
    us_copy_view(out, &off);
    Run run = {.self = self, .on = &views[ON], .rows = us_view_remove_axis(*out, axis), .count = us_view_elements(self),
               .classes = out->shape[axis], .stride = out->strides[axis]};
    us_axes_add(&run.axes, (const View *const[]){self, &run.rows}, 2, 0, self->rank);
    run_pieces(ceiling(run.count, TILE), run.count, put_tile, &run);
    return KERNEL_OK;
}
