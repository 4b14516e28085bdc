#include "ascend/opapi/attention_blocks.h"

#include "ascend/common/op_memory.h"
#include "kernels/attention/attention.h"
#include "kernels/sizes.h"

enum { BLOCK = 128 };
#define FAR_TOKENS ((int64_t)1 << 40) /* beyond any sequence */

/* Axes of batch (-1: none), head, row and depth. */
typedef struct Axes {
    const char *name;
    int32_t rank, of[4];
} Axes;

static const Axes *axes_of(const char *layout)
{
    static const Axes known[] = {{"TND", 3, {-1, 1, 0, 2}}, {"BNSD", 4, {0, 1, 2, 3}}, {"BSND", 4, {0, 2, 1, 3}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(layout, known[i].name) == 0) {
            return &known[i];
        }
    }
    return NULL;
}

/* [batch, head, row, depth]; packed sequences share the first place of the first axis. */
static View by_axes(const Axes *axes, const View *view)
{
    View result = {.data = view->data, .dtype = view->dtype, .rank = 4};
    for (int32_t i = 0; i < 4; i++) {
        result.shape[i] = axes->of[i] < 0 ? 1 : view->shape[axes->of[i]];
        result.strides[i] = axes->of[i] < 0 ? 0 : view->strides[axes->of[i]];
    }
    return result;
}

static bool is_packed(const BlockCall *call)
{
    return axes_of(call->query_layout)->of[0] < 0;
}

static int64_t size_of(const BlockCall *call, const Operand *operand, int axis)
{
    return by_axes(axes_of(call->query_layout), &operand->view).shape[axis];
}

static int64_t sequence_count(const BlockCall *call)
{
    return is_packed(call) ? call->query_lengths.count : size_of(call, call->query, 0);
}

/* ---- checks ---- */

static void require_layouts(OpCall *op, const BlockCall *call)
{
    const Axes *rows = axes_of(call->query_layout), *keys = axes_of(call->key_layout);
    op_require(op, rows != NULL && (call->forward || rows->of[1] == 1), "qInputLayout", "value", op->invalid,
               "qInputLayout is %s, which the operator does not have", call->query_layout);
    op_require(op, keys != NULL && (call->forward || keys->of[1] == 1), "kvInputLayout", "value", op->invalid,
               "kvInputLayout is %s, which the operator does not have", call->key_layout);
    op_require(op, rows == keys, "kvInputLayout", "match", op->invalid,
               "kvInputLayout is %s, qInputLayout is %s: both are the same", call->key_layout, call->query_layout);
    if (!op_refused(op)) {
        op_require_rank(op, call->query, rows->rank, rows->rank);
        op_require_rank(op, call->key, rows->rank, rows->rank);
    }
}

static void require_heads(OpCall *op, const BlockCall *call)
{
    const int64_t depth = size_of(call, call->query, 3), heads = size_of(call, call->query, 1);
    const int64_t key_heads = size_of(call, call->key, 1);
    op_require(op, call->forward || !op_empty(call->query), "query", "empty", op->invalid, "query is %s",
               op_shape_text(op, call->query));
    op_require(op, call->forward || !op_empty(call->key), "key", "empty", op->invalid, "key is %s", op_shape_text(op, call->key));
    op_require(op, depth == 128 || (call->forward && depth == 64), "query", "depth", op->invalid,
               "query is %s: a head has %s numbers", op_shape_text(op, call->query), call->forward ? "64 or 128" : "128");
    op_require(op, size_of(call, call->key, 3) == depth && size_of(call, call->key, 0) == size_of(call, call->query, 0), "key",
               "shape", op->invalid, "key is %s, query is %s: other batches, or heads of another size",
               op_shape_text(op, call->key), op_shape_text(op, call->query));
    op_require(op, key_heads == call->key_heads, "numKeyValueHeads", "value", op->invalid, "numKeyValueHeads is %lld, key is %s",
               (long long)call->key_heads, op_shape_text(op, call->key));
    op_require(op, key_heads > 0 && (call->forward ? heads % key_heads == 0 : heads == key_heads), "key", "heads", op->invalid,
               "key is %s, query is %s: heads that do not fit together", op_shape_text(op, call->key),
               op_shape_text(op, call->query));
    op_require_same_shape(op, call->value, call->key);
}

static void require_lengths(OpCall *op, IntArguments lengths, const BlockCall *call, const Operand *of)
{
    const bool packed = is_packed(call);
    const int64_t room = size_of(call, of, 2);
    op_require(op, !packed || lengths.count > 0, lengths.name, "missing", op->missing, "%s is NULL, and the layout is TND",
               lengths.name);
    op_require(op, lengths.count == 0 || lengths.count == sequence_count(call), lengths.name, "length", op->invalid,
               "%s has %lld entries: there is one for each sequence", lengths.name, (long long)lengths.count);
    int64_t rest = room;
    bool fits = true;
    for (int64_t s = 0; s < lengths.count; s++) {
        fits = fits && lengths.values[s] >= 0 && lengths.values[s] <= rest;
        rest -= fits && packed ? lengths.values[s] : 0;
    }
    op_require(op, fits && (!packed || rest == 0), lengths.name, "values", op->invalid,
               "%s are not lengths of sequences, %s is %s: a length is 0 and more, and those of packed tokens make all of them",
               lengths.name, of->name, op_shape_text(op, of));
}

/* All of `room` where there are no lengths. */
static int64_t longest(IntArguments lengths, int64_t room)
{
    int64_t most = lengths.count > 0 ? 0 : room;
    for (int64_t s = 0; s < lengths.count; s++) {
        most = larger(most, lengths.values[s]);
    }
    return most;
}

static int64_t block_size(const BlockCall *call, int at)
{
    return call->shape.given ? call->shape.values[at] : BLOCK;
}

/* Blocks of the longest sequences, or of the room that there is for them. */
static bool has_blocks(const BlockCall *call, int64_t rows, int64_t keys)
{
    const View *mask = &call->mask->view;
    return mask->rank == 4 && mask->shape[0] == sequence_count(call) && mask->shape[1] == size_of(call, call->query, 1) &&
           mask->shape[2] == ceiling(rows, block_size(call, 0)) && mask->shape[3] == ceiling(keys, block_size(call, 1));
}

static void require_mask(OpCall *op, const BlockCall *call)
{
    op_require(op, op_given(call->mask), "blockSparseMaskOptional", "missing", op->missing,
               "blockSparseMaskOptional is NULL: the operator needs it");
    const IntArguments shape = call->shape;
    op_require(op, !shape.given || shape.count >= 2, shape.name, "length", op->invalid, "%s has %lld numbers: two sizes at least",
               shape.name, (long long)shape.count);
    const bool counts = op_refused(op) || !shape.given || (shape.values[0] > 0 && shape.values[1] > 0);
    op_require(op, counts && (op_refused(op) || !call->forward || block_size(call, 1) % BLOCK == 0), shape.name, "values",
               op->invalid, "%s: sizes of blocks are above 0%s", shape.name,
               call->forward ? ", that of keys a multiple of 128" : "");
    const int64_t rows = size_of(call, call->query, 2), keys = size_of(call, call->key, 2);
    op_require(op, op_refused(op) || (!is_packed(call) && has_blocks(call, rows, keys)) ||
                       has_blocks(call, longest(call->query_lengths, rows), longest(call->key_lengths, keys)),
               "blockSparseMaskOptional", "shape", op->invalid, "blockSparseMaskOptional is %s: not a number for each block",
               op_shape_text(op, call->mask));
}

void op_require_blocks(OpCall *op, const BlockCall *call)
{
    require_layouts(op, call);
    if (op_refused(op)) {
        return;
    }
    require_heads(op, call);
    require_lengths(op, call->query_lengths, call, call->query);
    require_lengths(op, call->key_lengths, call, call->key);
    const bool together = (call->query_lengths.count > 0) == (call->key_lengths.count > 0);
    op_require(op, together || !call->forward, call->key_lengths.name, "together", op->invalid,
               "%s and %s: one is NULL, the other is not", call->key_lengths.name, call->query_lengths.name);
    require_mask(op, call);
}

Shape op_shape_row_joints(OpCall *op, const Operand *query)
{
    Shape shape = op_shape(query);
    if (!op_refused(op)) {
        shape.sizes[shape.rank - 1] = 1;
    }
    return shape;
}

/* ---- plans ---- */

static int64_t length_of(IntArguments lengths, int64_t sequence, int64_t room)
{
    return lengths.count > 0 ? lengths.values[sequence] : room;
}

static Attention *describe(OpCall *op, const BlockCall *call, size_t *size)
{
    const int64_t sequences = sequence_count(call), rows = size_of(call, call->query, 2), keys = size_of(call, call->key, 2);
    *size = sizeof(Attention) + (size_t)sequences * sizeof(AttentionSequence);
    Attention *attention = op_take(op, *size);
    if (attention == NULL) {
        return NULL;
    }
    const int64_t depth = size_of(call, call->query, 3);
    *attention = (Attention){.sizes = {size_of(call, call->query, 1), call->key_heads, depth, depth, sequences},
                             .scale = (float)call->scale, .keep = 1, .joins = true, .copies = 1, .mask_rows = block_size(call, 0),
                             .mask_keys = block_size(call, 1)};
    int64_t row = 0, key = 0, before = 0;
    for (int64_t s = 0; s < sequences; s++) {
        const int64_t seen = length_of(call->query_lengths, s, rows), seen_keys = length_of(call->key_lengths, s, keys);
        const int64_t count = is_packed(call) ? seen : rows;
        attention->of[s] = (AttentionSequence){.query_begin = row, .query_count = count, .key_begin = key, .key_count = seen_keys,
                                               .low = -FAR_TOKENS, .high = FAR_TOKENS, .seen_rows = seen, .rows_before = before};
        before += count;
        row += is_packed(call) ? seen : 0;
        key += is_packed(call) ? seen_keys : 0;
    }
    return attention;
}

static void plan_heads(const BlockCall *call, PlannedView *planned, View *views, int at, const Operand *operand,
                       ViewAccess access)
{
    if (operand != NULL) {
        views[at] = by_axes(axes_of(call->query_layout), &operand->view);
        planned[at] = (PlannedView){operand, access, &views[at]};
    }
}

enum { VIEWS = LISTED };

static aclnnStatus plan(OpCall *op, const BlockCall *call, Kernel *kernel, int32_t count)
{
    PlannedView planned[VIEWS];
    View views[VIEWS];
    size_t size;
    const Attention *attention = describe(op, call, &size);
    if (attention == NULL) {
        return op_plan_nothing(op);
    }
    for (int32_t i = 0; i < count; i++) {
        planned[i] = (PlannedView){NULL, VIEW_READ, NULL};
    }
    const ViewAccess results = call->slopes == NULL ? VIEW_WRITE : VIEW_READ;
    plan_heads(call, planned, views, QUERY, call->query, VIEW_READ);
    plan_heads(call, planned, views, KEY, call->key, VIEW_READ);
    plan_heads(call, planned, views, VALUE, call->value, VIEW_READ);
    planned[MASK] = (PlannedView){call->mask, VIEW_READ, NULL};
    plan_heads(call, planned, views, OUT, call->out, results);
    plan_heads(call, planned, views, MAXIMUM, call->joint, results);
    plan_heads(call, planned, views, OUT_GRADIENT, call->slopes, VIEW_READ);
    plan_heads(call, planned, views, QUERY_GRADIENT, call->query_slopes, VIEW_WRITE);
    plan_heads(call, planned, views, KEY_GRADIENT, call->key_slopes, VIEW_WRITE);
    plan_heads(call, planned, views, VALUE_GRADIENT, call->value_slopes, VIEW_WRITE);
    return op_plan_views(op, kernel, attention, size, count, planned);
}

aclnnStatus op_block_attention(OpCall *op, const BlockCall *call)
{
    return op_refused(op) || op_empty(call->query) ? op_plan_nothing(op) : plan(op, call, us_attention, VIEWS);
}

aclnnStatus op_block_attention_backward(OpCall *op, const BlockCall *call)
{
    return op_refused(op) ? op_plan_nothing(op) : plan(op, call, us_attention_backward, VALUE_GRADIENT + 1);
}
