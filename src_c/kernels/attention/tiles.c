#include "kernels/attention/tiles.h"

#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

#include <string.h>

float attention_scale(float *t, int64_t count, float scale, const float *shift, float shift_scale)
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

float attention_exponentials(float *t, int64_t count, float maximum)
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

void attention_multiply(float *x, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] *= factor;
    }
}

void attention_add(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

void attention_fill_zeros(const View *view)
{
    static const int64_t zero;
    View zeros = *view;
    zeros.data = (void *)(uintptr_t)&zero;
    memset(zeros.strides, 0, sizeof zeros.strides);
    us_copy_view(view, &zeros);
}

Head attention_head_of(const Attention *attention, const View *views, int64_t batch, int64_t head)
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

int64_t attention_page_at(const View *pages, int64_t sequence, int64_t number)
{
    return ((const int32_t *)pages->data)[sequence * pages->strides[0] + number * pages->strides[1]];
}

void *attention_place(const Head *head, int operand, int64_t row)
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
        batch = attention_page_at(&head->views[PAGES], head->batch, row / block);
        row %= block;
    }
    const int64_t offset = batch * view->strides[0] + (of_key ? head->key_head : head->head) * view->strides[1] +
                           row * view->strides[2];
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

Matrix attention_matrix_at(const Head *head, int operand, int64_t row)
{
    const View *view = view_of(head, operand, row);
    return (Matrix){.data = attention_place(head, operand, row), .dtype = view->dtype, .row = view->strides[2],
                    .column = view->strides[3]};
}

void *attention_take_arrays(int count, float **const *arrays, const int64_t (*sides)[2])
{
    enum { MOST = 16 };
    size_t sizes[MOST];
    for (int i = 0; i < count; i++) {
        sizes[i] = us_scratch_bytes(us_scratch_count(sides[i][0], sides[i][1]), sizeof(float));
    }
    void *const block = us_scratch_take(us_scratch_sum(sizes, count));
    char *cursor = block;
    for (int i = 0; i < count && block != NULL; i++) {
        *arrays[i] = us_scratch_part(&cursor, sizes[i]);
    }
    return block;
}

KernelStatus attention_multiply_into(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, Matrix c, bool adds)
{
    const Matmul product = {.m = m, .n = n, .k = k, .a = a, .b = b, .addend = adds ? c : (Matrix){0}, .c = c,
                            .compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {adds ? 1 : 0}, .undivided = true};
    return us_matmul(&product);
}

KernelStatus attention_multiply_matrices(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float *c, bool adds)
{
    return attention_multiply_into(m, n, k, a, b, float_rows(c, n), adds);
}

void attention_load_row(const Head *head, int operand, int64_t row, int64_t first, int64_t count, float *to)
{
    const View *view = view_of(head, operand, row);
    const char *from = (const char *)attention_place(head, operand, row) +
                       first * view->strides[3] * (int64_t)us_dtype_size(view->dtype);
    us_lane_load(LANE_FLOAT, to, from, view->dtype, view->strides[3], count);
}

void attention_store_rows(const Head *head, int operand, int64_t row, int64_t rows, int64_t count, const float *from)
{
    const View *view = &head->views[operand];
    for (int64_t i = 0; i < rows; i++) {
        us_lane_store(LANE_FLOAT, attention_place(head, operand, row + i), view->dtype, view->strides[3], from + i * count,
                      count);
    }
}

bool attention_is_given(const Head *head, int operand)
{
    return !us_view_is_absent(&head->views[operand]);
}

/* Of the blocks that a tile has scores of; without blocks true. */
static bool keeps_a_block(const Head *head, Tile tile)
{
    const int64_t rows = head->attention->mask_rows, keys = head->attention->mask_keys, step = head->views[MASK].strides[3];
    const int64_t end = smaller(tile.row + tile.rows, head->sequence->seen_rows);
    for (int64_t row = tile.row; rows > 0 && row < end; row = (row / rows + 1) * rows) {
        const uint8_t *mask = attention_place(head, MASK, row / rows);
        for (int64_t block = tile.key / keys; block <= (tile.key + tile.keys - 1) / keys; block++) {
            if (mask[block * step] != 0) {
                return true;
            }
        }
    }
    return rows == 0;
}

bool attention_is_seen(const Head *head, Tile tile)
{
    const AttentionSequence *sequence = head->sequence;
    const int64_t row = tile.row - sequence->row_begin;
    const bool in_band = tile.key <= row + tile.rows - 1 + sequence->high &&
                         tile.key + tile.keys - 1 >= row + sequence->low;
    return (in_band || tile.key < sequence->prefix) && keeps_a_block(head, tile);
}

static void leave_out(float *t, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j++) {
        t[j] = -INFINITY;
    }
}

/* The mask has a byte for a block of scores, 0 where they are left out. */
static void mask_blocks(const Head *head, Tile tile, int64_t i, float *t)
{
    const int64_t rows = head->attention->mask_rows, keys = head->attention->mask_keys, step = head->views[MASK].strides[3];
    const uint8_t *mask = attention_place(head, MASK, (tile.row + i) / rows);
    for (int64_t j = 0; j < tile.keys;) {
        const int64_t block = (tile.key + j) / keys, end = smaller(tile.keys, (block + 1) * keys - tile.key);
        if (mask[block * step] == 0) {
            leave_out(t, j, end);
        }
        j = end;
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
    if (head->attention->mask_rows > 0) {
        mask_blocks(head, tile, i, t);
    } else if (attention_is_given(head, MASK)) {
        const int64_t step = head->views[MASK].strides[3];
        const uint8_t *mask = (const uint8_t *)attention_place(head, MASK, tile.row + i) +
                              (tile.key + sequence->key_begin_in_scores) * step;
        for (int64_t j = 0; j < tile.keys; j++) {
            t[j] = mask[j * step] != 0 ? -INFINITY : t[j];
        }
    }
}

/* Among all scores. */
static int64_t score_number(const Head *head, Tile tile, int64_t i)
{
    const AttentionSequence *sequence = head->sequence;
    return sequence->score_begin + tile.key + (head->head * sequence->query_count + tile.row + i) * sequence->key_count;
}

void attention_drop_row(const Head *head, Tile tile, int64_t i, float *weights)
{
    if (!attention_is_given(head, DROP)) {
        return;
    }
    const View *drop = &head->views[DROP];
    const float factor = 1 / head->attention->keep;
    const int64_t first = score_number(head, tile, i);
    for (int64_t j = 0; j < tile.keys; j++) {
        const int64_t bit = first + j;
        const uint8_t byte = ((const uint8_t *)drop->data)[bit / 8 * drop->strides[0]];
        weights[j] = byte >> bit % 8 & 1 ? weights[j] * factor : 0;
    }
}

float attention_one_number(const Head *head, int operand)
{
    return *(const float *)head->views[operand].data;
}

KernelStatus attention_find_scores(const Head *head, Tile tile, Matrix keys, float *scores)
{
    const int64_t row = head->sequence->query_begin + tile.row, key = head->sequence->key_begin + tile.key;
    const int64_t rotary = head->attention->rotary_depth;
    const KernelStatus status =
        attention_multiply_matrices(tile.rows, tile.keys, head->attention->sizes.depth, attention_matrix_at(head, QUERY, row),
                          transposed(keys), scores, false);
    if (head->attention->all_integers) {
        attention_multiply(scores, tile.rows * tile.keys, attention_one_number(head, SCORE_SCALE));
    }
    return status != KERNEL_OK || rotary == 0
               ? status
               : attention_multiply_matrices(tile.rows, tile.keys, rotary, attention_matrix_at(head, ROTARY_QUERY, row),
                                   transposed(attention_matrix_at(head, ROTARY_KEY, key)), scores, true);
}

static void load_shift(const Head *head, Tile tile, int64_t i, float *to)
{
    const View *shift = &head->views[SHIFT];
    if (shift->rank == 1) {
        us_linear_load_float(shift, score_number(head, tile, i), tile.keys, to);
    } else {
        attention_load_row(head, SHIFT, tile.row + i, tile.key + head->sequence->key_begin_in_scores, tile.keys, to);
    }
}

float attention_finish_scores(const Head *head, Tile tile, int64_t i, float *scores)
{
    float shift[KEYS];
    const bool shifts = attention_is_given(head, SHIFT);
    if (shifts) {
        load_shift(head, tile, i, shift);
    }
    const bool late = !(head->attention->scale > 0); /* by which -infinity would become another number */
    if (!late) {
        mask_row(head, tile, i, scores);
    }
    float largest = attention_scale(scores, tile.keys, head->attention->scale, shifts ? shift : NULL,
                                    head->attention->shift_scale);
    if (late) {
        mask_row(head, tile, i, scores);
        largest = attention_scale(scores, tile.keys, 1, NULL, 0);
    }
    return largest;
}

int64_t attention_longest(const Attention *attention, bool of_keys)
{
    int64_t most = 0;
    for (int64_t s = 0; s < attention->sizes.sequences; s++) {
        const int64_t count = of_keys ? attention->of[s].key_count : attention->of[s].query_count;
        most = count > most ? count : most;
    }
    return most;
}

void attention_note(Work *work, KernelStatus status)
{
    if (status != KERNEL_OK) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
    }
}
