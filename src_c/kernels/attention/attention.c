#include "kernels/attention/tiles.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/quantize/nibbles.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

#include <string.h>

/* Numbers of a head that lie two in a byte. */
static void load_packed_row(const Head *head, int operand, int64_t row, int64_t count, float *to)
{
    us_lane_load(LANE_FLOAT, to, attention_place(head, operand, row), DTYPE_UINT8, 1, count / 2);
    us_bytes_to_nibbles(to, count / 2, to);
}

static void dequantize(float *x, const float *scale, const float *offset, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = (x[i] + offset[i]) * scale[i];
    }
}

/* Row by row, into `space`. */
static void dequantize_rows(const Head *head, int operand, int64_t first, int64_t rows, int64_t depth, float *space)
{
    const int of_scale = operand == KEY ? KEY_SCALE : VALUE_SCALE, of_offset = of_scale + 1;
    float scale[KEYS], offset[KEYS] = {0};
    for (int64_t row = first; row < first + rows; row++, space += depth) {
        if (head->attention->packed) {
            load_packed_row(head, operand, row, depth, space);
        } else {
            attention_load_row(head, operand, row, 0, depth, space);
        }
        for (int64_t at = 0; at < depth; at += KEYS) {
            const int64_t count = smaller(KEYS, depth - at);
            attention_load_row(head, of_scale, row, at, count, scale);
            if (attention_is_given(head, of_offset)) {
                attention_load_row(head, of_offset, row, at, count, offset);
            }
            dequantize(space + at, scale, offset, count);
        }
    }
}

/* The keys, or the values, of a tile. `space` is for numbers that integers stand for. */
static Matrix tile_matrix(const Head *head, int operand, Tile tile, float *space)
{
    const AttentionSizes *sizes = &head->attention->sizes;
    const int64_t first = head->sequence->key_begin + tile.key;
    if (!head->attention->dequantizes) {
        return attention_matrix_at(head, operand, first);
    }
    const int64_t depth = operand == KEY ? sizes->depth : sizes->value_depth;
    dequantize_rows(head, operand, first, tile.keys, depth, space);
    return matrix_of_rows(space, DTYPE_FLOAT32, depth);
}

/* What rows keep from tile to tile. */
typedef struct Rows {
    float maximum[ROWS], sum[ROWS], scores[ROWS * KEYS];
    float *out; /* ROWS x value_depth */
    float *dequantized; /* KEYS x the larger depth */
} Rows;

/* Weights that are to be integers need the largest score first. */
static KernelStatus find_maxima(const Head *head, Tile tile, Rows *rows)
{
    const KernelStatus status = attention_find_scores(head, tile, tile_matrix(head, KEY, tile, rows->dequantized), rows->scores);
    for (int64_t i = 0; i < tile.rows && status == KERNEL_OK; i++) {
        const float largest = attention_finish_scores(head, tile, i, rows->scores + i * tile.keys);
        rows->maximum[i] = largest > rows->maximum[i] ? largest : rows->maximum[i];
    }
    return status;
}

static void quantize_weights(float *weights, int64_t count, float scale)
{
    for (int64_t i = 0; i < count; i++) {
        const float whole = __builtin_rintf(weights[i] * scale);
        weights[i] = whole > 127 ? 127 : whole < -128 ? -128 : whole;
    }
}

static KernelStatus add_tile(const Head *head, Tile tile, Rows *rows)
{
    const int64_t depth = head->attention->sizes.value_depth;
    const Matrix keys = tile_matrix(head, KEY, tile, rows->dequantized);
    KernelStatus status = attention_find_scores(head, tile, keys, rows->scores);
    for (int64_t i = 0; i < tile.rows && status == KERNEL_OK; i++) {
        float *scores = rows->scores + i * tile.keys;
        const float largest = attention_finish_scores(head, tile, i, scores), before = rows->maximum[i];
        const float maximum = largest > before ? largest : before;
        const float base = maximum == -INFINITY ? 0 : maximum; /* all left out: every e^(-infinity) is 0 */
        const float sum = attention_exponentials(scores, tile.keys, base);
        const float fading = before == -INFINITY ? 0 : exp_float(before - base);
        if (fading != 1) {
            attention_multiply(rows->out + i * depth, depth, fading);
        }
        rows->sum[i] = rows->sum[i] * fading + sum;
        rows->maximum[i] = maximum;
        attention_drop_row(head, tile, i, scores);
        if (head->attention->all_integers) {
            quantize_weights(scores, tile.keys, attention_one_number(head, WEIGHT_SCALE));
        }
    }
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(tile.rows, depth, tile.keys,
                                                   matrix_of_rows(rows->scores, DTYPE_FLOAT32, tile.keys),
                                                   tile_matrix(head, VALUE, tile, rows->dequantized), rows->out, true);
}

static void store_statistic(const Head *head, int operand, int64_t row, float value)
{
    if (attention_is_given(head, operand)) {
        const View *view = &head->views[operand];
        for (int64_t k = 0; k < head->attention->copies; k++) {
            ((float *)attention_place(head, operand, row))[k * view->strides[3]] = value;
        }
    }
}

static void quantize(float *values, const float *scale, const float *shift, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = __builtin_rintf(values[i] * scale[i] + shift[i]);
    }
}

static void quantize_row(const Head *head, float *out, int64_t depth)
{
    float scale[KEYS], shift[KEYS] = {0};
    for (int64_t first = 0; first < depth; first += KEYS) {
        const int64_t count = smaller(KEYS, depth - first);
        attention_load_row(head, RESULT_SCALE, 0, first, count, scale);
        if (attention_is_given(head, RESULT_SHIFT)) {
            attention_load_row(head, RESULT_SHIFT, 0, first, count, shift);
        }
        quantize(out + first, scale, shift, count);
    }
}

/* The score that has no value: it only takes weight from the others. */
static void add_sink(const Head *head, Rows *rows, int64_t i, int64_t depth)
{
    float sink;
    attention_load_row(head, SINK, 0, 0, 1, &sink);
    const float before = rows->maximum[i], maximum = sink > before ? sink : before;
    const float fading = exp_float(before - maximum);
    attention_multiply(rows->out + i * depth, depth, fading);
    rows->sum[i] = rows->sum[i] * fading + exp_float(sink - maximum);
    rows->maximum[i] = maximum;
}

static void finish_rows(const Head *head, Tile tile, Rows *rows)
{
    const int64_t depth = head->attention->sizes.value_depth, first = head->sequence->query_begin + tile.row;
    for (int64_t i = 0; i < tile.rows; i++) {
        if (attention_is_given(head, SINK) && rows->sum[i] != 0) {
            add_sink(head, rows, i, depth);
        }
        const float factor = head->attention->all_integers ? attention_one_number(head, PRODUCT_SCALE) : 1;
        attention_multiply(rows->out + i * depth, depth, rows->sum[i] == 0 ? 0 : factor / rows->sum[i]);
        const float joint = rows->sum[i] == 0 ? INFINITY : rows->maximum[i] + log_float(rows->sum[i]);
        store_statistic(head, MAXIMUM, first + i, head->attention->joins ? joint : rows->maximum[i]);
        store_statistic(head, SUM, first + i, rows->sum[i]);
        if (head->attention->quantizes) {
            quantize_row(head, rows->out + i * depth, depth);
        }
    }
    attention_store_rows(head, OUT, first, tile.rows, depth, rows->out);
}

/* The tiles of some rows, along the keys, that any of them sees. */
static KernelStatus for_tiles(const Head *head, Tile tile, KernelStatus (*work)(const Head *, Tile, Rows *), Rows *rows)
{
    const int64_t keys = head->sequence->key_count, block = head->attention->block, shared = head->attention->shared;
    KernelStatus status = KERNEL_OK;
    for (; tile.key < keys && status == KERNEL_OK; tile.key += tile.keys) {
        tile.keys = smaller(KEYS, keys - tile.key);
        tile.keys = block > 0 ? smaller(tile.keys, block - tile.key % block) : tile.keys;
        tile.keys = tile.key < shared ? smaller(tile.keys, shared - tile.key) : tile.keys;
        status = attention_is_seen(head, tile) ? work(head, tile, rows) : KERNEL_OK;
    }
    return status;
}

static KernelStatus attend_rows(const Head *head, int64_t row)
{
    const int64_t depth = head->attention->sizes.value_depth;
    const int64_t wider = head->attention->sizes.depth > depth ? head->attention->sizes.depth : depth;
    const size_t of_out = us_scratch_bytes(depth, ROWS * sizeof(float));
    const size_t of_keys = us_scratch_bytes(head->attention->dequantizes ? wider : 0, KEYS * sizeof(float));
    char *cursor = us_scratch_take(us_scratch_round(sizeof(Rows)) + of_out + of_keys);
    if (cursor == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Rows *rows = us_scratch_part(&cursor, sizeof *rows);
    rows->out = us_scratch_part(&cursor, of_out);
    rows->dequantized = (float *)cursor;
    const Tile tile = {row, smaller(ROWS, head->sequence->query_count - row), 0, 0};
    memset(rows->out, 0, (size_t)(ROWS * depth) * sizeof(float));
    for (int64_t i = 0; i < tile.rows; i++) {
        rows->maximum[i] = -INFINITY;
        rows->sum[i] = 0;
    }
    KernelStatus status = head->attention->all_integers ? for_tiles(head, tile, find_maxima, rows) : KERNEL_OK;
    status = status == KERNEL_OK ? for_tiles(head, tile, add_tile, rows) : status;
    if (status == KERNEL_OK) {
        finish_rows(head, tile, rows);
    }
    us_scratch_give_back(rows);
    return status;
}

/* The last rows first: with a triangle they take longest. */
static void attend_piece(void *context, int64_t piece)
{
    Work *work = context;
    const int64_t heads = work->attention->sizes.heads;
    const int64_t block = work->blocks - 1 - piece % work->blocks, line = piece / work->blocks;
    const Head head = attention_head_of(work->attention, work->views, line / heads, line % heads);
    if (block * ROWS < head.sequence->query_count) {
        attention_note(work, attend_rows(&head, block * ROWS));
    }
}

static KernelStatus check_pages(const Attention *attention, const View *views)
{
    const int64_t count = views[KEY].shape[0];
    for (int64_t s = 0; attention->block > 0 && s < attention->sizes.sequences; s++) {
        for (int64_t number = 0; number * attention->block < attention->of[s].key_count; number++) {
            const int64_t page = attention_page_at(&views[PAGES], s, number);
            if (page < 0 || page >= count) {
                return us_kernel_fault("page %lld of sequence %lld is number %lld of %lld", (long long)number,
                                       (long long)s, (long long)page, (long long)count);
            }
        }
    }
    return KERNEL_OK;
}

/* Where `count` places begin that have so many others after them: -1 where there is no room. */
static int64_t begin_before(const View *padding, int64_t room, int64_t count)
{
    const int64_t behind = *(const int64_t *)padding->data;
    return behind > room - count ? -1 : room - count - (behind > 0 ? behind : 0);
}

/* The sequences at the places that paddings in the device's memory leave them. */
static void pad_sequences(Attention *attention, const View *views)
{
    for (int64_t s = 0; s < attention->sizes.sequences; s++) {
        AttentionSequence *sequence = &attention->of[s];
        int64_t row = 0, key = 0;
        if (!us_view_is_absent(&views[QUERY_PADDING])) {
            row = begin_before(&views[QUERY_PADDING], sequence->query_count, sequence->seen_rows);
        }
        if (!us_view_is_absent(&views[KEY_PADDING])) {
            key = begin_before(&views[KEY_PADDING], views[KEY].shape[2], sequence->key_count);
        }
        const bool fits = row >= 0 && key >= 0;
        sequence->row_begin = fits ? row : 0;
        sequence->key_begin = sequence->key_begin_in_scores = fits ? key : 0;
        sequence->seen_rows = fits ? sequence->seen_rows : 0;
    }
}

static KernelStatus attend(const Attention *attention, const View *views)
{
    const AttentionSizes *sizes = &attention->sizes;
    Work work = {.attention = attention, .views = views, .blocks = (attention_longest(attention, false) + ROWS - 1) / ROWS};
    const int64_t pieces = sizes->sequences * sizes->heads * work.blocks;
    run_pieces(pieces, us_scratch_count(pieces * ROWS, attention_longest(attention, true)), attend_piece, &work);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_attention(const View *views, const void *attributes)
{
    const Attention *attention = attributes;
    KernelStatus status = check_pages(attention, views);
    if (status != KERNEL_OK || (us_view_is_absent(&views[QUERY_PADDING]) && us_view_is_absent(&views[KEY_PADDING]))) {
        return status != KERNEL_OK ? status : attend(attention, views);
    }
    const size_t size = sizeof *attention + (size_t)attention->sizes.sequences * sizeof *attention->of;
    Attention *padded = us_scratch_take(size);
    if (padded == NULL) {
        return KERNEL_NO_MEMORY;
    }
    memcpy(padded, attention, size);
    pad_sequences(padded, views);
    status = attend(padded, views);
    us_scratch_give_back(padded);
    return status;
}
