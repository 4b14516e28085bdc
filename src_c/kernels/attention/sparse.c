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
    int64_t *places; /* keys of their sequence */
    float *slopes, *score_slopes, *query_slopes; /* of a gradient */
    float *key_slopes;                           /* of a key: its own, its other part's, then the value's */
} Parts;

/* A row and the keys that it selects and sees. */
typedef struct Row {
    Task *task;
    int64_t number, sequence, keys;
    Parts parts;
} Row;

/* Rows of a sequence that follow each other. */
typedef struct Group {
    Task *task;
    KeySlopes slopes;
    int64_t first;
} Group;

/* For the gradients others have the places. */
static void *take_parts(const Task *task, Parts *parts, bool backward)
{
    const int64_t n = task->heads, d = task->depth, both = task->depth + task->rotary, k = task->most;
    float *places, **const arrays[] = {&parts->query, &parts->keys, &parts->values, &parts->scores, &parts->out, &parts->maxima,
                                       &parts->sums, backward ? &parts->slopes : &places, &parts->score_slopes,
                                       &parts->query_slopes};
    const int64_t last = backward ? n * d : us_scratch_count(k, sizeof(int64_t) / sizeof(float));
    const int64_t sides[][2] = {{n, both}, {k, both}, {k, d}, {n, k}, {n, d}, {n, 1}, {n, 1}, {last, 1}, {n, k}, {n, both}};
    void *const block = attention_take_arrays(backward ? 10 : 8, arrays, sides);
    if (block != NULL && !backward) {
        parts->places = (void *)places;
    }
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

static void list_keys(Row *row)
{
    const Task *task = row->task;
    const TokenRow seen = us_token_row(&task->tokens, row->number);
    const int64_t block = task->sparse->block, count = seen.sequence < 0 ? 0 : last_size(&task->views[OF_INDICES], 1);
    row->sequence = seen.sequence;
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = us_token_selected(&task->tokens, &task->views[OF_INDICES], row->number, i) * block;
        if (first < 0) {
            break;
        }
        for (int64_t key = first; key < smaller(first + block, seen.keys); key++) {
            row->parts.places[row->keys++] = key;
        }
    }
}

/* ---- rows: each is divided as well, as long as no other thread has one ---- */

enum { SLICE = 256, COLUMNS = 128 }; /* keys; numbers of the result */

/* Keys, their values and their scores, before these are scaled. */
static void score_slice(void *context, int64_t piece)
{
    Row *row = context;
    Task *task = row->task;
    const Parts *parts = &row->parts;
    const int64_t d = task->depth, both = d + task->rotary, first = piece * SLICE, count = smaller(SLICE, row->keys - first);
    for (int64_t i = first; i < first + count; i++) {
        const int64_t at = us_token_key(&task->tokens, row->sequence, parts->places[i]);
        load_both(task, OF_KEY, OF_ROTARY_KEY, at, parts->keys + i * both);
        us_linear_load_float(task->value, at * d, d, parts->values + i * d);
    }
    us_keep_status(&task->status, attention_multiply_into(task->heads, count, both, float_rows(parts->query, both),
                                       transposed(float_rows(parts->keys + first * both, both)),
                                       float_rows(parts->scores + first, row->keys), false));
}

static int64_t work_of_row(const Row *row)
{
    return us_scratch_count(row->keys, row->task->heads * row->task->depth);
}

static void find_scores(Row *row)
{
    Task *task = row->task;
    list_keys(row);
    for (int64_t n = 0; n < task->heads; n++) {
        load_both(task, OF_QUERY, OF_ROTARY_QUERY, row->number * task->heads + n,
                  row->parts.query + n * (task->depth + task->rotary));
    }
    run_pieces(ceiling(row->keys, SLICE), work_of_row(row), score_slice, row);
}

/* Scores of a head become weights. */
static void weigh_head(void *context, int64_t n)
{
    const Row *row = context;
    float *scores = row->parts.scores + n * row->keys;
    const float maximum = attention_scale(scores, row->keys, row->task->sparse->scale, NULL, 0);
    const float sum = attention_exponentials(scores, row->keys, maximum == -INFINITY ? 0 : maximum);
    attention_multiply(scores, row->keys, sum == 0 ? 0 : 1 / sum);
    row->parts.maxima[n] = maximum;
    row->parts.sums[n] = sum;
}

static void sum_columns(void *context, int64_t piece)
{
    const Row *row = context;
    Task *task = row->task;
    const int64_t first = piece * COLUMNS, d = task->depth, count = smaller(COLUMNS, d - first);
    us_keep_status(&task->status, attention_multiply_into(task->heads, count, row->keys, float_rows(row->parts.scores, row->keys),
                                       float_rows(row->parts.values + first, d), float_rows(row->parts.out + first, d), false));
}

static void store_statistic(const Task *task, int operand, int64_t number, const float *from)
{
    if (!us_view_is_absent(&task->views[operand])) {
        us_linear_store_float(&task->views[operand], number * task->heads, task->heads, from);
    }
}

static void attend_row(void *context, int64_t number)
{
    Task *task = context;
    Row row = {.task = task, .number = number};
    void *block = take_parts(task, &row.parts, false);
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
        return;
    }
    find_scores(&row);
    run_pieces(task->heads, us_scratch_count(task->heads, row.keys), weigh_head, &row);
    run_pieces(ceiling(task->depth, COLUMNS), work_of_row(&row), sum_columns, &row);
    us_linear_store_float(&task->views[OF_OUT], number * task->heads * task->depth, task->heads * task->depth, row.parts.out);
    store_statistic(task, OF_MAXIMUM, number, row.parts.maxima);
    store_statistic(task, OF_SUM, number, row.parts.sums);
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

static KernelStatus differentiate(Row *row)
{
    const Task *task = row->task;
    const Parts *parts = &row->parts;
    const int64_t n = task->heads, d = task->depth, both = d + task->rotary, number = row->number;
    find_scores(row);
    const int64_t keys = row->keys;
    us_linear_load_float(&task->views[OF_OUT], number * n * d, n * d, parts->out);
    us_linear_load_float(&task->views[OF_SLOPES], number * n * d, n * d, parts->slopes);
    us_linear_load_float(&task->views[OF_MAXIMUM], number * n, n, parts->maxima);
    us_linear_load_float(&task->views[OF_SUM], number * n, n, parts->sums);
    const Matrix values = transposed(float_rows(parts->values, d)), slopes = float_rows(parts->slopes, d);
    const Matrix query = float_rows(parts->query, both);
    const Matrix weights = float_rows(parts->scores, keys), score_slopes = float_rows(parts->score_slopes, keys);
    KernelStatus status = attention_multiply_matrices(n, keys, d, slopes, values, parts->score_slopes, false);
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

/* Of the slopes of a key. */
static int64_t width_of(const Task *task)
{
    return 2 * task->depth + task->rotary;
}

static void differentiate_row(void *context, int64_t at)
{
    const Group *group = context;
    Task *task = group->task;
    const KeySlopes *slopes = &group->slopes;
    Row row = {.task = task, .number = group->first + at};
    void *block = take_parts(task, &row.parts, true);
    slopes->counts[at] = 0;
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
        return;
    }
    row.parts.places = slopes->places + at * slopes->most;
    row.parts.key_slopes = slopes->slopes + at * slopes->most * slopes->width;
    const KernelStatus status = differentiate(&row);
    if (status == KERNEL_OK) {
        store_query_slopes(task, row.number, &row.parts);
        slopes->counts[at] = row.keys;
    }
    us_scratch_give_back(block);
    us_keep_status(&task->status, status);
}

static void differentiate_sequence(void *context, int64_t sequence)
{
    Task *task = context;
    const int64_t keys = us_token_keys(&task->tokens, sequence), width = width_of(task);
    const int64_t together = us_row_group(task->most, width);
    const bool alone = are_enough(us_token_sequences(&task->tokens), together);
    const TokenSpan rows = us_token_span(&task->tokens, sequence);
    Group group = {.task = task, .slopes = {.most = task->most, .width = width, .group = alone ? 1 : together}};
    void *block = us_take_key_slopes(&group.slopes, keys);
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
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
        run_divided_pieces(us_token_rows(&task.tokens), ceiling(task.most, SLICE), work_of(&task), attend_row, &task);
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
        run_divided_pieces(us_token_sequences(&task.tokens), us_row_group(task.most, width_of(&task)), work_of(&task),
                           differentiate_sequence, &task);
    }
    return task.status;
}
