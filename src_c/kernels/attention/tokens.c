#include "kernels/attention/tokens.h"

#include "kernels/attention/tiles.h"
#include "kernels/scratch.h"

View us_listed_lengths(const ListedTokens *listed, bool of_keys)
{
    const int64_t count = listed->sequences;
    const int32_t *lengths = listed->lengths + (of_keys ? count : 0);
    return count == 0 ? us_view_absent() : us_view_contiguous((void *)(uintptr_t)lengths, DTYPE_INT32, 1, &count);
}

static int64_t length_at(const View *lengths, int64_t sequence)
{
    return ((const int32_t *)lengths->data)[sequence * lengths->strides[0]];
}

static int64_t begin_of(const View *lengths, bool packed, int64_t sequence)
{
    return packed && sequence > 0 ? length_at(lengths, sequence - 1) : 0;
}

int64_t us_token_sequences(const Tokens *tokens)
{
    return tokens->layout.packed_rows ? tokens->row_lengths->shape[0] : tokens->rows->shape[0];
}

static int64_t count_of(const View *lengths, bool packed, int64_t sequence, int64_t full)
{
    return us_view_is_absent(lengths) ? full : length_at(lengths, sequence) - begin_of(lengths, packed, sequence);
}

static int64_t row_count(const Tokens *tokens, int64_t sequence)
{
    return count_of(tokens->row_lengths, tokens->layout.packed_rows, sequence, tokens->rows->shape[1]);
}

int64_t us_token_keys(const Tokens *tokens, int64_t sequence)
{
    return count_of(tokens->key_lengths, tokens->layout.packed_keys, sequence, tokens->keys->shape[1]);
}

/* ---- what is not there ---- */

static KernelStatus check_lengths(const View *lengths, bool packed, int64_t room, const char *what)
{
    for (int64_t s = 0; !us_view_is_absent(lengths) && s < lengths->shape[0]; s++) {
        const int64_t length = length_at(lengths, s), least = begin_of(lengths, packed, s);
        if (length < least || length > room) {
            return us_kernel_fault("%s of sequence %lld: %lld is not %lld to %lld", what, (long long)s, (long long)length,
                                   (long long)least, (long long)room);
        }
    }
    return KERNEL_OK;
}

static KernelStatus check_pages(const Tokens *tokens)
{
    const int64_t block = tokens->keys->shape[1], pages = tokens->keys->shape[0];
    for (int64_t s = 0; s < us_token_sequences(tokens); s++) {
        const int64_t count = ceiling(us_token_keys(tokens, s), block);
        for (int64_t i = 0; i < count; i++) {
            const int64_t page = attention_page_at(tokens->pages, s, i);
            if (page < 0 || page >= pages) {
                return us_kernel_fault("page %lld of sequence %lld is number %lld of %lld", (long long)i, (long long)s,
                                       (long long)page, (long long)pages);
            }
        }
    }
    return KERNEL_OK;
}

KernelStatus us_check_tokens(const Tokens *tokens)
{
    const TokenLayout *layout = &tokens->layout;
    const int64_t key_room = layout->paged ? us_scratch_count(tokens->pages->shape[1], tokens->keys->shape[1])
                                           : tokens->keys->shape[!layout->packed_keys];
    KernelStatus status = check_lengths(tokens->row_lengths, layout->packed_rows, tokens->rows->shape[!layout->packed_rows],
                                        "rows");
    status = status != KERNEL_OK ? status : check_lengths(tokens->key_lengths, layout->packed_keys, key_room, "keys");
    return status != KERNEL_OK || !layout->paged ? status : check_pages(tokens);
}

/* ---- rows and keys ---- */

int64_t us_token_rows(const Tokens *tokens)
{
    return us_shape_elements(tokens->layout.packed_rows ? 1 : 2, tokens->rows->shape);
}

int64_t us_longest_keys(const Tokens *tokens)
{
    int64_t most = 0;
    for (int64_t s = 0; s < us_token_sequences(tokens); s++) {
        most = larger(most, us_token_keys(tokens, s));
    }
    return most;
}

/* The first sequence that ends behind the row. */
static int64_t packed_sequence(const Tokens *tokens, int64_t row)
{
    int64_t low = 0, high = tokens->row_lengths->shape[0];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (length_at(tokens->row_lengths, middle) <= row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

TokenRow us_token_row(const Tokens *tokens, int64_t number)
{
    const bool packed = tokens->layout.packed_rows;
    const int64_t sequence = packed ? packed_sequence(tokens, number) : number / tokens->rows->shape[1];
    if (sequence == us_token_sequences(tokens)) {
        return (TokenRow){.sequence = -1};
    }
    const int64_t rows = row_count(tokens, sequence), keys = us_token_keys(tokens, sequence);
    const int64_t row = packed ? number - begin_of(tokens->row_lengths, true, sequence) : number % tokens->rows->shape[1];
    if (row >= rows) {
        return (TokenRow){.sequence = -1};
    }
    return (TokenRow){sequence, row, tokens->layout.causal ? larger(0, smaller(keys, row + 1 + keys - rows)) : keys};
}

TokenSpan us_token_span(const Tokens *tokens, int64_t sequence)
{
    const int64_t begin = tokens->layout.packed_rows ? begin_of(tokens->row_lengths, true, sequence)
                                                     : sequence * tokens->rows->shape[1];
    return (TokenSpan){begin, begin + row_count(tokens, sequence)};
}

int64_t us_token_key(const Tokens *tokens, int64_t sequence, int64_t key)
{
    const int64_t size = tokens->keys->shape[1];
    if (tokens->layout.paged) {
        return attention_page_at(tokens->pages, sequence, key / size) * size + key % size;
    }
    return tokens->layout.packed_keys ? begin_of(tokens->key_lengths, true, sequence) + key : sequence * size + key;
}

/* ---- selections ---- */

int64_t us_token_selected(const Tokens *tokens, const View *indices, int64_t number, int64_t i)
{
    const int64_t rows = indices->shape[1];
    const int64_t offset = tokens->layout.packed_rows ? number * indices->strides[0]
                                                      : number / rows * indices->strides[0] + number % rows * indices->strides[1];
    return ((const int32_t *)indices->data)[offset + i * indices->strides[indices->rank - 1]];
}

KernelStatus us_check_selected(const Tokens *tokens, const View *indices, int64_t block, int64_t *most)
{
    const int64_t count = last_size(indices, 1);
    *most = 0;
    for (int64_t number = 0; number < us_token_rows(tokens); number++) {
        const TokenRow row = us_token_row(tokens, number);
        const int64_t blocks = row.sequence < 0 ? 0 : ceiling(us_token_keys(tokens, row.sequence), block);
        int64_t keys = 0;
        for (int64_t i = 0; row.sequence >= 0 && i < count; i++) {
            const int64_t selected = us_token_selected(tokens, indices, number, i);
            if (selected < 0) {
                break;
            }
            if (selected >= blocks) {
                return us_kernel_fault("row %lld selects block %lld of a sequence of %lld", (long long)number,
                                       (long long)selected, (long long)blocks);
            }
            keys += bounded(row.keys - selected * block, 0, block);
        }
        *most = larger(*most, keys);
    }
    return KERNEL_OK;
}
