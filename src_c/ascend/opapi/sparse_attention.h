/* Attention to the keys that an indexer selects: src_c/kernels/attention/indexer.h, sparse.h. */
#ifndef ASCEND_OPAPI_SPARSE_ATTENTION_H
#define ASCEND_OPAPI_SPARSE_ATTENTION_H

#include "ascend/opapi/families.h"

/* Sequences of rows and keys, as the pages have them in common. */
typedef struct TokenCall {
    const Operand *query, *key, *row_lengths, *key_lengths, *pages;
    const char *query_layout, *key_layout;           /* "": BSND */
    const char *query_layout_name, *key_layout_name; /* of the parameters */
    int64_t mode, before, after, far; /* far: what before and after must be; 0: anything */
    int64_t depth;                    /* of a head */
    bool may_be_empty;                /* the query */
    bool causal;                      /* mode 3 is the only one */
    bool listed;                      /* lengths are attributes, */
    IntArguments row_list, key_list;  /* these */
    bool fits;                        /* no sequence has more rows than keys, which can be seen where it is listed or has a batch */
    int64_t most_sequences, most_rows, least_keys, most_keys; /* of a sequence, as far as it can be seen; 0: no limit */
} TokenCall;

/* Everything about them: the rules stand on the pages. */
void op_require_tokens(OpCall *op, const TokenCall *call);
/* A number for each head of each row. */
Shape op_shape_token_heads(OpCall *op, const Operand *query);
/* A count for each head of the keys, and [heads of the keys, rows, heads] of rows or of batches of rows. */
Shape op_shape_selected_tokens(OpCall *op, const Operand *query, const Operand *key, int64_t count);
Shape op_shape_token_statistics(OpCall *op, const Operand *query, const Operand *key);

bool op_is_sparse_count(int64_t count);
/* NULL: an output that nobody wants. */
aclnnStatus op_lightning_indexer(OpCall *op, const TokenCall *call, const Operand *weights, const Operand *indices,
                                 const Operand *values);
/* Of integers, with a scale for each head of each token. */
aclnnStatus op_quantized_indexer(OpCall *op, const TokenCall *call, const Operand *weights, const Operand *query_scale,
                                 const Operand *key_scale, const Operand *indices);

/* What the gradients are of, and what is selected: indices and slopes of a token have one shape, with the heads of the keys or
 * without. */
typedef struct IndexerSlopes {
    const Operand *weights, *indices, *slopes, *query_slopes, *key_slopes, *weight_slopes;
} IndexerSlopes;
void op_require_indexer_gradient(OpCall *op, const TokenCall *call, const IndexerSlopes *of);
aclnnStatus op_lightning_indexer_backward(OpCall *op, const TokenCall *call, const IndexerSlopes *of);

/* A number for each row: [batch, heads of the keys, row], or [heads of the keys, row]. */
Shape op_shape_indexer_statistics(OpCall *op, const Operand *query, const Operand *key);
aclnnStatus op_indexer_statistics(OpCall *op, const TokenCall *call, const Operand *weights, const Operand *maximum,
                                  const Operand *sum);

/* The loss that teaches an indexer: its own tokens, and those of the attention that it learns from. */
typedef struct IndexerLoss {
    TokenCall tokens;
    const Operand *weights, *indices;                                              /* NULL: all keys count */
    const Operand *query, *key, *rotary_query, *rotary_key, *maximum, *sum;        /* of the attention */
    const Operand *index_maximum, *index_sum;                                      /* NULL: nobody has them */
    const Operand *query_slopes, *key_slopes, *weight_slopes, *loss;
    double scale;
    int64_t depth;  /* of the attention's heads */
    bool one_key;   /* all heads share one; else each has its own */
} IndexerLoss;
void op_require_indexer_loss(OpCall *op, const IndexerLoss *call);
aclnnStatus op_indexer_loss_backward(OpCall *op, const IndexerLoss *call);

typedef struct SparseCall {
    TokenCall tokens;
    const Operand *value, *indices, *rotary_query, *rotary_key, *out, *maximum, *sum; /* the last two: NULL, nobody wants them */
    const Operand *slopes, *query_slopes, *key_slopes, *value_slopes, *rotary_query_slopes, *rotary_key_slopes; /* of a gradient */
    double scale;
    int64_t block;
} SparseCall;
/* Heads, and the shapes of the inputs that are given. */
void op_require_sparse(OpCall *op, const SparseCall *call);
/* sparseBlockSize of the result: it fills pages, too. */
void op_require_sparse_block(OpCall *op, const SparseCall *call);
aclnnStatus op_sparse_attention(OpCall *op, const SparseCall *call);

/* Sizes that the gradient has limits for; what goes together of parts and of the value. */
void op_require_sparse_gradient(OpCall *op, const SparseCall *call);
aclnnStatus op_sparse_attention_backward(OpCall *op, const SparseCall *call);

#endif
