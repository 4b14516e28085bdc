#include "kernels/attention/floyd.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { OF_QUERY, OF_KEY1, OF_VALUE1, OF_KEY2, OF_VALUE2, OF_MASK, OF_OUT, OF_MAXIMUM, OF_SUM, OF_SLOPES, TO_QUERY, TO_KEY1,
       TO_VALUE1, TO_KEY2, TO_VALUE2 };

typedef struct Task {
    const View *views;
    float scale;
    int64_t heads, first, second, keys, depth; /* sizes of n, m and k */
    int64_t tile; /* neighbours along n, or along m, that share what is loaded of the other pairs */
    KernelStatus status;
} Task;

/* The keys and values of one pair, and their slopes. */
typedef struct Pair {
    float *key, *value, *key_slopes, *value_slopes;
} Pair;

/* What the rows of a tile need: its own pairs, one for each neighbour, and the other pair; what a row needs and gives. */
typedef struct Parts {
    Pair own, other;
    float *query, *scores, *out;
    float *slopes, *score_slopes, *query_slopes;
} Parts;

static void *take_parts(const Task *task, Parts *parts, bool backward)
{
    const int64_t k = task->keys, d = task->depth, all = us_scratch_count(task->tile, k);
    float **const arrays[] = {&parts->own.key, &parts->own.value, &parts->other.key, &parts->other.value, &parts->query,
                              &parts->scores, &parts->out, &parts->slopes, &parts->score_slopes, &parts->query_slopes,
                              &parts->own.key_slopes, &parts->own.value_slopes};
    const int64_t sides[][2] = {{all, d}, {all, d}, {k, d}, {k, d}, {1, d}, {1, k}, {1, d}, {1, d}, {1, k}, {1, d}, {all, d},
                                {all, d}};
    return attention_take_arrays(backward ? 12 : 7, arrays, sides);
}

/* Of neighbour i of the tile; without slopes where there are none. */
static Pair own_pair(const Task *task, const Parts *parts, int64_t i, bool backward)
{
    const int64_t at = i * task->keys * task->depth;
    const Pair *own = &parts->own;
    return backward ? (Pair){own->key + at, own->value + at, own->key_slopes + at, own->value_slopes + at}
                    : (Pair){own->key + at, own->value + at, NULL, NULL};
}

static void note(Task *task, KernelStatus status)
{
    if (status != KERNEL_OK) {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
}

/* ---- places: `line` counts batches and heads ---- */

static int64_t row_of(const Task *task, int64_t line, int64_t n, int64_t m)
{
    return (line * task->first + n) * task->second + m;
}

static void load_first(const Task *task, int64_t line, int64_t n, Pair pair)
{
    const int64_t size = task->keys * task->depth, begin = (line * task->first + n) * size;
    us_linear_load_float(&task->views[OF_KEY1], begin, size, pair.key);
    us_linear_load_float(&task->views[OF_VALUE1], begin, size, pair.value);
}

static int64_t second_at(const Task *task, int64_t line, int64_t k, int64_t m)
{
    return ((line * task->keys + k) * task->second + m) * task->depth;
}

static void load_second(const Task *task, int64_t line, int64_t m, Pair pair)
{
    for (int64_t k = 0; k < task->keys; k++) {
        const int64_t begin = second_at(task, line, k, m);
        us_linear_load_float(&task->views[OF_KEY2], begin, task->depth, pair.key + k * task->depth);
        us_linear_load_float(&task->views[OF_VALUE2], begin, task->depth, pair.value + k * task->depth);
    }
}

static bool is_masked(const Task *task, int64_t line, int64_t n, int64_t k)
{
    const View *mask = &task->views[OF_MASK];
    return !us_view_is_absent(mask) && ((const uint8_t *)mask->data)[line / task->heads * mask->strides[0] +
                                                                     n * mask->strides[2] + k * mask->strides[4]] != 0;
}

static float *statistic(const Task *task, int operand, int64_t line, int64_t n, int64_t m)
{
    const View *view = &task->views[operand];
    return (float *)view->data + line / task->heads * view->strides[0] + line % task->heads * view->strides[1] +
           n * view->strides[2] + m * view->strides[3];
}

/* ---- rows ---- */

static Matrix matrix(const float *rows, int64_t width)
{
    return matrix_of_rows(rows, DTYPE_FLOAT32, width);
}

/* to[k] = the row's product with both of pair k. */
static KernelStatus multiply_pairs(const Task *task, const float *row, const float *first, const float *second, float *to)
{
    const int64_t k = task->keys, d = task->depth;
    const KernelStatus status = attention_multiply_matrices(1, k, d, matrix(row, d), transposed(matrix(first, d)), to, false);
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(1, k, d, matrix(row, d), transposed(matrix(second, d)), to, true);
}

/* to = the sum over k of weights[k] times both of pair k. */
static KernelStatus sum_pairs(const Task *task, const float *weights, const float *first, const float *second, float *to)
{
    const int64_t k = task->keys, d = task->depth;
    const KernelStatus status = attention_multiply_matrices(1, d, k, matrix(weights, k), matrix(first, d), to, false);
    return status != KERNEL_OK ? status : attention_multiply_matrices(1, d, k, matrix(weights, k), matrix(second, d), to, true);
}

/* A row, and where its keys and values are. */
typedef struct Row {
    int64_t line, n, m;
    Pair first, second;
} Row;

/* The row's scores, scaled and masked. */
static KernelStatus find_scores(const Task *task, const Row *row, const Parts *parts)
{
    us_linear_load_float(&task->views[OF_QUERY], row_of(task, row->line, row->n, row->m) * task->depth, task->depth,
                         parts->query);
    const KernelStatus status = multiply_pairs(task, parts->query, row->first.key, row->second.key, parts->scores);
    attention_multiply(parts->scores, task->keys, task->scale);
    for (int64_t k = 0; k < task->keys; k++) {
        if (is_masked(task, row->line, row->n, k)) {
            parts->scores[k] = -INFINITY;
        }
    }
    return status;
}

static KernelStatus attend_row(const Task *task, const Row *row, const Parts *parts)
{
    KernelStatus status = find_scores(task, row, parts);
    const View *maxima = &task->views[OF_MAXIMUM], *sums = &task->views[OF_SUM];
    const float maximum = attention_scale(parts->scores, task->keys, 1, NULL, 0);
    const float sum = attention_exponentials(parts->scores, task->keys, maximum == -INFINITY ? 0 : maximum);
    attention_multiply(parts->scores, task->keys, sum == 0 ? 0 : 1 / sum);
    status = status != KERNEL_OK ? status : sum_pairs(task, parts->scores, row->first.value, row->second.value, parts->out);
    for (int64_t i = 0; i < maxima->shape[4]; i++) {
        statistic(task, OF_MAXIMUM, row->line, row->n, row->m)[i * maxima->strides[4]] = maximum;
        statistic(task, OF_SUM, row->line, row->n, row->m)[i * sums->strides[4]] = sum;
    }
    us_linear_store_float(&task->views[OF_OUT], row_of(task, row->line, row->n, row->m) * task->depth, task->depth, parts->out);
    return status;
}

/* ---- gradients ---- */

/* The row's weights, and the slopes of its scores. */
static KernelStatus find_slopes(const Task *task, const Row *row, const Parts *parts)
{
    const int64_t begin = row_of(task, row->line, row->n, row->m) * task->depth;
    us_linear_load_float(&task->views[OF_OUT], begin, task->depth, parts->out);
    us_linear_load_float(&task->views[OF_SLOPES], begin, task->depth, parts->slopes);
    KernelStatus status = find_scores(task, row, parts);
    status = status != KERNEL_OK ? status
                                 : multiply_pairs(task, parts->slopes, row->first.value, row->second.value, parts->score_slopes);
    const float maximum = *statistic(task, OF_MAXIMUM, row->line, row->n, row->m);
    const float sum = *statistic(task, OF_SUM, row->line, row->n, row->m);
    const float mean = inner_product(parts->out, parts->slopes, task->depth);
    attention_exponentials(parts->scores, task->keys, maximum == -INFINITY ? 0 : maximum);
    attention_multiply(parts->scores, task->keys, sum == 0 ? 0 : 1 / sum);
    for (int64_t k = 0; k < task->keys; k++) {
        parts->score_slopes[k] = task->scale * parts->scores[k] * (parts->score_slopes[k] - mean);
    }
    return status;
}

/* Each of `rows` slopes adds so much of the row. */
static void add_outer(float *slopes, const float *weights, const float *row, int64_t rows, int64_t depth)
{
    for (int64_t k = 0; k < rows; k++) {
        for (int64_t d = 0; d < depth; d++) {
            slopes[k * depth + d] += weights[k] * row[d];
        }
    }
}

/* The slopes of keys and values that the row adds to. */
static void add_row(const Task *task, const Parts *parts, Pair pair)
{
    add_outer(pair.key_slopes, parts->score_slopes, parts->query, task->keys, task->depth);
    add_outer(pair.value_slopes, parts->scores, parts->slopes, task->keys, task->depth);
}

static KernelStatus differentiate_row(const Task *task, const Row *row, const Parts *parts)
{
    KernelStatus status = find_slopes(task, row, parts);
    status = status != KERNEL_OK ? status : sum_pairs(task, parts->score_slopes, row->first.key, row->second.key,
                                                      parts->query_slopes);
    us_linear_store_float(&task->views[TO_QUERY], row_of(task, row->line, row->n, row->m) * task->depth, task->depth,
                          parts->query_slopes);
    add_row(task, parts, row->first);
    return status;
}

/* ---- tiles ---- */

static void *begin(Task *task, Parts *parts, bool backward)
{
    void *block = take_parts(task, parts, backward);
    if (block == NULL) {
        note(task, KERNEL_NO_MEMORY);
    } else if (backward) {
        const size_t size = (size_t)(task->tile * task->keys * task->depth) * sizeof(float);
        memset(parts->own.key_slopes, 0, size);
        memset(parts->own.value_slopes, 0, size);
    }
    return block;
}

/* All rows of some n: what they give, or their slopes and those of the first keys and values. */
static void run_first(Task *task, int64_t piece, bool backward)
{
    const int64_t tiles = ceiling(task->first, task->tile), line = piece / tiles, n = piece % tiles * task->tile;
    const int64_t count = smaller(task->tile, task->first - n), size = task->keys * task->depth;
    Parts parts;
    void *block = begin(task, &parts, backward);
    KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    for (int64_t i = 0; i < count && status == KERNEL_OK; i++) {
        load_first(task, line, n + i, own_pair(task, &parts, i, backward));
    }
    for (int64_t m = 0; m < task->second && status == KERNEL_OK; m++) {
        load_second(task, line, m, parts.other);
        for (int64_t i = 0; i < count && status == KERNEL_OK; i++) {
            const Row row = {line, n + i, m, own_pair(task, &parts, i, backward), parts.other};
            status = backward ? differentiate_row(task, &row, &parts) : attend_row(task, &row, &parts);
        }
    }
    for (int64_t i = 0; i < count && status == KERNEL_OK && backward; i++) {
        const Pair pair = own_pair(task, &parts, i, true);
        us_linear_store_float(&task->views[TO_KEY1], (line * task->first + n + i) * size, size, pair.key_slopes);
        us_linear_store_float(&task->views[TO_VALUE1], (line * task->first + n + i) * size, size, pair.value_slopes);
    }
    us_scratch_give_back(block);
    note(task, status);
}

static void attend_first(void *context, int64_t piece)
{
    run_first(context, piece, false);
}

static void differentiate_first(void *context, int64_t piece)
{
    run_first(context, piece, true);
}

/* All rows of some m, once more: the slopes of the second keys and values. */
static void differentiate_second(void *context, int64_t piece)
{
    Task *task = context;
    const int64_t tiles = ceiling(task->second, task->tile), line = piece / tiles, m = piece % tiles * task->tile;
    const int64_t count = smaller(task->tile, task->second - m), d = task->depth;
    Parts parts;
    void *block = begin(task, &parts, true);
    KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    for (int64_t i = 0; i < count && status == KERNEL_OK; i++) {
        load_second(task, line, m + i, own_pair(task, &parts, i, true));
    }
    for (int64_t n = 0; n < task->first && status == KERNEL_OK; n++) {
        load_first(task, line, n, parts.other);
        for (int64_t i = 0; i < count && status == KERNEL_OK; i++) {
            const Row row = {line, n, m + i, parts.other, own_pair(task, &parts, i, true)};
            status = find_slopes(task, &row, &parts);
            add_row(task, &parts, row.second);
        }
    }
    for (int64_t i = 0; i < count && status == KERNEL_OK; i++) {
        const Pair pair = own_pair(task, &parts, i, true);
        for (int64_t k = 0; k < task->keys; k++) {
            us_linear_store_float(&task->views[TO_KEY2], second_at(task, line, k, m + i), d, pair.key_slopes + k * d);
            us_linear_store_float(&task->views[TO_VALUE2], second_at(task, line, k, m + i), d, pair.value_slopes + k * d);
        }
    }
    us_scratch_give_back(block);
    note(task, status);
}

/* ---- kernels ---- */

enum { TILE = 16, TILE_NUMBERS = 1 << 21 };

static Task task_of(const View *views, const FloydAttention *floyd)
{
    const View *query = &views[OF_QUERY];
    const int64_t keys = views[OF_KEY1].shape[3], depth = query->shape[4];
    return (Task){.views = views, .scale = floyd->scale, .heads = query->shape[1], .first = query->shape[2],
                  .second = query->shape[3], .keys = keys, .depth = depth,
                  .tile = larger(1, smaller(TILE, TILE_NUMBERS / us_scratch_count(keys, depth)))};
}

/* Tiles of `places` of every batch and head. */
static void run_tiles(Task *task, int64_t places, ParallelBody *body)
{
    const View *query = &task->views[OF_QUERY];
    if (task->status == KERNEL_OK) {
        run_pieces(query->shape[0] * task->heads * ceiling(places, task->tile),
                   us_scratch_count(us_view_elements(query), task->keys), body, task);
    }
}

KernelStatus us_floyd_attention(const View *views, const void *attributes)
{
    Task task = task_of(views, attributes);
    run_tiles(&task, task.first, attend_first);
    return task.status;
}

KernelStatus us_floyd_attention_backward(const View *views, const void *attributes)
{
    Task task = task_of(views, attributes);
    run_tiles(&task, task.first, differentiate_first);
    run_tiles(&task, task.second, differentiate_second);
    return task.status;
}
