/* Attention: src_c/kernels/attention. Layouts, masks and modes as the pages have them. */
#ifndef ASCEND_OPAPI_ATTENTION_H
#define ASCEND_OPAPI_ATTENTION_H

#include "ascend/opapi/blocked_weight.h"

/* One call. Operands that a page does not have are NULL. */
typedef struct AttentionCall {
    const Operand *query, *key, *value, *shift, *drop, *mask;
    IntArguments prefix;
    IntArguments query_ends, key_ends; /* cumulative lengths, of layout TND */
    const char *layout;                /* BSH SBH BSND BNSD, or TND where the page has lengths */
    int64_t heads, before, after, mode;
    int64_t deepest;                   /* how many numbers a head may have; 0: 512 */
    bool packed;                       /* TND is the layout */
    /* Of the inference pages: masks may be longer than the sequences, and BNSD_BSND is a layout. */
    bool infers;
    bool token;                                  /* the query has one row, for which the pages need no mask */
    int64_t key_heads;                           /* of them; 0: as heads */
    IntArguments query_lengths, key_lengths;     /* valid rows and keys of every batch; one is for all */
    Operands keys, values;                       /* one tensor, or one for every batch; `key`, `value`: the first */
    const Operand *pages;                        /* [batch, page]: keys and values lie in blocks of `block_size` */
    int64_t block_size;
    const Operand *out_scale, *out_offset;       /* of a quantized result */
    const Operand *score_scale, *weight_scale, *product_scale; /* where query, keys and values are all integers */
    const Operand *query_padding, *key_padding;  /* rows and keys behind the valid ones of every batch */
    /* Of integer keys and values: numbers of both, the keys' before the values', or, V2 on, of each. */
    const Operand *joint_scale, *joint_offset, *key_scale, *key_offset, *value_scale, *value_offset;
    int64_t joint_mode, key_mode, value_mode;
    const Operand *shared_key, *shared_value;    /* V2 on: rows before those of every batch */
    IntArguments shared_length;                  /* how many; none: all */
    bool prompts;                                /* PromptFlashAttentionV3: TND is a layout */
    bool newest;                                 /* V3 on: layouts of packed tokens, results in another layout */
    bool latent_band;                            /* V4: heads of 512 with rotary parts take a band */
    const Operand *rotary_query, *rotary_key;    /* of them, and of packed training: parts whose product adds to the scores */
    const Operand *sink;                         /* a score more for every head, which has no value */
    bool adds_after_scale;             /* scale * q k^T + shift, not scale * (q k^T + shift) */
    double scale, keep;
    const Operand *out, *maximum, *sum;          /* of inference: maximum is log(sum of e^score), sum is NULL */
    const Operand *out_gradient, *query_gradient, *key_gradient, *value_gradient; /* of a gradient */
    const Operand *rotary_query_gradient, *rotary_key_gradient, *sink_gradient;
} AttentionCall;

/* "", or same_as_input: how statistics of packed tokens lie. */
bool op_is_statistic_layout(const char *layout);
/* Everything about shapes and attributes: the rules stand on the pages. */
void op_require_attention(OpCall *op, const AttentionCall *call);

/* Of the inference pages: the first tensor of a list (length). */
const Operand *op_first(OpCall *op, Operands list);
/* Whether the query has one row; false where it has no such layout. */
bool op_is_token(OpCall *op, const Operand *query, const char *layout);
/* With the lengths where they belong: those of packed tokens are cumulative, but not of keys in pages. */
AttentionCall op_inference_call(AttentionCall call);
void op_require_inference(OpCall *op, const AttentionCall *call);

aclnnStatus op_attention(OpCall *op, const AttentionCall *call);
aclnnStatus op_attention_backward(OpCall *op, const AttentionCall *call);

bool op_are_alike_ends(IntArguments a, IntArguments b);
/* Cumulative lengths rise and end with all tokens (values). */
void op_require_ends(OpCall *op, IntArguments ends, int64_t tokens);

/* attention_windows.c: windows of `length` rows, one begins every `stride` rows of a sequence; none is cut. One row for each,
 * otherwise as x. */
Shape op_shape_of_windows(OpCall *op, const Operand *x, IntArguments ends, int64_t length, int64_t stride);
aclnnStatus op_windows(OpCall *op, const Operand *x, const Operand *weight, IntArguments ends, int64_t stride, const Operand *y);
aclnnStatus op_windows_backward(OpCall *op, const Operand *slopes, const Operand *x, const Operand *weight, IntArguments ends,
                                int64_t stride, const Operand *slopes_of_x, const Operand *slopes_of_weight);
/* Layouts mean nothing in pages; without them there is TND. */
bool op_is_cache_layout(const char *layout, bool paged);
/* Of sequences that lie one after another, or in pages: none has more rows than x has room for. */
bool op_holds_sequences(const Operand *x, const Operand *pages, IntArguments lengths);
/* The last rows of every sequence that has just become `length` rows long, or `stride` longer than at its last window. */
aclnnStatus op_cached_windows(OpCall *op, const Operand *x, const Operand *weight, const Operand *slots, const Operand *pages,
                              IntArguments lengths, int64_t stride, const Operand *y);

/* attention_selected.c: packed tokens of which each selects blocks of keys. The second line is of the gradients. */
typedef struct SelectedCall {
    const Operand *query, *key, *value, *blocks, *mask, *out, *maximum, *sum;
    const Operand *slopes, *query_slopes, *key_slopes, *value_slopes;
    IntArguments query_ends, key_ends;
    const char *layout;
    int64_t heads, mode, block, count; /* keys of a block, blocks of a token */
    double scale;
    bool forward; /* heads have 192 numbers, 128 of the value, and there are up to 1024 sequences; gradients take either size */
} SelectedCall;

/* Everything about shapes and attributes: the rules stand on the pages. */
void op_require_selected(OpCall *op, const SelectedCall *call);
aclnnStatus op_selected_attention(OpCall *op, const SelectedCall *call);
aclnnStatus op_selected_attention_backward(OpCall *op, const SelectedCall *call);

/* The same of keys in pages. */
typedef struct PagedSelection {
    const Operand *query, *key, *value, *blocks, *pages, *out;
    IntArguments rows, lengths; /* of every sequence */
    const char *layout;
    int64_t heads, key_heads, block, count, page;
    double scale;
} PagedSelection;
void op_require_paged_selection(OpCall *op, const PagedSelection *call);
aclnnStatus op_paged_selection(OpCall *op, const PagedSelection *call);

/* attention_compressed.c: packed tokens, and keys that stand for windows of them. */
typedef struct CompressedCall {
    const Operand *query, *key, *value, *mask, *block_mask, *maximum, *sum, *out, *blocks;
    IntArguments query_ends, key_ends, block_ends;
    const char *layout;
    double scale;
    int64_t heads, mode, window, stride, block, count; /* tokens of a window and of a block; blocks of a token */
} CompressedCall;
void op_require_compressed(OpCall *op, const CompressedCall *call);
aclnnStatus op_compressed_attention(OpCall *op, const CompressedCall *call);

/* ---- attention_merge.c: results of attention to parts of the keys ---- */

typedef struct MergeCall {
    const Operand *first, *first_max, *first_sum, *second, *second_max, *second_sum, *out, *max, *sum;
    const char *layout; /* SBH, or TND */
} MergeCall;
/* Its shapes (attn/shape, attn/limits, softmax/shape by the first operands). */
void op_require_merge(OpCall *op, const MergeCall *call);
aclnnStatus op_merge_two(OpCall *op, const MergeCall *call);
/* Each a row of logarithms of sums, and rows of values (shape). */
void op_require_parts(OpCall *op, Operands logarithms, Operands values, const Operand *out, const Operand *logarithm);
aclnnStatus op_merge_parts(OpCall *op, Operands logarithms, Operands values, const Operand *out, const Operand *logarithm);

#endif
