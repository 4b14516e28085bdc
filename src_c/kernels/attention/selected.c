#include "kernels/attention/selected.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

#include <string.h>

enum { OF_QUERY, OF_KEY, OF_VALUE, OF_BLOCKS, OF_MASK, OF_OUT, OF_MAXIMUM, OF_SUM, OF_SLOPES, OF_QUERY_SLOPES, OF_KEY_SLOPES,
       OF_VALUE_SLOPES, OF_PAGES = OF_SLOPES };

typedef struct Task {
    const View *views;
    const Selected *selected;
    int64_t group, depth, value_depth; /* heads that share a key; sizes of heads */
    int64_t keys;                      /* of a row */
    bool paged;
    KernelStatus status;
} Task;

/* A row, the key's head, the row's sequence, and where that begins. */
typedef struct Place {
    int64_t row, head, sequence, first_row, first_key;
} Place;

/* What a row needs; a row of each array for each of its keys, or of its heads. */
typedef struct Rows {
    float *keys, *values, *key_slopes, *value_slopes;
    float *query, *scores, *out, *slopes, *score_slopes, *query_slopes;
} Rows;

static void *take_rows(const Task *task, Rows *rows, bool backward)
{
    const int64_t n = task->group, k = task->keys, d = task->depth, e = task->value_depth;
    float **const arrays[] = {&rows->keys, &rows->values, &rows->query, &rows->scores, &rows->out,
                              &rows->slopes, &rows->score_slopes, &rows->query_slopes, &rows->key_slopes, &rows->value_slopes};
    const int64_t sides[][2] = {{k, d}, {k, e}, {n, d}, {n, k}, {n, e}, {n, e}, {n, k}, {n, d}, {k, d}, {k, e}};
    return attention_take_arrays(backward ? 10 : 5, arrays, sides);
}

/* ---- places ---- */

static int64_t begin_of_rows(const Selected *selected, int64_t sequence)
{
    return sequence == 0 ? 0 : selected->ends[sequence - 1];
}

static int64_t begin_of_keys(const Selected *selected, int64_t sequence)
{
    return sequence == 0 ? 0 : selected->ends[selected->sequences + sequence - 1];
}

static int64_t sequence_of(const Selected *selected, int64_t row)
{
    int64_t low = 0, high = selected->sequences - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (selected->ends[middle] <= row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int64_t block_number(const View *blocks, int64_t row, int64_t head, int64_t i)
{
    const int32_t last = blocks->rank - 1;
    const int64_t place = last == 2 ? row * blocks->strides[0]
                                    : row / blocks->shape[1] * blocks->strides[0] + row % blocks->shape[1] * blocks->strides[1];
    return ((const int32_t *)blocks->data)[place + head * blocks->strides[last - 1] + i * blocks->strides[last]];
}

/* Key i of the row, from the begin of the sequence. */
static int64_t key_of(const Task *task, Place place, int64_t i)
{
    const int64_t block = task->selected->block;
    return block_number(&task->views[OF_BLOCKS], place.row, place.head, i / block) * block + i % block;
}

/* ---- pages ---- */

static int64_t length_of(const Selected *selected, int64_t sequence)
{
    return selected->ends[selected->sequences + sequence] - begin_of_keys(selected, sequence);
}

static int64_t row_count(const Selected *selected, int64_t sequence)
{
    return selected->ends[2 * selected->sequences + sequence];
}

static int64_t page_of(const Task *task, int64_t sequence, int64_t key)
{
    const View *pages = &task->views[OF_PAGES];
    const int64_t at = key / task->views[OF_KEY].shape[1];
    return ((const int32_t *)pages->data)[sequence * pages->strides[0] + at * pages->strides[1]];
}

/* Where the key is among those of all pages. */
static int64_t key_in_pages(const Task *task, int64_t sequence, int64_t key)
{
    const int64_t rows = task->views[OF_KEY].shape[1];
    return page_of(task, sequence, key) * rows + key % rows;
}

static bool is_there(const Task *task, Place place, int64_t key)
{
    return !task->paged || (key >= 0 && key < length_of(task->selected, place.sequence));
}

/* The block is none, or the sequence has a key of it, and all that it has of it are in pages. */
static KernelStatus check_block(const Task *task, int64_t sequence, int64_t row, int64_t number)
{
    const Selected *selected = task->selected;
    const int64_t length = length_of(selected, sequence), count = ceiling(length, selected->block);
    if (number < -1 || number >= count) {
        return us_kernel_fault("row %lld selects block %lld of a sequence of %lld", (long long)row, (long long)number,
                               (long long)count);
    }
    const int64_t first = number * selected->block, last = smaller(first + selected->block, length);
    for (int64_t key = first; number >= 0 && key < last; key++) {
        const int64_t page = page_of(task, sequence, key);
        if (page < 0 || page >= task->views[OF_KEY].shape[0]) {
            return us_kernel_fault("key %lld of sequence %lld is on page %lld of %lld", (long long)key, (long long)sequence,
                                   (long long)page, (long long)task->views[OF_KEY].shape[0]);
        }
    }
    return KERNEL_OK;
}

static KernelStatus check_paged_blocks(const Task *task)
{
    const Selected *selected = task->selected;
    const View *blocks = &task->views[OF_BLOCKS];
    const int64_t heads = task->views[OF_KEY].shape[2], count = blocks->shape[blocks->rank - 1];
    KernelStatus status = KERNEL_OK;
    for (int64_t s = 0; s < selected->sequences; s++) {
        const int64_t first = begin_of_rows(selected, s);
        for (int64_t i = 0; i < row_count(selected, s) * heads * count && status == KERNEL_OK; i++) {
            const int64_t row = first + i / count / heads;
            status = check_block(task, s, row, block_number(blocks, row, i / count % heads, i % count));
        }
    }
    return status;
}

static KernelStatus check_blocks(const Task *task)
{
    const Selected *selected = task->selected;
    const View *blocks = &task->views[OF_BLOCKS];
    for (int64_t s = 0; s < selected->sequences; s++) {
        const int64_t count = (selected->ends[selected->sequences + s] - begin_of_keys(selected, s)) / selected->block;
        for (int64_t row = begin_of_rows(selected, s); row < selected->ends[s]; row++) {
            for (int64_t i = 0; i < blocks->shape[1] * blocks->shape[2]; i++) {
                const int64_t number = block_number(blocks, row, i / blocks->shape[2], i % blocks->shape[2]);
                if (number < 0 || number >= count) {
                    return us_kernel_fault("row %lld selects block %lld of a sequence of %lld", (long long)row, (long long)number,
                                           (long long)count);
                }
            }
        }
    }
    return KERNEL_OK;
}

/* ---- rows ---- */

static int64_t head_count(const View *view)
{
    return view->shape[view->rank - 2];
}

static int64_t head_depth(const View *view)
{
    return view->shape[view->rank - 1];
}

/* `heads` neighbours of a row of [row…, head, number]. */
static void load_heads(const View *view, int64_t row, int64_t head, int64_t heads, float *to)
{
    us_linear_load_float(view, (row * head_count(view) + head) * head_depth(view), heads * head_depth(view), to);
}

static void store_heads(const View *view, int64_t row, int64_t head, int64_t heads, const float *from)
{
    us_linear_store_float(view, (row * head_count(view) + head) * head_depth(view), heads * head_depth(view), from);
}

static float *statistic(const Task *task, int operand, Place place, int64_t g)
{
    const View *view = &task->views[operand];
    return (float *)view->data + place.row * view->strides[0] + (place.head * task->group + g) * view->strides[1];
}

static Matrix matrix(const float *rows, int64_t width)
{
    return matrix_of_rows(rows, DTYPE_FLOAT32, width);
}

static bool is_masked(const Task *task, Place place, int64_t key)
{
    const View *mask = &task->views[OF_MASK];
    const int64_t row = place.row - place.first_row;
    return task->selected->causal ? key > row
                                  : !us_view_is_absent(mask) &&
                                        ((const uint8_t *)mask->data)[row * mask->strides[0] + key * mask->strides[1]] != 0;
}

/* The row's heads, its keys and values, and its scores, scaled and masked. */
static KernelStatus find_scores(const Task *task, Place place, const Rows *rows)
{
    load_heads(&task->views[OF_QUERY], place.row, place.head * task->group, task->group, rows->query);
    for (int64_t i = 0; i < task->keys; i++) {
        const int64_t own = key_of(task, place, i);
        if (!is_there(task, place, own)) {
            memset(rows->keys + i * task->depth, 0, (size_t)task->depth * sizeof(float));
            memset(rows->values + i * task->value_depth, 0, (size_t)task->value_depth * sizeof(float));
            continue;
        }
        const int64_t key = task->paged ? key_in_pages(task, place.sequence, own) : place.first_key + own;
        load_heads(&task->views[OF_KEY], key, place.head, 1, rows->keys + i * task->depth);
        load_heads(&task->views[OF_VALUE], key, place.head, 1, rows->values + i * task->value_depth);
    }
    const KernelStatus status = attention_multiply_matrices(task->group, task->keys, task->depth,
                                                            matrix(rows->query, task->depth),
                                                            transposed(matrix(rows->keys, task->depth)), rows->scores, false);
    attention_multiply(rows->scores, task->group * task->keys, task->selected->scale);
    for (int64_t i = 0; i < task->keys; i++) {
        const int64_t own = key_of(task, place, i);
        if (!is_there(task, place, own) || is_masked(task, place, own)) {
            for (int64_t g = 0; g < task->group; g++) {
                rows->scores[g * task->keys + i] = -INFINITY;
            }
        }
    }
    return status;
}

static void attend(const Task *task, Place place, const Rows *rows)
{
    for (int64_t g = 0; g < task->group; g++) {
        float *scores = rows->scores + g * task->keys;
        const float maximum = attention_scale(scores, task->keys, 1, NULL, 0);
        const float sum = attention_exponentials(scores, task->keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(scores, task->keys, sum == 0 ? 0 : 1 / sum);
        for (int64_t i = 0; !task->paged && i < task->views[OF_SUM].shape[2]; i++) {
            statistic(task, OF_MAXIMUM, place, g)[i * task->views[OF_MAXIMUM].strides[2]] = maximum;
            statistic(task, OF_SUM, place, g)[i * task->views[OF_SUM].strides[2]] = sum;
        }
    }
}

static void run_row(void *context, int64_t piece)
{
    Task *task = context;
    const int64_t heads = head_count(&task->views[OF_KEY]), row = piece / heads, sequence = sequence_of(task->selected, row);
    const Place place = {row, piece % heads, sequence, begin_of_rows(task->selected, sequence),
                         begin_of_keys(task->selected, sequence)};
    Rows rows;
    void *block = take_rows(task, &rows, false);
    KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    if (status == KERNEL_OK && task->paged && row - place.first_row >= row_count(task->selected, sequence)) {
        memset(rows.out, 0, (size_t)(task->group * task->value_depth) * sizeof(float));
        store_heads(&task->views[OF_OUT], row, place.head * task->group, task->group, rows.out);
        us_scratch_give_back(block);
        return;
    }
    status = status == KERNEL_OK ? find_scores(task, place, &rows) : status;
    if (status == KERNEL_OK) {
        attend(task, place, &rows);
        status = attention_multiply_matrices(task->group, task->value_depth, task->keys, matrix(rows.scores, task->keys),
                                             matrix(rows.values, task->value_depth), rows.out, false);
        store_heads(&task->views[OF_OUT], row, place.head * task->group, task->group, rows.out);
    }
    us_scratch_give_back(block);
    us_keep_status(&task->status, status);
}

/* ---- gradients ---- */

/* The scores become weights, their slopes those of the scores. */
static void find_slopes(const Task *task, Place place, const Rows *rows)
{
    for (int64_t g = 0; g < task->group; g++) {
        float *weights = rows->scores + g * task->keys, *slopes = rows->score_slopes + g * task->keys;
        const float maximum = *statistic(task, OF_MAXIMUM, place, g), sum = *statistic(task, OF_SUM, place, g);
        const int64_t first = g * task->value_depth;
        const float mean = inner_product(rows->out + first, rows->slopes + first, task->value_depth);
        attention_exponentials(weights, task->keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(weights, task->keys, sum == 0 ? 0 : 1 / sum);
        for (int64_t i = 0; i < task->keys; i++) {
            slopes[i] = task->selected->scale * weights[i] * (slopes[i] - mean);
        }
    }
}

/* The row's own slopes, and those of its keys and values. */
static KernelStatus differentiate_row(const Task *task, Place place, const Rows *rows)
{
    const int64_t n = task->group, k = task->keys, d = task->depth, e = task->value_depth, head = place.head * n;
    KernelStatus status = find_scores(task, place, rows);
    load_heads(&task->views[OF_OUT], place.row, head, n, rows->out);
    load_heads(&task->views[OF_SLOPES], place.row, head, n, rows->slopes);
    const Matrix values = transposed(matrix(rows->values, e)), slopes = matrix(rows->slopes, e);
    const Matrix weights = matrix(rows->scores, k), score_slopes = matrix(rows->score_slopes, k), query = matrix(rows->query, d);
    status = status != KERNEL_OK ? status : attention_multiply_matrices(n, k, e, slopes, values, rows->score_slopes, false);
    if (status != KERNEL_OK) {
        return status;
    }
    find_slopes(task, place, rows);
    status = attention_multiply_matrices(n, d, k, score_slopes, matrix(rows->keys, d), rows->query_slopes, false);
    store_heads(&task->views[OF_QUERY_SLOPES], place.row, head, n, rows->query_slopes);
    status = status != KERNEL_OK ? status
                                 : attention_multiply_matrices(k, d, n, transposed(score_slopes), query, rows->key_slopes, false);
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(k, e, n, transposed(weights), slopes, rows->value_slopes, false);
}

/* All rows of a sequence for a head of its keys, in their order: several name the same keys. */
static void differentiate_head(void *context, int64_t piece)
{
    Task *task = context;
    const Selected *selected = task->selected;
    const int64_t heads = task->views[OF_KEY].shape[1], s = piece / heads, first_key = begin_of_keys(selected, s);
    const int64_t keys = selected->ends[selected->sequences + s] - first_key, d = task->depth, e = task->value_depth;
    Place place = {begin_of_rows(selected, s), piece % heads, s, begin_of_rows(selected, s), first_key};
    Rows rows;
    void *block = take_rows(task, &rows, true);
    float *sums = us_scratch_array(us_scratch_count(keys, d + e), sizeof *sums);
    KernelStatus status = block == NULL || sums == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    if (status == KERNEL_OK) {
        memset(sums, 0, (size_t)(keys * (d + e)) * sizeof *sums);
    }
    for (; place.row < selected->ends[s] && status == KERNEL_OK; place.row++) {
        status = differentiate_row(task, place, &rows);
        for (int64_t i = 0; i < task->keys && status == KERNEL_OK; i++) {
            const int64_t key = key_of(task, place, i);
            attention_add(sums + key * d, rows.key_slopes + i * d, d);
            attention_add(sums + keys * d + key * e, rows.value_slopes + i * e, e);
        }
    }
    for (int64_t key = 0; key < keys && status == KERNEL_OK; key++) {
        store_heads(&task->views[OF_KEY_SLOPES], first_key + key, place.head, 1, sums + key * d);
        store_heads(&task->views[OF_VALUE_SLOPES], first_key + key, place.head, 1, sums + keys * d + key * e);
    }
    us_scratch_give_back(sums);
    us_scratch_give_back(block);
    us_keep_status(&task->status, status);
}

/* ---- kernels ---- */

/* Blocks that need not be in memory, because all are one, are counted for a long time: not where no row has room for them. */
static KernelStatus check_memory_and_pages(const Task *task)
{
    Rows rows;
    char *block = take_rows(task, &rows, false);
    us_scratch_give_back(block);
    return block != NULL ? check_paged_blocks(task) : KERNEL_NO_MEMORY;
}

static KernelStatus run(const View *views, const Selected *selected, bool paged, int64_t pieces, ParallelBody *body)
{
    const View *key = &views[OF_KEY];
    Task task = {.views = views, .selected = selected, .group = head_count(&views[OF_QUERY]) / head_count(key),
                 .depth = head_depth(key), .value_depth = head_depth(&views[OF_VALUE]),
                 .keys = us_scratch_count(head_depth(&views[OF_BLOCKS]), selected->block), .paged = paged};
    task.status = paged ? check_memory_and_pages(&task) : check_blocks(&task);
    if (task.status == KERNEL_OK) {
        run_pieces(pieces, us_scratch_count(us_view_elements(&views[OF_QUERY]), task.keys), body, &task);
    }
    return task.status;
}

KernelStatus us_selected_attention(const View *views, const void *attributes)
{
    return run(views, attributes, false, views[OF_QUERY].shape[0] * views[OF_KEY].shape[1], run_row);
}

KernelStatus us_selected_attention_in_pages(const View *views, const void *attributes)
{
    const Selected *selected = attributes;
    const int64_t rows = selected->sequences == 0 ? 0 : selected->ends[selected->sequences - 1];
    return run(views, selected, true, rows * head_count(&views[OF_KEY]), run_row);
}

KernelStatus us_selected_attention_backward(const View *views, const void *attributes)
{
    const Selected *selected = attributes;
    return run(views, selected, false, selected->sequences * views[OF_KEY].shape[1], differentiate_head);
}
