#include "kernels/streams/balance.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { BLOCK_NUMBERS = 1 << 20, MOST_TOKENS = 64 }; /* of a block of tokens */
enum { OF_X, OF_PHI, OF_ALPHA, OF_BIAS, OF_GAMMA, OF_LAYER, OF_WEIGHTS, OF_MIX, OF_INVERSE, OF_PRODUCT, OF_READ,
       OF_MATRICES, OF_SUMS };

typedef struct Task {
    const View *views;
    const ReadStreams *how;
    int64_t streams, width, mixing, tokens, block; /* mixing: numbers of a token's; block: its tokens */
    float alpha[3], bias[MIX_LIMIT];
    KernelStatus status;
} Task;

static void store(const View *view, int64_t begin, int64_t count, const float *values)
{
    if (!us_view_is_absent(view)) {
        us_linear_store_float(view, begin, count, values);
    }
}

static float inverse_of(const Task *task, const float *x, int64_t numbers)
{
    double sum = 0;
    for (int64_t i = 0; i < numbers; i += KEYS) {
        const int64_t count = smaller(KEYS, numbers - i);
        sum += (double)inner_product(x + i, x + i, count);
    }
    return (float)(1 / sqrt_double(sum / (double)numbers + task->how->norm_epsilon));
}

static void store_mix(const Task *task, int64_t token, const float *parts)
{
    const View *view = &task->views[OF_MIX];
    if (us_view_is_absent(view)) {
        return;
    }
    const int64_t numbers = us_view_elements(view) / task->tokens;
    float mix[MIX_LIMIT] = {0};
    for (int64_t k = 0; k < numbers && task->how->has_mix; k++) {
        mix[k] = parts[k] * task->alpha[2] + task->bias[2 * task->streams + k];
    }
    if (task->how->iterations > 0) {
        const Balance balance = {&task->views[OF_MATRICES], &task->views[OF_SUMS], task->how->iterations, task->tokens,
                                 task->streams, (float)task->how->epsilon};
        us_balance(&balance, token, mix);
    }
    us_linear_store_float(view, token * numbers, numbers, mix);
}

/* What a token's products with phi become. */
static void finish_token(const Task *task, int64_t token, const float *x, float *products)
{
    const int64_t n = task->streams, d = task->width;
    const float inverse = inverse_of(task, x, n * d), epsilon = (float)task->how->epsilon;
    float read[STREAM_LIMIT], weights[STREAM_LIMIT];
    store(&task->views[OF_INVERSE], token, 1, &inverse);
    store(&task->views[OF_PRODUCT], token * task->mixing, task->mixing, products);
    attention_multiply(products, task->mixing, inverse);
    for (int64_t i = 0; i < n; i++) {
        read[i] = sigmoid_float(products[i] * task->alpha[0] + task->bias[i]) + epsilon;
        weights[i] = 2 * sigmoid_float(products[n + i] * task->alpha[1] + task->bias[n + i]) + (task->how->has_mix ? 0 : epsilon);
    }
    store(&task->views[OF_READ], token * n, n, read);
    us_linear_store_float(&task->views[OF_WEIGHTS], token * n, n, weights);
    store_mix(task, token, products + 2 * n);
    float layer[KEYS];
    for (int64_t column = 0; column < d; column += KEYS) {
        const int64_t count = smaller(KEYS, d - column);
        memset(layer, 0, sizeof layer);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t c = 0; c < count; c++) {
                layer[c] += read[i] * x[i * d + column + c];
            }
        }
        us_linear_store_float(&task->views[OF_LAYER], token * d + column, count, layer);
    }
}

/* x gamma, a row for each token. */
static void scale_rows(const Task *task, const float *x, int64_t tokens, float *gamma, float *scaled)
{
    const int64_t numbers = task->streams * task->width;
    us_linear_load_float(&task->views[OF_GAMMA], 0, numbers, gamma);
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t i = 0; i < numbers; i++) {
            scaled[t * numbers + i] = x[t * numbers + i] * gamma[i];
        }
    }
}

static void read_block(void *context, int64_t piece)
{
    Task *task = context;
    const int64_t first = piece * task->block, tokens = smaller(task->block, task->tokens - first);
    const int64_t numbers = task->streams * task->width, k = task->mixing;
    const bool scales = !us_view_is_absent(&task->views[OF_GAMMA]);
    float *x, *products, *scaled, *gamma, **const arrays[] = {&x, &products, &scaled, &gamma};
    const int64_t sides[][2] = {{tokens, numbers}, {tokens, k}, {tokens, numbers}, {1, numbers}};
    void *block = attention_take_arrays(scales ? 4 : 2, arrays, sides);
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
        return;
    }
    us_linear_load_float(&task->views[OF_X], first * numbers, tokens * numbers, x);
    if (scales) {
        scale_rows(task, x, tokens, gamma, scaled);
    }
    const KernelStatus status =
        attention_multiply_matrices(tokens, k, numbers, float_rows(scales ? scaled : x, numbers),
                                    transposed(us_matrix_of_view(&task->views[OF_PHI])), products, false);
    for (int64_t t = 0; t < tokens && status == KERNEL_OK; t++) {
        finish_token(task, first + t, x + t * numbers, products + t * k);
    }
    us_scratch_give_back(block);
    us_keep_status(&task->status, status);
}

KernelStatus us_read_streams(const View *views, const void *attributes)
{
    const View *x = &views[OF_X];
    Task task = {.views = views, .how = attributes, .streams = x->shape[x->rank - 2], .width = x->shape[x->rank - 1],
                 .mixing = views[OF_PHI].shape[0], .tokens = us_shape_elements(x->rank - 2, x->shape)};
    const int64_t numbers = task.streams * task.width;
    task.block = larger(1, smaller(MOST_TOKENS, BLOCK_NUMBERS / numbers));
    us_linear_load_float(&views[OF_ALPHA], 0, task.how->has_mix ? 3 : 2, task.alpha);
    us_linear_load_float(&views[OF_BIAS], 0, task.mixing, task.bias);
    run_pieces(ceiling(task.tokens, task.block), us_scratch_count(us_view_elements(x), task.mixing), read_block, &task);
    return task.status;
}
