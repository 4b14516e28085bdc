/* Attention: out = dropout(softmax(scale * q k^T + shift, masked)) v, and its gradients, tile by tile: never more than
 * a tile of scores at a time, so memory is linear in the length of the sequences. Computed in float32, results rounded
 * once; the same bits for any number of threads. */
#ifndef UNDERSTUDY_ATTENTION_H
#define UNDERSTUDY_ATTENTION_H

#include "kernels/kernels.h"

/* One sequence: rows of the query and of the keys that it takes. Row i sees key j (both from the sequence's begin)
 * where i + low <= j <= i + high, or j < prefix, unless it is masked. */
typedef struct AttentionSequence {
    int64_t query_begin, query_count, key_begin, key_count;
    int64_t low, high, prefix;
    int64_t seen_rows;   /* rows from here on see nothing */
    int64_t rows_before; /* rows of the queries before this one */
    int64_t drop_begin; /* number of its first score, [head][i][j], in the dropout's mask */
} AttentionSequence;

typedef struct AttentionSizes {
    int64_t heads, key_heads; /* heads / key_heads neighbours share a key and a value */
    int64_t depth, value_depth;
    int64_t sequences; /* at least 1 */
} AttentionSizes;

/* Sequence number s is batch s of all views: those that are packed have stride 0 there. */
typedef struct Attention {
    AttentionSizes sizes;
    float scale;
    float shift_scale; /* of the shift's elements */
    float keep;        /* share of kept scores: kept weights are divided by it */
    bool joins;        /* the view of maxima gets log(sum) + maximum, infinity for rows without keys */
    int32_t copies;    /* of every maximum and sum, along the last axis of their views */
    /* Of us_attention only. */
    int64_t block;     /* keys of a page; 0: the keys lie in turn */
    int64_t shared;    /* keys that every sequence has before its own; not counted by pages */
    bool listed;       /* every sequence has views of its own for its keys and values */
    bool quantizes;    /* the result is rounded to integers */
    bool dequantizes, scales_in_pages; /* keys and values are integers; their scales lie in pages as they do */
    int64_t rotary_depth; /* of further parts of query and key, whose product adds to the scores */
    AttentionSequence of[]; /* sizes.sequences */
} Attention;

/* Views, [sequence, head, row, …]:
 *   query, key, value, shift? and mask? [.., i, j] (mask: not 0 is left out), drop? (bits, the low ones first; set is
 *   kept), out; maximum? and sum? of e^(score - maximum) of every row, [.., i, copies]
 * A row without keys gives 0, maximum -infinity and sum 0.
 * After four absent ones: scale? and shift? of the result, [1, head, 1, depth]: integers are result * scale + shift, to
 * the nearest; pages? [sequence, page] (int32): the first axis of key and value counts pages of `block` rows; rotary
 * parts? of query and key, which lie as these do; scale and offset? of integer keys and of integer values, numbers being
 * (integer + offset) * scale; key and value of the shared rows, [1, head, row, depth]; then, where `listed`, key and
 * value of each sequence, whose first axis has size 1. */
Kernel us_attention;

/* Views: query, key, value, shift?, mask?, drop?, out, maximum, sum, dout, dquery, dkey, dvalue. */
Kernel us_attention_backward;

#endif
