/* Attention: the pages for inference, with pages of keys, rows that are shared, and rotary parts. */
#include "ascend/opapi/attention_parts.h"

enum { BLOCK_LIMIT = 512, BLOCK_OF_TOKENS = 16, BLOCK_OF_BYTES = 32, BLOCK_OF_ROWS = 128, WIDTH_LIMIT = 65535 };
enum { RATIO_LIMIT = 64, LATENT_RATIO_LIMIT = 128, LIST_LIMIT = 256, UNALIGNED_BATCHES = 128, ALIGNED_BYTES = 32 };
enum { LATENT_DEPTH = 512, PART_DEPTH = 128, JOINT_DEPTH = 192, HALF_DEPTH = 64, DEPTH_UNIT = 16, DEEPEST_OWN = 256 };

const Operand *op_first(OpCall *op, Operands list)
{
    op_require(op, list.count > 0, list.name, "length", op->invalid, "%s has no tensors", list.name);
    return list.count > 0 ? list.items[0] : NULL;
}

bool op_is_token(OpCall *op, const Operand *query, const char *name)
{
    const Layout *layout = layout_of(&(AttentionCall){.layout = name, .infers = true});
    return !op_refused(op) && layout != NULL && query->view.rank == layout->rank && query->view.shape[layout->row] == 1;
}

/* Each of them is 0 to the size; one, or one for every batch and maybe more, which are not looked at. */
static void require_lengths(OpCall *op, IntArguments lengths, int64_t batches, int64_t size)
{
    bool fits = lengths.count <= 1 || lengths.count >= batches;
    const int64_t used = lengths.count <= 1 ? lengths.count : batches;
    for (int64_t i = 0; fits && i < used; i++) {
        fits = lengths.values[i] >= 0 && lengths.values[i] <= size;
    }
    op_require(op, fits, lengths.name, "values", op->invalid,
               "%s has %lld entries: one or %lld of 0 to %lld each are needed", lengths.name, (long long)lengths.count,
               (long long)batches, (long long)size);
}

static bool are_alike_but(const View *a, const View *b, int32_t axis)
{
    bool alike = a->rank == b->rank && a->dtype == b->dtype;
    for (int32_t i = 0; alike && i < a->rank; i++) {
        alike = i == axis || a->shape[i] == b->shape[i];
    }
    return alike;
}

/* One tensor, or one for every batch that differs from the others in its rows only. */
static void require_lists(OpCall *op, const AttentionCall *call)
{
    const Operands keys = call->keys, values = call->values;
    if (op_refused(op) || keys.count == 0) {
        return;
    }
    const Layout *layout = layout_of(call);
    const int64_t batches = call->packed ? 1 : call->query->view.shape[layout->batch];
    op_require(op, keys.count == 1 || (keys.count == batches && keys.count <= LIST_LIMIT && !op_given(call->pages)),
               keys.name, "count", op->invalid, "%s has %d tensors, at most %d; there are %lld batches%s", keys.name,
               (int)keys.count, LIST_LIMIT, (long long)batches, op_given(call->pages) ? ", and pages" : "");
    op_require(op, values.count == keys.count, values.name, "count", op->invalid, "%s has %d tensors, %s has %d",
               values.name, (int)values.count, keys.name, (int)keys.count);
    for (int32_t i = 0; i < keys.count && !op_refused(op); i++) {
        op_require_packed_rows(op, keys.items[i]);
        op_require_packed_rows(op, values.items[i]);
    }
    for (int32_t i = 1; i < keys.count && !op_refused(op); i++) {
        const View *key = &keys.items[i]->view, *value = &values.items[i]->view;
        op_require(op, are_alike_but(key, &call->key->view, layout->row), keys.name, "alike", op->invalid,
                   "%s[%d] is %s, %s[0] is %s: they may differ in their rows only", keys.name, (int)i,
                   op_shape_text(op, keys.items[i]), keys.name, op_shape_text(op, call->key));
        op_require(op, are_alike_but(value, &call->value->view, layout->row) &&
                           value->shape[layout->row] == key->shape[layout->row],
                   values.name, "alike", op->invalid, "%s[%d] is %s, %s[%d] is %s", values.name, (int)i,
                   op_shape_text(op, values.items[i]), keys.name, (int)i, op_shape_text(op, keys.items[i]));
    }
}

static bool is_blocked(const Operand *keys)
{
    return op_given(keys) && keys->blocks != NULL;
}

/* Pages in blocks are for heads of 512 with rotary parts, and for all of them. */
static void require_blocks(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const int blocked = is_blocked(call->key) + is_blocked(call->value) + is_blocked(call->rotary_key);
    const bool fits = blocked == 3 && op_given(call->pages) && of->query.shape[3] == LATENT_DEPTH &&
                      of->key.shape[2] == BLOCK_OF_ROWS && call->key->dtype == call->query->dtype &&
                      strncmp(call->layout, "BNSD", 4) != 0;
    op_require(op, blocked == 0 || fits, call->key->name, "blocks", op->invalid,
               "%s is %s in blocks, in layout %.16s: they are pages of %d, of keys, values and rotary keys alike, for "
               "heads of %d and not for BNSD",
               call->key->name, op_shape_text(op, call->key), call->layout, BLOCK_OF_ROWS, LATENT_DEPTH);
}

static void require_pages(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op) || !op_given(call->pages)) {
        return;
    }
    const int64_t size = of->key.shape[2], batches = sequence_count(call, of);
    const bool small = of->query.shape[2] == 1 || of->query.shape[3] == LATENT_DEPTH;
    const int64_t unit = !small ? BLOCK_OF_ROWS : has_integer_keys(call) ? BLOCK_OF_BYTES : BLOCK_OF_TOKENS;
    op_require(op, call->key->view.rank == 3 || is_blocked(call->key) || layout_of(call)->head == 1 || call->packed,
               call->key->name, "pages", op->invalid, "%s is %s: pages by heads are for a query of BNSD", call->key->name,
               op_shape_text(op, call->key));
    op_require(op, call->key->view.rank == 4 || call->key->view.shape[2] <= WIDTH_LIMIT, call->key->name, "width",
               op->invalid, "%s is %s: pages by rows are at most %d wide", call->key->name,
               op_shape_text(op, call->key), WIDTH_LIMIT);
    op_require(op, call->block_size == size && size > 0 && size <= BLOCK_LIMIT && size % unit == 0, "blockSize",
               "value", op->invalid, "blockSize is %lld, %s is %s: a page has a multiple of %lld keys, at most %d",
               (long long)call->block_size, call->key->name, op_shape_text(op, call->key), (long long)unit,
               BLOCK_LIMIT);
    op_require(op, call->pages->view.rank == 2 && has_size(&call->pages->view, 0, batches), call->pages->name,
               "shape", op->invalid, "%s is %s; there are %lld batches", call->pages->name,
               op_shape_text(op, call->pages), (long long)batches);
    op_require(op, call->key_lengths.count > 0, call->key_lengths.name, "pages", op->invalid,
               "%s is needed with pages", call->key_lengths.name);
}

/* The shape of `whole`, but for the depth. */
static bool is_rotary(const AttentionCall *call, const Layout *layout, const Operand *part, const Operand *whole,
                      int64_t heads)
{
    if (part->view.rank != layout->rank || whole->view.rank != layout->rank) {
        return false;
    }
    View a = by_heads(layout, &part->view, heads), b = by_heads(layout, &whole->view, heads);
    const bool fits = a.shape[3] == ROTARY_DEPTH && (layout->head >= 0 || part->view.shape[2] == heads * ROTARY_DEPTH);
    a.shape[3] = b.shape[3];
    return fits && us_view_same_shape(&a, &b) && part->dtype == call->query->dtype;
}

/* Parts with the rotary embedding (V3 on), for query heads of 512 with keys in pages, or of 128 packed. */
static void require_rotary(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op) || !call->newest) {
        return;
    }
    const Operand *query = call->rotary_query, *key = call->rotary_key;
    op_require(op, op_given(query) == op_given(key), query->name, "pair", op->invalid, "%s and %s are given together",
               query->name, key->name);
    const int64_t depth = of->query.shape[3], heads = of->key.shape[1];
    const bool given = op_given(query) && op_given(key), latent = depth == LATENT_DEPTH;
    const bool fits = latent ? op_given(call->pages) && heads == 1 && of->query.shape[2] > 0
                             : depth == PART_DEPTH && call->packed;
    op_require(op, !given || fits, call->query->name, "rotary", op->invalid,
               "%s is %s, %s is %s: with rotary parts heads have 512 numbers, of one key head and with pages, or 128 "
               "with packed tokens",
               call->query->name, op_shape_text(op, call->query), call->key->name, op_shape_text(op, call->key));
    const bool turned = strstr(call->layout, "_N") != NULL;
    op_require(op, !turned || (given && latent), "inputLayout", "rotary", op->invalid,
               "inputLayout is %.16s: it is for rotary parts and heads of 512", call->layout);
    if (given && !op_refused(op)) {
        op_require(op, is_rotary(call, layout_of(call), query, call->query, call->heads), query->name, "shape",
                   op->invalid, "%s is %s, %s is %s: it has 64 numbers for each head, and its type", query->name,
                   op_shape_text(op, query), call->query->name, op_shape_text(op, call->query));
        op_require(op, is_rotary(call, key_layout(call), key, call->key, heads), key->name, "shape", op->invalid,
                   "%s is %s, %s is %s: it has 64 numbers for each head, and its type", key->name,
                   op_shape_text(op, key), call->key->name, op_shape_text(op, call->key));
    }
}

static bool are_packed_depths(const AttentionCall *call, const Operand4 *of)
{
    const int64_t depth = of->query.shape[3], value = of->value.shape[3], heads = call->heads;
    if (call->prompts) {
        return depth == JOINT_DEPTH && (value == PART_DEPTH || value == JOINT_DEPTH) && of->key.shape[1] == heads &&
               heads >= 8 && heads <= 128 && (heads & (heads - 1)) == 0;
    }
    if (depth == LATENT_DEPTH) {
        return op_given(call->rotary_query) && value == depth && strcmp(call->layout, "NTD_TND") != 0;
    }
    const bool plain = strcmp(call->layout, "TND") == 0 && !op_given(call->rotary_query);
    const bool own = plain && value == depth && depth <= DEEPEST_OWN && depth % DEPTH_UNIT == 0;
    return own || (value == PART_DEPTH && (depth == PART_DEPTH || depth == JOINT_DEPTH));
}

/* 3 or 4 with a mask, but one row of heads of 512 has no 3, and these have 4 in the newest version alone. */
static void require_packed_mode(OpCall *op, const AttentionCall *call, bool latent)
{
    const bool band = latent ? call->latent_band : !call->prompts, triangle = !(latent && call->token);
    const char *with = triangle ? band ? ", 3 or 4 with one" : ", 3 with one"
                       : band   ? ", 4 with one"
                                : ", and one row has none";
    op_require(op, op_given(call->mask) ? (call->mode == MODE_RIGHT_DOWN && triangle) || (call->mode == MODE_BAND && band)
                                        : call->mode == MODE_DEFAULT,
               "sparseMode", "packed", op->invalid, "sparseMode is %lld %s a mask: it is 0 without one%s",
               (long long)call->mode, op_given(call->mask) ? "with" : "without", with);
}

/* What packed tokens, and heads of 512 with rotary parts, are made for. */
static void require_packed(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const bool latent = call->newest && op_given(call->rotary_query) && of->query.shape[3] == LATENT_DEPTH;
    if (op_refused(op) || (!call->packed && !latent)) {
        return;
    }
    op_require(op, !call->packed || (are_packed_depths(call, of) &&
                                     (!call->prompts || call->query->dtype == ACL_BF16)),
               call->query->name, "packed", op->invalid,
               "%s is %s of %s, %s is %s: packed heads have %s", call->query->name, op_shape_text(op, call->query),
               acl_dtype_name(call->query->dtype), call->value->name, op_shape_text(op, call->value),
               call->prompts ? "192, values 128 or 192, of ACL_BF16, 8 to 128 of them, as many as the keys"
                             : "128, or 192 and values of 128, or in TND a multiple of 16 up to 256, or 512 with rotary parts");
    require_packed_mode(op, call, latent);
    op_require(op, !op_given(call->shift) && !is_listed(call) && !op_given(call->out_scale) &&
                       !has_integer_keys(call),
               "inputLayout", "partners", op->invalid,
               "inputLayout is %.16s, heads have %lld: neither a shift, nor a list of keys, nor integers",
               call->layout, (long long)of->query.shape[3]);
}

/* Rows of every batch: [1, …] with heads, head size and type of its own ones. */
static bool is_shared(const AttentionCall *call, const Operand *shared, const Operand *own)
{
    const Layout *layout = layout_of(call);
    if (shared->view.rank != layout->rank) {
        return false;
    }
    View view = own->view;
    view.shape[layout->batch] = 1;
    return are_alike_but(&shared->view, &view, layout->row);
}

static bool are_for_all(Dequantization of)
{
    return of.mode == OF_CHANNELS || of.mode == OF_HEADS;
}

static void require_shared(OpCall *op, const AttentionCall *call)
{
    const Operand *key = call->shared_key, *value = call->shared_value;
    if (op_refused(op) || key == NULL) {
        return;
    }
    op_require(op, op_given(key) == op_given(value), key->name, "pair", op->invalid, "%s and %s are given together",
               key->name, value->name);
    op_require(op, op_given(key) || call->shared_length.count == 0, call->shared_length.name, "alone", op->invalid,
               "%s is given without %s", call->shared_length.name, key->name);
    if (op_refused(op) || !op_given(key)) {
        return;
    }
    op_require(op, !op_given(call->pages) && !is_listed(call) && !call->packed && !op_given(call->rotary_query) &&
                       !op_given(call->query_padding) && !op_given(call->key_padding),
               key->name, "partners", op->invalid,
               "%s is given: not with pages, lists, packed tokens, rotary parts or left padding", key->name);
    op_require(op, !has_integer_keys(call) || (are_for_all(dequantization_of(call, false)) &&
                                               are_for_all(dequantization_of(call, true))),
               key->name, "tokens", op->invalid,
               "%s is given, and each token has numbers: whether these count the shared rows stands nowhere", key->name);
    const int32_t row = layout_of(call)->row;
    op_require(op, is_shared(call, key, call->key), key->name, "shape", op->invalid, "%s is %s of %s, %s is %s",
               key->name, op_shape_text(op, key), acl_dtype_name(key->dtype), call->key->name,
               op_shape_text(op, call->key));
    op_require(op, is_shared(call, value, call->value) && value->view.shape[row] == key->view.shape[row], value->name,
               "shape", op->invalid, "%s is %s of %s, %s is %s, %s is %s", value->name, op_shape_text(op, value),
               acl_dtype_name(value->dtype), call->value->name, op_shape_text(op, call->value), key->name,
               op_shape_text(op, key));
    const IntArguments length = call->shared_length;
    const bool fits = length.count == 0 || (length.count == 1 && length.values[0] >= 0 &&
                                            length.values[0] <= key->view.shape[row]);
    op_require(op, fits, length.name, "value", op->invalid, "%s has %lld entries: one of 0 to %lld is needed",
               length.name, (long long)length.count, (long long)key->view.shape[row]);
}

/* One number, in the device's memory. */
static void require_padding(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const Operand *paddings[] = {call->query_padding, call->key_padding};
    for (int i = 0; i < 2 && !op_refused(op); i++) {
        const Operand *padding = paddings[i];
        if (!op_given(padding)) {
            continue;
        }
        const bool separate = op_given(call->key_scale) && of->query.shape[2] > 1;
        op_require(op, !op_given(call->pages) && !call->packed && !op_given(call->rotary_query) && !separate &&
                           !(i == 1 && is_listed(call)),
                   padding->name, "partners", op->invalid,
                   "%s is given: not with pages, packed tokens, rotary parts, numbers of keys and of values for "
                   "several rows%s",
                   padding->name, i == 1 ? ", or lists" : "");
    }
}

/* One number for each head; nothing is quantized. */
static void require_sink(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const Operand *sink = call->sink;
    if (op_refused(op) || !op_given(sink)) {
        return;
    }
    op_require(op, sink->view.rank == 1 && sink->view.shape[0] == call->heads, sink->name, "shape", op->invalid,
               "%s is %s: there are %lld heads", sink->name, op_shape_text(op, sink), (long long)call->heads);
    op_require(op, !is_all_integers(call) && !has_integer_keys(call) && !op_given(call->out_scale), sink->name,
               "quantized", op->invalid, "%s is given, and query, keys or the result are quantized", sink->name);
    op_require(op, of->value.shape[3] == HALF_DEPTH || of->value.shape[3] == PART_DEPTH, sink->name, "depth",
               op->invalid, "%s is given: heads of values have 64 or 128 numbers, not %lld", sink->name,
               (long long)of->value.shape[3]);
}

/* How many heads share a key; with several rows, how many batches there are of heads that do not fill 32 bytes. */
static void require_limits(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const int64_t key_heads = of->key.shape[1], depth = of->query.shape[3], batches = of->query.shape[0];
    const bool latent = call->newest && op_given(call->rotary_query) && depth == LATENT_DEPTH;
    const int64_t most = latent ? LATENT_RATIO_LIMIT : RATIO_LIMIT;
    op_require(op, op_refused(op) || call->heads <= most * key_heads, "numHeads", "ratio", op->invalid,
               "numHeads is %lld, %s has %lld heads: at most %lld share one", (long long)call->heads, call->key->name,
               (long long)key_heads, (long long)most);
    const int64_t bytes = depth * (int64_t)us_dtype_size(of->query.dtype);
    op_require(op, op_refused(op) || of->query.shape[2] == 1 || batches <= UNALIGNED_BATCHES || bytes % ALIGNED_BYTES == 0,
               call->query->name, "batches", op->invalid,
               "%s is %s: there are at most %d batches of heads whose %lld numbers are no multiple of %d bytes",
               call->query->name, op_shape_text(op, call->query), UNALIGNED_BATCHES, (long long)depth, ALIGNED_BYTES);
}

AttentionCall op_inference_call(AttentionCall call)
{
    const IntArguments none = {.name = ""};
    call.packed = (call.newest || call.prompts) && strchr(call.layout, 'T') != NULL;
    if (call.packed) {
        const IntArguments keys = call.key_lengths;
        call.query_ends = call.query_lengths;
        call.query_lengths = none;
        call.key_ends = op_given(call.pages) ? none : keys;
        call.key_lengths = op_given(call.pages) ? keys : none;
    }
    return call;
}

void op_require_inference(OpCall *op, const AttentionCall *call)
{
    require_operands(op, call);
    op_require(op, !call->token || strcmp(call->layout, "BNSD_BSND") != 0, "inputLayout", "rows", op->invalid,
               "inputLayout is BNSD_BSND: the query has one row, and it is for several");
    require_lists(op, call);
    require_keys(op, call);
    require_sequences(op, call);
    if (op_refused(op)) {
        return;
    }
    const Operand4 of = split_heads(call);
    require_blocks(op, call, &of);
    require_pages(op, call, &of);
    require_rotary(op, call, &of);
    require_shared(op, call);
    require_padding(op, call, &of);
    require_all_integers(op, call, &of);
    require_dequantization(op, call, &of);
    require_packed(op, call, &of);
    require_sink(op, call, &of);
    if (op_refused(op)) {
        return;
    }
    op_require(op, of.key.shape[1] == (call->key_heads == 0 ? call->heads : call->key_heads), "numKeyValueHeads",
               "heads", op->invalid, "numKeyValueHeads is %lld, %s is %s", (long long)call->key_heads, call->key->name,
               op_shape_text(op, call->key));
    require_limits(op, call, &of);
    require_lengths(op, call->query_lengths, of.query.shape[0], of.query.shape[2]);
    require_lengths(op, call->key_lengths, sequence_count(call, &of), most_keys(call, &of));
    op_require_range(op, "sparseMode", call->mode, MODE_DEFAULT, MODE_BAND);
    require_masks(op, call);
    require_statistic(op, call, call->maximum);
    require_result(op, call, call->out);
    require_result_scale(op, call, &of);
}
