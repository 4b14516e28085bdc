#include "kernels/attention/sparse.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

enum { OF_QUERY, OF_KEY, OF_VALUE, OF_INDICES, OF_ROW_LENGTHS, OF_KEY_LENGTHS, OF_PAGES, OF_ROTARY_QUERY, OF_ROTARY_KEY, OF_OUT,
       OF_MAXIMUM, OF_SUM };

typedef struct Task {
    const View *views;
    const SparseAttention *sparse;
    Tokens tokens;
    int64_t heads, depth, rotary, most; /* most: keys of a row */
    KernelStatus status;
} Task;

/* What a row needs. */
typedef struct Parts {
    float *query, *keys, *values, *scores, *out; /* query and keys with both parts side by side */
    float *maxima, *sums;
} Parts;

static int64_t last_size(const View *view, int32_t from_the_end)
{
    return view->shape[view->rank - from_the_end];
}

static void *take_parts(const Task *task, Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, both = task->depth + task->rotary, k = task->most;
    float **const arrays[] = {&parts->query, &parts->keys, &parts->values, &parts->scores, &parts->out, &parts->maxima, &parts->sums};
    const int64_t sides[][2] = {{n, both}, {k, both}, {k, d}, {n, k}, {n, d}, {n, 1}, {n, 1}};
    return attention_take_arrays(sizeof sides / sizeof *sides, arrays, sides);
}

/* ---- which keys ---- */

static int64_t block_number(const Task *task, int64_t number, int64_t i)
{
    const View *indices = &task->views[OF_INDICES];
    const int64_t size = indices->shape[1];
    const int64_t offset = indices->rank == 4 ? number / size * indices->strides[0] + number % size * indices->strides[1]
                                              : number * indices->strides[0];
    return ((const int32_t *)indices->data)[offset + i * indices->strides[indices->rank - 1]];
}

/* Blocks are of the row's own sequence, whether it sees them or not. */
static KernelStatus check_blocks(const Task *task)
{
    for (int64_t number = 0; number < us_token_rows(&task->tokens); number++) {
        const TokenRow row = us_token_row(&task->tokens, number);
        const int64_t blocks = row.sequence < 0 ? 0 : ceiling(us_token_keys(&task->tokens, row.sequence), task->sparse->block);
        for (int64_t i = 0; row.sequence >= 0 && i < last_size(&task->views[OF_INDICES], 1); i++) {
            const int64_t block = block_number(task, number, i);
            if (block < 0) {
                break;
            }
            if (block >= blocks) {
                return us_kernel_fault("row %lld selects block %lld of a sequence of %lld", (long long)number, (long long)block,
                                       (long long)blocks);
            }
        }
    }
    return KERNEL_OK;
}

/* Loads the keys that the row selects and sees, and their values. How many there are. */
static int64_t load_keys(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    const int64_t block = task->sparse->block, d = task->depth, r = task->rotary;
    int64_t count = 0;
    for (int64_t i = 0; i < last_size(&task->views[OF_INDICES], 1); i++) {
        const int64_t first = block_number(task, number, i) * block;
        if (first < 0) {
            break;
        }
        for (int64_t key = first; key < smaller(first + block, row.keys); key++, count++) {
            const int64_t at = us_token_key(&task->tokens, row.sequence, key);
            us_linear_load_float(&task->views[OF_KEY], at * d, d, parts->keys + count * (d + r));
            us_linear_load_float(&task->views[OF_ROTARY_KEY], at * r, r, parts->keys + count * (d + r) + d);
            us_linear_load_float(&task->views[OF_VALUE], at * d, d, parts->values + count * d);
        }
    }
    return count;
}

/* ---- rows ---- */

static void load_query(const Task *task, int64_t number, const Parts *parts)
{
    const int64_t d = task->depth, r = task->rotary;
    for (int64_t n = 0; n < task->heads; n++) {
        float *to = parts->query + n * (d + r);
        us_linear_load_float(&task->views[OF_QUERY], (number * task->heads + n) * d, d, to);
        us_linear_load_float(&task->views[OF_ROTARY_QUERY], (number * task->heads + n) * r, r, to + d);
    }
}

static KernelStatus attend(const Task *task, int64_t number, TokenRow row, const Parts *parts)
{
    const int64_t n = task->heads, d = task->depth, both = d + task->rotary;
    const int64_t keys = row.sequence < 0 ? 0 : load_keys(task, number, row, parts);
    load_query(task, number, parts);
    KernelStatus status = attention_multiply_matrices(n, keys, both, matrix_of_rows(parts->query, DTYPE_FLOAT32, both),
                                                      transposed(matrix_of_rows(parts->keys, DTYPE_FLOAT32, both)), parts->scores,
                                                      false);
    for (int64_t i = 0; i < n && status == KERNEL_OK; i++) {
        float *scores = parts->scores + i * keys;
        const float maximum = attention_scale(scores, keys, task->sparse->scale, NULL, 0);
        const float sum = attention_exponentials(scores, keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(scores, keys, sum == 0 ? 0 : 1 / sum);
        parts->maxima[i] = maximum;
        parts->sums[i] = sum;
    }
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(n, d, keys, matrix_of_rows(parts->scores, DTYPE_FLOAT32, keys),
                                                             matrix_of_rows(parts->values, DTYPE_FLOAT32, d), parts->out, false);
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
    void *block = take_parts(task, &parts);
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

KernelStatus us_sparse_attention(const View *views, const void *attributes)
{
    const SparseAttention *sparse = attributes;
    const View *query = &views[OF_QUERY];
    Task task = {.views = views, .sparse = sparse, .heads = last_size(query, 2), .depth = last_size(query, 1),
                 .rotary = last_size(&views[OF_ROTARY_QUERY], 1),
                 .most = us_scratch_count(last_size(&views[OF_INDICES], 1), sparse->block),
                 .tokens = {sparse->layout, query, &views[OF_KEY], &views[OF_ROW_LENGTHS], &views[OF_KEY_LENGTHS], &views[OF_PAGES]}};
    task.status = us_check_tokens(&task.tokens);
    task.status = task.status != KERNEL_OK ? task.status : check_blocks(&task);
    if (task.status == KERNEL_OK) {
        run_pieces(us_token_rows(&task.tokens), us_scratch_count(us_view_elements(query), task.most), run_row, &task);
    }
    return task.status;
}
