#include "kernels/routing/pick.h"

#include "kernels/index/rows.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"

/* Rows one after the other: the view's own, or a block for them. NULL: no memory. */
static void *packed_rows(const View *view, void **block)
{
    *block = NULL;
    if (us_view_is_contiguous(view)) {
        return view->data;
    }
    *block = us_scratch_array(us_view_elements(view), us_dtype_size(view->dtype));
    return *block;
}

KernelStatus us_pick_tokens(const int64_t *picked, int64_t rows, const View *tokens, const View *routed)
{
    const int64_t size = (int64_t)us_dtype_size(routed->dtype), width = us_view_elements(routed) / rows;
    void *from_block, *to_block = NULL;
    void *from = packed_rows(tokens, &from_block), *to = from ? packed_rows(routed, &to_block) : NULL;
    if (to) {
        if (from_block) {
            const View packed = us_view_contiguous(from, tokens->dtype, tokens->rank, tokens->shape);
            us_copy_view(&packed, tokens);
        }
        us_pick_rows(&(RowPick){from, to, picked, 1, 1, us_view_elements(tokens) / width, rows, width * size});
        if (to_block) {
            const View packed = us_view_contiguous(to, routed->dtype, routed->rank, routed->shape);
            us_copy_view(routed, &packed);
        }
    }
    us_scratch_give_back(to_block);
    us_scratch_give_back(from_block);
    return to ? KERNEL_OK : KERNEL_NO_MEMORY;
}
