#include "kernels/attention/attention.h"

#include "kernels/matmul/matmul.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/quantize/nibbles.h"
#include "kernels/scratch.h"
#include "tensor/clones.h"
#include "tensor/lane.h"

#include <string.h>

/* Rows and keys of a tile; sums of a row; pieces that a backward pass is cut into where there are few heads. */
enum { ROWS = 128, KEYS = 128, PARTS = 16, BACKWARD_PIECES = 8 };

/* ---- rows of scores ---- */

US_ALWAYS_INLINE float sum_of_parts(const float *sums)
{
    float total = 0;
    for (int k = 0; k < PARTS; k++) {
        total += sums[k];
    }
    return total;
}

/* t = t * scale + shift, and the largest of them. */
KERNEL_CLONES static float scale_row(float *t, int64_t count, float scale, const float *shift, float shift_scale)
{
    for (int64_t i = 0; i < count; i++) {
        t[i] *= scale;
    }
    for (int64_t i = 0; shift != NULL && i < count; i++) {
        t[i] += shift_scale * shift[i];
    }
    float parts[PARTS], largest = -INFINITY;
    for (int k = 0; k < PARTS; k++) {
        parts[k] = -INFINITY;
    }
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            parts[k] = t[i + k] > parts[k] ? t[i + k] : parts[k];
        }
    }
    for (; i < count; i++) {
        largest = t[i] > largest ? t[i] : largest;
    }
    for (int k = 0; k < PARTS; k++) {
        largest = parts[k] > largest ? parts[k] : largest;
    }
    return largest;
}

/* t = e^(t - maximum), and their sum. */
KERNEL_CLONES static float exponentials(float *t, int64_t count, float maximum)
{
    float parts[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            t[i + k] = exp_float(t[i + k] - maximum);
            parts[k] += t[i + k];
        }
    }
    for (int k = 0; i < count; i++, k++) {
        t[i] = exp_float(t[i] - maximum);
        parts[k] += t[i];
    }
    return sum_of_parts(parts);
}

KERNEL_CLONES static void multiply(float *x, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] *= factor;
    }
}

KERNEL_CLONES static float inner_product(const float *a, const float *b, int64_t count)
{
    float parts[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            parts[k] += a[i + k] * b[i + k];
        }
    }
    for (int k = 0; i < count; i++, k++) {
        parts[k] += a[i] * b[i];
    }
    return sum_of_parts(parts);
}

/* ---- operands ---- */

/* One head of one sequence. */
typedef struct Head {
    const Attention *attention;
    const View *views;
    const AttentionSequence *sequence;
    int64_t batch, head, key_head;
} Head;

static Head head_of(const Attention *attention, const View *views, int64_t batch, int64_t head)
{
    const AttentionSizes *sizes = &attention->sizes;
    return (Head){attention, views, &attention->of[batch], batch, head, head / (sizes->heads / sizes->key_heads)};
}

/* The view that has a row of the operand. */
static const View *view_of(const Head *head, int operand, int64_t row)
{
    if (operand != KEY && operand != VALUE) {
        return &head->views[operand];
    }
    const int64_t listed = head->attention->listed ? LISTED + 2 * head->batch : KEY;
    return &head->views[(row < head->attention->shared ? SHARED_KEY : listed) + (operand == VALUE)];
}

static int64_t page_at(const View *pages, int64_t sequence, int64_t number)
{
    return ((const int32_t *)pages->data)[sequence * pages->strides[0] + number * pages->strides[1]];
}

/* Element (row, 0) of the head. */
static void *place(const Head *head, int operand, int64_t row)
{
    const View *view = view_of(head, operand, row);
    const bool is_shared = view == &head->views[SHARED_KEY] || view == &head->views[SHARED_VALUE];
    row -= (operand == KEY || operand == VALUE) && !is_shared ? head->attention->shared : 0;
    const bool of_key = operand == KEY || operand == VALUE || operand == KEY_GRADIENT || operand == VALUE_GRADIENT ||
                        operand >= ROTARY_KEY;
    const bool in_pages = of_key && (operand < KEY_SCALE || head->attention->scales_in_pages);
    const int64_t block = in_pages ? head->attention->block : 0;
    int64_t batch = view == &head->views[operand] ? head->batch : 0;
    if (block > 0) {
        batch = page_at(&head->views[PAGES], head->batch, row / block);
        row %= block;
    }
    const int64_t offset = batch * view->strides[0] + (of_key ? head->key_head : head->head) * view->strides[1] +
                           row * view->strides[2];
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* Rows from `row` on as a matrix. */
static Matrix matrix_at(const Head *head, int operand, int64_t row)
{
    const View *view = view_of(head, operand, row);
    return (Matrix){.data = place(head, operand, row), .dtype = view->dtype, .row = view->strides[2],
                    .column = view->strides[3]};
}

static Matrix transposed(Matrix matrix)
{
    const int64_t row = matrix.row;
    matrix.row = matrix.column;
    matrix.column = row;
    return matrix;
}

/* c = a b, or c += a b. */
static KernelStatus multiply_matrices(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float *c, bool adds)
{
    const Matrix result = matrix_of_rows(c, DTYPE_FLOAT32, n);
    const Matmul product = {.m = m, .n = n, .k = k, .a = a, .b = b, .addend = adds ? result : (Matrix){0}, .c = result,
                            .compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {adds ? 1 : 0}, .undivided = true};
    return us_matmul(&product);
}

/* Numbers of a head that lie two in a byte. */
static void load_packed_row(const Head *head, int operand, int64_t row, int64_t count, float *to)
{
    us_lane_load(LANE_FLOAT, to, place(head, operand, row), DTYPE_UINT8, 1, count / 2);
    us_bytes_to_nibbles(to, count / 2, to);
}

static void load_row(const Head *head, int operand, int64_t row, int64_t first, int64_t count, float *to)
{
    const View *view = view_of(head, operand, row);
    const char *from = (const char *)place(head, operand, row) +
                       first * view->strides[3] * (int64_t)us_dtype_size(view->dtype);
    us_lane_load(LANE_FLOAT, to, from, view->dtype, view->strides[3], count);
}

static void store_rows(const Head *head, int operand, int64_t row, int64_t rows, int64_t count, const float *from)
{
    const View *view = &head->views[operand];
    for (int64_t i = 0; i < rows; i++) {
        us_lane_store(LANE_FLOAT, place(head, operand, row + i), view->dtype, view->strides[3], from + i * count,
                      count);
    }
}

static bool is_given(const Head *head, int operand)
{
    return !us_view_is_absent(&head->views[operand]);
}

/* ---- tiles ---- */

typedef struct Tile {
    int64_t row, rows, key, keys; /* within the sequence */
} Tile;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Whether any score of the tile is kept. */
static bool is_seen(const AttentionSequence *sequence, Tile tile)
{
    const int64_t row = tile.row - sequence->row_begin;
    const bool in_band = tile.key <= row + tile.rows - 1 + sequence->high &&
                         tile.key + tile.keys - 1 >= row + sequence->low;
    return in_band || tile.key < sequence->prefix;
}

static void leave_out(float *t, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j++) {
        t[j] = -INFINITY;
    }
}

/* Scores of the row that are outside the band and the prefix, or masked, become -infinity. */
static void mask_row(const Head *head, Tile tile, int64_t i, float *t)
{
    const AttentionSequence *sequence = head->sequence;
    const int64_t row = tile.row + i - sequence->row_begin;
    if (row < 0 || row >= sequence->seen_rows) {
        leave_out(t, 0, tile.keys);
        return;
    }
    const int64_t prefix = sequence->prefix - tile.key, low = row + sequence->low - tile.key;
    const int64_t high = row + sequence->high + 1 - tile.key;
    leave_out(t, prefix > 0 ? prefix : 0, smaller(low, tile.keys));
    leave_out(t, high > prefix ? (high > 0 ? high : 0) : (prefix > 0 ? prefix : 0), tile.keys);
    if (is_given(head, MASK)) {
        const int64_t step = head->views[MASK].strides[3];
        const uint8_t *mask = (const uint8_t *)place(head, MASK, tile.row + i) +
                              (tile.key + sequence->key_begin_in_scores) * step;
        for (int64_t j = 0; j < tile.keys; j++) {
            t[j] = mask[j * step] != 0 ? -INFINITY : t[j];
        }
    }
}

/* Weights that the dropout's mask does not keep become 0, the others grow. */
static void drop_row(const Head *head, Tile tile, int64_t i, float *weights)
{
    if (!is_given(head, DROP)) {
        return;
    }
    const View *drop = &head->views[DROP];
    const AttentionSequence *sequence = head->sequence;
    const float factor = 1 / head->attention->keep;
    const int64_t first = sequence->drop_begin + tile.key +
                          (head->head * sequence->query_count + tile.row + i) * sequence->key_count;
    for (int64_t j = 0; j < tile.keys; j++) {
        const int64_t bit = first + j;
        const uint8_t byte = ((const uint8_t *)drop->data)[bit / 8 * drop->strides[0]];
        weights[j] = byte >> bit % 8 & 1 ? weights[j] * factor : 0;
    }
}

KERNEL_CLONES static void dequantize(float *x, const float *scale, const float *offset, int64_t count)
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
            load_row(head, operand, row, 0, depth, space);
        }
        for (int64_t at = 0; at < depth; at += KEYS) {
            const int64_t count = smaller(KEYS, depth - at);
            load_row(head, of_scale, row, at, count, scale);
            if (is_given(head, of_offset)) {
                load_row(head, of_offset, row, at, count, offset);
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
        return matrix_at(head, operand, first);
    }
    const int64_t depth = operand == KEY ? sizes->depth : sizes->value_depth;
    dequantize_rows(head, operand, first, tile.keys, depth, space);
    return matrix_of_rows(space, DTYPE_FLOAT32, depth);
}

static float one_number(const Head *head, int operand)
{
    return *(const float *)head->views[operand].data;
}

/* q k^T of a tile. */
static KernelStatus find_scores(const Head *head, Tile tile, Matrix keys, float *scores)
{
    const int64_t row = head->sequence->query_begin + tile.row, key = head->sequence->key_begin + tile.key;
    const int64_t rotary = head->attention->rotary_depth;
    const KernelStatus status =
        multiply_matrices(tile.rows, tile.keys, head->attention->sizes.depth, matrix_at(head, QUERY, row),
                          transposed(keys), scores, false);
    if (head->attention->all_integers) {
        multiply(scores, tile.rows * tile.keys, one_number(head, SCORE_SCALE));
    }
    return status != KERNEL_OK || rotary == 0
               ? status
               : multiply_matrices(tile.rows, tile.keys, rotary, matrix_at(head, ROTARY_QUERY, row),
                                   transposed(matrix_at(head, ROTARY_KEY, key)), scores, true);
}

/* A row of scores, scaled, shifted and masked; the largest. */
static float finish_scores(const Head *head, Tile tile, int64_t i, float *scores)
{
    float shift[KEYS];
    const bool shifts = is_given(head, SHIFT);
    if (shifts) {
        load_row(head, SHIFT, tile.row + i, tile.key + head->sequence->key_begin_in_scores, tile.keys, shift);
    }
    mask_row(head, tile, i, scores);
    return scale_row(scores, tile.keys, head->attention->scale, shifts ? shift : NULL, head->attention->shift_scale);
}

/* ---- forwards ---- */

/* What rows keep from tile to tile. */
typedef struct Rows {
    float maximum[ROWS], sum[ROWS], scores[ROWS * KEYS];
    float *out; /* ROWS x value_depth */
    float *dequantized; /* KEYS x the larger depth */
} Rows;

/* Weights that are to be integers need the largest score first. */
static KernelStatus find_maxima(const Head *head, Tile tile, Rows *rows)
{
    const KernelStatus status = find_scores(head, tile, tile_matrix(head, KEY, tile, rows->dequantized), rows->scores);
    for (int64_t i = 0; i < tile.rows && status == KERNEL_OK; i++) {
        const float largest = finish_scores(head, tile, i, rows->scores + i * tile.keys);
        rows->maximum[i] = largest > rows->maximum[i] ? largest : rows->maximum[i];
    }
    return status;
}

KERNEL_CLONES static void quantize_weights(float *weights, int64_t count, float scale)
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
    KernelStatus status = find_scores(head, tile, keys, rows->scores);
    for (int64_t i = 0; i < tile.rows && status == KERNEL_OK; i++) {
        float *scores = rows->scores + i * tile.keys;
        const float largest = finish_scores(head, tile, i, scores), before = rows->maximum[i];
        const float maximum = largest > before ? largest : before;
        const float base = maximum == -INFINITY ? 0 : maximum; /* all left out: every e^(-infinity) is 0 */
        const float sum = exponentials(scores, tile.keys, base);
        const float fading = before == -INFINITY ? 0 : exp_float(before - base);
        if (fading != 1) {
            multiply(rows->out + i * depth, depth, fading);
        }
        rows->sum[i] = rows->sum[i] * fading + sum;
        rows->maximum[i] = maximum;
        drop_row(head, tile, i, scores);
        if (head->attention->all_integers) {
            quantize_weights(scores, tile.keys, one_number(head, WEIGHT_SCALE));
        }
    }
    return status != KERNEL_OK ? status
                               : multiply_matrices(tile.rows, depth, tile.keys,
                                                   matrix_of_rows(rows->scores, DTYPE_FLOAT32, tile.keys),
                                                   tile_matrix(head, VALUE, tile, rows->dequantized), rows->out, true);
}

static void store_statistic(const Head *head, int operand, int64_t row, float value)
{
    if (is_given(head, operand)) {
        const View *view = &head->views[operand];
        for (int64_t k = 0; k < head->attention->copies; k++) {
            ((float *)place(head, operand, row))[k * view->strides[3]] = value;
        }
    }
}

KERNEL_CLONES static void quantize(float *values, const float *scale, const float *shift, int64_t count)
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
        load_row(head, RESULT_SCALE, 0, first, count, scale);
        if (is_given(head, RESULT_SHIFT)) {
            load_row(head, RESULT_SHIFT, 0, first, count, shift);
        }
        quantize(out + first, scale, shift, count);
    }
}

static void finish_rows(const Head *head, Tile tile, Rows *rows)
{
    const int64_t depth = head->attention->sizes.value_depth, first = head->sequence->query_begin + tile.row;
    for (int64_t i = 0; i < tile.rows; i++) {
        const float factor = head->attention->all_integers ? one_number(head, PRODUCT_SCALE) : 1;
        multiply(rows->out + i * depth, depth, rows->sum[i] == 0 ? 0 : factor / rows->sum[i]);
        const float joint = rows->sum[i] == 0 ? INFINITY : rows->maximum[i] + log_float(rows->sum[i]);
        store_statistic(head, MAXIMUM, first + i, head->attention->joins ? joint : rows->maximum[i]);
        store_statistic(head, SUM, first + i, rows->sum[i]);
        if (head->attention->quantizes) {
            quantize_row(head, rows->out + i * depth, depth);
        }
    }
    store_rows(head, OUT, first, tile.rows, depth, rows->out);
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
        status = is_seen(head->sequence, tile) ? work(head, tile, rows) : KERNEL_OK;
    }
    return status;
}

static KernelStatus attend_rows(const Head *head, int64_t row)
{
    const int64_t depth = head->attention->sizes.value_depth;
    const int64_t wider = head->attention->sizes.depth > depth ? head->attention->sizes.depth : depth;
    const size_t of_out = (size_t)(ROWS * depth) * sizeof(float);
    const size_t of_keys = head->attention->dequantizes ? (size_t)(KEYS * wider) * sizeof(float) : 0;
    char *cursor = us_scratch_take(us_scratch_round(sizeof(Rows)) + us_scratch_round(of_out) + of_keys);
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

/* ---- pieces of work ---- */

typedef struct Work {
    const Attention *attention;
    const View *views;
    int64_t blocks; /* forwards: of rows; backwards: ranges of keys. Of the longest sequence */
    int64_t range_keys;
    float *partial; /* backwards: gradients of the query, for every sequence, head and range of keys */
    bool out_of_memory;
} Work;

static int64_t longest(const Attention *attention, bool of_keys)
{
    int64_t most = 0;
    for (int64_t s = 0; s < attention->sizes.sequences; s++) {
        const int64_t count = of_keys ? attention->of[s].key_count : attention->of[s].query_count;
        most = count > most ? count : most;
    }
    return most;
}

static void note(Work *work, KernelStatus status)
{
    if (status != KERNEL_OK) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
    }
}

/* The last rows first: with a triangle they take longest. */
static void attend_piece(void *context, int64_t piece)
{
    Work *work = context;
    const int64_t heads = work->attention->sizes.heads;
    const int64_t block = work->blocks - 1 - piece % work->blocks, line = piece / work->blocks;
    const Head head = head_of(work->attention, work->views, line / heads, line % heads);
    if (block * ROWS < head.sequence->query_count) {
        note(work, attend_rows(&head, block * ROWS));
    }
}

static KernelStatus check_pages(const Attention *attention, const View *views)
{
    const int64_t count = views[KEY].shape[0];
    for (int64_t s = 0; attention->block > 0 && s < attention->sizes.sequences; s++) {
        for (int64_t number = 0; number * attention->block < attention->of[s].key_count; number++) {
            const int64_t page = page_at(&views[PAGES], s, number);
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
    Work work = {.attention = attention, .views = views, .blocks = (longest(attention, false) + ROWS - 1) / ROWS};
    const int64_t pieces = sizes->sequences * sizes->heads * work.blocks;
    run_pieces(pieces, pieces * ROWS * longest(attention, true), attend_piece, &work);
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

/* ---- backwards ---- */

/* What a tile needs, and the gradients of its keys. */
typedef struct Space {
    float weights[ROWS * KEYS], slopes[ROWS * KEYS];
    float *out, *out_gradient;          /* a row each */
    float *key_gradient, *value_gradient; /* KEYS x depth, KEYS x value_depth */
    float *query_gradient;              /* of the head at hand, query_count x depth */
} Space;

static float first_of_row(const Head *head, int operand, int64_t row)
{
    return *(const float *)place(head, operand, row);
}

/* Weights, after dropout, and slopes of the scores. */
static void find_slopes(const Head *head, Tile tile, Space *space)
{
    const int64_t depth = head->attention->sizes.value_depth, first = head->sequence->query_begin + tile.row;
    for (int64_t i = 0; i < tile.rows; i++) {
        float *weights = space->weights + i * tile.keys, *slopes = space->slopes + i * tile.keys;
        const float maximum = first_of_row(head, MAXIMUM, first + i), sum = first_of_row(head, SUM, first + i);
        load_row(head, OUT, first + i, 0, depth, space->out);
        load_row(head, OUT_GRADIENT, first + i, 0, depth, space->out_gradient);
        const float mean = inner_product(space->out, space->out_gradient, depth);
        finish_scores(head, tile, i, weights);
        exponentials(weights, tile.keys, maximum == -INFINITY ? 0 : maximum);
        multiply(weights, tile.keys, sum == 0 ? 0 : 1 / sum);
        drop_row(head, tile, i, slopes);
        for (int64_t j = 0; j < tile.keys; j++) {
            slopes[j] = weights[j] * (slopes[j] - mean);
        }
        drop_row(head, tile, i, weights);
    }
}

static KernelStatus differentiate_tile(const Head *head, Tile tile, Space *space)
{
    const AttentionSizes *sizes = &head->attention->sizes;
    const int64_t row = head->sequence->query_begin + tile.row, key = head->sequence->key_begin + tile.key;
    const Matrix gradient = matrix_at(head, OUT_GRADIENT, row);
    const Matrix weights = matrix_of_rows(space->weights, DTYPE_FLOAT32, tile.keys);
    const Matrix slopes = matrix_of_rows(space->slopes, DTYPE_FLOAT32, tile.keys);
    KernelStatus status = find_scores(head, tile, matrix_at(head, KEY, key), space->weights);
    status = status != KERNEL_OK ? status
                                 : multiply_matrices(tile.rows, tile.keys, sizes->value_depth, gradient,
                                                     transposed(matrix_at(head, VALUE, key)), space->slopes, false);
    if (status != KERNEL_OK) {
        return status;
    }
    find_slopes(head, tile, space);
    status = multiply_matrices(tile.keys, sizes->value_depth, tile.rows, transposed(weights), gradient,
                               space->value_gradient, true);
    status = status != KERNEL_OK ? status
                                 : multiply_matrices(tile.keys, sizes->depth, tile.rows, transposed(slopes),
                                                     matrix_at(head, QUERY, row), space->key_gradient, true);
    return status != KERNEL_OK ? status
                               : multiply_matrices(tile.rows, sizes->depth, tile.keys, slopes,
                                                   matrix_at(head, KEY, key),
                                                   space->query_gradient + tile.row * sizes->depth, true);
}

static float *partial_of(const Work *work, int64_t batch, int64_t head, int64_t range)
{
    const AttentionSizes *sizes = &work->attention->sizes;
    const AttentionSequence *sequence = &work->attention->of[batch];
    const int64_t rows = (sequence->rows_before * sizes->heads + head * sequence->query_count) * work->blocks;
    return work->partial + (rows + range * sequence->query_count) * sizes->depth;
}

/* All rows that see some keys, of all heads that share them. */
static KernelStatus differentiate_keys(const Work *work, int64_t batch, int64_t key_head, int64_t key, int64_t keys,
                                       Space *space)
{
    const AttentionSizes *sizes = &work->attention->sizes;
    const int64_t shared = sizes->heads / sizes->key_heads;
    memset(space->key_gradient, 0, (size_t)(KEYS * sizes->depth) * sizeof(float));
    memset(space->value_gradient, 0, (size_t)(KEYS * sizes->value_depth) * sizeof(float));
    Head head = head_of(work->attention, work->views, batch, key_head * shared);
    KernelStatus status = KERNEL_OK;
    for (; head.head < (key_head + 1) * shared; head.head++) {
        space->query_gradient = partial_of(work, batch, head.head, key / work->range_keys);
        Tile tile = {.key = key, .keys = keys};
        for (; tile.row < head.sequence->query_count && status == KERNEL_OK; tile.row += ROWS) {
            tile.rows = smaller(ROWS, head.sequence->query_count - tile.row);
            status = is_seen(head.sequence, tile) ? differentiate_tile(&head, tile, space) : KERNEL_OK;
        }
    }
    multiply(space->key_gradient, keys * sizes->depth, work->attention->scale);
    head.head = key_head * shared;
    store_rows(&head, KEY_GRADIENT, head.sequence->key_begin + key, keys, sizes->depth, space->key_gradient);
    store_rows(&head, VALUE_GRADIENT, head.sequence->key_begin + key, keys, sizes->value_depth, space->value_gradient);
    return status;
}

static Space *take_space(const AttentionSizes *sizes)
{
    const size_t rows = (size_t)sizes->value_depth * sizeof(float);
    const size_t keys = (size_t)(KEYS * sizes->depth) * sizeof(float), values = KEYS * rows;
    char *cursor = us_scratch_take(us_scratch_round(sizeof(Space)) + 2 * us_scratch_round(rows) +
                                   us_scratch_round(keys) + us_scratch_round(values));
    if (cursor == NULL) {
        return NULL;
    }
    Space *space = us_scratch_part(&cursor, sizeof *space);
    space->out = us_scratch_part(&cursor, rows);
    space->out_gradient = us_scratch_part(&cursor, rows);
    space->key_gradient = us_scratch_part(&cursor, keys);
    space->value_gradient = us_scratch_part(&cursor, values);
    return space;
}

static void differentiate_piece(void *context, int64_t piece)
{
    Work *work = context;
    const AttentionSizes *sizes = &work->attention->sizes;
    const int64_t range = piece % work->blocks, line = piece / work->blocks;
    const int64_t batch = line / sizes->key_heads, key_head = line % sizes->key_heads;
    const int64_t shared = sizes->heads / sizes->key_heads;
    for (int64_t head = key_head * shared; head < (key_head + 1) * shared; head++) {
        memset(partial_of(work, batch, head, range), 0,
               (size_t)(work->attention->of[batch].query_count * sizes->depth) * sizeof(float));
    }
    const int64_t count = work->attention->of[batch].key_count;
    const int64_t end = smaller((range + 1) * work->range_keys, count);
    Space *space = take_space(sizes);
    KernelStatus status = space == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    for (int64_t key = range * work->range_keys; key < end && status == KERNEL_OK; key += KEYS) {
        status = differentiate_keys(work, batch, key_head, key, smaller(KEYS, end - key), space);
    }
    us_scratch_give_back(space);
    note(work, status);
}

/* The ranges' gradients of a query, one after the other. */
static void store_query_gradient(void *context, int64_t piece)
{
    const Work *work = context;
    const AttentionSizes *sizes = &work->attention->sizes;
    const Head head = head_of(work->attention, work->views, piece / sizes->heads, piece % sizes->heads);
    const int64_t count = head.sequence->query_count * sizes->depth;
    float *sum = partial_of(work, head.batch, head.head, 0);
    for (int64_t range = 1; range < work->blocks; range++) {
        const float *own = partial_of(work, head.batch, head.head, range);
        for (int64_t i = 0; i < count; i++) {
            sum[i] += own[i];
        }
    }
    multiply(sum, count, work->attention->scale);
    store_rows(&head, QUERY_GRADIENT, head.sequence->query_begin, head.sequence->query_count, sizes->depth, sum);
}

KernelStatus us_attention_backward(const View *views, const void *attributes)
{
    const Attention *attention = attributes;
    const AttentionSizes *sizes = &attention->sizes;
    Work work = {.attention = attention, .views = views};
    const int64_t lines = sizes->sequences * sizes->key_heads, keys = longest(attention, true);
    const int64_t tiles = keys > 0 ? (keys + KEYS - 1) / KEYS : 1;
    const int64_t ranges = lines >= BACKWARD_PIECES ? 1 : smaller(BACKWARD_PIECES / (lines > 0 ? lines : 1), tiles);
    work.range_keys = (tiles + ranges - 1) / ranges * KEYS;
    work.blocks = (tiles * KEYS + work.range_keys - 1) / work.range_keys;
    const AttentionSequence *last = &attention->of[sizes->sequences - 1];
    const int64_t rows = (last->rows_before + last->query_count) * sizes->heads * work.blocks;
    work.partial = us_scratch_take((size_t)(rows * sizes->depth) * sizeof(float));
    if (work.partial == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(lines * work.blocks, rows * keys, differentiate_piece, &work);
    if (!work.out_of_memory) {
        run_pieces(sizes->sequences * sizes->heads, rows * sizes->depth, store_query_gradient, &work);
    }
    us_scratch_give_back(work.partial);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}
