#include "kernels/index/row_groups.h"

#include "kernels/index/rows.h"
#include "kernels/move/copy_view.h"
#include "kernels/move/move.h"
#include "kernels/scratch.h"

enum { ROWS, ENDS, OUT };

/* The group of each row. */
static KernelStatus name_groups(const View *views, bool sizes, int64_t count, int64_t *numbers, int64_t *group_of)
{
    const int64_t groups = views[OUT].shape[0];
    const bool equal = us_view_is_absent(&views[ENDS]);
    int64_t row = 0;
    if (!equal) {
        us_reshape((const View[]){views[ENDS], us_view_contiguous(numbers, DTYPE_INT64, 1, &groups)}, NULL);
    }
    for (int64_t group = 0; group < groups; group++) {
        int64_t end = equal ? (group + 1) * (count / groups) : numbers[group];
        if ((sizes && __builtin_add_overflow(end, row, &end)) || end < row || end > count) {
            return us_kernel_fault("group %lld of %lld ends before row %lld, which is not in %lld … %lld", (long long)group,
                                   (long long)groups, (long long)end, (long long)row, (long long)count);
        }
        while (row < end) {
            group_of[row++] = group;
        }
    }
    return row == count ? KERNEL_OK
                        : us_kernel_fault("the groups have %lld rows, of %lld", (long long)row, (long long)count);
}

/* The view itself, or a block with its elements in row-major order. */
static void *packed(const View *view, void *space)
{
    if (us_view_is_contiguous(view)) {
        return view->data;
    }
    const View whole = us_view_contiguous(space, view->dtype, view->rank, view->shape);
    us_copy_view(&whole, view);
    return space;
}

KernelStatus us_sum_groups(const View *views, const void *attributes)
{
    const SumGroups *how = attributes;
    const View *rows = &views[ROWS], *out = &views[OUT];
    const int64_t count = us_shape_elements(rows->rank - 1, rows->shape);
    const size_t size = us_dtype_size(rows->dtype);
    const size_t parts[] = {us_scratch_bytes(count, sizeof(int64_t)), us_scratch_bytes(out->shape[0], sizeof(int64_t)),
                            us_view_is_contiguous(rows) ? 0 : us_scratch_bytes(us_view_elements(rows), size),
                            us_scratch_bytes(us_view_elements(out), size)};
    char *block = us_scratch_take(us_scratch_sum(parts, 4) + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    int64_t *group_of = us_scratch_part(&cursor, parts[0]), *numbers = us_scratch_part(&cursor, parts[1]);
    void *from = us_scratch_part(&cursor, parts[2]);
    const View sums = us_view_contiguous(us_scratch_part(&cursor, parts[3]), out->dtype, 2, out->shape);
    KernelStatus status = name_groups(views, how->sizes, count, numbers, group_of);
    if (status == KERNEL_OK && !us_view_is_empty(out)) {
        const View index = us_view_contiguous(group_of, DTYPE_INT64, 1, &count);
        status = us_add_rows(&(RowSum){.out = sums.data, .rows = packed(rows, from), .index = &index, .targets = out->shape[0],
                                       .width = out->shape[1], .dtype = out->dtype, .clears = true});
        us_copy_view(out, &sums);
    }
    us_scratch_give_back(block);
    return status;
}
