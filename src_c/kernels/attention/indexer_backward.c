#include "kernels/attention/indexer.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

/* The attention that the indexer learns from. */
typedef struct Teacher {
    const View *query, *key, *rotary_query, *rotary_key, *maximum, *sum, *index_maximum, *index_sum;
    float scale;
    int64_t key_heads, group, depth, rotary; /* group: heads that share a key */
} Teacher;

typedef struct Task {
    const View *query, *key, *weights, *selected, *slopes; /* selected: absent where all keys count */
    const View *query_slopes, *key_slopes, *weight_slopes;
    const Teacher *teacher; /* NULL: slopes are given */
    Tokens tokens;
    int64_t heads, depth, most; /* most: keys of a row */
    double *losses;             /* of a sequence each */
    KernelStatus status;
} Task;

/* What a row needs, and what comes out of it. */
typedef struct Parts {
    float *query, *weights, *keys, *products, *slopes; /* products become the slopes of them */
    float *query_slopes, *key_slopes, *weight_slopes;
    int64_t *places; /* keys of their sequence */
    /* Of the teacher: p, the indexer's scores, parts side by side, and the weights of heads. */
    float *taught, *scores, *wide_query, *wide_keys, *weighed;
} Parts;

static int64_t last_size(const View *view, int32_t from_the_end)
{
    return view->shape[view->rank - from_the_end];
}

static void *take_parts(const Task *task, Parts *parts)
{
    const Teacher none = {0}, *teacher = task->teacher == NULL ? &none : task->teacher;
    const int64_t n = task->heads, d = task->depth, k = task->most, both = teacher->depth + teacher->rotary, g = teacher->group;
    float *places, **const arrays[] = {&parts->query, &parts->weights, &parts->keys, &parts->products, &parts->slopes,
                                       &parts->query_slopes, &parts->key_slopes, &parts->weight_slopes, &places, &parts->taught,
                                       &parts->scores, &parts->wide_query, &parts->wide_keys, &parts->weighed};
    const int64_t sides[][2] = {{n, d}, {n, 1}, {k, d}, {n, k}, {k, 1}, {n, d}, {k, d}, {n, 1},
                                {k, sizeof(int64_t) / sizeof(float)}, {k, 1}, {k, 1}, {g, both}, {k, both}, {g, k}};
    void *const block = attention_take_arrays(task->teacher == NULL ? 9 : 14, arrays, sides);
    parts->places = block == NULL ? NULL : (void *)places;
    return block;
}

/* ---- which keys ---- */

/* Loads a key that counts and, where it is given, the slope of its score. */
static void load_key(const Task *task, TokenRow row, int64_t key, const Parts *parts, int64_t count)
{
    const int64_t at = us_token_key(&task->tokens, row.sequence, key);
    us_linear_load_float(task->key, at * task->depth, task->depth, parts->keys + count * task->depth);
    parts->places[count] = key;
}

/* How many there are. */
static int64_t load_keys(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    int64_t count = 0;
    const bool all = us_view_is_absent(task->selected);
    for (int64_t i = 0; i < (all ? row.keys : task->most); i++) {
        const int64_t key = all ? i : us_token_selected(&task->tokens, task->selected, number, i);
        if (key < 0) {
            break;
        }
        if (key < row.keys) {
            if (task->teacher == NULL) {
                us_linear_load_float(task->slopes, number * task->most + i, 1, parts->slopes + count);
            }
            load_key(task, row, key, parts, count++);
        }
    }
    return count;
}

/* ---- the teacher ---- */

static void load_both(const View *view, const View *rotary, const Teacher *teacher, int64_t number, float *to)
{
    us_linear_load_float(view, number * teacher->depth, teacher->depth, to);
    if (teacher->rotary > 0) {
        us_linear_load_float(rotary, number * teacher->rotary, teacher->rotary, to + teacher->depth);
    }
}

/* Of head `head` of the key, of a row: its number in row-major order. */
static float statistic_of(const Task *task, const View *view, int64_t number, int64_t head, int64_t g)
{
    const View *rows = task->tokens.rows;
    const bool packed = task->tokens.layout.packed_rows;
    const int64_t batch = packed ? 0 : number / rows->shape[1], row = packed ? number : number % rows->shape[1];
    const int64_t lines = packed ? rows->shape[0] : rows->shape[1], heads = task->teacher->key_heads;
    float value;
    us_linear_load_float(view, ((batch * heads + head) * lines + row) * task->teacher->group + g, 1, &value);
    return value;
}

/* Adds the weights of the heads that share a key's. */
static KernelStatus add_weights(const Task *task, int64_t number, TokenRow row, int64_t head, int64_t keys, const Parts *parts)
{
    const Teacher *teacher = task->teacher;
    const int64_t both = teacher->depth + teacher->rotary, group = teacher->group, heads = teacher->key_heads;
    for (int64_t i = 0; i < keys; i++) {
        const int64_t at = us_token_key(&task->tokens, row.sequence, parts->places[i]);
        load_both(teacher->key, teacher->rotary_key, teacher, at * heads + head, parts->wide_keys + i * both);
    }
    for (int64_t g = 0; g < group; g++) {
        load_both(teacher->query, teacher->rotary_query, teacher, (number * heads + head) * group + g,
                  parts->wide_query + g * both);
    }
    const KernelStatus status = attention_multiply_matrices(group, keys, both,
                                                            matrix_of_rows(parts->wide_query, DTYPE_FLOAT32, both),
                                                            transposed(matrix_of_rows(parts->wide_keys, DTYPE_FLOAT32, both)),
                                                            parts->weighed, false);
    for (int64_t g = 0; g < group && status == KERNEL_OK; g++) {
        float *weights = parts->weighed + g * keys;
        const float maximum = statistic_of(task, teacher->maximum, number, head, g);
        const float sum = statistic_of(task, teacher->sum, number, head, g);
        attention_multiply(weights, keys, teacher->scale);
        attention_exponentials(weights, keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(weights, keys, sum == 0 ? 0 : 1 / sum);
        attention_add(parts->taught, weights, keys);
    }
    return status;
}

/* p, and the indexer's scores, which are the sums over its heads. */
static KernelStatus find_taught(const Task *task, int64_t number, TokenRow row, int64_t keys, const Parts *parts)
{
    KernelStatus status = KERNEL_OK;
    double sum = 0;
    memset(parts->taught, 0, (size_t)keys * sizeof(float));
    memset(parts->scores, 0, (size_t)keys * sizeof(float));
    for (int64_t head = 0; head < task->teacher->key_heads && status == KERNEL_OK; head++) {
        status = add_weights(task, number, row, head, keys, parts);
    }
    for (int64_t i = 0; i < keys; i++) {
        sum += (double)parts->taught[i];
    }
    attention_multiply(parts->taught, keys, sum == 0 ? 0 : (float)(1 / sum));
    for (int64_t n = 0; n < task->heads; n++) {
        const float *products = parts->products + n * keys;
        for (int64_t i = 0; i < keys; i++) {
            parts->scores[i] += parts->weights[n] * (products[i] < 0 ? 0 : products[i]);
        }
    }
    return status;
}

/* The slopes of the scores; the row's loss. */
static double learn(const Task *task, int64_t number, int64_t keys, const Parts *parts)
{
    const Teacher *teacher = task->teacher;
    float maximum, sum;
    memcpy(parts->slopes, parts->scores, (size_t)keys * sizeof(float));
    if (us_view_is_absent(teacher->index_maximum)) {
        maximum = attention_scale(parts->slopes, keys, 1, NULL, 0);
        sum = attention_exponentials(parts->slopes, keys, maximum == -INFINITY ? 0 : maximum);
    } else {
        us_linear_load_float(teacher->index_maximum, number, 1, &maximum);
        us_linear_load_float(teacher->index_sum, number, 1, &sum);
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

static KernelStatus differentiate_row(const Task *task, int64_t number, TokenRow row, int64_t keys, const Parts *parts,
                                      double *loss)
{
    const int64_t n = task->heads, d = task->depth;
    us_linear_load_float(task->query, number * n * d, n * d, parts->query);
    us_linear_load_float(task->weights, number * n, n, parts->weights);
    const Matrix query = matrix_of_rows(parts->query, DTYPE_FLOAT32, d), rows = matrix_of_rows(parts->keys, DTYPE_FLOAT32, d);
    const Matrix products = matrix_of_rows(parts->products, DTYPE_FLOAT32, keys);
    KernelStatus status = attention_multiply_matrices(n, keys, d, query, transposed(rows), parts->products, false);
    if (status == KERNEL_OK && task->teacher != NULL && keys > 0) {
        status = find_taught(task, number, row, keys, parts);
        *loss += status == KERNEL_OK ? learn(task, number, keys, parts) : 0;
    }
    if (status != KERNEL_OK) {
        return status;
    }
    find_slopes(task, keys, parts);
    status = attention_multiply_matrices(n, d, keys, products, rows, parts->query_slopes, false);
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(keys, d, n, transposed(products), query, parts->key_slopes, false);
}

static void store_slopes(const Task *task, int64_t number, int64_t keys, const Parts *parts, float *sums)
{
    const int64_t n = task->heads, d = task->depth;
    us_linear_store_float(task->query_slopes, number * n * d, n * d, parts->query_slopes);
    us_linear_store_float(task->weight_slopes, number * n, n, parts->weight_slopes);
    for (int64_t i = 0; i < keys; i++) {
        attention_add(sums + parts->places[i] * d, parts->key_slopes + i * d, d);
    }
}

/* All rows of a sequence in their order. */
static void differentiate_sequence(void *context, int64_t sequence)
{
    Task *task = context;
    const int64_t keys = us_token_keys(&task->tokens, sequence), d = task->depth;
    double loss = 0;
    Parts parts;
    void *block = take_parts(task, &parts);
    float *sums = us_scratch_array(us_scratch_count(keys, d), sizeof *sums);
    KernelStatus status = block == NULL || sums == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    if (status == KERNEL_OK) {
        memset(sums, 0, (size_t)(keys * d) * sizeof *sums);
    }
    const TokenSpan rows = us_token_span(&task->tokens, sequence);
    for (int64_t number = rows.begin; number < rows.end && status == KERNEL_OK; number++) {
        const TokenRow row = us_token_row(&task->tokens, number);
        const int64_t count = load_keys(task, number, row, &parts);
        status = differentiate_row(task, number, row, count, &parts, &loss);
        if (status == KERNEL_OK) {
            store_slopes(task, number, count, &parts, sums);
        }
    }
    for (int64_t key = 0; key < keys && status == KERNEL_OK; key++) {
        us_linear_store_float(task->key_slopes, us_token_key(&task->tokens, sequence, key) * d, d, sums + key * d);
    }
    us_scratch_give_back(sums);
    us_scratch_give_back(block);
    if (task->losses != NULL) {
        task->losses[sequence] = loss;
    }
    if (status != KERNEL_OK) {
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
    }
}

/* ---- kernels ---- */

static KernelStatus run(Task *task)
{
    task->heads = last_size(task->query, 2);
    task->depth = last_size(task->query, 1);
    task->status = us_check_tokens(&task->tokens);
    if (task->status == KERNEL_OK && !us_view_is_absent(task->selected)) {
        task->status = us_check_selected(&task->tokens, task->selected, 1);
    }
    if (task->status != KERNEL_OK) {
        return task->status;
    }
    task->most = us_view_is_absent(task->selected) ? us_longest_keys(&task->tokens) : last_size(task->selected, 1);
    attention_fill_zeros(task->query_slopes);
    attention_fill_zeros(task->key_slopes);
    attention_fill_zeros(task->weight_slopes);
    run_pieces(us_token_sequences(&task->tokens), us_scratch_count(us_view_elements(task->query), task->most),
               differentiate_sequence, task);
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
                             &views[INDEX_MAXIMUM], &views[INDEX_SUM], listed->scale, key_heads, last_size(query, 2) / key_heads,
                             last_size(query, 1), us_view_is_absent(rotary) ? 0 : last_size(rotary, 1)};
    Task task = {.query = &views[OF_QUERY], .key = &views[OF_KEY], .weights = &views[OF_WEIGHTS], .selected = &views[OF_SELECTED],
                 .query_slopes = &views[TO_QUERY], .key_slopes = &views[TO_KEY], .weight_slopes = &views[TO_WEIGHTS],
                 .teacher = &teacher, .tokens = {listed->layout, &views[OF_QUERY], &views[OF_KEY], &rows, &keys, &absent}};
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
