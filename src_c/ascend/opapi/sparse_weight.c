/* Products with weights of which two of every four integers are kept. */
#include "ascend/opapi/quant_matmul_parts.h"
#include "kernels/quantize/sparse.h"

const Operand *op_places(OpCall *op, const Operand *places, int64_t n, int64_t bytes)
{
    enum { BLOCK_ROWS = 16, BLOCK_BYTES = 8 };
    if (op_refused(op)) {
        return places;
    }
    const int64_t rows = ceiling(n, BLOCK_ROWS) * BLOCK_ROWS, parts = ceiling(bytes, BLOCK_BYTES);
    const int64_t blocks[] = {parts, rows / BLOCK_ROWS, BLOCK_ROWS, BLOCK_BYTES};
    const View *view = &places->view;
    const bool own = view->rank == 4 && memcmp(view->shape, blocks, sizeof blocks) == 0;
    const bool stored = places->storage->rank == 4 && memcmp(places->storage->sizes, blocks, sizeof blocks) == 0;
    const bool matrix = has_shape(places, 2, n, bytes);
    const bool in_blocks = us_view_is_contiguous(view) && places->offset == 0 && (own || (stored && matrix));
    op_require(op, in_blocks || matrix, places->name, "shape", op->invalid,
               "%s is %s: it is [%lld,%lld], or in blocks of them", places->name, op_shape_text(op, places),
               (long long)n, (long long)bytes);
    if (op_refused(op) || !in_blocks) {
        return places;
    }
    View lines = us_view_contiguous(view->data, view->dtype, 3, (const int64_t[]){n, parts, BLOCK_BYTES});
    lines.strides[0] = BLOCK_BYTES;
    lines.strides[1] = rows * BLOCK_BYTES;
    View shown = us_view_contiguous(view->data, view->dtype, 2, (const int64_t[]){n, parts * BLOCK_BYTES});
    shown.shape[1] = bytes;
    return op_with_copy(op, places, lines, shown);
}

aclnnStatus op_sparse_matmul(OpCall *op, const SparseProduct *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const int64_t n = op_size(call->out, 1);
    const View column_scale = lines_of(call->column_scale, 1, n), bias = lines_of(call->bias, 1, n);
    const View row_scale = turned(lines_of(call->row_scale, 1, op_size(call->x, 0)));
    const PlannedView views[] = {{call->x, VIEW_READ, NULL}, {call->kept, VIEW_READ, NULL},
                                 {call->places, VIEW_READ, NULL}, {call->out, VIEW_WRITE, NULL},
                                 {call->column_scale, VIEW_READ, &column_scale},
                                 {call->row_scale, VIEW_READ, &row_scale}, {call->bias, VIEW_READ, &bias}};
    return op_plan_views(op, us_sparse_product, NULL, 0, sizeof views / sizeof *views, views);
}
