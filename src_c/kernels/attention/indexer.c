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
    float *query, *weights, *query_scales, *scores, *best;
    int32_t *places;
} Parts;

/* What some of its keys need. */
typedef struct Keys {
    float *keys, *products, *scales;
} Keys;

typedef struct Row {
    Task *task;
    Parts parts;
    int64_t number;
    TokenRow of;
} Row;

static void *take_parts(const Task *task, Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, k = task->count;
    float *places, **const arrays[] = {&parts->query, &parts->weights, &parts->query_scales, &parts->scores, &parts->best,
                                       &places};
    const int64_t sides[][2] = {{n, d}, {n, 1}, {n, 1}, {task->longest, 1}, {k, 1}, {k, 1}};
    void *const block = attention_take_arrays(sizeof sides / sizeof *sides, arrays, sides);
    parts->places = block == NULL ? NULL : (void *)places;
    return block;
}

static void load_row(Row *row)
{
    const Task *task = row->task;
    const int64_t n = task->heads, d = task->depth;
    us_linear_load_float(&task->views[OF_QUERY], row->number * n * d, n * d, row->parts.query);
    us_linear_load_float(&task->views[OF_WEIGHTS], row->number * n, n, row->parts.weights);
    if (task->scaled) {
        us_linear_load_float(&task->views[OF_QUERY_SCALE], row->number * n, n, row->parts.query_scales);
    }
}

/* ---- scores ---- */

static void load_keys(const Row *row, int64_t first, int64_t keys, const Keys *of)
{
    const Task *task = row->task;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t at = us_token_key(&task->tokens, row->of.sequence, first + j), d = task->depth;
        us_linear_load_float(&task->views[OF_KEY], at * d, d, of->keys + j * d);
        if (task->scaled) {
            us_linear_load_float(&task->views[OF_KEY_SCALE], at, 1, of->scales + j);
        }
    }
}

static void scale_products(const Row *row, int64_t keys, const Keys *of)
{
    for (int64_t n = 0; n < row->task->heads; n++) {
        float *products = of->products + n * keys;
        for (int64_t j = 0; j < keys; j++) {
            products[j] *= row->parts.query_scales[n] * of->scales[j];
        }
    }
}

/* scores = the sum over heads, in their order. */
static void add_heads(const Row *row, int64_t keys, const Keys *of, float *scores)
{
    for (int64_t j = 0; j < keys; j++) {
        scores[j] = 0;
    }
    for (int64_t n = 0; n < row->task->heads; n++) {
        const float *products = of->products + n * keys;
        for (int64_t j = 0; j < keys; j++) {
            scores[j] += row->parts.weights[n] * (products[j] < 0 ? 0 : products[j]);
        }
    }
}

enum { SLICE = 8 * KEYS }; /* keys of a piece */

static void score_slice(void *context, int64_t piece)
{
    const Row *row = context;
    const int64_t n = row->task->heads, d = row->task->depth, end = smaller(row->of.keys, (piece + 1) * SLICE);
    Keys of;
    float **const arrays[] = {&of.keys, &of.products, &of.scales};
    void *const block = attention_take_arrays(3, arrays, (const int64_t[][2]){{KEYS, d}, {KEYS, n}, {KEYS, 1}});
    KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    for (int64_t key = piece * SLICE; key < end && status == KERNEL_OK; key += KEYS) {
        const int64_t keys = smaller(KEYS, end - key);
        load_keys(row, key, keys, &of);
        status = attention_multiply_matrices(n, keys, d, float_rows(row->parts.query, d), transposed(float_rows(of.keys, d)),
                                             of.products, false);
        if (row->task->scaled) {
            scale_products(row, keys, &of);
        }
        add_heads(row, keys, &of, row->parts.scores + key);
    }
    us_scratch_give_back(block);
    us_keep_status(&row->task->status, status);
}

/* Its memory; NULL: something failed. */
static void *score_row(Row *row)
{
    Task *task = row->task;
    void *block = take_parts(task, &row->parts);
    row->of = us_token_row(&task->tokens, row->number);
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
        return NULL;
    }
    load_row(row);
    run_pieces(ceiling(row->of.keys, SLICE), us_scratch_count(row->of.keys, task->heads * task->depth), score_slice, row);
    if (__atomic_load_n(&task->status, __ATOMIC_RELAXED) != KERNEL_OK) {
        us_scratch_give_back(block);
        return NULL;
    }
    return block;
}

/* ---- the best ---- */

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

static void select_of_row(void *context, int64_t number)
{
    Row row = {.task = context, .number = number};
    void *block = score_row(&row);
    if (block == NULL) {
        return;
    }
    const int64_t kept = smaller(row.of.keys, row.task->count);
    const KernelStatus status = find_best(&row.parts, row.of.keys, kept);
    if (status == KERNEL_OK) {
        store(row.task, number, kept, &row.parts);
    }
    us_scratch_give_back(block);
    us_keep_status(&row.task->status, status);
}

/* ---- statistics ---- */

enum { OF_MAXIMUM = OF_WEIGHTS + 1, OF_SUM };

static void measure_row(void *context, int64_t number)
{
    Row row = {.task = context, .number = number};
    void *block = score_row(&row);
    if (block == NULL) {
        return;
    }
    const float maximum = attention_scale(row.parts.scores, row.of.keys, 1, NULL, 0);
    const float sum = attention_exponentials(row.parts.scores, row.of.keys, maximum == -INFINITY ? 0 : maximum);
    us_linear_store_float(&row.task->views[OF_MAXIMUM], number, 1, &maximum);
    us_linear_store_float(&row.task->views[OF_SUM], number, 1, &sum);
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
        run_divided_pieces(us_token_rows(&task->tokens), ceiling(task->longest, SLICE),
                           us_scratch_count(us_view_elements(query), task->longest), body, task);
    }
    return task->status;
}

static KernelStatus select_keys(const View *views, const TokenLayout *layout, bool scaled)
{
    Task task = {.views = views, .count = last_size(&views[OF_INDICES], 1), .scaled = scaled,
                 .tokens = {*layout, &views[OF_QUERY], &views[OF_KEY], &views[OF_ROW_LENGTHS], &views[OF_KEY_LENGTHS],
                            &views[OF_PAGES]}};
    return run(&task, select_of_row);
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
