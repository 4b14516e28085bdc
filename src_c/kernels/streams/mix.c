#include "kernels/streams/streams.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { CHUNK = 256 };

typedef struct Task {
    const View *views;
    int64_t streams, width;
} Task;

static void run_tokens(const View *views, const View *x, ParallelBody *body)
{
    Task task = {views, x->shape[x->rank - 2], x->shape[x->rank - 1]};
    run_pieces(us_shape_elements(x->rank - 2, x->shape), us_scratch_count(us_view_elements(x), task.streams), body, &task);
}

/* Some columns of all streams of a token. */
static void load_streams(const View *view, const Task *task, int64_t token, int64_t column, int64_t count, float (*to)[CHUNK])
{
    for (int64_t i = 0; i < task->streams; i++) {
        us_linear_load_float(view, (token * task->streams + i) * task->width + column, count, to[i]);
    }
}

static void add_scaled(float *to, const float *from, float factor, int64_t count)
{
    for (int64_t d = 0; d < count; d++) {
        to[d] += factor * from[d];
    }
}

/* ---- forwards ---- */

enum { OF_X, OF_MIX, OF_LAYER, OF_WEIGHTS, OF_OUT };

static void mix_token(void *context, int64_t token)
{
    const Task *task = context;
    const int64_t n = task->streams;
    float mix[STREAM_LIMIT * STREAM_LIMIT], weights[STREAM_LIMIT], x[STREAM_LIMIT][CHUNK], layer[CHUNK], out[CHUNK];
    us_linear_load_float(&task->views[OF_MIX], token * n * n, n * n, mix);
    us_linear_load_float(&task->views[OF_WEIGHTS], token * n, n, weights);
    for (int64_t column = 0; column < task->width; column += CHUNK) {
        const int64_t count = smaller(CHUNK, task->width - column);
        load_streams(&task->views[OF_X], task, token, column, count, x);
        us_linear_load_float(&task->views[OF_LAYER], token * task->width + column, count, layer);
        for (int64_t j = 0; j < n; j++) {
            memset(out, 0, sizeof out);
            for (int64_t i = 0; i < n; i++) {
                add_scaled(out, x[i], mix[i * n + j], count);
            }
            add_scaled(out, layer, weights[j], count);
            us_linear_store_float(&task->views[OF_OUT], (token * n + j) * task->width + column, count, out);
        }
    }
}

KernelStatus us_mix_streams(const View *views, const void *attributes)
{
    (void)attributes;
    run_tokens(views, &views[OF_X], mix_token);
    return KERNEL_OK;
}

/* ---- backwards ---- */

enum { BY_OUT, BY_X, BY_MIX, BY_LAYER, BY_WEIGHTS, TO_X, TO_MIX, TO_LAYER, TO_WEIGHTS };

static void differentiate_token(void *context, int64_t token)
{
    const Task *task = context;
    const int64_t n = task->streams;
    float mix[STREAM_LIMIT * STREAM_LIMIT], weights[STREAM_LIMIT];
    float slopes[STREAM_LIMIT][CHUNK], x[STREAM_LIMIT][CHUNK], layer[CHUNK], out[CHUNK];
    double of_mix[STREAM_LIMIT * STREAM_LIMIT] = {0}, of_weights[STREAM_LIMIT] = {0};
    us_linear_load_float(&task->views[BY_MIX], token * n * n, n * n, mix);
    us_linear_load_float(&task->views[BY_WEIGHTS], token * n, n, weights);
    for (int64_t column = 0; column < task->width; column += CHUNK) {
        const int64_t count = smaller(CHUNK, task->width - column);
        load_streams(&task->views[BY_OUT], task, token, column, count, slopes);
        load_streams(&task->views[BY_X], task, token, column, count, x);
        us_linear_load_float(&task->views[BY_LAYER], token * task->width + column, count, layer);
        for (int64_t i = 0; i < n; i++) {
            memset(out, 0, sizeof out);
            for (int64_t j = 0; j < n; j++) {
                add_scaled(out, slopes[j], mix[i * n + j], count);
                of_mix[i * n + j] += (double)inner_product(x[i], slopes[j], count);
            }
            us_linear_store_float(&task->views[TO_X], (token * n + i) * task->width + column, count, out);
        }
        memset(out, 0, sizeof out);
        for (int64_t j = 0; j < n; j++) {
            add_scaled(out, slopes[j], weights[j], count);
            of_weights[j] += (double)inner_product(layer, slopes[j], count);
        }
        us_linear_store_float(&task->views[TO_LAYER], token * task->width + column, count, out);
    }
    us_linear_store_double(&task->views[TO_MIX], token * n * n, n * n, of_mix);
    us_linear_store_double(&task->views[TO_WEIGHTS], token * n, n, of_weights);
}

KernelStatus us_mix_streams_backward(const View *views, const void *attributes)
{
    (void)attributes;
    run_tokens(views, &views[BY_X], differentiate_token);
    return KERNEL_OK;
}
