#include "kernels/attention/indexer.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sort/sort.h"
#include "tensor/lane.h"

enum { OF_QUERY, OF_KEY, OF_WEIGHTS, OF_ROW_LENGTHS, OF_KEY_LENGTHS, OF_PAGES, OF_INDICES, OF_VALUES, OF_QUERY_SCALE,
       OF_KEY_SCALE };

typedef struct Task {
    const View *views;
    Tokens tokens;
    int64_t heads, depth, count, longest;
    bool scaled; /* products, by the scales of the query and of the keys */
    KernelStatus status;
} Task;

/* What a row needs. */
typedef struct Parts {
    float *query, *weights, *keys, *products, *scores, *best;
    float *query_scales, *key_scales;
    int32_t *places;
} Parts;

static void *take_parts(const Task *task, Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, k = task->count;
    float *places, **const arrays[] = {&parts->query, &parts->weights, &parts->keys, &parts->products, &parts->scores,
                                       &parts->best, &places, &parts->query_scales, &parts->key_scales};
    const int64_t sides[][2] = {{n, d}, {n, 1}, {KEYS, d}, {KEYS, n}, {task->longest, 1}, {k, 1}, {k, 1}, {n, 1}, {KEYS, 1}};
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

static void scale_products(const Task *task, const Parts *parts, int64_t keys)
{
    for (int64_t n = 0; n < task->heads; n++) {
        float *products = parts->products + n * keys;
        for (int64_t j = 0; j < keys; j++) {
            products[j] *= parts->query_scales[n] * parts->key_scales[j];
        }
    }
}

static void load_keys(const Task *task, int64_t sequence, int64_t first, int64_t keys, const Parts *parts)
{
    for (int64_t j = 0; j < keys; j++) {
        const int64_t at = us_token_key(&task->tokens, sequence, first + j), d = task->depth;
        us_linear_load_float(&task->views[OF_KEY], at * d, d, parts->keys + j * d);
        if (task->scaled) {
            us_linear_load_float(&task->views[OF_KEY_SCALE], at, 1, parts->key_scales + j);
        }
    }
}

static KernelStatus find_scores(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    const int64_t n = task->heads, d = task->depth;
    KernelStatus status = KERNEL_OK;
    us_linear_load_float(&task->views[OF_QUERY], number * n * d, n * d, parts->query);
    us_linear_load_float(&task->views[OF_WEIGHTS], number * n, n, parts->weights);
    if (task->scaled) {
        us_linear_load_float(&task->views[OF_QUERY_SCALE], number * n, n, parts->query_scales);
    }
    for (int64_t key = 0; key < row.keys && status == KERNEL_OK; key += KEYS) {
        const int64_t keys = smaller(KEYS, row.keys - key);
        load_keys(task, row.sequence, key, keys, parts);
        status = attention_multiply_matrices(n, keys, d, float_rows(parts->query, d),
                                             transposed(float_rows(parts->keys, d)), parts->products, false);
        if (task->scaled) {
            scale_products(task, parts, keys);
        }
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

/* ---- statistics ---- */

enum { OF_MAXIMUM = OF_WEIGHTS + 1, OF_SUM };

static void measure_row(void *context, int64_t number)
{
    Task *task = context;
    const TokenRow row = us_token_row(&task->tokens, number);
    Parts parts;
    void *block = take_parts(task, &parts);
    const KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : find_scores(task, number, row, &parts);
    if (status == KERNEL_OK) {
        const float maximum = attention_scale(parts.scores, row.keys, 1, NULL, 0);
        const float sum = attention_exponentials(parts.scores, row.keys, maximum == -INFINITY ? 0 : maximum);
        us_linear_store_float(&task->views[OF_MAXIMUM], number, 1, &maximum);
        us_linear_store_float(&task->views[OF_SUM], number, 1, &sum);
    } else {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
    us_scratch_give_back(block);
}

/* ---- kernels ---- */

static KernelStatus run(Task *task, ParallelBody *body)
{
    const View *query = &task->views[OF_QUERY];
    task->heads = last_size(query, 2);
    task->depth = last_size(query, 1);
    task->status = us_check_tokens(&task->tokens);
    if (task->status == KERNEL_OK) {
        task->longest = us_longest_keys(&task->tokens);
        run_pieces(us_token_rows(&task->tokens), us_scratch_count(us_view_elements(query), task->longest), body, task);
    }
    return task->status;
}

static KernelStatus select_keys(const View *views, const TokenLayout *layout, bool scaled)
{
    Task task = {.views = views, .count = last_size(&views[OF_INDICES], 1), .scaled = scaled,
                 .tokens = {*layout, &views[OF_QUERY], &views[OF_KEY], &views[OF_ROW_LENGTHS], &views[OF_KEY_LENGTHS],
                            &views[OF_PAGES]}};
    return run(&task, run_row);
}

KernelStatus us_lightning_indexer(const View *views, const void *attributes)
{
    return select_keys(views, attributes, false);
}

KernelStatus us_quantized_indexer(const View *views, const void *attributes)
{
    return select_keys(views, attributes, true);
}

KernelStatus us_indexer_statistics(const View *views, const void *attributes)
{
    const ListedTokens *listed = attributes;
    const View rows = us_listed_lengths(listed, false), keys = us_listed_lengths(listed, true), absent = us_view_absent();
    Task task = {.views = views, .tokens = {listed->layout, &views[OF_QUERY], &views[OF_KEY], &rows, &keys, &absent}};
    return run(&task, measure_row);
}
