#include "kernels/streams/balance.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { CHUNK = 128, TOKENS = 128 }; /* columns of a piece, of one stream; tokens of a block */
enum { BY_X, BY_PHI, BY_ALPHA, BY_LAYER, BY_WEIGHTS, BY_MIX, INVERSE, PRODUCT, READ, WEIGHTS, GAMMA, MORE,
       MATRICES, SUMS, TO_X, TO_PHI, TO_ALPHA, TO_BIAS, TO_GAMMA };

typedef struct Task {
    const View *views;
    float epsilon, alpha[3];
    int64_t iterations;
    int64_t streams, width, mixing, tokens;
    float *products; /* slopes of a token's products with phi */
    float *parts;    /* slopes of them times the inverse, before alpha */
    float *pull;     /* what a token's numbers are multiplied by for the slope of the inverse */
    KernelStatus status;
} Task;

static void load(const Task *task, int operand, int64_t begin, int64_t count, float *to)
{
    us_linear_load_float(&task->views[operand], begin, count, to);
}

/* Slopes of the numbers that read the streams: of each the sum of the layer's slopes times its stream. */
static void find_read_slopes(const Task *task, int64_t token, float *slopes)
{
    const int64_t n = task->streams, d = task->width;
    double sums[STREAM_LIMIT] = {0};
    float layer[CHUNK], x[CHUNK];
    for (int64_t column = 0; column < d; column += CHUNK) {
        const int64_t count = smaller(CHUNK, d - column);
        load(task, BY_LAYER, token * d + column, count, layer);
        for (int64_t i = 0; i < n; i++) {
            load(task, BY_X, (token * n + i) * d + column, count, x);
            sums[i] += (double)inner_product(layer, x, count);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        slopes[i] = (float)sums[i];
    }
}

/* The weights, which are not kept of a token whose mix is balanced. */
static void find_weights(const Task *task, int64_t token, float inverse, const float *product, float *weights)
{
    const int64_t n = task->streams;
    if (task->iterations == 0) {
        load(task, WEIGHTS, token * n, n, weights);
        return;
    }
    load(task, WEIGHTS, n, n, weights);
    for (int64_t i = 0; i < n; i++) {
        weights[i] = 2 * sigmoid_float(product[n + i] * inverse * task->alpha[1] + weights[i]);
    }
}

static void differentiate_token(void *context, int64_t token)
{
    Task *task = context;
    const int64_t n = task->streams, k = task->mixing;
    float *parts = task->parts + token * k, *slopes = task->products + token * k, inverse;
    float product[MIX_LIMIT], gates[STREAM_LIMIT];
    load(task, INVERSE, token, 1, &inverse);
    load(task, PRODUCT, token * k, k, product);
    find_read_slopes(task, token, parts);
    load(task, READ, token * n, n, gates);
    for (int64_t i = 0; i < n; i++) {
        const float s = gates[i] - task->epsilon;
        parts[i] *= s * (1 - s);
    }
    load(task, BY_WEIGHTS, token * n, n, parts + n);
    find_weights(task, token, inverse, product, gates);
    for (int64_t i = 0; i < n; i++) {
        parts[n + i] *= gates[i] * (1 - gates[i] / 2);
    }
    load(task, BY_MIX, token * (k - 2 * n), k - 2 * n, parts + 2 * n);
    if (task->iterations > 0) {
        const Balance balance = {.matrices = &task->views[MATRICES], .sums = &task->views[SUMS],
                                 .iterations = task->iterations, .tokens = task->tokens, .streams = n};
        us_balance_backward(&balance, token, parts + 2 * n);
    }
    float of_inverse = 0;
    for (int64_t j = 0; j < k; j++) {
        const float slope = parts[j] * task->alpha[j < n ? 0 : j < 2 * n ? 1 : 2];
        of_inverse += slope * product[j];
        slopes[j] = slope * inverse;
    }
    task->pull[token] = -of_inverse * inverse * inverse * inverse / (float)(n * task->width);
}

/* Sums over all tokens: of the slopes before alpha, and of them times what alpha multiplies. */
static void sum_tokens(Task *task)
{
    const int64_t n = task->streams, k = task->mixing;
    double bias[MIX_LIMIT] = {0}, alpha[3] = {0};
    float inverse, product[MIX_LIMIT];
    for (int64_t t = 0; t < task->tokens; t++) {
        load(task, INVERSE, t, 1, &inverse);
        load(task, PRODUCT, t * k, k, product);
        for (int64_t j = 0; j < k; j++) {
            const float part = task->parts[t * k + j];
            bias[j] += (double)part;
            alpha[j < n ? 0 : j < 2 * n ? 1 : 2] += (double)(part * (product[j] * inverse));
        }
    }
    us_linear_store_double(&task->views[TO_BIAS], 0, k, bias);
    us_linear_store_double(&task->views[TO_ALPHA], 0, 3, alpha);
}

/* ---- columns ---- */

/* Some columns of one stream, of a block of tokens. */
typedef struct Columns {
    float phi[MIX_LIMIT * CHUNK], of_phi[MIX_LIMIT * CHUNK], gamma[CHUNK];
    double of_gamma[CHUNK];
    float x[TOKENS * CHUNK], scaled[TOKENS * CHUNK], slopes[TOKENS * CHUNK];
} Columns;

static void store_slopes(const Task *task, Columns *columns, int64_t token, int64_t t, int64_t stream, int64_t column,
                         int64_t count)
{
    const int64_t n = task->streams, d = task->width, begin = (token * n + stream) * d + column;
    const bool adds = !us_view_is_absent(&task->views[MORE]);
    float layer[CHUNK], more[CHUNK] = {0}, read;
    const float *x = columns->x + t * count, *slopes = columns->slopes + t * count;
    load(task, READ, token * n + stream, 1, &read);
    load(task, BY_LAYER, token * d + column, count, layer);
    if (adds) {
        load(task, MORE, begin, count, more);
    }
    for (int64_t c = 0; c < count; c++) {
        columns->of_gamma[c] += (double)(x[c] * slopes[c]);
        more[c] += layer[c] * read + (slopes[c] * columns->gamma[c] + task->pull[token] * x[c]);
    }
    us_linear_store_float(&task->views[TO_X], begin, count, more);
}

static KernelStatus differentiate_block(const Task *task, Columns *columns, int64_t first, int64_t stream, int64_t column,
                                        int64_t count)
{
    const int64_t n = task->streams, d = task->width, k = task->mixing, tokens = smaller(TOKENS, task->tokens - first);
    const Matrix products = float_rows(task->products + first * k, k);
    for (int64_t t = 0; t < tokens; t++) {
        load(task, BY_X, ((first + t) * n + stream) * d + column, count, columns->x + t * count);
        for (int64_t c = 0; c < count; c++) {
            columns->scaled[t * count + c] = columns->x[t * count + c] * columns->gamma[c];
        }
    }
    KernelStatus status = attention_multiply_matrices(tokens, count, k, products,
                                                      float_rows(columns->phi, count), columns->slopes, false);
    status = status != KERNEL_OK ? status
                                 : attention_multiply_matrices(k, count, tokens, transposed(products),
                                                               float_rows(columns->scaled, count),
                                                               columns->of_phi, true);
    for (int64_t t = 0; t < tokens && status == KERNEL_OK; t++) {
        store_slopes(task, columns, first + t, t, stream, column, count);
    }
    return status;
}

static void differentiate_columns(void *context, int64_t piece)
{
    Task *task = context;
    const int64_t d = task->width, chunks = ceiling(d, CHUNK), stream = piece / chunks, column = piece % chunks * CHUNK;
    const int64_t count = smaller(CHUNK, d - column), numbers = task->streams * d, at = stream * d + column;
    Columns *columns = us_scratch_take(sizeof *columns);
    KernelStatus status = columns == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    for (int64_t c = 0; c < CHUNK && status == KERNEL_OK; c++) {
        columns->gamma[c] = 1;
        columns->of_gamma[c] = 0;
    }
    if (status == KERNEL_OK) {
        memset(columns->of_phi, 0, sizeof columns->of_phi);
        for (int64_t j = 0; j < task->mixing; j++) {
            load(task, BY_PHI, j * numbers + at, count, columns->phi + j * count);
        }
        if (!us_view_is_absent(&task->views[GAMMA])) {
            load(task, GAMMA, at, count, columns->gamma);
        }
    }
    for (int64_t first = 0; first < task->tokens && status == KERNEL_OK; first += TOKENS) {
        status = differentiate_block(task, columns, first, stream, column, count);
    }
    if (status == KERNEL_OK) {
        for (int64_t j = 0; j < task->mixing; j++) {
            us_linear_store_float(&task->views[TO_PHI], j * numbers + at, count, columns->of_phi + j * count);
        }
        if (!us_view_is_absent(&task->views[TO_GAMMA])) {
            us_linear_store_double(&task->views[TO_GAMMA], at, count, columns->of_gamma);
        }
    }
    us_keep_status(&task->status, status);
    us_scratch_give_back(columns);
}

KernelStatus us_read_streams_backward(const View *views, const void *attributes)
{
    const View *x = &views[BY_X];
    const ReadStreamsBackward *how = attributes;
    Task task = {.views = views, .epsilon = how->epsilon, .iterations = how->iterations, .streams = x->shape[x->rank - 2],
                 .width = x->shape[x->rank - 1], .mixing = views[BY_PHI].shape[0],
                 .tokens = us_shape_elements(x->rank - 2, x->shape)};
    float **const arrays[] = {&task.products, &task.parts, &task.pull};
    const int64_t sides[][2] = {{task.tokens, task.mixing}, {task.tokens, task.mixing}, {task.tokens, 1}};
    void *block = attention_take_arrays(3, arrays, sides);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    load(&task, BY_ALPHA, 0, 3, task.alpha);
    const int64_t work = us_scratch_count(us_view_elements(x), task.mixing);
    run_pieces(task.tokens, work, differentiate_token, &task);
    sum_tokens(&task);
    run_pieces(task.streams * ceiling(task.width, CHUNK), work, differentiate_columns, &task);
    us_scratch_give_back(block);
    return task.status;
}
