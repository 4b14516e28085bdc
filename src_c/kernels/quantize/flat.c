#include "kernels/quantize/flat.h"

#include "kernels/matmul/matmul.h"
#include "kernels/move/copy_view.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"

static KernelStatus multiply(const View *a, const View *b, const View *c)
{
    const ViewProduct how = {.compute = DTYPE_FLOAT32, .alpha = {1}};
    const View absent = us_view_absent();
    return us_product((const View[]){us_view_broadcast(a, 3, (const int64_t[]){c->shape[0], c->shape[1], a->shape[a->rank - 1]}),
                                     us_view_broadcast(b, 3, (const int64_t[]){c->shape[0], b->shape[b->rank - 2], c->shape[2]}),
                                     absent, *c, absent, absent}, &how);
}

KernelStatus us_quantize_flat(const View *views, const void *attributes)
{
    const QuantizeFlat *how = attributes;
    const View *x = &views[0], *y = &views[3], absent = us_view_absent();
    const int64_t elements = us_view_elements(x);
    const int64_t lines[] = {x->shape[0], x->shape[1] * x->shape[2]}, bytes[] = {x->shape[0], lines[1] / 2};
    const size_t numbers = us_scratch_round((size_t)elements * sizeof(float));
    char *block = us_scratch_take(2 * numbers + us_scratch_round((size_t)elements / 2)), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View half = us_view_contiguous(us_scratch_part(&cursor, numbers), DTYPE_FLOAT32, 3, x->shape);
    const View whole = us_view_contiguous(us_scratch_part(&cursor, numbers), DTYPE_FLOAT32, 3, x->shape);
    const View packed = us_view_contiguous(us_scratch_part(&cursor, (size_t)elements / 2), y->dtype, 3, y->shape);
    KernelStatus status = multiply(x, &views[2], &half);
    status = status == KERNEL_OK ? multiply(&views[1], &half, &whole) : status;
    if (status == KERNEL_OK) {
        status = us_quantize_rows((const View[]){us_view_contiguous(whole.data, DTYPE_FLOAT32, 2, lines), absent,
                                                 us_view_contiguous(packed.data, y->dtype, 2, bytes), views[4], absent, absent},
                                  &(QuantizeRows){.packed = true, .clip = how->clip});
    }
    if (status == KERNEL_OK) {
        us_copy_view(y, &packed);
    }
    us_scratch_give_back(block);
    return status;
}
