#include "ascend/opapi/sparse_attention.h"

#include "ascend/common/op_memory.h"
#include "kernels/attention/indexer.h"
#include "kernels/attention/sparse.h"
#include "kernels/sizes.h"

enum { MOST_HEADS = 128, MOST_PAGE = 1024, MOST_BLOCK = 128, ROTARY_DEPTH = 64, CAUSAL = 3 };
/* Of its gradient. */
enum { LEAST_SELECTED = 1024, MOST_SELECTED = 8192 };

static bool is_packed(const char *layout)
{
    return strcmp(layout, "TND") == 0;
}

static bool is_batched(const char *layout)
{
    return layout[0] == 0 || strcmp(layout, "BSND") == 0;
}

static bool is_paged(const char *layout)
{
    return strcmp(layout, "PA_BSND") == 0;
}

static void require_layouts(OpCall *op, const TokenCall *call)
{
    const char *rows = call->query_layout, *keys = call->key_layout;
    op_require(op, is_packed(rows) || is_batched(rows), call->query_layout_name, "value", op->invalid,
               "%s is %s, neither BSND nor TND", call->query_layout_name, rows);
    op_require(op, is_packed(keys) || is_batched(keys) || is_paged(keys), call->key_layout_name, "value", op->invalid,
               "%s is %s, not one of BSND, TND, PA_BSND", call->key_layout_name, keys);
    op_require(op, is_paged(keys) || is_packed(rows) == is_packed(keys), call->key_layout_name, "match", op->invalid,
               "%s is %s, %s is %s: keys that do not lie in pages lie as the query", call->key_layout_name, keys,
               call->query_layout_name, rows);
}

static void require_heads(OpCall *op, const TokenCall *call)
{
    const Operand *query = call->query, *key = call->key;
    const int32_t row_rank = is_packed(call->query_layout) ? 3 : 4, key_rank = is_packed(call->key_layout) ? 3 : 4;
    const bool no_rows = call->may_be_empty && op_empty(query);
    op_require_rank(op, query, row_rank, row_rank);
    op_require_rank(op, key, key_rank, key_rank);
    op_require(op, call->may_be_empty || !op_empty(query), query->name, "empty", op->invalid, "%s is %s", query->name,
               op_shape_text(op, query));
    op_require(op, no_rows || !op_empty(key), key->name, "empty", op->invalid, "%s is %s", key->name, op_shape_text(op, key));
    op_require(op, op_size(query, -1) == call->depth, query->name, "depth", op->invalid, "%s is %s: a head has %lld numbers",
               query->name, op_shape_text(op, query), (long long)call->depth);
    op_require(op, op_size(key, -1) == call->depth && op_size(key, -2) == 1, key->name, "head", op->invalid,
               "%s is %s: it has one head of %lld numbers", key->name, op_shape_text(op, key), (long long)call->depth);
}

/* [sequence], where it is given; ends must be. */
static void require_lengths(OpCall *op, const Operand *lengths, const char *name, bool needed, int64_t sequences)
{
    op_require(op, !needed || op_given(lengths), name, "missing", op->missing, "%s is NULL: the layout needs it", name);
    if (op_given(lengths) && !op_refused(op)) {
        const Shape shape = op_shape_of(1, &sequences);
        op_require_shape(op, lengths, &shape);
    }
}

static int64_t sequence_count(const TokenCall *call)
{
    return !is_packed(call->query_layout) ? op_size(call->query, 0)
           : call->listed ? call->row_list.count : op_elements(call->row_lengths);
}

/* Of sequence s, as far as it can be seen: the size of a batch, or a length that is listed; -1: it cannot. */
static int64_t length_of(const TokenCall *call, bool of_keys, int64_t s)
{
    const IntArguments list = of_keys ? call->key_list : call->row_list;
    const bool packed = is_packed(call->query_layout);
    if (call->listed && list.count > 0) {
        return list.values[s] - (packed && s > 0 ? list.values[s - 1] : 0);
    }
    return packed ? -1 : op_size(of_keys ? call->key : call->query, 1);
}

/* Lengths of batches, or ends. */
static void require_list(OpCall *op, IntArguments list, const TokenCall *call, const Operand *of)
{
    const bool packed = is_packed(call->query_layout);
    op_require(op, !packed || list.count > 0, list.name, "missing", op->missing, "%s is NULL: TND needs it", list.name);
    op_require(op, list.count == 0 || list.count == sequence_count(call), list.name, "length", op->invalid,
               "%s has %lld entries: there is one for each sequence", list.name, (long long)list.count);
    for (int64_t s = 0; s < list.count && !op_refused(op); s++) {
        const int64_t least = packed && s > 0 ? list.values[s - 1] : 0, most = op_size(of, packed ? 0 : 1);
        op_require(op, list.values[s] >= least && list.values[s] <= most, list.name, "values", op->invalid,
                   "%s has %lld for sequence %lld, not %lld to %lld", list.name, (long long)list.values[s], (long long)s,
                   (long long)least, (long long)most);
    }
}

/* Of the sequences whose lengths can be seen. */
static void require_limits(OpCall *op, const TokenCall *call)
{
    const Operand *query = call->query, *key = call->key;
    const int64_t sequences = op_refused(op) ? 0 : sequence_count(call);
    op_require(op, call->most_sequences == 0 || sequences <= call->most_sequences, query->name, "batch", op->invalid,
               "%s is %s: there are %lld sequences, more than %lld", query->name, op_shape_text(op, query), (long long)sequences,
               (long long)call->most_sequences);
    for (int64_t s = 0; s < (call->most_sequences > 0 ? sequences : 0) && !op_refused(op); s++) {
        const int64_t rows = length_of(call, false, s), keys = length_of(call, true, s);
        op_require(op, rows <= call->most_rows, query->name, "rows", op->invalid, "%s is %s: a sequence has up to %lld rows",
                   query->name, op_shape_text(op, query), (long long)call->most_rows);
        op_require(op, keys < 0 || (keys >= call->least_keys && keys <= call->most_keys), key->name, "keys", op->invalid,
                   "%s is %s: a sequence has %lld to %lld keys", key->name, op_shape_text(op, key), (long long)call->least_keys,
                   (long long)call->most_keys);
        op_require(op, !call->fits || rows <= keys, key->name, "fewer", op->invalid,
                   "%s is %s: a sequence has fewer keys than rows", key->name, op_shape_text(op, key));
    }
}

static void require_pages(OpCall *op, const TokenCall *call)
{
    const int64_t size = op_size(call->key, 1);
    op_require(op, size % 16 == 0 && size <= MOST_PAGE, call->key->name, "page", op->invalid,
               "%s is %s: a page has a multiple of 16 keys, up to 1024", call->key->name, op_shape_text(op, call->key));
    op_require(op, op_given(call->pages), call->pages->name, "missing", op->missing, "%s is NULL, and the keys lie in pages",
               call->pages->name);
    op_require(op, op_refused(op) || (call->pages->view.rank == 2 && op_size(call->pages, 0) == sequence_count(call)),
               call->pages->name, "shape", op->invalid, "%s is %s: it has a row for each sequence", call->pages->name,
               op_shape_text(op, call->pages));
}

/* Lengths in tensors, of which only the shapes can be seen. */
static void require_length_tensors(OpCall *op, const TokenCall *call)
{
    const bool packed = is_packed(call->query_layout), ends = is_packed(call->key_layout) || is_paged(call->key_layout);
    require_lengths(op, call->row_lengths, call->row_lengths->name, packed,
                    packed && op_given(call->row_lengths) ? op_elements(call->row_lengths) : op_size(call->query, 0));
    op_require(op, op_refused(op) || sequence_count(call) > 0 || op_empty(call->query), call->row_lengths->name, "empty",
               op->invalid, "%s has no elements", call->row_lengths->name);
    require_lengths(op, call->key_lengths, call->key_lengths->name, ends, op_refused(op) ? 0 : sequence_count(call));
}

/* PyTorch's adapter passes the largest number of all. */
static bool is_far(const TokenCall *call, int64_t tokens)
{
    return call->far == 0 || tokens == call->far || tokens == INT64_MAX;
}

void op_require_tokens(OpCall *op, const TokenCall *call)
{
    const Operand *query = call->query, *key = call->key;
    const bool packed = is_packed(call->query_layout), paged = is_paged(call->key_layout);
    require_layouts(op, call);
    require_heads(op, call);
    op_require(op, op_refused(op) || packed || paged || op_size(key, 0) == op_size(query, 0), key->name, "batch", op->invalid,
               "%s is %s, %s is %s: not the same batches", key->name, op_shape_text(op, key), query->name,
               op_shape_text(op, query));
    if (call->listed) {
        require_list(op, call->row_list, call, query);
        require_list(op, call->key_list, call, key);
    } else {
        require_length_tensors(op, call);
    }
    require_limits(op, call);
    if (paged && !op_refused(op)) {
        require_pages(op, call);
    }
    op_require(op, (call->mode == 0 && !call->causal) || call->mode == CAUSAL, "sparseMode", "value", op->invalid,
               "sparseMode is %lld, %s", (long long)call->mode, call->causal ? "not 3" : "neither 0 nor 3");
    op_require(op, is_far(call, call->before), "preTokens", "value", op->invalid, "preTokens is %lld, not %lld",
               (long long)call->before, (long long)call->far);
    op_require(op, is_far(call, call->after), "nextTokens", "value", op->invalid, "nextTokens is %lld, not %lld",
               (long long)call->after, (long long)call->far);
}

Shape op_shape_token_heads(OpCall *op, const Operand *query)
{
    Shape shape = op_shape(query);
    shape.rank -= op_refused(op) ? 0 : 1;
    return shape;
}

Shape op_shape_selected_tokens(OpCall *op, const Operand *query, const Operand *key, int64_t count)
{
    Shape shape = op_shape(query);
    if (!op_refused(op)) {
        shape.sizes[shape.rank - 2] = op_size(key, -2);
        shape.sizes[shape.rank - 1] = count;
    }
    return shape;
}

Shape op_shape_token_statistics(OpCall *op, const Operand *query, const Operand *key)
{
    Shape shape = op_shape(query);
    if (!op_refused(op)) {
        shape.sizes[shape.rank - 1] = op_size(query, -2) / op_size(key, -2);
        shape.sizes[shape.rank - 2] = op_size(query, -3);
        shape.sizes[shape.rank - 3] = op_size(key, -2);
    }
    return shape;
}

static TokenLayout layout_of(const TokenCall *call)
{
    return (TokenLayout){.packed_rows = is_packed(call->query_layout), .packed_keys = is_packed(call->key_layout),
                         .paged = is_paged(call->key_layout), .causal = call->mode == CAUSAL};
}

static PlannedView read(const Operand *operand)
{
    return (PlannedView){op_given(operand) ? operand : NULL, VIEW_READ, NULL};
}

static PlannedView write(const Operand *operand)
{
    return (PlannedView){op_given(operand) ? operand : NULL, VIEW_WRITE, NULL};
}

/* A block table beside keys that lie elsewhere is not looked at. */
static PlannedView pages_of(const TokenCall *call)
{
    return read(is_paged(call->key_layout) ? call->pages : NULL);
}

/* ---- indexer ---- */

bool op_is_sparse_count(int64_t count)
{
    return (count >= 1 && count <= 2048) || (count % 1024 == 0 && count >= 3072 && count <= 8192);
}

aclnnStatus op_lightning_indexer(OpCall *op, const TokenCall *call, const Operand *weights, const Operand *indices,
                                 const Operand *values)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const TokenLayout layout = layout_of(call);
    const PlannedView views[] = {read(call->query), read(call->key), read(weights), read(call->row_lengths),
                                 read(call->key_lengths), pages_of(call), write(indices), write(values)};
    return op_plan_views(op, us_lightning_indexer, &layout, sizeof layout, sizeof views / sizeof *views, views);
}

aclnnStatus op_quantized_indexer(OpCall *op, const TokenCall *call, const Operand *weights, const Operand *query_scale,
                                 const Operand *key_scale, const Operand *indices)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const TokenLayout layout = layout_of(call);
    const PlannedView views[] = {read(call->query), read(call->key), read(weights), read(call->row_lengths),
                                 read(call->key_lengths), pages_of(call), write(indices), {NULL, VIEW_READ, NULL},
                                 read(query_scale), read(key_scale)};
    return op_plan_views(op, us_quantized_indexer, &layout, sizeof layout, sizeof views / sizeof *views, views);
}

/* ---- its gradients ---- */

enum { INDEXER_HEADS = 64, INDEXER_SELECTED = 2048 };

static void require_selection(OpCall *op, const TokenCall *call, const IndexerSlopes *of)
{
    const Shape with_heads = op_shape_selected_tokens(op, call->query, call->key, INDEXER_SELECTED);
    Shape without = with_heads;
    if (!op_refused(op)) {
        without.rank--;
        without.sizes[without.rank - 1] = INDEXER_SELECTED;
    }
    op_require_shape(op, of->indices, of->indices->view.rank == without.rank ? &without : &with_heads);
    op_require_same_shape(op, of->slopes, of->indices);
}

void op_require_indexer_gradient(OpCall *op, const TokenCall *call, const IndexerSlopes *of)
{
    op_require_tokens(op, call);
    op_require(op, op_refused(op) || op_size(call->query, -2) <= INDEXER_HEADS, "query", "heads", op->invalid,
               "query is %s: more than 64 heads", op_shape_text(op, call->query));
    require_selection(op, call, of);
    const Shape heads = op_shape_token_heads(op, call->query);
    op_require_shape(op, of->weights, &heads);
    op_require_same_shape(op, of->query_slopes, call->query);
    op_require_same_shape(op, of->key_slopes, call->key);
    op_require_same_shape(op, of->weight_slopes, of->weights);
}

aclnnStatus op_lightning_indexer_backward(OpCall *op, const TokenCall *call, const IndexerSlopes *of)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const TokenLayout layout = layout_of(call);
    const PlannedView views[] = {read(call->query), read(call->key), read(of->weights), read(call->row_lengths),
                                 read(call->key_lengths), read(of->indices), read(of->slopes), write(of->query_slopes),
                                 write(of->key_slopes), write(of->weight_slopes)};
    return op_plan_views(op, us_lightning_indexer_backward, &layout, sizeof layout, sizeof views / sizeof *views, views);
}

/* ---- what it learns from ---- */

static ListedTokens *list_tokens(OpCall *op, const TokenCall *call, double scale, size_t *size)
{
    const int64_t count = larger(call->row_list.count, call->key_list.count);
    *size = sizeof(ListedTokens) + 2 * (size_t)count * sizeof(int32_t);
    ListedTokens *listed = op_take(op, *size);
    if (listed == NULL) {
        return NULL;
    }
    *listed = (ListedTokens){.layout = layout_of(call), .scale = (float)scale, .sequences = (int32_t)count};
    for (int64_t s = 0; s < count; s++) {
        listed->lengths[s] = (int32_t)(call->row_list.count > 0 ? call->row_list.values[s] : op_size(call->query, 1));
        listed->lengths[count + s] = (int32_t)(call->key_list.count > 0 ? call->key_list.values[s] : op_size(call->key, 1));
    }
    return listed;
}

Shape op_shape_indexer_statistics(OpCall *op, const Operand *query, const Operand *key)
{
    Shape shape = op_shape_token_statistics(op, query, key);
    shape.rank -= op_refused(op) ? 0 : 1;
    return shape;
}

aclnnStatus op_indexer_statistics(OpCall *op, const TokenCall *call, const Operand *weights, const Operand *maximum,
                                  const Operand *sum)
{
    size_t size;
    const ListedTokens *listed = op_refused(op) || op_empty(call->query) ? NULL : list_tokens(op, call, 1, &size);
    if (listed == NULL) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {read(call->query), read(call->key), read(weights), write(maximum), write(sum)};
    return op_plan_views(op, us_indexer_statistics, listed, size, sizeof views / sizeof *views, views);
}

/* The tokens of another tensor, with heads of its own. */
static void require_heads_of(OpCall *op, const Operand *operand, const Operand *tokens, int64_t heads, int64_t depth)
{
    Shape shape = op_shape(tokens);
    if (op_refused(op) || !op_given(operand)) {
        return;
    }
    shape.sizes[shape.rank - 2] = heads;
    shape.sizes[shape.rank - 1] = depth;
    op_require_shape(op, operand, &shape);
}

/* Of powers of two. */
static bool is_one_of(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most && (number & (number - 1)) == 0;
}

static void require_attention_of(OpCall *op, const IndexerLoss *call)
{
    const TokenCall *tokens = &call->tokens;
    const int64_t heads = op_size(call->query, -2), key_heads = call->one_key ? 1 : heads;
    op_require(op, op_refused(op) || is_one_of(heads, 32, 128), "query", "heads", op->invalid,
               "query is %s: it has 32, 64 or 128 heads", op_shape_text(op, call->query));
    require_heads_of(op, call->query, tokens->query, heads, call->depth);
    require_heads_of(op, call->key, tokens->key, key_heads, call->depth);
    op_require(op, op_given(call->rotary_query) == op_given(call->rotary_key), "keyRope", "together", op->invalid,
               "keyRope and queryRope: one of them is NULL, the other is not");
    require_heads_of(op, call->rotary_query, tokens->query, heads, ROTARY_DEPTH);
    require_heads_of(op, call->rotary_key, tokens->key, key_heads, ROTARY_DEPTH);
    const Shape statistic = op_shape_token_statistics(op, call->query, call->key);
    op_require_shape(op, call->maximum, &statistic);
    op_require_shape(op, call->sum, &statistic);
}

void op_require_indexer_loss(OpCall *op, const IndexerLoss *call)
{
    const TokenCall *tokens = &call->tokens;
    op_require_tokens(op, tokens);
    op_require(op, op_refused(op) || is_one_of(op_size(tokens->query, -2), 8, 64), "queryIndex", "heads", op->invalid,
               "queryIndex is %s: it has 8, 16, 32 or 64 heads", op_shape_text(op, tokens->query));
    const Shape heads = op_shape_token_heads(op, tokens->query);
    op_require_shape(op, call->weights, &heads);
    if (call->indices != NULL) {
        const int64_t selected = op_size(call->indices, -1);
        op_require(op, selected % 1024 == 0 && selected > 0 && selected <= 8192, "sparseIndices", "count", op->invalid,
                   "sparseIndices is %s: a token selects 1024, 2048 … 8192", op_shape_text(op, call->indices));
        const Shape lines = op_shape_selected_tokens(op, tokens->query, tokens->key, selected);
        op_require_shape(op, call->indices, &lines);
    }
    require_attention_of(op, call);
    if (call->index_maximum != NULL) {
        const Shape statistic = op_shape_indexer_statistics(op, tokens->query, tokens->key);
        op_require_shape(op, call->index_maximum, &statistic);
        op_require_shape(op, call->index_sum, &statistic);
    }
    op_require_same_shape(op, call->query_slopes, tokens->query);
    op_require_same_shape(op, call->key_slopes, tokens->key);
    op_require_same_shape(op, call->weight_slopes, call->weights);
    const Shape one = op_shape_of(1, (const int64_t[]){1});
    op_require_shape(op, call->loss, &one);
}

aclnnStatus op_indexer_loss_backward(OpCall *op, const IndexerLoss *call)
{
    const TokenCall *tokens = &call->tokens;
    if (!op_refused(op) && op_empty(tokens->query)) {
        return op_fill_all(op, OPERANDS(call->key_slopes, call->loss), ZERO);
    }
    size_t size;
    const ListedTokens *listed = op_refused(op) ? NULL : list_tokens(op, tokens, call->scale, &size);
    if (listed == NULL) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {read(tokens->query), read(tokens->key), read(call->weights), read(call->indices),
                                 read(call->query), read(call->key), read(call->rotary_query), read(call->rotary_key),
                                 read(call->maximum), read(call->sum), read(call->index_maximum), read(call->index_sum),
                                 write(call->query_slopes), write(call->key_slopes), write(call->weight_slopes),
                                 write(call->loss)};
    return op_plan_views(op, us_indexer_loss_backward, listed, size, sizeof views / sizeof *views, views);
}

/* ---- attention ---- */

/* The other part of a head lies as the head itself, but for its size. */
static void require_part(OpCall *op, const Operand *part, const Operand *whole)
{
    if (!op_given(part) || op_refused(op)) {
        return;
    }
    Shape shape = op_shape(whole);
    shape.sizes[shape.rank - 1] = ROTARY_DEPTH;
    op_require_shape(op, part, &shape);
}

void op_require_sparse(OpCall *op, const SparseCall *call)
{
    const TokenCall *tokens = &call->tokens;
    op_require_tokens(op, tokens);
    const int64_t heads = op_size(tokens->query, -2);
    op_require(op, op_refused(op) || is_one_of(heads, 1, MOST_HEADS), "query", "heads", op->invalid,
               "query is %s: it has 1, 2, 4 … 128 heads", op_shape_text(op, tokens->query));
    if (op_given(call->value)) {
        op_require_same_shape(op, call->value, tokens->key);
    }
    require_part(op, call->rotary_query, tokens->query);
    require_part(op, call->rotary_key, tokens->key);
    op_require(op, op_refused(op) || op_size(call->indices, -1) > 0, "sparseIndices", "empty", op->invalid, "sparseIndices is %s",
               op_shape_text(op, call->indices));
    const Shape selected = op_shape_selected_tokens(op, tokens->query, tokens->key, op_size(call->indices, -1));
    op_require_shape(op, call->indices, &selected);
}

void op_require_sparse_block(OpCall *op, const SparseCall *call)
{
    const TokenCall *tokens = &call->tokens;
    op_require(op, is_one_of(call->block, 1, MOST_BLOCK), "sparseBlockSize", "value", op->invalid,
               "sparseBlockSize is %lld, not 1, 2, 4 … 128", (long long)call->block);
    op_require(op, op_refused(op) || !is_paged(tokens->key_layout) || op_size(tokens->key, 1) % call->block == 0,
               "sparseBlockSize", "page", op->invalid, "sparseBlockSize is %lld, key is %s: blocks do not fill a page",
               (long long)call->block, op_shape_text(op, tokens->key));
}

aclnnStatus op_sparse_attention(OpCall *op, const SparseCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const TokenCall *tokens = &call->tokens;
    const SparseAttention sparse = {.layout = layout_of(tokens), .scale = (float)call->scale, .block = call->block};
    const PlannedView views[] = {read(tokens->query), read(tokens->key), read(call->value), read(call->indices),
                                 read(tokens->row_lengths), read(tokens->key_lengths), pages_of(tokens),
                                 read(call->rotary_query), read(call->rotary_key), write(call->out), write(call->maximum),
                                 write(call->sum)};
    return op_plan_views(op, us_sparse_attention, &sparse, sizeof sparse, sizeof views / sizeof *views, views);
}

/* ---- its gradients ---- */

static void require_together(OpCall *op, const Operand *operand, const Operand *other)
{
    op_require(op, op_given(operand) == op_given(other), operand->name, "together", op->invalid,
               "%s and %s: one of them is NULL, the other is not", operand->name, other->name);
}

/* What a slope is given for, whose shape it has. */
static void require_slopes(OpCall *op, const Operand *slopes, const Operand *of)
{
    require_together(op, slopes, of);
    if (op_given(of)) {
        op_require_same_shape(op, slopes, of);
    }
}

void op_require_sparse_gradient(OpCall *op, const SparseCall *call)
{
    const TokenCall *tokens = &call->tokens;
    require_together(op, call->rotary_key, call->rotary_query);
    op_require_sparse(op, call);
    const int64_t selected = op_size(call->indices, -1);
    op_require(op, op_refused(op) || (selected % LEAST_SELECTED == 0 && selected <= MOST_SELECTED), "sparseIndices", "count",
               op->invalid, "sparseIndices is %s: a token selects 1024, 2048 … 8192", op_shape_text(op, call->indices));
    op_require(op, call->block == 1 || is_one_of(call->block, 8, 64), "sparseBlockSize", "value", op->invalid,
               "sparseBlockSize is %lld, not 1, 8, 16, 32 or 64", (long long)call->block);
    op_require_same_shape(op, call->slopes, tokens->query);
    op_require_same_shape(op, call->out, tokens->query);
    const Shape statistic = op_shape_token_statistics(op, tokens->query, tokens->key);
    op_require_shape(op, call->maximum, &statistic);
    op_require_shape(op, call->sum, &statistic);
    op_require_same_shape(op, call->query_slopes, tokens->query);
    op_require_same_shape(op, call->key_slopes, tokens->key);
    require_slopes(op, call->value_slopes, call->value);
    require_slopes(op, call->rotary_query_slopes, call->rotary_query);
    require_slopes(op, call->rotary_key_slopes, call->rotary_key);
}

aclnnStatus op_sparse_attention_backward(OpCall *op, const SparseCall *call)
{
    const TokenCall *tokens = &call->tokens;
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    if (op_empty(tokens->query)) {
        return op_fill_all(op, OPERANDS(call->key_slopes, call->value_slopes, call->rotary_key_slopes), ZERO);
    }
    const SparseAttention sparse = {.layout = layout_of(tokens), .scale = (float)call->scale, .block = call->block};
    const PlannedView views[] = {read(tokens->query), read(tokens->key), read(call->value), read(call->indices),
                                 read(tokens->row_lengths), read(tokens->key_lengths), {NULL, VIEW_READ, NULL},
                                 read(call->rotary_query), read(call->rotary_key), read(call->out), read(call->maximum),
                                 read(call->sum), read(call->slopes), write(call->query_slopes), write(call->key_slopes),
                                 write(call->value_slopes), write(call->rotary_query_slopes), write(call->rotary_key_slopes)};
    return op_plan_views(op, us_sparse_attention_backward, &sparse, sizeof sparse, sizeof views / sizeof *views, views);
}
