#include "kernels/attention/indexer.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sort/sort.h"
#include "tensor/lane.h"

#include <string.h>

enum { OF_QUERY, OF_KEY, OF_WEIGHTS, OF_ROW_LENGTHS, OF_KEY_LENGTHS, OF_PAGES, OF_INDICES, OF_VALUES };

typedef struct Task {
    const View *views;
    Tokens tokens;
    int64_t heads, depth, count, longest;
    KernelStatus status;
} Task;

/* What a row needs. */
typedef struct Parts {
    float *query, *weights, *keys, *products, *scores, *best;
    int32_t *places;
} Parts;

static void *take_parts(const Task *task, Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, k = task->count;
    float *places, **const arrays[] = {&parts->query, &parts->weights, &parts->keys, &parts->products, &parts->scores, &parts->best,
                                       &places};
    const int64_t sides[][2] = {{n, d}, {n, 1}, {KEYS, d}, {KEYS, n}, {task->longest, 1}, {k, 1}, {k, 1}};
    void *const block = attention_take_arrays(sizeof sides / sizeof *sides, arrays, sides);
    parts->places = block == NULL ? NULL : (void *)places;
    return block;
}

/* scores = the sum over heads, in their order. */
static void add_heads(const Task *task, const Parts *parts, int64_t keys, float *scores)
{
    for (int64_t j = 0; j < keys; j++) {
        scores[j] = 0;
    }
    for (int64_t n = 0; n < task->heads; n++) {
        const float *products = parts->products + n * keys;
        for (int64_t j = 0; j < keys; j++) {
            scores[j] += parts->weights[n] * (products[j] < 0 ? 0 : products[j]);
        }
    }
}

static KernelStatus find_scores(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    const int64_t n = task->heads, d = task->depth;
    KernelStatus status = KERNEL_OK;
    us_linear_load_float(&task->views[OF_QUERY], number * n * d, n * d, parts->query);
    us_linear_load_float(&task->views[OF_WEIGHTS], number * n, n, parts->weights);
    for (int64_t key = 0; key < row.keys && status == KERNEL_OK; key += KEYS) {
        const int64_t keys = smaller(KEYS, row.keys - key);
        for (int64_t j = 0; j < keys; j++) {
            us_linear_load_float(&task->views[OF_KEY], us_token_key(&task->tokens, row.sequence, key + j) * d, d, parts->keys + j * d);
        }
        status = attention_multiply_matrices(n, keys, d, matrix_of_rows(parts->query, DTYPE_FLOAT32, d),
                                             transposed(matrix_of_rows(parts->keys, DTYPE_FLOAT32, d)), parts->products, false);
        add_heads(task, parts, keys, parts->scores + key);
    }
    return status;
}

static KernelStatus find_best(const Parts *parts, int64_t keys, int64_t kept)
{
    const View views[] = {us_view_contiguous(parts->scores, DTYPE_FLOAT32, 1, &keys),
                          us_view_contiguous(parts->best, DTYPE_FLOAT32, 1, &kept),
                          us_view_contiguous(parts->places, DTYPE_INT32, 1, &kept)};
    return kept == 0 ? KERNEL_OK : us_topk(views, &(SortLines){.axis = 0, .descending = true});
}

static void store(const Task *task, int64_t number, int64_t kept, const Parts *parts)
{
    const View *indices = &task->views[OF_INDICES], *values = &task->views[OF_VALUES];
    for (int64_t i = kept; i < task->count; i++) {
        parts->places[i] = -1;
        parts->best[i] = -INFINITY;
    }
    const int64_t outer = indices->rank == 4 ? number / indices->shape[1] * indices->strides[0] : 0;
    const int64_t row = indices->rank == 4 ? number % indices->shape[1] : number;
    int32_t *to = (int32_t *)indices->data + outer + row * indices->strides[indices->rank - 3];
    us_lane_store(LANE_INT32, to, DTYPE_INT32, indices->strides[indices->rank - 1], parts->places, task->count);
    if (!us_view_is_absent(values)) {
        us_linear_store_float(values, number * task->count, task->count, parts->best);
    }
}

static void run_row(void *context, int64_t number)
{
    Task *task = context;
    const TokenRow row = us_token_row(&task->tokens, number);
    const int64_t kept = smaller(row.keys, task->count);
    Parts parts;
    void *block = take_parts(task, &parts);
    KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : find_scores(task, number, row, &parts);
    status = status != KERNEL_OK ? status : find_best(&parts, row.keys, kept);
    if (status == KERNEL_OK) {
        store(task, number, kept, &parts);
    } else {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
    us_scratch_give_back(block);
}

/* ---- gradients ---- */

enum { OF_SELECTED = OF_KEY_LENGTHS + 1, OF_SLOPES, OF_QUERY_SLOPES, OF_KEY_SLOPES, OF_WEIGHT_SLOPES };

/* What a row needs, and what comes out of it. */
typedef struct Slopes {
    float *query, *weights, *keys, *products, *slopes; /* products become the slopes of them */
    float *query_slopes, *key_slopes, *weight_slopes;
    int64_t *places; /* keys of their sequence */
} Slopes;

static void *take_slopes(const Task *task, Slopes *parts)
{
    const int64_t n = task->heads, d = task->depth, k = task->count;
    float *places, **const arrays[] = {&parts->query, &parts->weights, &parts->keys, &parts->products, &parts->slopes,
                                       &parts->query_slopes, &parts->key_slopes, &parts->weight_slopes, &places};
    const int64_t sides[][2] = {{n, d}, {n, 1}, {k, d}, {n, k}, {k, 1}, {n, d}, {k, d}, {n, 1}, {k, sizeof(int64_t) / sizeof(float)}};
    void *const block = attention_take_arrays(sizeof sides / sizeof *sides, arrays, sides);
    parts->places = block == NULL ? NULL : (void *)places;
    return block;
}

/* Loads the keys that the row selects and sees, and the slopes of their scores. How many there are. */
static int64_t load_selected(const Task *task, int64_t number, TokenRow row, const Slopes *parts)
{
    int64_t count = 0;
    for (int64_t i = 0; i < task->count; i++) {
        const int64_t key = us_token_selected(&task->tokens, &task->views[OF_SELECTED], number, i);
        if (key < 0) {
            break;
        }
        if (key < row.keys) {
            const int64_t at = us_token_key(&task->tokens, row.sequence, key);
            us_linear_load_float(&task->views[OF_KEY], at * task->depth, task->depth, parts->keys + count * task->depth);
            us_linear_load_float(&task->views[OF_SLOPES], number * task->count + i, 1, parts->slopes + count);
            parts->places[count++] = key;
        }
    }
    return count;
}

/* The slopes of the weights, and of the products where these count. */
static void find_slopes(const Task *task, int64_t keys, const Slopes *parts)
{
    for (int64_t n = 0; n < task->heads; n++) {
        float *products = parts->products + n * keys;
        for (int64_t j = 0; j < keys; j++) {
            products[j] = products[j] < 0 ? 0 : products[j];
        }
        parts->weight_slopes[n] = inner_product(products, parts->slopes, keys);
        for (int64_t j = 0; j < keys; j++) {
            products[j] = products[j] == 0 ? 0 : parts->slopes[j] * parts->weights[n];
        }
    }
}

static KernelStatus differentiate_row(const Task *task, int64_t number, int64_t keys, const Slopes *parts)
{
    const int64_t n = task->heads, d = task->depth;
    us_linear_load_float(&task->views[OF_QUERY], number * n * d, n * d, parts->query);
    us_linear_load_float(&task->views[OF_WEIGHTS], number * n, n, parts->weights);
    const Matrix query = matrix_of_rows(parts->query, DTYPE_FLOAT32, d), rows = matrix_of_rows(parts->keys, DTYPE_FLOAT32, d);
    const Matrix products = matrix_of_rows(parts->products, DTYPE_FLOAT32, keys);
    KernelStatus status = attention_multiply_matrices(n, keys, d, query, transposed(rows), parts->products, false);
    if (status != KERNEL_OK) {
        return status;
    }
    find_slopes(task, keys, parts);
    status = attention_multiply_matrices(n, d, keys, products, rows, parts->query_slopes, false);
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(keys, d, n, transposed(products), query, parts->key_slopes, false);
}

static void store_slopes(const Task *task, int64_t number, int64_t keys, const Slopes *parts, float *sums)
{
    const int64_t n = task->heads, d = task->depth;
    us_linear_store_float(&task->views[OF_QUERY_SLOPES], number * n * d, n * d, parts->query_slopes);
    us_linear_store_float(&task->views[OF_WEIGHT_SLOPES], number * n, n, parts->weight_slopes);
    for (int64_t i = 0; i < keys; i++) {
        attention_add(sums + parts->places[i] * d, parts->key_slopes + i * d, d);
    }
}

/* All rows of a sequence in their order. */
static void differentiate_sequence(void *context, int64_t sequence)
{
    Task *task = context;
    const int64_t keys = us_token_keys(&task->tokens, sequence), d = task->depth;
    Slopes parts;
    void *block = take_slopes(task, &parts);
    float *sums = us_scratch_array(us_scratch_count(keys, d), sizeof *sums);
    KernelStatus status = block == NULL || sums == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    if (status == KERNEL_OK) {
        memset(sums, 0, (size_t)(keys * d) * sizeof *sums);
    }
    const TokenSpan rows = us_token_span(&task->tokens, sequence);
    for (int64_t number = rows.begin; number < rows.end && status == KERNEL_OK; number++) {
        const int64_t count = load_selected(task, number, us_token_row(&task->tokens, number), &parts);
        status = differentiate_row(task, number, count, &parts);
        if (status == KERNEL_OK) {
            store_slopes(task, number, count, &parts, sums);
        }
    }
    for (int64_t key = 0; key < keys && status == KERNEL_OK; key++) {
        us_linear_store_float(&task->views[OF_KEY_SLOPES], us_token_key(&task->tokens, sequence, key) * d, d, sums + key * d);
    }
    us_scratch_give_back(sums);
    us_scratch_give_back(block);
    if (status != KERNEL_OK) {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
}

KernelStatus us_lightning_indexer_backward(const View *views, const void *attributes)
{
    const View *query = &views[OF_QUERY], *selected = &views[OF_SELECTED], absent = us_view_absent();
    Task task = {.views = views, .heads = query->shape[query->rank - 2], .depth = query->shape[query->rank - 1],
                 .count = selected->shape[selected->rank - 1],
                 .tokens = {*(const TokenLayout *)attributes, query, &views[OF_KEY], &views[OF_ROW_LENGTHS],
                            &views[OF_KEY_LENGTHS], &absent}};
    task.status = us_check_tokens(&task.tokens);
    task.status = task.status != KERNEL_OK ? task.status : us_check_selected(&task.tokens, selected, 1);
    for (int operand = OF_QUERY_SLOPES; operand <= OF_WEIGHT_SLOPES && task.status == KERNEL_OK; operand++) {
        attention_fill_zeros(&views[operand]);
    }
    if (task.status == KERNEL_OK) {
        run_pieces(us_token_sequences(&task.tokens), us_scratch_count(us_view_elements(query), task.count), differentiate_sequence,
                   &task);
    }
    return task.status;
}

/* ---- kernels ---- */

KernelStatus us_lightning_indexer(const View *views, const void *attributes)
{
    const View *query = &views[OF_QUERY];
    Task task = {.views = views, .heads = query->shape[query->rank - 2], .depth = query->shape[query->rank - 1],
                 .count = views[OF_INDICES].shape[views[OF_INDICES].rank - 1],
                 .tokens = {*(const TokenLayout *)attributes, query, &views[OF_KEY], &views[OF_ROW_LENGTHS],
                            &views[OF_KEY_LENGTHS], &views[OF_PAGES]}};
    task.status = us_check_tokens(&task.tokens);
    if (task.status == KERNEL_OK) {
        task.longest = us_longest_keys(&task.tokens);
        run_pieces(us_token_rows(&task.tokens), us_scratch_count(us_view_elements(query), task.longest), run_row, &task);
    }
    return task.status;
}
