#include "kernels/attention/sparse.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { OF_QUERY, OF_KEY, OF_VALUE, OF_INDICES, OF_ROW_LENGTHS, OF_KEY_LENGTHS, OF_PAGES, OF_ROTARY_QUERY, OF_ROTARY_KEY, OF_OUT,
       OF_MAXIMUM, OF_SUM, OF_SLOPES, OF_QUERY_SLOPES, OF_KEY_SLOPES, OF_VALUE_SLOPES, OF_ROTARY_QUERY_SLOPES,
       OF_ROTARY_KEY_SLOPES };

typedef struct Task {
    const View *views;
    const SparseAttention *sparse;
    Tokens tokens;
    const View *value; /* the key where there is none */
    int64_t heads, depth, rotary, most; /* most: keys of a row */
    KernelStatus status;
} Task;

/* What a row needs. */
typedef struct Parts {
    float *query, *keys, *values, *scores, *out; /* query and keys with both parts side by side */
    float *maxima, *sums;
    float *slopes, *score_slopes, *query_slopes, *key_slopes, *value_slopes; /* of a gradient */
    int64_t *places; /* keys of their sequence */
} Parts;

static int64_t last_size(const View *view, int32_t from_the_end)
{
    return view->shape[view->rank - from_the_end];
}

static void *take_parts(const Task *task, Parts *parts, bool backward)
{
    const int64_t n = task->heads, d = task->depth, both = task->depth + task->rotary, k = task->most;
    float *places, **const arrays[] = {&parts->query, &parts->keys, &parts->values, &parts->scores, &parts->out, &parts->maxima,
                                       &parts->sums, &places, &parts->slopes, &parts->score_slopes, &parts->query_slopes,
                                       &parts->key_slopes, &parts->value_slopes};
    const int64_t sides[][2] = {{n, both}, {k, both}, {k, d}, {n, k}, {n, d}, {n, 1}, {n, 1},
                                {k, sizeof(int64_t) / sizeof(float)}, {n, d}, {n, k}, {n, both}, {k, both}, {k, d}};
    void *const block = attention_take_arrays(backward ? 13 : 8, arrays, sides);
    parts->places = block == NULL ? NULL : (void *)places;
    return block;
}

/* ---- which keys ---- */

/* The other part of a head stands behind the first one. */
static void load_both(const Task *task, int operand, int rotary, int64_t number, float *to)
{
    us_linear_load_float(&task->views[operand], number * task->depth, task->depth, to);
    if (task->rotary > 0) {
        us_linear_load_float(&task->views[rotary], number * task->rotary, task->rotary, to + task->depth);
    }
}

/* Loads the keys that the row selects and sees, and their values. How many there are. */
static int64_t load_keys(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    const int64_t block = task->sparse->block, d = task->depth;
    int64_t count = 0;
    for (int64_t i = 0; i < last_size(&task->views[OF_INDICES], 1); i++) {
        const int64_t first = us_token_selected(&task->tokens, &task->views[OF_INDICES], number, i) * block;
        if (first < 0) {
            break;
        }
        for (int64_t key = first; key < smaller(first + block, row.keys); key++, count++) {
            const int64_t at = us_token_key(&task->tokens, row.sequence, key);
            load_both(task, OF_KEY, OF_ROTARY_KEY, at, parts->keys + count * (d + task->rotary));
            us_linear_load_float(task->value, at * d, d, parts->values + count * d);
            parts->places[count] = key;
        }
    }
    return count;
}

/* ---- rows ---- */

static Matrix matrix(const float *rows, int64_t width)
{
    return matrix_of_rows(rows, DTYPE_FLOAT32, width);
}

/* Scores of the keys that are loaded, before they are scaled. */
static KernelStatus find_scores(const Task *task, int64_t number, int64_t keys, const Parts *parts)
{
    const int64_t both = task->depth + task->rotary;
    for (int64_t n = 0; n < task->heads; n++) {
        load_both(task, OF_QUERY, OF_ROTARY_QUERY, number * task->heads + n, parts->query + n * both);
    }
    return attention_multiply_matrices(task->heads, keys, both, matrix(parts->query, both), transposed(matrix(parts->keys, both)),
                                       parts->scores, false);
}

/* Scores become weights. */
static void weigh(const Task *task, int64_t keys, const Parts *parts)
{
    for (int64_t n = 0; n < task->heads; n++) {
        float *scores = parts->scores + n * keys;
        const float maximum = attention_scale(scores, keys, task->sparse->scale, NULL, 0);
        const float sum = attention_exponentials(scores, keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(scores, keys, sum == 0 ? 0 : 1 / sum);
        parts->maxima[n] = maximum;
        parts->sums[n] = sum;
    }
}

static KernelStatus attend(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    const int64_t keys = row.sequence < 0 ? 0 : load_keys(task, number, row, parts);
    const KernelStatus status = find_scores(task, number, keys, parts);
    if (status != KERNEL_OK) {
        return status;
    }
    weigh(task, keys, parts);
    return attention_multiply_matrices(task->heads, task->depth, keys, matrix(parts->scores, keys),
                                       matrix(parts->values, task->depth), parts->out, false);
}

static void store_statistic(const Task *task, int operand, int64_t number, const float *from)
{
    if (!us_view_is_absent(&task->views[operand])) {
        us_linear_store_float(&task->views[operand], number * task->heads, task->heads, from);
    }
}

static void run_row(void *context, int64_t number)
{
    Task *task = context;
    Parts parts;
    void *block = take_parts(task, &parts, false);
    const KernelStatus status = block == NULL ? KERNEL_NO_MEMORY
                                              : attend(task, number, us_token_row(&task->tokens, number), &parts);
    if (status == KERNEL_OK) {
        us_linear_store_float(&task->views[OF_OUT], number * task->heads * task->depth, task->heads * task->depth, parts.out);
        store_statistic(task, OF_MAXIMUM, number, parts.maxima);
        store_statistic(task, OF_SUM, number, parts.sums);
    } else {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
    us_scratch_give_back(block);
}

/* ---- gradients ---- */

/* The scores become weights, their slopes those of the scores. */
static void find_slopes(const Task *task, int64_t keys, const Parts *parts)
{
    for (int64_t n = 0; n < task->heads; n++) {
        float *weights = parts->scores + n * keys, *slopes = parts->score_slopes + n * keys;
        const float maximum = parts->maxima[n], sum = parts->sums[n];
        const int64_t first = n * task->depth;
        const float mean = inner_product(parts->out + first, parts->slopes + first, task->depth);
        attention_multiply(weights, keys, task->sparse->scale);
        attention_exponentials(weights, keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(weights, keys, sum == 0 ? 0 : 1 / sum);
        for (int64_t i = 0; i < keys; i++) {
            slopes[i] = task->sparse->scale * weights[i] * (slopes[i] - mean);
        }
    }
}

/* Of the keys that are loaded. */
static KernelStatus differentiate_row(const Task *task, int64_t number, int64_t keys, const Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, both = d + task->rotary;
    us_linear_load_float(&task->views[OF_OUT], number * n * d, n * d, parts->out);
    us_linear_load_float(&task->views[OF_SLOPES], number * n * d, n * d, parts->slopes);
    us_linear_load_float(&task->views[OF_MAXIMUM], number * n, n, parts->maxima);
    us_linear_load_float(&task->views[OF_SUM], number * n, n, parts->sums);
    KernelStatus status = find_scores(task, number, keys, parts);
    const Matrix values = transposed(matrix(parts->values, d)), slopes = matrix(parts->slopes, d);
    const Matrix query = matrix(parts->query, both);
    const Matrix weights = matrix(parts->scores, keys), score_slopes = matrix(parts->score_slopes, keys);
    status = status != KERNEL_OK ? status : attention_multiply_matrices(n, keys, d, slopes, values, parts->score_slopes, false);
    if (status != KERNEL_OK) {
        return status;
    }
    find_slopes(task, keys, parts);
    status = attention_multiply_matrices(n, both, keys, score_slopes, matrix(parts->keys, both), parts->query_slopes, false);
    status = status != KERNEL_OK
                 ? status
                 : attention_multiply_matrices(keys, both, n, transposed(score_slopes), query, parts->key_slopes, false);
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(keys, d, n, transposed(weights), slopes, parts->value_slopes, false);
}

static void store_both(const Task *task, int operand, int rotary, int64_t number, const float *from)
{
    us_linear_store_float(&task->views[operand], number * task->depth, task->depth, from);
    if (task->rotary > 0) {
        us_linear_store_float(&task->views[rotary], number * task->rotary, task->rotary, from + task->depth);
    }
}

static void store_query_slopes(const Task *task, int64_t number, const Parts *parts)
{
    for (int64_t n = 0; n < task->heads; n++) {
        store_both(task, OF_QUERY_SLOPES, OF_ROTARY_QUERY_SLOPES, number * task->heads + n,
                   parts->query_slopes + n * (task->depth + task->rotary));
    }
}

/* Slopes of the row's keys, one behind the other the key's, its other part's and the value's. */
static void add_keys(const Task *task, int64_t keys, const Parts *parts, float *sums)
{
    const int64_t d = task->depth, both = d + task->rotary;
    for (int64_t i = 0; i < keys; i++) {
        float *sum = sums + parts->places[i] * (both + d);
        attention_add(sum, parts->key_slopes + i * both, both);
        attention_add(sum + both, parts->value_slopes + i * d, d);
    }
}

static void store_key_slopes(const Task *task, int64_t number, float *sum)
{
    const int64_t d = task->depth, both = d + task->rotary;
    if (us_view_is_absent(&task->views[OF_VALUE_SLOPES])) {
        attention_add(sum, sum + both, d);
    } else {
        us_linear_store_float(&task->views[OF_VALUE_SLOPES], number * d, d, sum + both);
    }
    store_both(task, OF_KEY_SLOPES, OF_ROTARY_KEY_SLOPES, number, sum);
}

/* All rows of a sequence in their order. */
static void differentiate_sequence(void *context, int64_t sequence)
{
    Task *task = context;
    const int64_t keys = us_token_keys(&task->tokens, sequence), width = 2 * task->depth + task->rotary;
    Parts parts;
    void *block = take_parts(task, &parts, true);
    float *sums = us_scratch_array(us_scratch_count(keys, width), sizeof *sums);
    KernelStatus status = block == NULL || sums == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    if (status == KERNEL_OK) {
        memset(sums, 0, (size_t)(keys * width) * sizeof *sums);
    }
    const TokenSpan rows = us_token_span(&task->tokens, sequence);
    for (int64_t number = rows.begin; number < rows.end && status == KERNEL_OK; number++) {
        const int64_t count = load_keys(task, number, us_token_row(&task->tokens, number), &parts);
        status = differentiate_row(task, number, count, &parts);
        if (status == KERNEL_OK) {
            store_query_slopes(task, number, &parts);
            add_keys(task, count, &parts, sums);
        }
    }
    for (int64_t key = 0; key < keys && status == KERNEL_OK; key++) {
        store_key_slopes(task, us_token_key(&task->tokens, sequence, key), sums + key * width);
    }
    us_scratch_give_back(sums);
    us_scratch_give_back(block);
    if (status != KERNEL_OK) {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
}

/* ---- kernels ---- */

static Task task_of(const View *views, const SparseAttention *sparse)
{
    const View *query = &views[OF_QUERY], *rotary = &views[OF_ROTARY_QUERY];
    Task task = {.views = views, .sparse = sparse, .heads = last_size(query, 2), .depth = last_size(query, 1),
                 .value = &views[us_view_is_absent(&views[OF_VALUE]) ? OF_KEY : OF_VALUE],
                 .rotary = us_view_is_absent(rotary) ? 0 : last_size(rotary, 1),
                 .most = us_scratch_count(last_size(&views[OF_INDICES], 1), sparse->block),
                 .tokens = {sparse->layout, query, &views[OF_KEY], &views[OF_ROW_LENGTHS], &views[OF_KEY_LENGTHS],
                            &views[OF_PAGES]}};
    task.status = us_check_tokens(&task.tokens);
    task.status = task.status != KERNEL_OK ? task.status : us_check_selected(&task.tokens, &views[OF_INDICES], sparse->block);
    return task;
}

static int64_t work_of(const Task *task)
{
    return us_scratch_count(us_view_elements(&task->views[OF_QUERY]), task->most);
}

KernelStatus us_sparse_attention(const View *views, const void *attributes)
{
    Task task = task_of(views, attributes);
    if (task.status == KERNEL_OK) {
        run_pieces(us_token_rows(&task.tokens), work_of(&task), run_row, &task);
    }
    return task.status;
}

KernelStatus us_sparse_attention_backward(const View *views, const void *attributes)
{
    Task task = task_of(views, attributes);
    for (int operand = OF_QUERY_SLOPES; operand <= OF_ROTARY_KEY_SLOPES && task.status == KERNEL_OK; operand++) {
        if (!us_view_is_absent(&views[operand])) {
            attention_fill_zeros(&views[operand]);
        }
    }
    if (task.status == KERNEL_OK) {
        run_pieces(us_token_sequences(&task.tokens), work_of(&task), differentiate_sequence, &task);
    }
    return task.status;
}
