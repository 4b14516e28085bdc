/* Attention: what all pages check. */
#include "ascend/opapi/attention_parts.h"

enum { COPIES = 8, HEAD_LIMIT = 256, DEPTH_LIMIT = 512 };

void require_operands(OpCall *op, const AttentionCall *call)
{
    const Layout *layout = layout_of(call);
    op_require(op, layout != NULL, "inputLayout", "value", op->invalid, "inputLayout is %.16s, which is not one of %s%s",
               call->layout,
               call->infers ? "BSH BSND BNSD BNSD_BSND" : call->packed ? "TND" : "BSH SBH BSND BNSD",
               call->prompts ? " TND" : call->newest ? " TND TND_NTD NTD_TND BNSD_NBSD BSND_NBSD BSH_NBSD" : "");
    const Operand *operands[] = {call->query, call->key, call->value};
    for (int i = 0; i < 3 && !op_refused(op); i++) {
        const bool either = i > 0 && op_given(call->pages);
        const bool by_heads_too = either && (call->packed || operands[i]->blocks != NULL);
        op_require_rank(op, operands[i], either ? 3 : layout->rank, by_heads_too ? 4 : layout->rank);
    }
    op_require_range(op, call->infers ? "numHeads" : "headNum", call->heads, 1, HEAD_LIMIT);
    if (op_refused(op)) {
        return;
    }
    const int64_t width = call->query->view.shape[layout->head < 0 ? layout->depth : layout->head];
    op_require(op, layout->head < 0 ? width % call->heads == 0 : width == call->heads, call->query->name, "heads",
               op->invalid, "%s is %s in layout %s, its heads are %lld", call->query->name,
               op_shape_text(op, call->query), call->layout, (long long)call->heads);
}

void require_keys(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Operand4 of = split_heads(call);
    const Layout *layout = key_layout(call);
    const int64_t depth = of.query.shape[3], heads = of.key.shape[1], width = counted_view(call->key).shape[layout->depth];
    const bool whole = layout->head >= 0 ? of.key.shape[3] == depth : depth > 0 && width % depth == 0;
    const bool batches = op_given(call->pages) || has_size(&of.key, 0, is_listed(call) ? 1 : of.query.shape[0]);
    op_require(op, batches && whole && heads > 0 && call->heads % heads == 0,
               call->key->name, "shape", op->invalid,
               "%s is %s, %s is %s in layout %s: batches and head sizes are equal, and the query's heads, %lld, are a "
               "multiple of the key's",
               call->key->name, op_shape_text(op, call->key), call->query->name, op_shape_text(op, call->query),
               call->layout, (long long)call->heads);
    const bool divides = layout->head >= 0 || (heads > 0 && counted_view(call->value).shape[layout->depth] % heads == 0);
    op_require(op, divides && has_size(&of.value, 0, of.key.shape[0]) && has_size(&of.value, 1, heads) &&
                       has_size(&of.value, 2, of.key.shape[2]) && of.value.shape[3] <= depth,
               call->value->name, "shape", op->invalid,
               "%s is %s, %s is %s: they may differ in the head size only, and the value's is not larger",
               call->value->name, op_shape_text(op, call->value), call->key->name, op_shape_text(op, call->key));
    const int64_t deepest = call->deepest > 0 ? call->deepest : DEPTH_LIMIT;
    op_require(op, depth <= deepest, call->query->name, "depth", op->invalid, "%s is %s: a head has %lld numbers, at most %lld",
               call->query->name, op_shape_text(op, call->query), (long long)depth, (long long)deepest);
}

void op_require_ends(OpCall *op, IntArguments ends, int64_t tokens)
{
    bool rises = ends.count > 0;
    for (int64_t i = 0; i < ends.count && !op_refused(op); i++) {
        rises = rises && ends.values[i] >= begin_of(ends, i);
    }
    op_require(op, op_refused(op) || (rises && ends.values[ends.count - 1] == tokens), ends.name, "values", op->invalid,
               "%s has to rise to the number of tokens, %lld", ends.name, (long long)tokens);
}

void require_sequences(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op) || !call->packed) {
        return;
    }
    const Operand4 of = split_heads(call);
    op_require_ends(op, call->query_ends, of.query.shape[2]);
    if (op_given(call->pages)) {
        return;
    }
    op_require_ends(op, call->key_ends, of.key.shape[2]);
    op_require(op, call->key_ends.count == call->query_ends.count, call->key_ends.name, "length", op->invalid,
               "%s has %lld entries, %s has %lld", call->key_ends.name, (long long)call->key_ends.count,
               call->query_ends.name, (long long)call->query_ends.count);
}

static int64_t longest(const AttentionCall *call, IntArguments ends, int64_t whole)
{
    int64_t most = call->packed ? 0 : whole;
    for (int64_t i = 0; call->packed && i < ends.count; i++) {
        const int64_t length = ends.values[i] - begin_of(ends, i);
        most = length > most ? length : most;
    }
    return most;
}

View mask_view(const AttentionCall *call, int64_t rows)
{
    View view = call->mask->view;
    const bool is_of_scores = rows != 1 || call->packed || !mask_is_read(call);
    if (!call->infers || view.rank < 2 || view.rank > 3 || (view.rank == 2 && is_of_scores)) {
        return view;
    }
    /* [batch, keys] of one row, or [batch, rows, keys] */
    const View own = view;
    const int32_t last = own.rank - 1;
    const int64_t shape[] = {own.shape[0], 1, last == 2 ? own.shape[1] : 1, own.shape[last]};
    const int64_t strides[] = {own.strides[0], 0, last == 2 ? own.strides[1] : 0, own.strides[last]};
    view.rank = 4;
    memcpy(view.shape, shape, sizeof shape);
    memcpy(view.strides, strides, sizeof strides);
    return view;
}

/* [batch or 1, head or 1, rows (or 1), keys], or the last two: at least as long as packed sequences. */
static bool covers(const AttentionCall *call, const View *view, bool one_row)
{
    const Operand4 of = split_heads(call);
    const int32_t row = view->rank - 2;
    const int64_t rows = longest(call, call->query_ends, of.query.shape[2]);
    const bool turns = call->packed && !op_given(call->pages);
    const int64_t keys = turns ? longest(call, call->key_ends, 0) : shared_keys(call) + most_keys(call, &of);
    const int64_t batches = sequence_count(call, &of);
    const bool longer = call->packed || call->infers;
    if ((view->rank != 2 && view->rank != 4) ||
        (view->rank == 4 && ((view->shape[0] != 1 && view->shape[0] != batches) ||
                             (view->shape[1] != 1 && view->shape[1] != call->heads)))) {
        return false;
    }
    const bool fits_rows = view->shape[row] == rows || (longer && view->shape[row] > rows);
    return (fits_rows || (one_row && view->shape[row] == 1)) &&
           (view->shape[row + 1] == keys || (longer && view->shape[row + 1] > keys));
}

static bool is_triangle(const AttentionCall *call, const View *view)
{
    const int32_t row = view->rank - 2;
    return (view->rank == 2 || (view->rank == 4 && has_size(view, 0, 1) && has_size(view, 1, 1))) &&
           has_size(view, row, call->mode == MODE_PREFIX_SMALL ? PREFIX_ROWS : TRIANGLE) && has_size(view, row + 1, TRIANGLE);
}

void require_masks(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Operand4 of = split_heads(call);
    /* The pages of training take a call without a mask as one without a mode, those of inference refuse it. */
    op_require(op, op_given(call->mask) || !call->infers || call->token || call->mode == MODE_DEFAULT, call->mask->name,
               "missing", op->invalid, "%s is needed with sparseMode %lld", call->mask->name, (long long)call->mode);
    const View mask = mask_view(call, of.query.shape[2]);
    const bool fits = mask_is_read(call) ? covers(call, &mask, false) : is_triangle(call, &mask);
    op_require(op, !op_given(call->mask) || fits, call->mask->name, "shape", op->invalid,
               "%s is %s with sparseMode %lld", call->mask->name, op_shape_text(op, call->mask), (long long)call->mode);
    op_require(op, !op_given(call->mask) || (call->mode != MODE_DEFAULT && call->mode != MODE_BAND) ||
                       bounded(call->before) + bounded(call->after) >= 0,
               "preTokens", "band", op->invalid, "preTokens is %lld, nextTokens %lld: they do not overlap",
               (long long)call->before, (long long)call->after);
    if (op_given(call->shift)) {
        const View *shift = &call->shift->view;
        const bool in_line = shift->rank == 1 && call->packed && !call->infers && shift->shape[0] == score_count(call);
        op_require(op, in_line || (shift->rank == 4 && covers(call, shift, true)), call->shift->name, "shape", op->invalid,
                   "%s is %s; %s is %s, %s is %s", call->shift->name, op_shape_text(op, call->shift), call->query->name,
                   op_shape_text(op, call->query), call->key->name, op_shape_text(op, call->key));
    }
    const bool prefixes = op_given(call->mask) && (call->mode == MODE_PREFIX || call->mode == MODE_PREFIX_SMALL);
    op_require(op, !prefixes || call->prefix.count == sequence_count(call, &of), "prefixOptional", "length",
               op->invalid, "prefixOptional has %lld entries; sparseMode %lld needs one for each of %lld batches",
               (long long)call->prefix.count, (long long)call->mode, (long long)sequence_count(call, &of));
}

View statistic_view(const AttentionCall *call, const View *view)
{
    View result = *view;
    if (call->packed) {
        const bool by_token = call->infers || view->shape[0] == call->query->view.shape[0];
        const int64_t strides[] = {0, view->strides[by_token], view->strides[!by_token], view->strides[2]};
        const int64_t shape[] = {1, view->shape[by_token], view->shape[!by_token], view->shape[2]};
        memcpy(result.strides, strides, sizeof strides);
        memcpy(result.shape, shape, sizeof shape);
        result.rank = 4;
    }
    return result;
}

int copies_of(const AttentionCall *call)
{
    return call->infers ? 1 : COPIES;
}

void require_statistic(OpCall *op, const AttentionCall *call, const Operand *statistic)
{
    if (op_refused(op) || !op_given(statistic)) {
        return;
    }
    const Operand4 of = split_heads(call);
    const bool ranked = statistic->view.rank == (call->packed ? 3 : 4);
    const View view = ranked ? statistic_view(call, &statistic->view) : us_view_absent();
    op_require(op, ranked && has_size(&view, 0, of.query.shape[0]) && has_size(&view, 1, call->heads) &&
                       has_size(&view, 2, of.query.shape[2]) && has_size(&view, 3, copies_of(call)),
               statistic->name, "shape", op->invalid, "%s is %s; it has %d numbers for every row of every head",
               statistic->name, op_shape_text(op, statistic), copies_of(call));
}

void require_result(OpCall *op, const AttentionCall *call, const Operand *result)
{
    if (op_refused(op) || !op_given(result)) {
        return;
    }
    const Operand4 of = split_heads(call);
    const Layout *layout = result_layout(call);
    const bool ranked = result->view.rank == layout->rank;
    const int64_t width = ranked ? result->view.shape[layout->depth] : 0;
    const View view = ranked ? by_heads(layout, &result->view, call->heads) : us_view_absent();
    op_require(op, ranked && (layout->head >= 0 || width == call->heads * of.value.shape[3]) &&
                       has_size(&view, 0, of.query.shape[0]) && has_size(&view, 1, call->heads) &&
                       has_size(&view, 2, of.query.shape[2]) && has_size(&view, 3, of.value.shape[3]),
               result->name, "shape", op->invalid, "%s is %s; it has the rows of %s, %s, and the head size of %s, %s",
               result->name, op_shape_text(op, result), call->query->name, op_shape_text(op, call->query),
               call->value->name, op_shape_text(op, call->value));
}
