/* Attention: integer keys and values, and results. */
#include "ascend/opapi/attention_parts.h"

enum { CHANNEL_UNIT = 32, TOKEN_LIMIT = 16, PACKED_UNIT = 64 };

bool is_all_integers(const AttentionCall *call)
{
    return call->infers && call->query->dtype == ACL_INT8;
}

bool has_packed_keys(const AttentionCall *call)
{
    return call->key->dtype == ACL_INT4 || call->key->dtype == ACL_INT32;
}

bool has_integer_keys(const AttentionCall *call)
{
    return call->infers && !is_all_integers(call) && (call->key->dtype == ACL_INT8 || has_packed_keys(call));
}

/* The scales between the products, one number each. */
void require_all_integers(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const Operand *scales[] = {call->score_scale, call->weight_scale, call->product_scale};
    const bool all = is_all_integers(call);
    for (int i = 0; i < 3 && !op_refused(op); i++) {
        const Operand *scale = scales[i];
        op_require(op, op_given(scale) == all, scale != NULL ? scale->name : "", "given", op->invalid,
                   "%s is %s, %s is %s", scale != NULL ? scale->name : "", op_given(scale) ? "given" : "not given",
                   call->query->name, acl_dtype_name(call->query->dtype));
    }
    op_require(op, !all || ((of->query.shape[2] > 1 || call->prompts) && !op_given(call->joint_scale) &&
                            !op_given(call->key_scale) &&
                            !op_given(call->pages) && !op_given(call->shared_key) && !call->packed &&
                            !op_given(call->rotary_query)),
               call->query->name, "integers", op->invalid,
               "%s is %s of ACL_INT8: of several rows, without scales of the keys, pages, shared rows, packed tokens "
               "or rotary parts",
               call->query->name, op_shape_text(op, call->query));
}

/* Whether some row sees no key, which a zero point cannot stand for. */
static bool leaves_rows(const AttentionCall *call, const Operand4 *of)
{
    bool leaves = false;
    for (int64_t s = 0; s < of->query.shape[0]; s++) {
        const int64_t rows = length_of(call->query_lengths, s, of->query.shape[2]);
        const int64_t keys = shared_keys(call) + length_of(call->key_lengths, s, key_room(call, of, s));
        const int64_t before = bounded(call->before), after = bounded(call->after);
        leaves |= call->mode == MODE_DEFAULT && op_given(call->mask) && (rows - keys - before > 0 || after < 0);
        leaves |= call->mode == MODE_RIGHT_DOWN && keys < rows;
        leaves |= call->mode == MODE_BAND && (before < 0 || after + keys - rows < 0);
    }
    return leaves;
}

void require_result_scale(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op)) {
        return;
    }
    const Operand *scale = call->out_scale, *offset = call->out_offset;
    const bool quantizes = call->out->dtype == ACL_INT8;
    const aclDataType plain = is_all_integers(call) ? ACL_FLOAT16 : call->query->dtype;
    op_require(op, call->out->dtype == (quantizes ? ACL_INT8 : plain) && quantizes == op_given(scale),
               call->out->name, "types", op->invalid, "%s is %s, %s is %s, and its scale is %s", call->out->name,
               acl_dtype_name(call->out->dtype), call->query->name, acl_dtype_name(call->query->dtype),
               op_given(scale) ? "given" : "not given");
    if (scale == NULL || !quantizes || op_refused(op)) {
        op_require(op, !op_given(offset) || quantizes, op_given(offset) ? offset->name : "", "alone", op->invalid,
                   "%s is given though %s is not quantized", op_given(offset) ? offset->name : "", call->out->name);
        return;
    }
    const int64_t count = op_elements(scale);
    op_require(op, scale->dtype == ACL_FLOAT || call->query->dtype == ACL_BF16, scale->name, "types", op->invalid,
               "%s is %s, %s is %s", scale->name, acl_dtype_name(scale->dtype), call->query->name,
               acl_dtype_name(call->query->dtype));
    const View by_channels = channel_view(&scale->view, call->heads, of->value.shape[3]);
    op_require(op, !us_view_is_absent(&by_channels), scale->name, "elements", op->invalid,
               "%s is %s: it has one element, or one for each of %lld channels, by heads", scale->name, op_shape_text(op, scale),
               (long long)(call->heads * of->value.shape[3]));
    op_require(op, count == 1 || (of->value.shape[3] % CHANNEL_UNIT == 0 && !op_given(call->maximum) &&
                                  !is_padded(call)), scale->name,
               "channels", op->invalid,
               "%s is %s: channels need head sizes in multiples of %d, %lld is none, no softmaxLse and no left padding",
               scale->name,
               op_shape_text(op, scale), CHANNEL_UNIT, (long long)of->value.shape[3]);
    op_require_same_shape(op, offset, scale);
    op_require_same_dtype(op, offset, scale);
    op_require(op, call->mode != MODE_BAND || (call->before >= 0 && call->after >= 0), "preTokens", "quantized",
               op->invalid, "preTokens is %lld, nextTokens %lld: a quantized result has no band of negative ones",
               (long long)call->before, (long long)call->after);
    op_require(op, !op_given(offset) || !leaves_rows(call, of), op_given(offset) ? offset->name : "", "rows",
               op->invalid, "%s is given, and with sparseMode %lld some rows have no keys",
               op_given(offset) ? offset->name : "", (long long)call->mode);
}

View channel_view(const View *own, int64_t heads, int64_t depth)
{
    int64_t sizes[2] = {1, 1}, strides[2] = {0, 0}; /* of the axes that have more than one element, the last one first */
    int32_t count = 0;
    for (int32_t axis = own->rank - 1; axis >= 0; axis--) {
        if (own->shape[axis] != 1 && count++ < 2) {
            sizes[count - 1] = own->shape[axis];
            strides[count - 1] = own->strides[axis];
        }
    }
    const bool in_line = count < 2 && (sizes[0] == 1 || sizes[0] == heads * depth);
    if (!in_line && !(count == 2 && sizes[0] == depth && sizes[1] == heads)) {
        return us_view_absent();
    }
    return (View){.data = own->data, .dtype = own->dtype, .rank = 4, .shape = {1, heads, 1, depth},
                  .strides = {0, in_line ? strides[0] * depth : strides[1], 0, strides[0]}};
}

Dequantization dequantization_of(const AttentionCall *call, bool value)
{
    if (op_given(call->key_scale) || op_given(call->value_scale)) {
        return (Dequantization){value ? call->value_scale : call->key_scale,
                                value ? call->value_offset : call->key_offset,
                                value ? call->value_mode : call->key_mode, false, 0};
    }
    /* With several rows the page ignores the mode: numbers of float32 are those of tokens. */
    const bool one = split_heads(call).query.shape[2] == 1;
    const bool tokens = op_given(call->joint_scale) && call->joint_scale->dtype == ACL_FLOAT;
    return (Dequantization){call->joint_scale, call->joint_offset, one ? call->joint_mode : tokens, true, value};
}

static View half_of(const Dequantization *of, const Operand *operand)
{
    View view = operand->view;
    if (of->joint && view.rank > 0) {
        view.data = (char *)view.data + of->half * view.strides[0] * (int64_t)us_dtype_size(view.dtype);
        view.rank--;
        memmove(view.shape, view.shape + 1, (size_t)view.rank * sizeof *view.shape);
        memmove(view.strides, view.strides + 1, (size_t)view.rank * sizeof *view.strides);
    }
    return view;
}

View numbers_view(const AttentionCall *call, const Dequantization *of, const Operand *operand)
{
    if (!op_given(operand) || (of->joint && (operand->view.rank == 0 || operand->view.shape[0] != 2))) {
        return us_view_absent();
    }
    const Operand4 split = split_heads(call);
    const bool of_value = of->half || operand == call->value_scale || operand == call->value_offset;
    const View own = half_of(of, operand), *matrix = of_value ? &split.value : &split.key;
    const int64_t heads = matrix->shape[1], depth = matrix->shape[3], count = us_view_elements(&own);
    const bool in_pages = of->mode >= OF_PAGED_TOKENS;
    const bool by_heads_too = of->mode == OF_HEAD_TOKENS || of->mode == OF_PAGED_HEAD_TOKENS;
    if (of->mode == OF_CHANNELS) {
        return count == 1 && has_packed_keys(call) ? us_view_absent() : channel_view(&own, heads, depth);
    }
    const int32_t axes = by_heads_too ? 3 : of->mode == OF_HEADS ? 1 : 2, first = own.rank - axes;
    if (first < 0) {
        return us_view_absent();
    }
    const int64_t *shape = own.shape + first, *strides = own.strides + first;
    View view = {.data = own.data, .dtype = own.dtype, .rank = 4, .shape = {1, heads, 1, depth}};
    if (of->mode == OF_HEADS) {
        view.strides[1] = strides[0];
        return count == heads && shape[0] == heads ? view : us_view_absent();
    }
    const int64_t batches = in_pages ? split.key.shape[0] : sequence_count(call, &split);
    const int64_t rows = shape[axes - 1], room = in_pages ? split.key.shape[2] : most_keys(call, &split);
    view.shape[0] = batches;
    view.shape[2] = rows;
    view.strides[0] = strides[0];
    view.strides[1] = by_heads_too ? strides[1] : 0;
    view.strides[2] = strides[axes - 1];
    const bool fits = shape[0] == batches && (!by_heads_too || shape[1] == heads) && rows >= room &&
                      count == shape[0] * (by_heads_too ? heads : 1) * rows;
    return fits ? view : us_view_absent();
}

static void require_numbers(OpCall *op, const AttentionCall *call, const Dequantization *of)
{
    if (op_refused(op) || !op_given(of->scale)) {
        return;
    }
    const bool tokens = of->mode != OF_CHANNELS && of->mode != OF_HEADS;
    op_require(op, of->scale->dtype == (tokens ? ACL_FLOAT : call->query->dtype), of->scale->name, "types",
               op->invalid, "%s is %s, %s is %s: numbers of tokens are ACL_FLOAT, others have the query's type",
               of->scale->name, acl_dtype_name(of->scale->dtype), call->query->name,
               acl_dtype_name(call->query->dtype));
    const View view = numbers_view(call, of, of->scale);
    op_require(op, !us_view_is_absent(&view), of->scale->name, "shape", op->invalid,
               "%s is %s, %s is %s, and the mode is %lld", of->scale->name, op_shape_text(op, of->scale),
               call->key->name, op_shape_text(op, call->key), (long long)of->mode);
    op_require_same_shape(op, of->offset, of->scale);
    op_require_same_dtype(op, of->offset, of->scale);
}

static bool are_mixed(const Dequantization *key, const Dequantization *value)
{
    return !key->joint && key->mode == OF_CHANNELS && value->mode == OF_TOKENS;
}

static bool is_mode(const AttentionCall *call, const Dequantization *key, const Dequantization *value, bool one)
{
    const int64_t last = key->joint || !one ? OF_TOKENS : op_given(call->pages) ? OF_PAGED_HEAD_TOKENS : OF_HEAD_TOKENS;
    if (has_packed_keys(call) && (key->mode == OF_HEADS || key->mode > OF_HEAD_TOKENS)) {
        return false;
    }
    return key->mode >= 0 && key->mode <= last && (value->mode == key->mode || are_mixed(key, value));
}

/* Scales of keys and of values have one shape, where one mode and one head size can give them one. */
static void require_alike_scales(OpCall *op, const Operand4 *of, const Dequantization *key, const Dequantization *value)
{
    if (op_refused(op) || key->joint || are_mixed(key, value) || !op_given(key->scale)) {
        return;
    }
    op_require(op, of->key.shape[3] != of->value.shape[3] || us_view_same_shape(&key->scale->view, &value->scale->view),
               value->scale->name, "alike", op->invalid, "%s is %s, %s is %s, and their modes are equal", value->scale->name,
               op_shape_text(op, value->scale), key->scale->name, op_shape_text(op, key->scale));
}

/* What keys of 4 bits are made for. */
static void require_packed_keys(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op) || !has_packed_keys(call)) {
        return;
    }
    op_require(op, of->query.shape[2] == 1 && op_given(call->key_scale) && of->key.shape[3] % PACKED_UNIT == 0 &&
                       of->value.shape[3] % PACKED_UNIT == 0 && call->out->dtype != ACL_INT8 &&
                       !op_given(call->pages) && !op_given(call->key_padding),
               call->key->name, "four-bits", op->invalid,
               "%s is %s of %s: it is for one token, head sizes in multiples of %d, with a scale each for keys and "
               "values, without pages, left padding or a quantized result",
               call->key->name, op_shape_text(op, call->key), acl_dtype_name(call->key->dtype), PACKED_UNIT);
}

void require_dequantization(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op) || (call->joint_scale == NULL && call->key_scale == NULL)) {
        return;
    }
    const Dequantization key = dequantization_of(call, false), value = dequantization_of(call, true);
    const bool one = of->query.shape[2] == 1, integers = has_integer_keys(call);
    op_require(op, integers == op_given(key.scale), call->key->name, "quantized", op->invalid,
               "%s is %s and its scale is %s", call->key->name, acl_dtype_name(call->key->dtype),
               op_given(key.scale) ? "given" : "not given");
    if (!key.joint) {
        op_require(op, op_given(value.scale) && op_given(value.offset) == op_given(key.offset), value.scale->name,
                   "pair", op->invalid, "scales, and offsets, of keys and of values are given together: %s",
                   value.scale->name);
    }
    const Operand *lonely = !key.joint                     ? NULL
                            : op_given(call->key_offset)   ? call->key_offset
                            : op_given(call->value_offset) ? call->value_offset
                            : op_given(key.scale)          ? NULL
                                                           : key.offset;
    op_require(op, !op_given(lonely), lonely != NULL ? lonely->name : "", "alone", op->invalid,
               "%s is given without a scale", lonely != NULL ? lonely->name : "");
    op_require(op, !integers || is_mode(call, &key, &value, one), key.joint ? "antiquantMode" : "keyAntiquantMode",
               "value", op->invalid, "the modes of keys and values are %lld and %lld, for %s", (long long)key.mode,
               (long long)value.mode, one ? "one token" : "several");
    const bool separate = of->query.shape[2] <= TOKEN_LIMIT && call->query->dtype == ACL_BF16 && !is_listed(call) &&
                          !op_given(call->pages) && call->out->dtype == ACL_BF16;
    op_require(op, !integers || one || (key.joint ? call->query->dtype == ACL_FLOAT16 : separate), call->query->name,
               "dequantized", op->invalid, "%s is %s of %s: several rows with integer keys are of %s",
               call->query->name, op_shape_text(op, call->query), acl_dtype_name(call->query->dtype),
               key.joint ? "ACL_FLOAT16" : "ACL_BF16, at most 16, of one tensor without pages, and so is the result");
    const bool half = call->query->dtype == ACL_FLOAT16 && call->out->dtype == ACL_FLOAT16;
    op_require(op, !integers || !one || has_packed_keys(call) || !are_mixed(&key, &value) || half, call->query->name, "mixed",
               op->invalid,
               "%s is of %s, the result of %s: one row with keys of ACL_INT8 by channels and values by tokens is of ACL_FLOAT16",
               call->query->name, acl_dtype_name(call->query->dtype), acl_dtype_name(call->out->dtype));
    require_packed_keys(op, call, of);
    require_numbers(op, call, &key);
    require_numbers(op, call, &value);
    require_alike_scales(op, of, &key, &value);
}
