#include "kernels/attention/indexer.h"

#include "kernels/attention/key_slopes.h"
#include "kernels/attention/teacher.h"
#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

typedef struct Task {
    const View *query, *key, *weights, *selected, *slopes; /* selected: absent where all keys count */
    const View *query_slopes, *key_slopes, *weight_slopes;
    const Teacher *teacher; /* NULL: slopes are given */
    const View *index_maximum, *index_sum; /* of the scores; absent: nobody has them */
    Tokens tokens;
    int64_t heads, depth, most; /* most: keys of a row */
    double *losses;             /* of a sequence each */
    KernelStatus status;
} Task;

/* What a row needs, and what comes out of it. */
typedef struct Parts {
    float *query, *weights, *keys, *products, *slopes; /* products become the slopes of them */
    float *query_slopes, *weight_slopes, *key_slopes;
    float *scores, *taught; /* of the indexer, and p */
    int64_t *places;        /* keys of their sequence */
} Parts;

/* Rows of a sequence that follow each other. */
typedef struct Group {
    Task *task;
    KeySlopes slopes;
    int64_t sequence, first, rows;
    int64_t seen;   /* keys, by the row that sees most of them */
    float *taught;  /* where all keys count: of every row */
    double *losses; /* of every row */
} Group;

static bool all_count(const Task *task)
{
    return us_view_is_absent(task->selected);
}

static void *take_parts(const Task *task, Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, k = task->most;
    float **const arrays[] = {&parts->query, &parts->weights, &parts->keys, &parts->products, &parts->slopes,
                              &parts->query_slopes, &parts->weight_slopes, &parts->scores, &parts->taught};
    const int64_t sides[][2] = {{n, d}, {n, 1}, {k, d}, {n, k}, {k, 1}, {n, d}, {n, 1}, {k, 1}, {k, 1}};
    return attention_take_arrays(task->teacher == NULL ? 7 : all_count(task) ? 8 : 9, arrays, sides);
}

/* ---- which keys ---- */

static void load_key(const Task *task, TokenRow row, int64_t key, const Parts *parts, int64_t count)
{
    const int64_t at = us_token_key(&task->tokens, row.sequence, key);
    us_linear_load_float(task->key, at * task->depth, task->depth, parts->keys + count * task->depth);
    parts->places[count] = key;
}

/* Loads the keys that count and, where they are given, the slopes of their scores. How many there are. */
static int64_t load_keys(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    const int64_t width = all_count(task) ? row.keys : last_size(task->selected, 1);
    int64_t count = 0;
    for (int64_t i = 0; i < width; i++) {
        const int64_t key = all_count(task) ? i : us_token_selected(&task->tokens, task->selected, number, i);
        if (key < 0) {
            break;
        }
        if (key < row.keys) {
            if (task->teacher == NULL) {
                us_linear_load_float(task->slopes, number * width + i, 1, parts->slopes + count);
            }
            load_key(task, row, key, parts, count++);
        }
    }
    return count;
}

/* ---- what the teacher says ---- */

/* Of some keys, to all rows of a group. */
static void teach_keys(void *context, int64_t piece)
{
    const Group *group = context;
    Task *task = group->task;
    const int64_t key = piece * KEYS;
    const Lesson lesson = {.sequence = group->sequence, .row = group->first, .rows = group->rows, .key = key,
                           .keys = smaller(KEYS, group->seen - key), .taught = group->taught + key, .stride = task->most};
    us_keep_status(&task->status, us_teach(task->teacher, &task->tokens, &lesson));
}

/* p: divided by its sum. */
static void divide(float *taught, int64_t keys)
{
    double sum = 0;
    for (int64_t i = 0; i < keys; i++) {
        sum += (double)taught[i];
    }
    attention_multiply(taught, keys, sum == 0 ? 0 : (float)(1 / sum));
}

/* The indexer's scores, which are the sums over its heads. */
static void find_scores(const Task *task, int64_t keys, const Parts *parts)
{
    memset(parts->scores, 0, (size_t)keys * sizeof(float));
    for (int64_t n = 0; n < task->heads; n++) {
        const float *products = parts->products + n * keys;
        for (int64_t i = 0; i < keys; i++) {
            parts->scores[i] += parts->weights[n] * (products[i] < 0 ? 0 : products[i]);
        }
    }
}

/* The slopes of the scores; the row's loss. */
static double learn(const Task *task, int64_t number, int64_t keys, const Parts *parts)
{
    float maximum, sum;
    find_scores(task, keys, parts);
    memcpy(parts->slopes, parts->scores, (size_t)keys * sizeof(float));
    if (us_view_is_absent(task->index_maximum)) {
        maximum = attention_scale(parts->slopes, keys, 1, NULL, 0);
        sum = attention_exponentials(parts->slopes, keys, maximum == -INFINITY ? 0 : maximum);
    } else {
        us_linear_load_float(task->index_maximum, number, 1, &maximum);
        us_linear_load_float(task->index_sum, number, 1, &sum);
        attention_exponentials(parts->slopes, keys, maximum == -INFINITY ? 0 : maximum);
    }
    const float logarithm = log_float(sum);
    double loss = 0;
    for (int64_t i = 0; i < keys; i++) {
        const float taught = parts->taught[i];
        parts->slopes[i] = parts->slopes[i] / sum - taught;
        if (taught > 0) {
            loss += (double)taught * (double)(log_float(taught) - (parts->scores[i] - maximum - logarithm));
        }
    }
    return loss;
}

/* ---- rows ---- */

/* The slopes of the weights, and of the products where these count. */
static void find_slopes(const Task *task, int64_t keys, const Parts *parts)
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

/* Of the keys that are loaded. */
static KernelStatus differentiate(const Task *task, int64_t number, TokenRow row, int64_t keys, const Parts *parts, double *loss)
{
    const int64_t n = task->heads, d = task->depth;
    us_linear_load_float(task->query, number * n * d, n * d, parts->query);
    us_linear_load_float(task->weights, number * n, n, parts->weights);
    const Matrix query = float_rows(parts->query, d), rows = float_rows(parts->keys, d);
    const Matrix products = float_rows(parts->products, keys);
    KernelStatus status = attention_multiply_matrices(n, keys, d, query, transposed(rows), parts->products, false);
    if (status == KERNEL_OK && task->teacher != NULL && !all_count(task)) {
        const Lesson lesson = {.sequence = row.sequence, .row = number, .rows = 1, .places = parts->places, .keys = keys,
                               .taught = parts->taught};
        status = us_teach(task->teacher, &task->tokens, &lesson);
    }
    if (status != KERNEL_OK) {
        return status;
    }
    if (task->teacher != NULL && keys > 0) {
        divide(parts->taught, keys);
        *loss = learn(task, number, keys, parts);
    }
    find_slopes(task, keys, parts);
    status = attention_multiply_matrices(n, d, keys, products, rows, parts->query_slopes, false);
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(keys, d, n, transposed(products), query, parts->key_slopes, false);
}

static void differentiate_row(void *context, int64_t at)
{
    const Group *group = context;
    Task *task = group->task;
    const KeySlopes *slopes = &group->slopes;
    const int64_t number = group->first + at, n = task->heads, d = task->depth;
    Parts parts = {0};
    void *block = take_parts(task, &parts);
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
        return;
    }
    parts.places = slopes->places + at * slopes->most;
    parts.key_slopes = slopes->slopes + at * slopes->most * d;
    parts.taught = all_count(task) ? group->taught + at * task->most : parts.taught;
    const TokenRow row = us_token_row(&task->tokens, number);
    const int64_t keys = load_keys(task, number, row, &parts);
    const KernelStatus status = differentiate(task, number, row, keys, &parts, &group->losses[at]);
    if (status == KERNEL_OK) {
        us_linear_store_float(task->query_slopes, number * n * d, n * d, parts.query_slopes);
        us_linear_store_float(task->weight_slopes, number * n, n, parts.weight_slopes);
        slopes->counts[at] = keys;
    }
    us_scratch_give_back(block);
    us_keep_status(&task->status, status);
}

/* ---- sequences ---- */

static void *take_group(Group *group)
{
    const Task *task = group->task;
    float *losses = NULL, **const arrays[] = {&losses, &group->taught};
    const int64_t rows = group->slopes.group, sides[][2] = {{rows, sizeof(double) / sizeof(float)}, {rows, task->most}};
    void *const block = attention_take_arrays(task->teacher != NULL && all_count(task) ? 2 : 1, arrays, sides);
    group->losses = (void *)losses;
    return block;
}

/* The group's loss. */
static double differentiate_group(Group *group)
{
    Task *task = group->task;
    double loss = 0;
    group->seen = 0;
    for (int64_t at = 0; at < group->rows; at++) {
        group->slopes.counts[at] = 0;
        group->losses[at] = 0;
        group->seen = larger(group->seen, us_token_row(&task->tokens, group->first + at).keys);
    }
    const int64_t work = us_scratch_count(group->rows * task->heads * task->depth, group->seen);
    if (task->teacher != NULL && all_count(task)) {
        run_pieces(ceiling(group->seen, KEYS), work, teach_keys, group);
    }
    run_pieces(group->rows, work, differentiate_row, group);
    us_add_key_slopes(&group->slopes, group->rows);
    for (int64_t at = 0; at < group->rows; at++) {
        loss += group->losses[at];
    }
    return loss;
}

static void differentiate_sequence(void *context, int64_t sequence)
{
    Task *task = context;
    const int64_t keys = us_token_keys(&task->tokens, sequence), d = task->depth;
    const TokenSpan rows = us_token_span(&task->tokens, sequence);
    Group group = {.task = task, .sequence = sequence,
                   .slopes = {.most = task->most, .width = d, .group = us_row_group(task->most, d)}};
    void *block = us_take_key_slopes(&group.slopes, keys), *of_group = take_group(&group);
    if (block == NULL || of_group == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
    } else {
        double loss = 0;
        for (group.first = rows.begin; group.first < rows.end; group.first += group.rows) {
            group.rows = smaller(group.slopes.group, rows.end - group.first);
            loss += differentiate_group(&group);
        }
        for (int64_t key = 0; key < keys; key++) {
            const int64_t at = us_token_key(&task->tokens, sequence, key);
            us_linear_store_float(task->key_slopes, at * d, d, group.slopes.sums + key * d);
        }
        if (task->losses != NULL) {
            task->losses[sequence] = loss;
        }
    }
    us_scratch_give_back(of_group);
    us_scratch_give_back(block);
}

/* ---- kernels ---- */

static KernelStatus run(Task *task)
{
    task->heads = last_size(task->query, 2);
    task->depth = last_size(task->query, 1);
    task->status = us_check_tokens(&task->tokens);
    if (task->status == KERNEL_OK) {
        task->most = us_longest_keys(&task->tokens);
    }
    if (task->status == KERNEL_OK && !all_count(task)) {
        task->status = us_check_selected(&task->tokens, task->selected, 1, &task->most);
    }
    if (task->status != KERNEL_OK) {
        return task->status;
    }
    attention_fill_zeros(task->query_slopes);
    attention_fill_zeros(task->key_slopes);
    attention_fill_zeros(task->weight_slopes);
    run_divided_pieces(us_token_sequences(&task->tokens), us_row_group(task->most, task->depth),
                       us_scratch_count(us_view_elements(task->query), task->most), differentiate_sequence, task);
    return task->status;
}

KernelStatus us_lightning_indexer_backward(const View *views, const void *attributes)
{
    enum { OF_QUERY, OF_KEY, OF_WEIGHTS, OF_ROW_LENGTHS, OF_KEY_LENGTHS, OF_SELECTED, OF_SLOPES, TO_QUERY, TO_KEY, TO_WEIGHTS };
    const View absent = us_view_absent();
    Task task = {.query = &views[OF_QUERY], .key = &views[OF_KEY], .weights = &views[OF_WEIGHTS], .selected = &views[OF_SELECTED],
                 .slopes = &views[OF_SLOPES], .query_slopes = &views[TO_QUERY], .key_slopes = &views[TO_KEY],
                 .weight_slopes = &views[TO_WEIGHTS],
                 .tokens = {*(const TokenLayout *)attributes, &views[OF_QUERY], &views[OF_KEY], &views[OF_ROW_LENGTHS],
                            &views[OF_KEY_LENGTHS], &absent}};
    return run(&task);
}

KernelStatus us_indexer_loss_backward(const View *views, const void *attributes)
{
    enum { OF_QUERY, OF_KEY, OF_WEIGHTS, OF_SELECTED, BY_QUERY, BY_KEY, BY_ROTARY_QUERY, BY_ROTARY_KEY, BY_MAXIMUM, BY_SUM,
           INDEX_MAXIMUM, INDEX_SUM, TO_QUERY, TO_KEY, TO_WEIGHTS, TO_LOSS };
    const ListedTokens *listed = attributes;
    const View rows = us_listed_lengths(listed, false), keys = us_listed_lengths(listed, true), absent = us_view_absent();
    const View *query = &views[BY_QUERY], *rotary = &views[BY_ROTARY_QUERY];
    const int64_t key_heads = last_size(&views[BY_KEY], 2);
    const Teacher teacher = {query, &views[BY_KEY], rotary, &views[BY_ROTARY_KEY], &views[BY_MAXIMUM], &views[BY_SUM],
                             listed->scale, key_heads, last_size(query, 2) / key_heads, last_size(query, 1),
                             us_view_is_absent(rotary) ? 0 : last_size(rotary, 1)};
    Task task = {.query = &views[OF_QUERY], .key = &views[OF_KEY], .weights = &views[OF_WEIGHTS], .selected = &views[OF_SELECTED],
                 .query_slopes = &views[TO_QUERY], .key_slopes = &views[TO_KEY], .weight_slopes = &views[TO_WEIGHTS],
                 .teacher = &teacher, .index_maximum = &views[INDEX_MAXIMUM], .index_sum = &views[INDEX_SUM],
                 .tokens = {listed->layout, &views[OF_QUERY], &views[OF_KEY], &rows, &keys, &absent}};
    const int64_t sequences = us_token_sequences(&task.tokens);
    task.losses = us_scratch_array(sequences, sizeof *task.losses);
    const KernelStatus status = task.losses == NULL ? KERNEL_NO_MEMORY : run(&task);
    double loss = 0;
    for (int64_t s = 0; s < sequences && status == KERNEL_OK; s++) {
        loss += task.losses[s];
    }
    if (status == KERNEL_OK) {
        us_linear_store_double(&views[TO_LOSS], 0, 1, &loss);
    }
    us_scratch_give_back(task.losses);
    return status;
}
