#include "kernels/quantize/flat.h"

#include "kernels/matmul/matmul.h"
#include "kernels/move/copy_view.h"
#include "kernels/quantize/rows.h"
#include "kernels/scratch.h"

static KernelStatus multiply(const View *a, const View *b, const View *c)
{
    const ViewProduct how = {.compute = DTYPE_FLOAT32, .alpha = {1}};
    const View absent = us_view_absent();
    return us_product((const View[]){us_view_broadcast(a, 3, (const int64_t[]){c->shape[0], c->shape[1], a->shape[a->rank - 1]}),
                                     us_view_broadcast(b, 3, (const int64_t[]){c->shape[0], b->shape[b->rank - 2], c->shape[2]}),
                                     absent, *c, absent, absent}, &how);
}

/* Of all groups. */
static int64_t matrices_of(const View *groups, FlatGroups kind, int64_t limit)
{
    View list = *groups;
    if (kind == FLAT_PAIRS && !us_view_is_absent(groups)) {
        list = us_view_remove_axis(list, 1);
        list.data = (int64_t *)groups->data + groups->strides[1];
    }
    return us_view_is_absent(groups) ? limit : us_hold_ends(&list, kind != FLAT_ENDS, limit, NULL);
}

static void clear(const View *view, int64_t begin)
{
    float zero = 0;
    const View rest = us_view_rows(view, begin, view->shape[0]);
    const View nothing = us_view_contiguous(&zero, view->dtype, 1, (const int64_t[]){1});
    const View zeros = us_view_broadcast(&nothing, rest.rank, rest.shape);
    us_copy_view(&rest, &zeros);
}

static KernelStatus quantize(const View *x, const View *views, float clip, const View *y, const View *scale)
{
    const View absent = us_view_absent();
    const int64_t elements = us_view_elements(x);
    const int64_t lines[] = {x->shape[0], x->shape[1] * x->shape[2]}, bytes[] = {x->shape[0], lines[1] / 2};
    const size_t numbers = us_scratch_bytes(elements, sizeof(float));
    char *block = us_scratch_take(2 * numbers + us_scratch_bytes(elements / 2, 1)), *cursor = block;
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
                                                 us_view_contiguous(packed.data, y->dtype, 2, bytes), *scale, absent, absent},
                                  &(QuantizeRows){.packed = true, .clip = clip});
    }
    if (status == KERNEL_OK) {
        us_copy_view(y, &packed);
    }
    us_scratch_give_back(block);
    return status;
}

KernelStatus us_quantize_flat(const View *views, const void *attributes)
{
    const QuantizeFlat *how = attributes;
    const int64_t limit = views[0].shape[0], count = matrices_of(&views[5], how->groups, limit);
    const View x = us_view_rows(&views[0], 0, count), y = us_view_rows(&views[3], 0, count);
    const View scale = us_view_rows(&views[4], 0, count);
    const KernelStatus status = count > 0 ? quantize(&x, views, how->clip, &y, &scale) : KERNEL_OK;
    if (count < limit) {
        clear(&views[3], count);
        clear(&views[4], count);
    }
    return status;
}

/* ---- rotated rows ---- */

KernelStatus us_quantize_rotated(const View *views, const void *attributes)
{
    const QuantizeRotated *how = attributes;
    const View *x = &views[0], *y = &views[2], absent = us_view_absent();
    const bool packed = y->dtype == DTYPE_INT32;
    const int64_t size = views[1].shape[0], width = x->shape[1], elements = us_view_elements(x);
    const size_t numbers = us_scratch_bytes(elements, sizeof(float));
    char *block = us_scratch_take(numbers + us_scratch_bytes(elements / 2, 1)), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    View runs = us_view_insert_axis(*x, 1, width / size, size * x->strides[1]);
    runs.shape[2] = size;
    const View v = us_view_contiguous(us_scratch_part(&cursor, numbers), DTYPE_FLOAT32, 3, runs.shape);
    void *bytes = us_scratch_part(&cursor, (size_t)elements / 2);
    const View integers = packed ? us_view_contiguous(bytes, DTYPE_UINT8, 2, (const int64_t[]){x->shape[0], width / 2}) : *y;
    KernelStatus status = multiply(&runs, &views[1], &v);
    if (status == KERNEL_OK) {
        const View rows = us_view_contiguous(v.data, DTYPE_FLOAT32, 2, x->shape);
        status = us_quantize_rows((const View[]){rows, absent, integers, views[3],
                                                 absent, absent}, &(QuantizeRows){.packed = packed, .rounding = how->rounding});
    }
    if (status == KERNEL_OK && packed) {
        const View words = us_view_contiguous(bytes, DTYPE_INT32, 2, y->shape);
        us_copy_view(y, &words);
    }
    us_scratch_give_back(block);
    return status;
}
