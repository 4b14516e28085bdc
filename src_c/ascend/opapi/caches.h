/* Paged caches of keys and values. */
#ifndef ASCEND_OPAPI_CACHES_H
#define ASCEND_OPAPI_CACHES_H

#include "ascend/opapi/families.h"

/* How a cache lies: [page, row, head, depth], [page, head, row, depth], or in blocks of 32 bytes,
 * [page, head * depth / c, row, c] or [page, head, depth / c, row, c]; of compressed sequences [page, row, 1, depth]. */
typedef enum CacheForm { CACHE_ROWS, CACHE_HEADS, CACHE_BLOCKS, CACHE_COMPRESSED } CacheForm;
CacheForm op_cache_form(const char *mode, const char *scatter, bool compressed);
bool op_is_cache_mode(const char *mode);
bool op_is_scatter_mode(const char *mode);

/* Whether an optional tensor of compressed sequences is where the modes want it; `begins`: where the mean begins. */
bool op_compresses_rightly(const char *mode, const char *scatter, const Operand *lengths, const Operand *counts);
bool op_begins_rightly(const char *scatter, const Operand *counts, const Operand *begins);

/* Elements of 32 bytes. */
int64_t op_cache_block(const View *view);
/* The cache as [page, row, head, depth], [page, row, head, depth / c, c], or of compressed sequences [page, row, depth]. */
View op_cache_view(const Operand *cache, CacheForm form, int64_t heads);

bool op_is_cache_for(const Operand *cache, int64_t heads, int64_t depth, CacheForm form);
/* Whether the cache has rows for such tokens, [token, head, depth]. */
bool op_is_cache_of(const Operand *cache, const Operand *tokens, CacheForm form);
bool op_is_product(int64_t value, int64_t a, int64_t b);
bool op_is_cache_format(const Operand *cache, CacheForm form);
int64_t op_rows_of_page(const Operand *cache, CacheForm form);
bool op_have_same_pages(const Operand *a, const Operand *b, CacheForm form);
/* A cache of shape [page, row, head, depth] each of whose pages lies in blocks of 32 bytes, [head, depth / c, row, c]: whether
 * its numbers lie page by page, and the view of them, [page, row, head, depth / c, c]. */
bool op_lies_page_by_page(const Operand *cache);
View op_pages_in_blocks(const Operand *cache);
/* Limits of CACHE_HEADS; value may have no dimensions. */
bool op_has_depth_of_blocks(const Operand *tokens);
bool op_fits_page(const Operand *cache);
bool op_fit_heads(const Operand *key, const Operand *value);

typedef struct CachedTokens {
    const Operand *key, *key_cache, *value, *value_cache, *slots; /* value: of no dimensions, there is none */
    const Operand *counts, *begins, *lengths;                     /* of compressed sequences */
    CacheForm form;
    const char *scatter;
    IntArguments strides, offsets; /* Nct: of tokens in the storage of key and value */
} CachedTokens;
/* Two numbers above 0 where the mode is Nct (Nct). */
bool op_has_token_places(const char *scatter, IntArguments numbers);
/* These tokens are in the storage (places). */
void op_require_token_places(OpCall *op, const Operand *key, const Operand *value, const char *scatter, IntArguments strides,
                             IntArguments offsets);
aclnnStatus op_put_tokens(OpCall *op, const CachedTokens *tokens);

typedef struct PagedTokens {
    const Operand *key_cache, *value_cache, *pages, *lengths, *offsets, *key, *value;
    CacheForm form;
    bool ends;
} PagedTokens;
/* [token, head, depth]; with blocks [token, head * depth]. */
bool op_are_tokens_of(const Operand *tokens, const Operand *cache, CacheForm form);
bool op_is_small_token(const Operand *tokens);
aclnnStatus op_take_tokens(OpCall *op, const PagedTokens *tokens);

typedef struct Step {
    const Operand *tokens, *sampled, *positions, *lengths, *slots, *blocks;
    int64_t block_size;
    const Operand *guesses, *accepted; /* NULL: one token of each sequence */
} Step;
/* [count * width] or [count, width]. */
bool op_are_lines(const Operand *operand, int64_t count, int64_t width);
aclnnStatus op_advance_step(OpCall *op, const Step *step);

#endif
