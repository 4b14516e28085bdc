/* Sequences of rows and keys whose lengths stand in tensors, and keys in pages. */
#ifndef UNDERSTUDY_ATTENTION_TOKENS_H
#define UNDERSTUDY_ATTENTION_TOKENS_H

#include "kernels/kernels.h"

typedef struct TokenLayout {
    bool packed_rows, packed_keys; /* one sequence behind another, and lengths are their ends; else a batch for each */
    bool paged;                    /* keys lie in pages; lengths are no ends */
    bool causal;                   /* row i of a sequence sees the keys up to i + its keys - its rows; else all */
} TokenLayout;

/* Views: rows [batch, row, …] or [row, …]; keys [batch, key, …], [key, …] or [page, key, …]; lengths? [sequence] and
 * pages? [sequence, page] of int32. Without lengths every batch is full. */
typedef struct Tokens {
    TokenLayout layout;
    const View *rows, *keys, *row_lengths, *key_lengths, *pages;
} Tokens;

/* The attributes of kernels that get lengths by them. */
typedef struct ListedTokens {
    TokenLayout layout;
    float scale;
    int32_t sequences; /* 0: no lengths */
    int32_t lengths[]; /* of rows, then of keys */
} ListedTokens;
View us_listed_lengths(const ListedTokens *listed, bool of_keys);

static inline int64_t last_size(const View *view, int32_t from_the_end)
{
    return view->shape[view->rank - from_the_end];
}

/* A row of its sequence, and how many of the first keys it sees. */
typedef struct TokenRow {
    int64_t sequence; /* -1: the row belongs to none */
    int64_t row, keys;
} TokenRow;

/* The numbers of a sequence's rows. */
typedef struct TokenSpan {
    int64_t begin, end;
} TokenSpan;

/* Lengths and page numbers that are not there are a fault; to be called before the functions below. */
KernelStatus us_check_tokens(const Tokens *tokens);

int64_t us_token_sequences(const Tokens *tokens);
int64_t us_token_rows(const Tokens *tokens); /* of all sequences, and what is behind them */
int64_t us_longest_keys(const Tokens *tokens);
/* Rows and keys are numbered in row-major order of their views' first axes. */
TokenRow us_token_row(const Tokens *tokens, int64_t number);
TokenSpan us_token_span(const Tokens *tokens, int64_t sequence);
int64_t us_token_keys(const Tokens *tokens, int64_t sequence);
int64_t us_token_key(const Tokens *tokens, int64_t sequence, int64_t key);

/* What rows select: indices [rows…, …, count] (int32), number b standing for the keys b * block … of the row's sequence. The
 * first negative number ends a row's; one behind its sequence is a fault, whether the row sees it or not. *most: the largest
 * number of keys that a row selects and sees. */
int64_t us_token_selected(const Tokens *tokens, const View *indices, int64_t number, int64_t i);
KernelStatus us_check_selected(const Tokens *tokens, const View *indices, int64_t block, int64_t *most);

#endif
