/* Attention to compressed keys: src_c/kernels/attention/compressed.c. */
#include "ascend/common/op_memory.h"
#include "ascend/opapi/attention_parts.h"
#include "kernels/attention/compressed.h"

enum { SHARING = 128, MOST_WINDOW = 128, MOST_STRIDE = 64, MOST_BLOCKS = 32, MOST_KEYS = 14000, COPIES = 8 };

static void require_heads(OpCall *op, const CompressedCall *call)
{
    const int64_t heads = op_size(call->query, 1), key_heads = op_size(call->key, 1);
    op_require(op, heads == call->heads && heads > 0, "headNum", "value", op->invalid, "headNum is %lld, query is %s",
               (long long)call->heads, op_shape_text(op, call->query));
    const int64_t group = key_heads > 0 && heads % key_heads == 0 ? heads / key_heads : 0;
    op_require(op, group > 0 && group < SHARING && SHARING % group == 0, "key", "heads", op->invalid,
               "key is %s, query is %s: 1, 2, 4, 8, 16, 32 or 64 heads of the query share one", op_shape_text(op, call->key),
               op_shape_text(op, call->query));
    op_require(op, op_size(call->value, 0) == op_size(call->key, 0) && op_size(call->value, 1) == key_heads, "value", "shape",
               op->invalid, "value is %s, key is %s", op_shape_text(op, call->value), op_shape_text(op, call->key));
    const int64_t depth = op_size(call->key, 2);
    op_require(op, op_size(call->query, 2) == depth && depth >= op_size(call->value, 2), "query", "depth", op->invalid,
               "query is %s, key is %s, value is %s", op_shape_text(op, call->query), op_shape_text(op, call->key),
               op_shape_text(op, call->value));
}

static bool is_size(int64_t size, int64_t most)
{
    return size >= 16 && size <= most && size % 16 == 0;
}

static void require_windows(OpCall *op, const CompressedCall *call)
{
    op_require(op, is_size(call->stride, MOST_STRIDE), "compressStride", "value", op->invalid,
               "compressStride is %lld, not a multiple of 16 up to 64", (long long)call->stride);
    op_require(op, is_size(call->window, MOST_WINDOW) && call->window >= call->stride, "compressBlockSize", "value", op->invalid,
               "compressBlockSize is %lld, not a multiple of 16 from compressStride, %lld, to 128", (long long)call->window,
               (long long)call->stride);
    op_require(op, op_refused(op) || (is_size(call->block, MOST_WINDOW) && call->block >= call->window &&
                                      call->block % call->stride == 0),
               "selectBlockSize", "value", op->invalid,
               "selectBlockSize is %lld, not a multiple of 16 and of compressStride, %lld, from compressBlockSize, %lld, to 128",
               (long long)call->block, (long long)call->stride, (long long)call->window);
}

static void require_length(OpCall *op, IntArguments ends, const CompressedCall *call)
{
    op_require(op, ends.count == call->query_ends.count, ends.name, "length", op->invalid, "%s has %lld entries, %s %lld",
               ends.name, (long long)ends.count, call->query_ends.name, (long long)call->query_ends.count);
}

/* As many blocks as the keys of each sequence make. */
static void require_sequences_of(OpCall *op, const CompressedCall *call)
{
    op_require_ends(op, call->query_ends, op_size(call->query, 0));
    op_require_ends(op, call->key_ends, op_size(call->key, 0));
    require_length(op, call->key_ends, call);
    require_length(op, call->block_ends, call);
    bool fits = call->count >= 1 && call->count <= MOST_BLOCKS;
    int64_t end = 0;
    for (int64_t s = 0; s < call->key_ends.count && !op_refused(op); s++) {
        const int64_t keys = call->key_ends.values[s] - begin_of(call->key_ends, s);
        const int64_t step = call->block / call->stride, blocks = keys / step + (keys % step > 0);
        end += blocks;
        fits = fits && call->count <= blocks;
        op_require(op, keys <= MOST_KEYS, call->key_ends.name, "keys", op->invalid,
                   "sequence %lld has %lld keys, more than 14000", (long long)s, (long long)keys);
        op_require(op, call->block_ends.values[s] == end, call->block_ends.name, "values", op->invalid,
                   "%s has %lld for sequence %lld: the blocks of so many keys end at %lld", call->block_ends.name,
                   (long long)call->block_ends.values[s], (long long)s, (long long)end);
    }
    op_require(op, op_refused(op) || fits, "selectBlockCount", "value", op->invalid,
               "selectBlockCount is %lld: not 1 to 32, or more than a sequence has", (long long)call->count);
}

static void require_mask_of(OpCall *op, const Operand *mask, const CompressedCall *call, IntArguments ends)
{
    if (op_given(mask) && !op_refused(op)) {
        const Shape shape = op_shape_of(2, (const int64_t[]){longest_part(call->query_ends), longest_part(ends)});
        op_require_shape(op, mask, &shape);
    }
}

void op_require_compressed(OpCall *op, const CompressedCall *call)
{
    op_require(op, strcmp(call->layout, "TND") == 0, "inputLayout", "value", op->invalid, "inputLayout is %s, not TND",
               call->layout);
    require_heads(op, call);
    require_windows(op, call);
    require_sequences_of(op, call);
    op_require(op, call->mode == MODE_DEFAULT || call->mode == MODE_ALL, "sparseMode", "value", op->invalid,
               "sparseMode is %lld, neither 0 nor 1", (long long)call->mode);
    require_mask_of(op, call->mask, call, call->key_ends);
    require_mask_of(op, call->block_mask, call, call->block_ends);
    const int64_t tokens = op_size(call->query, 0);
    const Shape statistic = op_shape_of(3, (const int64_t[]){tokens, call->heads, COPIES});
    const Shape out = op_shape_of(3, (const int64_t[]){tokens, call->heads, op_size(call->value, 2)});
    const Shape blocks = op_shape_of(3, (const int64_t[]){tokens, op_size(call->key, 1), call->count});
    op_require_shape(op, call->maximum, &statistic);
    op_require_shape(op, call->sum, &statistic);
    op_require_shape(op, call->out, &out);
    op_require_shape(op, call->blocks, &blocks);
}

aclnnStatus op_compressed_attention(OpCall *op, const CompressedCall *call)
{
    const int64_t sequences = call->query_ends.count;
    const size_t bytes = (size_t)sequences * sizeof(int64_t), size = sizeof(Compressed) + 3 * bytes;
    Compressed *compressed = op_take(op, size);
    if (compressed == NULL) {
        return op_plan_nothing(op);
    }
    *compressed = (Compressed){.scale = (float)call->scale, .step = call->block / call->stride,
                               .width = call->window / call->stride, .sequences = sequences};
    memcpy(compressed->ends, call->query_ends.values, bytes);
    memcpy(compressed->ends + sequences, call->key_ends.values, bytes);
    memcpy(compressed->ends + 2 * sequences, call->block_ends.values, bytes);
    const PlannedView views[] = {{call->query, VIEW_READ, NULL}, {call->key, VIEW_READ, NULL}, {call->value, VIEW_READ, NULL},
                                 {op_given(call->mask) ? call->mask : NULL, VIEW_READ, NULL},
                                 {op_given(call->block_mask) ? call->block_mask : NULL, VIEW_READ, NULL},
                                 {call->out, VIEW_WRITE, NULL}, {call->maximum, VIEW_WRITE, NULL},
                                 {call->sum, VIEW_WRITE, NULL}, {call->blocks, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_compressed_attention, compressed, size, sizeof views / sizeof *views, views);
}
