/* Merged results of attention: src_c/kernels/attention/merge.c. */
#include "ascend/common/op_memory.h"
#include "ascend/opapi/attention_parts.h"
#include "kernels/attention/merge.h"

enum { COPIES = 8, MOST_HEADS = 256, MOST_DEPTH = 768, DEPTH_STEP = 64, LEAST_WIDTH = 8, MOST_WIDTH = 512 };

/* ---- two parts ---- */

static bool is_packed(const MergeCall *call)
{
    return strcmp(call->layout, "TND") == 0;
}

void op_require_merge(OpCall *op, const MergeCall *call)
{
    const Operand *of = call->first, *statistic = call->first_max;
    const bool packed = is_packed(call);
    const int64_t heads = op_size(statistic, 1), width = op_size(of, 2);
    op_require(op, statistic->view.rank == (packed ? 3 : 4) && op_size(statistic, -1) == COPIES &&
                       (packed ? op_size(statistic, 0) == op_size(of, 0) && heads == op_size(of, 1)
                               : op_size(statistic, 0) == op_size(of, 1) && op_size(statistic, 2) == op_size(of, 0)),
               statistic->name, "shape", op->invalid, "%s is %s, %s is %s: it has 8 numbers for every head of every token",
               statistic->name, op_shape_text(op, statistic), of->name, op_shape_text(op, of));
    op_require(op, packed || (heads > 0 && width % heads == 0), of->name, "heads", op->invalid,
               "%s is %s, for %lld heads", of->name, op_shape_text(op, of), (long long)heads);
    op_require(op, !packed || (heads <= MOST_HEADS && width <= MOST_DEPTH && width % DEPTH_STEP == 0), of->name, "limits",
               op->invalid, "%s is %s: with TND there are 256 heads at most, of a multiple of 64 numbers up to 768", of->name,
               op_shape_text(op, of));
}

/* [row, batch, head, …]: so results of a token, which have most numbers, are read one behind another. */
static View by_rows(const MergeCall *call, const View *view, int64_t heads)
{
    if (view->rank == 4) { /* statistics of SBH, [batch, head, row, …] */
        return op_swap_axes(op_swap_axes(*view, 0, 2), 1, 2);
    }
    if (is_packed(call)) { /* [token, head, …] */
        return us_view_insert_axis(*view, 1, 1, 0);
    }
    const int64_t depth = view->shape[2] / heads;
    const View parts = {.data = view->data, .dtype = view->dtype, .rank = 4,
                        .shape = {view->shape[0], view->shape[1], heads, depth},
                        .strides = {view->strides[0], view->strides[1], depth * view->strides[2], view->strides[2]}};
    return parts;
}

aclnnStatus op_merge_two(OpCall *op, const MergeCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Operand *operands[] = {call->first, call->first_max, call->first_sum, call->second, call->second_max,
                                 call->second_sum, call->out, call->max, call->sum};
    const int64_t heads = op_size(call->first_max, 1);
    View own[9];
    PlannedView views[9];
    for (int i = 0; i < 9; i++) {
        own[i] = by_rows(call, &operands[i]->view, heads);
        views[i] = (PlannedView){operands[i], i < 6 ? VIEW_READ : VIEW_WRITE, &own[i]};
    }
    return op_plan_views(op, us_merge_two_parts, NULL, 0, 9, views);
}

/* ---- any number of parts ---- */

void op_require_parts(OpCall *op, Operands logarithms, Operands values, const Operand *out, const Operand *logarithm)
{
    const int64_t rows = logarithms.count > 0 ? op_size(logarithms.items[0], 0) : 0;
    const int64_t width = values.count > 0 ? op_size(values.items[0], 1) : 0;
    const Shape line = op_shape_of(1, &rows), table = op_shape_of(2, (const int64_t[]){rows, width});
    for (int32_t i = 0; i < logarithms.count && !op_refused(op); i++) {
        op_require_shape(op, logarithms.items[i], &line);
    }
    for (int32_t i = 0; i < values.count && !op_refused(op); i++) {
        op_require_shape(op, values.items[i], &table);
    }
    op_require_shape(op, out, &table);
    if (op_given(logarithm)) {
        op_require_shape(op, logarithm, &line);
    }
    op_require(op, width % LEAST_WIDTH == 0 && width >= LEAST_WIDTH && width <= MOST_WIDTH, values.name, "width", op->invalid,
               "a row of %s has %lld numbers, not a multiple of 8 up to 512", values.name, (long long)width);
}

aclnnStatus op_merge_parts(OpCall *op, Operands logarithms, Operands values, const Operand *out, const Operand *logarithm)
{
    const int32_t count = logarithms.count;
    PlannedView *views = op_take(op, (2 * (size_t)count + 2) * sizeof *views);
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    for (int32_t i = 0; i < count; i++) {
        views[i] = (PlannedView){logarithms.items[i], VIEW_READ, NULL};
        views[count + i] = (PlannedView){values.items[i], VIEW_READ, NULL};
    }
    views[2 * count] = (PlannedView){out, VIEW_WRITE, NULL};
    views[2 * count + 1] = (PlannedView){op_given(logarithm) ? logarithm : NULL, VIEW_WRITE, NULL};
    return op_plan_views(op, us_merge_parts, &(MergeParts){count}, sizeof(MergeParts), 2 * count + 2, views);
}
