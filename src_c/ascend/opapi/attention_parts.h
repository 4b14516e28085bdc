/* What the files of attention share. */
#ifndef ASCEND_OPAPI_ATTENTION_PARTS_H
#define ASCEND_OPAPI_ATTENTION_PARTS_H

#include "ascend/opapi/attention.h"
#include "ascend/opapi/packed_integers.h"
#include "kernels/attention/attention.h"

/* Tokens beyond any sequence; sizes of the masks that stand for a triangle, and for a triangle and a prefix. */
#define FAR ((int64_t)1 << 40)
enum { TRIANGLE = 2048, PREFIX_ROWS = 3072 };
enum { ROTARY_DEPTH = 64 }; /* of inference */
enum { MODE_DEFAULT, MODE_ALL, MODE_LEFT_UP, MODE_RIGHT_DOWN, MODE_BAND, MODE_PREFIX, MODE_PREFIX_SMALL,
       MODE_OUTSIDE_RIGHT_DOWN, MODE_OUTSIDE_LEFT_UP };

static inline bool has_size(const View *view, int32_t axis, int64_t size)
{
    return view->shape[axis] == size;
}

static inline int64_t bounded(int64_t tokens)
{
    return tokens > FAR ? FAR : tokens < -FAR ? -FAR : tokens;
}

/* ---- attention_layout.c ---- */

/* Which dimension is which, and the axis whose elements are heads times depth (-1: none). */
typedef struct Layout {
    const char *name;
    int32_t rank, batch, head, row, depth;
    unsigned uses; /* the pages that have it */
} Layout;

/* The three operands. Keys have as many heads as their depth, which is the query's, leaves. */
typedef struct Operand4 {
    View query, key, value;
} Operand4;

const Layout *layout_of(const AttentionCall *call);
/* Of the result: X_Y names both. */
const Layout *result_layout(const AttentionCall *call);
/* Pages of keys have a layout of their own: [page, row, heads times depth] or [page, head, row, depth]. */
const Layout *key_layout(const AttentionCall *call);
/* [batch, head, row, depth] of a tensor; `heads` divides what is heads times depth. */
View by_heads(const Layout *layout, const View *view, int64_t heads);
Operand4 split_heads(const AttentionCall *call);
/* With packed integers counted: sizes only, its strides are of bytes. */
View counted_view(const Operand *operand);

/* ---- attention_sequences.c ---- */

int64_t sequence_count(const AttentionCall *call, const Operand4 *of);
bool is_listed(const AttentionCall *call);
/* How many keys a batch has room for. */
int64_t key_room(const AttentionCall *call, const Operand4 *of, int64_t batch);
/* Keys that every batch has before its own. */
int64_t shared_keys(const AttentionCall *call);
int64_t most_keys(const AttentionCall *call, const Operand4 *of);
int64_t begin_of(IntArguments ends, int64_t at);
int64_t longest_part(IntArguments ends);
int64_t length_of(IntArguments lengths, int64_t sequence, int64_t whole);
int64_t score_count(const AttentionCall *call); /* of training; INT64_MAX: more than can be counted */
void describe_sequences(const AttentionCall *call, const Operand4 *of, Attention *attention);
bool mask_is_read(const AttentionCall *call);
bool is_padded(const AttentionCall *call); /* the valid rows, or keys, of the batches do not come first */

/* ---- attention_checks.c ---- */

void require_operands(OpCall *op, const AttentionCall *call);
void require_keys(OpCall *op, const AttentionCall *call);
void require_sequences(OpCall *op, const AttentionCall *call);
/* A mask by its last two dimensions, or four: inference leaves out those of size 1. */
View mask_view(const AttentionCall *call, int64_t rows);
void require_masks(OpCall *op, const AttentionCall *call);
/* [batch, head, row, 8]; packed [token, head, 8] or [head, token, 8]. */
View statistic_view(const AttentionCall *call, const View *view);
int copies_of(const AttentionCall *call);
void require_statistic(OpCall *op, const AttentionCall *call, const Operand *statistic);
/* The result and its gradient: as the query, with the value's head size. */
void require_result(OpCall *op, const AttentionCall *call, const Operand *result);

/* ---- attention_quantized.c ---- */

bool is_all_integers(const AttentionCall *call);   /* query, keys and values */
bool has_integer_keys(const AttentionCall *call);  /* with scales of their own */
bool has_packed_keys(const AttentionCall *call);   /* these are of 4 bits */
void require_all_integers(OpCall *op, const AttentionCall *call, const Operand4 *of);

/* What numbers there are: one for a channel, or for all; for a token; for a head; for a token of a head; the last but
 * one and the second one also in pages. */
enum { OF_CHANNELS, OF_TOKENS, OF_HEADS, OF_HEAD_TOKENS, OF_PAGED_TOKENS, OF_PAGED_HEAD_TOKENS };

typedef struct Dequantization {
    const Operand *scale, *offset;
    int64_t mode;
    bool joint;
    int half; /* of a joint first dimension */
} Dequantization;

/* Of a result of ACL_INT8. */
void require_result_scale(OpCall *op, const AttentionCall *call, const Operand4 *of);
/* [1, head, 1, depth] of a number for all channels, or one for each in a line or by heads; absent: of another shape. */
View channel_view(const View *own, int64_t heads, int64_t depth);
Dequantization dequantization_of(const AttentionCall *call, bool value);
/* [batch or page, head, row, depth] by strides of 0, or absent where the shape does not fit the mode. */
View numbers_view(const AttentionCall *call, const Dequantization *of, const Operand *operand);
void require_dequantization(OpCall *op, const AttentionCall *call, const Operand4 *of);

#endif
