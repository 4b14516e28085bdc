#include "kernels/attention/sparse.h"

#include "kernels/attention/key_slopes.h"
#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

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
    float *slopes, *score_slopes, *query_slopes; /* of a gradient */
    float *key_slopes;                           /* of a key: its own, its other part's, then the value's */
    int64_t *places;                             /* keys of their sequence; NULL: nobody asks */
} Parts;

/* Rows of a sequence that follow each other. */
typedef struct Group {
    Task *task;
    KeySlopes slopes;
    int64_t first;
} Group;

static void note(Task *task, KernelStatus status)
{
    if (status != KERNEL_OK) {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
}

static void *take_parts(const Task *task, Parts *parts, bool backward)
{
    const int64_t n = task->heads, d = task->depth, both = task->depth + task->rotary, k = task->most;
    float **const arrays[] = {&parts->query, &parts->keys, &parts->values, &parts->scores, &parts->out, &parts->maxima,
                              &parts->sums, &parts->slopes, &parts->score_slopes, &parts->query_slopes};
    const int64_t sides[][2] = {{n, both}, {k, both}, {k, d}, {n, k}, {n, d}, {n, 1}, {n, 1}, {n, d}, {n, k}, {n, both}};
    return attention_take_arrays(backward ? 10 : 7, arrays, sides);
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
            if (parts->places != NULL) {
                parts->places[count] = key;
            }
        }
    }
    return count;
}

/* ---- rows ---- */

/* Scores of the keys that are loaded, before they are scaled. */
static KernelStatus find_scores(const Task *task, int64_t number, int64_t keys, const Parts *parts)
{
    const int64_t both = task->depth + task->rotary;
    for (int64_t n = 0; n < task->heads; n++) {
        load_both(task, OF_QUERY, OF_ROTARY_QUERY, number * task->heads + n, parts->query + n * both);
    }
    return attention_multiply_matrices(task->heads, keys, both, float_rows(parts->query, both),
                                       transposed(float_rows(parts->keys, both)), parts->scores, false);
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
    return attention_multiply_matrices(task->heads, task->depth, keys, float_rows(parts->scores, keys),
                                       float_rows(parts->values, task->depth), parts->out, false);
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
    Parts parts = {0};
    void *block = take_parts(task, &parts, false);
    const KernelStatus status = block == NULL ? KERNEL_NO_MEMORY
                                              : attend(task, number, us_token_row(&task->tokens, number), &parts);
    if (status == KERNEL_OK) {
        us_linear_store_float(&task->views[OF_OUT], number * task->heads * task->depth, task->heads * task->depth, parts.out);
        store_statistic(task, OF_MAXIMUM, number, parts.maxima);
        store_statistic(task, OF_SUM, number, parts.sums);
    }
    us_scratch_give_back(block);
    note(task, status);
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
static KernelStatus differentiate(const Task *task, int64_t number, int64_t keys, const Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, both = d + task->rotary;
    us_linear_load_float(&task->views[OF_OUT], number * n * d, n * d, parts->out);
    us_linear_load_float(&task->views[OF_SLOPES], number * n * d, n * d, parts->slopes);
    us_linear_load_float(&task->views[OF_MAXIMUM], number * n, n, parts->maxima);
    us_linear_load_float(&task->views[OF_SUM], number * n, n, parts->sums);
    KernelStatus status = find_scores(task, number, keys, parts);
    const Matrix values = transposed(float_rows(parts->values, d)), slopes = float_rows(parts->slopes, d);
    const Matrix query = float_rows(parts->query, both);
    const Matrix weights = float_rows(parts->scores, keys), score_slopes = float_rows(parts->score_slopes, keys);
    status = status != KERNEL_OK ? status : attention_multiply_matrices(n, keys, d, slopes, values, parts->score_slopes, false);
    if (status != KERNEL_OK) {
        return status;
    }
    find_slopes(task, keys, parts);
    status = attention_multiply_matrices(n, both, keys, score_slopes, float_rows(parts->keys, both), parts->query_slopes, false);
    status = status != KERNEL_OK ? status
                                 : attention_multiply_into(keys, both, n, transposed(score_slopes), query,
                                                           float_rows(parts->key_slopes, both + d), false);
    return status != KERNEL_OK ? status
                               : attention_multiply_into(keys, d, n, transposed(weights), slopes,
                                                         float_rows(parts->key_slopes + both, both + d), false);
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

static void differentiate_row(void *context, int64_t at)
{
    const Group *group = context;
    Task *task = group->task;
    const KeySlopes *slopes = &group->slopes;
    const int64_t number = group->first + at;
    Parts parts = {0};
    void *block = take_parts(task, &parts, true);
    slopes->counts[at] = 0;
    if (block == NULL) {
        note(task, KERNEL_NO_MEMORY);
        return;
    }
    parts.places = slopes->places + at * slopes->most;
    parts.key_slopes = slopes->slopes + at * slopes->most * slopes->width;
    const int64_t keys = load_keys(task, number, us_token_row(&task->tokens, number), &parts);
    const KernelStatus status = differentiate(task, number, keys, &parts);
    if (status == KERNEL_OK) {
        store_query_slopes(task, number, &parts);
        slopes->counts[at] = keys;
    }
    us_scratch_give_back(block);
    note(task, status);
}

static void differentiate_sequence(void *context, int64_t sequence)
{
    Task *task = context;
    const int64_t keys = us_token_keys(&task->tokens, sequence), width = 2 * task->depth + task->rotary;
    const bool alone = are_enough(us_token_sequences(&task->tokens));
    const TokenSpan rows = us_token_span(&task->tokens, sequence);
    Group group = {.task = task,
                   .slopes = {.most = task->most, .width = width, .group = alone ? 1 : us_row_group(task->most, width)}};
    void *block = us_take_key_slopes(&group.slopes, keys);
    if (block == NULL) {
        note(task, KERNEL_NO_MEMORY);
        return;
    }
    for (group.first = rows.begin; group.first < rows.end; group.first += group.slopes.group) {
        const int64_t count = smaller(group.slopes.group, rows.end - group.first);
        run_pieces(count, us_scratch_count(count * task->heads * width, task->most), differentiate_row, &group);
        us_add_key_slopes(&group.slopes, count);
    }
    for (int64_t key = 0; key < keys; key++) {
        store_key_slopes(task, us_token_key(&task->tokens, sequence, key), group.slopes.sums + key * width);
    }
    us_scratch_give_back(block);
}

/* ---- kernels ---- */

static Task task_of(const View *views, const SparseAttention *sparse)
{
    const View *query = &views[OF_QUERY], *rotary = &views[OF_ROTARY_QUERY];
    Task task = {.views = views, .sparse = sparse, .heads = last_size(query, 2), .depth = last_size(query, 1),
                 .value = &views[us_view_is_absent(&views[OF_VALUE]) ? OF_KEY : OF_VALUE],
                 .rotary = us_view_is_absent(rotary) ? 0 : last_size(rotary, 1),
                 .tokens = {sparse->layout, query, &views[OF_KEY], &views[OF_ROW_LENGTHS], &views[OF_KEY_LENGTHS],
                            &views[OF_PAGES]}};
    task.status = us_check_tokens(&task.tokens);
    if (task.status == KERNEL_OK) {
        task.status = us_check_selected(&task.tokens, &views[OF_INDICES], sparse->block, &task.most);
    }
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
        run_divided_pieces(us_token_sequences(&task.tokens), work_of(&task), differentiate_sequence, &task);
    }
    return task.status;
}
