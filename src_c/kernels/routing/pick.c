#include "kernels/routing/pick.h"

#include "kernels/index/rows.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"

/* Rows one after the other: the view's own, or a block for them. */
typedef struct PackedRows {
    void *rows, *block;
} PackedRows;

static bool pack_rows(const View *view, PackedRows *packed)
{
    const bool copies = !us_view_is_contiguous(view);
    packed->block = copies ? us_scratch_array(us_view_elements(view), us_dtype_size(view->dtype)) : NULL;
    packed->rows = copies ? packed->block : view->data;
    return !copies || packed->block != NULL;
}

static View packed_view(const PackedRows *packed, const View *view)
{
    return us_view_contiguous(packed->rows, view->dtype, view->rank, view->shape);
}

KernelStatus us_pick_tokens(const int64_t *picked, int64_t rows, const View *tokens, const View *routed)
{
    const int64_t size = (int64_t)us_dtype_size(routed->dtype), width = us_view_elements(routed) / rows;
    PackedRows from, to = {NULL, NULL};
    const bool has_room = pack_rows(tokens, &from) && pack_rows(routed, &to);
    if (has_room) {
        if (from.block != NULL) {
            const View packed = packed_view(&from, tokens);
            us_copy_view(&packed, tokens);
        }
        us_pick_rows(&(RowPick){from.rows, to.rows, picked, 1, 1, us_view_elements(tokens) / width, rows, width * size});
        if (to.block != NULL) {
            const View packed = packed_view(&to, routed);
            us_copy_view(routed, &packed);
        }
    }
    us_scratch_give_back(to.block);
    us_scratch_give_back(from.block);
    return has_room ? KERNEL_OK : KERNEL_NO_MEMORY;
}
