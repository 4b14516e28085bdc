/* Attention to selected blocks: src_c/kernels/attention/selected.c. */
#include "ascend/common/op_memory.h"
#include "ascend/opapi/attention_parts.h"
#include "kernels/attention/selected.h"

enum { WIDE = 192, NARROW = 128, MOST_HEADS = 128, MOST_SHARING = 32, MOST_BLOCK = 128, MOST_BLOCKS = 128,
       ALL_SELECTED = 8192, MOST_SEQUENCES = 1024, COPIES = 8 };

static bool has_depths(const SelectedCall *call)
{
    const int64_t depth = op_size(call->query, 2), value_depth = op_size(call->value, 2);
    const bool either = (depth == WIDE || depth == NARROW) && (value_depth == WIDE || value_depth == NARROW);
    return (call->forward ? depth == WIDE && value_depth == NARROW : either) && depth == op_size(call->key, 2) &&
           depth >= value_depth;
}

static void require_heads(OpCall *op, const SelectedCall *call)
{
    const int64_t heads = op_size(call->query, 1), key_heads = op_size(call->key, 1);
    op_require(op, heads == call->heads && heads >= 1 && heads <= MOST_HEADS, "headNum", "value", op->invalid,
               "headNum is %lld, query is %s: it has 1 to 128 heads", (long long)call->heads, op_shape_text(op, call->query));
    const bool shared = key_heads > 0 && heads % key_heads == 0 && heads / key_heads <= MOST_SHARING;
    op_require(op, shared, "key", "heads", op->invalid, "key is %s, query is %s: 1 to 32 heads of the query share one",
               op_shape_text(op, call->key), op_shape_text(op, call->query));
    op_require(op, op_size(call->value, 0) == op_size(call->key, 0) && op_size(call->value, 1) == key_heads, "value", "shape",
               op->invalid, "value is %s, key is %s", op_shape_text(op, call->value), op_shape_text(op, call->key));
    op_require(op, has_depths(call), "query", "depth", op->invalid, "query is %s, key is %s, value is %s",
               op_shape_text(op, call->query), op_shape_text(op, call->key), op_shape_text(op, call->value));
}

/* Every sequence has room for all blocks of a token, and its keys make whole blocks. */
static void require_selection(OpCall *op, const SelectedCall *call)
{
    op_require(op, call->block % 16 == 0 && call->block >= 16 && call->block <= MOST_BLOCK, "selectedBlockSize", "value",
               op->invalid, "selectedBlockSize is %lld, not a multiple of 16 up to 128", (long long)call->block);
    op_require(op, op_refused(op) || (call->count >= 1 && call->count <= MOST_BLOCKS && call->count * call->block < ALL_SELECTED),
               "selectedBlockCount", "value", op->invalid,
               "selectedBlockCount is %lld, blocks have %lld keys: 1 to 128 blocks, less than 8192 keys",
               (long long)call->count, (long long)call->block);
    const Shape selected = op_shape_of(3, (const int64_t[]){op_size(call->query, 0), op_size(call->key, 1), call->count});
    op_require_shape(op, call->blocks, &selected);
    op_require_ends(op, call->query_ends, op_size(call->query, 0));
    op_require_ends(op, call->key_ends, op_size(call->key, 0));
    const int64_t sequences = call->key_ends.count;
    op_require(op, sequences == call->query_ends.count && (!call->forward || sequences <= MOST_SEQUENCES), call->key_ends.name,
               "length", op->invalid, "%s has %lld entries, %s %lld: not as many, or more than 1024", call->key_ends.name,
               (long long)sequences, call->query_ends.name, (long long)call->query_ends.count);
    for (int64_t s = 0; s < sequences && !op_refused(op); s++) {
        const int64_t keys = call->key_ends.values[s] - begin_of(call->key_ends, s);
        op_require(op, keys >= call->count * call->block && keys % call->block == 0, call->key_ends.name, "blocks", op->invalid,
                   "sequence %lld has %lld keys: not whole blocks of %lld, at least %lld of them", (long long)s, (long long)keys,
                   (long long)call->block, (long long)call->count);
    }
}

static void require_mask(OpCall *op, const SelectedCall *call)
{
    op_require(op, call->mode == MODE_DEFAULT || call->mode == MODE_LEFT_UP, "sparseMode", "value", op->invalid,
               "sparseMode is %lld, neither 0 nor 2", (long long)call->mode);
    if (op_given(call->mask) && !op_refused(op)) {
        const bool triangle = call->mode == MODE_LEFT_UP;
        const int64_t rows = triangle ? TRIANGLE : longest_part(call->query_ends);
        const int64_t keys = triangle ? TRIANGLE : longest_part(call->key_ends);
        const Shape scores = op_shape_of(2, (const int64_t[]){rows, keys});
        op_require_shape(op, call->mask, &scores);
    }
}

void op_require_selected(OpCall *op, const SelectedCall *call)
{
    op_require(op, strcmp(call->layout, "TND") == 0, "inputLayout", "value", op->invalid, "inputLayout is %s, not TND",
               call->layout);
    require_heads(op, call);
    require_selection(op, call);
    require_mask(op, call);
    const Shape out = op_shape_of(3, (const int64_t[]){op_size(call->query, 0), call->heads, op_size(call->value, 2)});
    const Shape statistic = op_shape_of(3, (const int64_t[]){op_size(call->query, 0), call->heads, COPIES});
    op_require_shape(op, call->out, &out);
    op_require_shape(op, call->maximum, &statistic);
    op_require_shape(op, call->sum, &statistic);
}

static Selected *describe(OpCall *op, const SelectedCall *call, size_t *size)
{
    const int64_t sequences = call->query_ends.count;
    *size = sizeof(Selected) + 2 * (size_t)sequences * sizeof(int64_t);
    Selected *selected = op_take(op, *size);
    if (selected == NULL) {
        return NULL;
    }
    *selected = (Selected){.scale = (float)call->scale, .causal = op_given(call->mask) && call->mode == MODE_LEFT_UP,
                           .block = call->block, .sequences = sequences};
    memcpy(selected->ends, call->query_ends.values, (size_t)sequences * sizeof(int64_t));
    memcpy(selected->ends + sequences, call->key_ends.values, (size_t)sequences * sizeof(int64_t));
    return selected;
}

static PlannedView read(const Operand *operand)
{
    return (PlannedView){op_given(operand) ? operand : NULL, VIEW_READ, NULL};
}

static PlannedView write(const Operand *operand)
{
    return (PlannedView){operand, VIEW_WRITE, NULL};
}

/* A triangle decides alone: its mask is not read. */
static PlannedView mask_of(const SelectedCall *call, const Selected *selected)
{
    return read(selected->causal ? NULL : call->mask);
}

aclnnStatus op_selected_attention(OpCall *op, const SelectedCall *call)
{
    size_t size;
    const Selected *selected = describe(op, call, &size);
    if (selected == NULL) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {read(call->query), read(call->key), read(call->value), read(call->blocks),
                                 mask_of(call, selected), write(call->out), write(call->maximum), write(call->sum)};
    return op_plan_views(op, us_selected_attention, selected, size, 8, views);
}

aclnnStatus op_selected_attention_backward(OpCall *op, const SelectedCall *call)
{
    size_t size;
    const Selected *selected = describe(op, call, &size);
    if (selected == NULL) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {read(call->query), read(call->key), read(call->value), read(call->blocks),
                                 mask_of(call, selected), read(call->out), read(call->maximum), read(call->sum),
                                 read(call->slopes), write(call->query_slopes), write(call->key_slopes),
                                 write(call->value_slopes)};
    return op_plan_views(op, us_selected_attention_backward, selected, size, 12, views);
}

/* ---- in pages ---- */

enum { PAGED_SHARING = 16, PAGED_HEADS = 256, PAGED_SEQUENCES = 3072, PAGED_ROWS = 4 };

static bool is_flat(const PagedSelection *call)
{
    return strcmp(call->layout, "TND") == 0;
}

static bool has_joint_heads(const PagedSelection *call)
{
    return strcmp(call->layout, "BSH") == 0;
}

static int64_t paged_sequences(const PagedSelection *call)
{
    return op_size(call->pages, 0);
}

/* Rows of a sequence in the query, where they are not packed. */
static int64_t rows_of_each(const PagedSelection *call)
{
    return is_flat(call) ? 1 : op_size(call->query, 1);
}

static int64_t rows_of(const PagedSelection *call, int64_t sequence)
{
    return call->rows.count > 0 ? call->rows.values[sequence] : rows_of_each(call);
}

/* The query's axes in front of its heads, and these. */
static Shape with_rows(const PagedSelection *call, int32_t count, const int64_t *sizes)
{
    int64_t all[4] = {op_size(call->query, 0), is_flat(call) ? 0 : op_size(call->query, 1)};
    const int32_t axes = is_flat(call) ? 1 : 2;
    memcpy(all + axes, sizes, (size_t)count * sizeof *all);
    return op_shape_of(axes + count, all);
}

static Shape of_heads(const PagedSelection *call, int64_t depth)
{
    return has_joint_heads(call) ? with_rows(call, 1, (const int64_t[]){call->heads * depth})
                                 : with_rows(call, 2, (const int64_t[]){call->heads, depth});
}

/* Sequences of one token may leave its axis out. */
static Shape of_blocks(const PagedSelection *call)
{
    const int64_t sizes[] = {op_size(call->query, 0), call->key_heads, call->count};
    const bool short_form = rows_of_each(call) == 1 && call->blocks->view.rank == 3;
    return short_form ? op_shape_of(3, sizes) : with_rows(call, 2, sizes + 1);
}

static void require_pages(OpCall *op, const PagedSelection *call, const Operand *keys, int64_t depth)
{
    const bool joint = keys->view.rank == 3;
    const int64_t all[] = {op_size(call->key, 0), call->page, joint ? call->key_heads * depth : call->key_heads, depth};
    const Shape shape = op_shape_of(joint ? 3 : 4, all);
    op_require_shape(op, keys, &shape);
}

static void require_paged_lengths(OpCall *op, const PagedSelection *call)
{
    const int64_t sequences = paged_sequences(call), columns = op_size(call->pages, 1);
    int64_t longest = 0, packed = 0, keys = 0;
    bool fits = call->lengths.count == sequences;
    for (int64_t s = 0; s < sequences && fits; s++) {
        const int64_t length = call->lengths.values[s];
        fits = length >= 0 && (length == 0 || (length - 1) / call->page < columns) &&
               !__builtin_add_overflow(keys, length, &keys);
        longest = fits && length > longest ? length : longest;
    }
    op_require(op, fits, call->lengths.name, "values", op->invalid,
               "%s has %lld entries for %lld sequences, or one that their %lld pages of %lld keys have no room for",
               call->lengths.name, (long long)call->lengths.count, (long long)sequences, (long long)columns,
               (long long)call->page);
    fits = call->rows.count == 0 || call->rows.count == sequences;
    bool enough = true, several = false; /* keys for the tokens of each sequence; tokens in one */
    for (int64_t s = 0; s < sequences && fits && !op_refused(op); s++) {
        const int64_t rows = rows_of(call, s);
        fits = rows >= 1 && rows <= (is_flat(call) ? PAGED_ROWS : rows_of_each(call));
        enough = enough && rows <= call->lengths.values[s];
        several = several || rows > 1;
        packed += rows;
    }
    fits = fits && (enough || !several) && (!is_flat(call) || packed == op_size(call->query, 0));
    op_require(op, fits, call->rows.name, "values", op->invalid,
               "%s has %lld entries for %lld sequences, or they do not have so many tokens, query being %s", call->rows.name,
               (long long)call->rows.count, (long long)sequences, op_shape_text(op, call->query));
    const int64_t most = longest / call->block + (longest % call->block > 0);
    op_require(op, call->count >= 1 && call->count <= most, "selectBlockCount", "value", op->invalid,
               "selectBlockCount is %lld, blocks have %lld keys: the longest sequence has %lld", (long long)call->count,
               (long long)call->block, (long long)longest);
}

void op_require_paged_selection(OpCall *op, const PagedSelection *call)
{
    const bool shared = call->heads > 0 && call->key_heads > 0 && call->key_heads <= PAGED_HEADS &&
                        call->heads % call->key_heads == 0 && call->heads / call->key_heads <= PAGED_SHARING;
    op_require(op, shared, "numKeyValueHeads", "value", op->invalid,
               "numKeyValueHeads is %lld, numHeads %lld: up to 256, which up to 16 heads share each", (long long)call->key_heads,
               (long long)call->heads);
    op_require(op, call->block % 16 == 0 && call->block >= 16 && call->block <= MOST_BLOCK, "selectBlockSize", "value",
               op->invalid, "selectBlockSize is %lld, not a multiple of 16 up to 128", (long long)call->block);
    op_require(op, call->page == 64 || call->page == 128, "pageBlockSize", "value", op->invalid,
               "pageBlockSize is %lld, neither 64 nor 128", (long long)call->page);
    const int32_t rank = is_flat(call) || has_joint_heads(call) ? 3 : 4;
    op_require_rank(op, call->query, rank, rank);
    if (op_refused(op)) {
        return;
    }
    const Shape query = of_heads(call, WIDE), out = of_heads(call, NARROW);
    const Shape blocks = of_blocks(call);
    op_require_shape(op, call->query, &query);
    require_pages(op, call, call->key, WIDE);
    require_pages(op, call, call->value, NARROW);
    const int64_t sequences = paged_sequences(call);
    op_require(op, sequences <= PAGED_SEQUENCES && (is_flat(call) || sequences == op_size(call->query, 0)), call->pages->name,
               "sequences", op->invalid, "%s is %s, query is %s: up to 3072 sequences, the same ones", call->pages->name,
               op_shape_text(op, call->pages), op_shape_text(op, call->query));
    op_require(op, is_flat(call) || op_size(call->query, 1) <= PAGED_ROWS, "query", "tokens", op->invalid,
               "query is %s: sequences have up to 4 tokens", op_shape_text(op, call->query));
    if (!op_refused(op)) {
        require_paged_lengths(op, call);
        op_require_shape(op, call->blocks, &blocks);
        op_require_shape(op, call->out, &out);
    }
}

/* The last axis as [heads, depth], where it is joint. */
static View apart(const Operand *operand, bool joint, int64_t heads)
{
    View view = operand->view;
    if (joint) {
        const int64_t depth = view.shape[2] / heads, step = view.strides[2];
        view.rank = 4;
        view.shape[2] = heads;
        view.shape[3] = depth;
        view.strides[2] = depth * step;
        view.strides[3] = step;
    }
    return view;
}

aclnnStatus op_paged_selection(OpCall *op, const PagedSelection *call)
{
    const int64_t sequences = op_refused(op) ? 0 : paged_sequences(call);
    const size_t size = sizeof(Selected) + 3 * (size_t)sequences * sizeof(int64_t);
    Selected *selected = sequences > 0 ? op_take(op, size) : NULL;
    if (selected == NULL) {
        return op_plan_nothing(op);
    }
    *selected = (Selected){.scale = (float)call->scale, .block = call->block, .sequences = sequences};
    int64_t row = 0, key = 0;
    for (int64_t s = 0; s < sequences; s++) {
        row += is_flat(call) ? rows_of(call, s) : rows_of_each(call);
        key += call->lengths.values[s];
        selected->ends[s] = row;
        selected->ends[sequences + s] = key;
        selected->ends[2 * sequences + s] = rows_of(call, s);
    }
    const View query = apart(call->query, has_joint_heads(call), call->heads);
    const View out = apart(call->out, has_joint_heads(call), call->heads);
    const View keys = apart(call->key, call->key->view.rank == 3, call->key_heads);
    const View values = apart(call->value, call->value->view.rank == 3, call->key_heads);
    const PlannedView absent = {NULL, VIEW_READ, NULL};
    const PlannedView views[] = {{call->query, VIEW_READ, &query}, {call->key, VIEW_READ, &keys},
                                 {call->value, VIEW_READ, &values}, read(call->blocks), absent,
                                 {call->out, VIEW_WRITE, &out}, absent, absent, read(call->pages)};
    return op_plan_views(op, us_selected_attention_in_pages, selected, size, 9, views);
}
