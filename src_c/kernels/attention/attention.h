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
    int64_t seen_rows;   /* so many see anything: */
    int64_t row_begin;   /* those from here on, from where i counts; */
    int64_t key_begin_in_scores; /* and where j counts from in shift and mask */
    int64_t rows_before; /* rows of the queries before this one */
    int64_t score_begin; /* number of its first score, [head][i][j], of all */
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
    int64_t mask_rows, mask_keys; /* that have one byte of the mask, 0 where they are left out; 0: each score has its own */
    /* Of us_attention only. */
    int64_t block;     /* keys of a page; 0: the keys lie in turn */
    int64_t shared;    /* keys that every sequence has before its own; not counted by pages */
    bool listed;       /* every sequence has views of its own for its keys and values */
    bool quantizes;    /* the result is rounded to integers */
    bool dequantizes, scales_in_pages; /* keys and values are integers; their scales lie in pages as they do */
    bool packed;       /* these are integers of 4 bits, two in a byte (kernels/quantize/nibbles.h) */
    bool all_integers; /* query, keys and values are integers, without scales of their own */
    int64_t rotary_depth; /* of further parts of query and key, whose product adds to the scores */
    AttentionSequence of[]; /* sizes.sequences */
} Attention;

enum AttentionView { QUERY, KEY, VALUE, SHIFT, MASK, DROP, OUT, MAXIMUM, SUM,
                     OUT_GRADIENT, QUERY_GRADIENT, KEY_GRADIENT, VALUE_GRADIENT,
                     RESULT_SCALE, RESULT_SHIFT, PAGES, SINK, ROTARY_QUERY, ROTARY_KEY,
                     KEY_SCALE, KEY_OFFSET, VALUE_SCALE, VALUE_OFFSET, SHARED_KEY, SHARED_VALUE,
                     SCORE_SCALE, WEIGHT_SCALE, PRODUCT_SCALE, QUERY_PADDING, KEY_PADDING, LISTED };

/* Views, [sequence, head, row, …]:
 *   query, key, value, shift? and mask? [.., i, j] (mask: not 0 is left out; a shift of one dimension has all scores), drop? (of
 *   all scores; bits, the low ones first; set is kept), out; maximum? and sum? of e^(score - maximum) of every row,
 *   [.., i, copies]
 * A row without keys gives 0, maximum -infinity and sum 0.
 * After four absent ones: scale? and shift? of the result, [1, head, 1, depth]: integers are result * scale + shift, to
 * the nearest; pages? [sequence, page] (int32): the first axis of key and value counts pages of `block` rows;
 * sink? [1, head, 1, 1]: one more score, without a value, of every row of the head that has keys; rotary
 * parts? of query and key, which lie as these do; scale and offset? of integer keys and of integer values, numbers being
 * (integer + offset) * scale; key and value of the shared rows, [1, head, row, depth].
 * One float32 each, where all are integers: q k^T is multiplied by the scale of scores; e^(score - maximum), by the scale
 * of weights, becomes the nearest of -128 … 127; the products of these with the values are multiplied by the last scale
 * and divided by the sum.
 * One int64 each: how many rows, and keys, a sequence has after those that it sees (at least 0, and as many before them
 * as there is room for; where there is none it sees nothing). Such sequences are not packed.
 * Then, where `listed`, key and value of each sequence, whose first axis has size 1. */
Kernel us_attention;

/* Views: query, key, value, shift?, mask?, drop?, out, maximum, sum?, dout, dquery, dkey, dvalue. Without a sum the maximum is
 * log(sum) + maximum. Keys behind those of a batch get gradients of 0. */
Kernel us_attention_backward;

/* The same where scores have rotary parts: heads are formed in which both stand side by side.
 * Views: those of us_attention_backward, then the rotary parts of query and key and their gradients. */
enum { PART_QUERY = VALUE_GRADIENT + 1, PART_KEY, PART_QUERY_GRADIENT, PART_KEY_GRADIENT, BACKWARD_VIEWS };
Kernel us_attention_backward_of_parts;

/* Either of them, and the gradient of the sinks of us_attention: minus the sum over all rows of the head of the sink's weight
 * times the sum of out * dout, in float64.
 * Views: those of us_attention_backward_of_parts, whose last four may be absent, then sink [1, head, 1, 1] and its gradient. */
enum { BACKWARD_SINK = BACKWARD_VIEWS, SINK_GRADIENT, SINK_VIEWS };
Kernel us_attention_backward_with_sink;

#endif
