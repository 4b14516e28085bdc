#include "kernels/streams/streams.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { CHUNK = 256, PIECES = 64 }; /* columns at a time; ranges of tokens that have sums of their own */

typedef struct Task {
    const View *partial, *blocks;
    const View *views;
    double epsilon;
    int64_t tokens, rows, width; /* rows: blocks, and last the partial one */
    int64_t range;               /* tokens */
    float *weights;              /* the products of both weights */
    float *scores;               /* a token's rows; backwards their slopes */
    float *products;             /* backwards: of the rows with the weights */
    float *probabilities;
    double *sums;                /* backwards: of the slopes of the weights, for every range of tokens */
} Task;

static void load(const View *view, int64_t begin, int64_t count, float *to)
{
    us_linear_load_float(view, begin, count, to);
}

static void load_row(const Task *task, int64_t token, int64_t row, int64_t column, int64_t count, float *to)
{
    const bool last = row == task->rows - 1;
    load(last ? task->partial : task->blocks, (last ? token : token * (task->rows - 1) + row) * task->width + column, count, to);
}

static void store_row(const Task *task, const View *partial, const View *blocks, int64_t token, int64_t row, int64_t column,
                      int64_t count, const float *from)
{
    const bool last = row == task->rows - 1;
    us_linear_store_float(last ? partial : blocks, (last ? token : token * (task->rows - 1) + row) * task->width + column, count,
                          from);
}

static void multiply_weights(const Task *task, const View *projection, const View *norm)
{
    float by[CHUNK];
    load(projection, 0, task->width, task->weights);
    for (int64_t column = 0; column < task->width; column += CHUNK) {
        const int64_t count = smaller(CHUNK, task->width - column);
        load(norm, column, count, by);
        for (int64_t c = 0; c < count; c++) {
            task->weights[column + c] *= by[c];
        }
    }
}

static Task task_of(const View *views, const View *partial, const View *blocks)
{
    return (Task){.partial = partial, .blocks = blocks, .views = views, .tokens = blocks->shape[0], .rows = blocks->shape[1] + 1,
                  .width = blocks->shape[2], .range = larger(1, ceiling(blocks->shape[0], PIECES))};
}

static int64_t work_of(const Task *task)
{
    return us_scratch_count(us_scratch_count(task->tokens, task->rows), task->width);
}

/* ---- forwards ---- */

enum { OF_PARTIAL, OF_BLOCKS, OF_PROJECTION, OF_NORM, OF_OUT, OF_INVERSE, OF_PROBABILITIES };

/* A row's score; *inverse is its norm's. */
static float find_score(const Task *task, int64_t token, int64_t row, float *inverse)
{
    double squares = 0, sum = 0;
    float values[CHUNK];
    for (int64_t column = 0; column < task->width; column += CHUNK) {
        const int64_t count = smaller(CHUNK, task->width - column);
        load_row(task, token, row, column, count, values);
        squares += (double)inner_product(values, values, count);
        sum += (double)inner_product(values, task->weights + column, count);
    }
    const double scale = 1 / sqrt_double(squares / (double)task->width + task->epsilon);
    *inverse = (float)scale;
    return (float)(sum * scale);
}

static void store_statistic(const Task *task, int operand, int64_t at, int64_t count, const float *values)
{
    if (!us_view_is_absent(&task->views[operand])) {
        us_linear_store_float(&task->views[operand], at, count, values);
    }
}

static void weigh_token(void *context, int64_t token)
{
    const Task *task = context;
    float *scores = task->scores + token * task->rows, inverse, values[CHUNK], out[CHUNK];
    for (int64_t row = 0; row < task->rows; row++) {
        scores[row] = find_score(task, token, row, &inverse);
        store_statistic(task, OF_INVERSE, token * task->rows + row, 1, &inverse);
    }
    const float maximum = attention_scale(scores, task->rows, 1, NULL, 0);
    attention_multiply(scores, task->rows, 1 / attention_exponentials(scores, task->rows, maximum));
    store_statistic(task, OF_PROBABILITIES, token * task->rows, task->rows, scores);
    for (int64_t column = 0; column < task->width; column += CHUNK) {
        const int64_t count = smaller(CHUNK, task->width - column);
        memset(out, 0, sizeof out);
        for (int64_t row = 0; row < task->rows; row++) {
            load_row(task, token, row, column, count, values);
            for (int64_t c = 0; c < count; c++) {
                out[c] += scores[row] * values[c];
            }
        }
        us_linear_store_float(&task->views[OF_OUT], token * task->width + column, count, out);
    }
}

KernelStatus us_weigh_blocks(const View *views, const void *attributes)
{
    Task task = task_of(views, &views[OF_PARTIAL], &views[OF_BLOCKS]);
    task.epsilon = ((const WeighBlocks *)attributes)->epsilon;
    float **const arrays[] = {&task.weights, &task.scores};
    void *block = attention_take_arrays(2, arrays, (const int64_t[][2]){{task.width, 1}, {task.tokens, task.rows}});
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    multiply_weights(&task, &views[OF_PROJECTION], &views[OF_NORM]);
    run_pieces(task.tokens, work_of(&task), weigh_token, &task);
    us_scratch_give_back(block);
    return KERNEL_OK;
}

/* ---- backwards ---- */

enum { BY_PARTIAL, BY_BLOCKS, BY_PROJECTION, BY_NORM, BY_OUT, INVERSE, PROBABILITIES, TO_PARTIAL, TO_BLOCKS, TO_PROJECTION,
       TO_NORM };

/* The slopes of a token's scores, and what its rows give with the weights. */
static void find_slopes(const Task *task, int64_t token, const float *probabilities, float *slopes, float *products)
{
    float values[CHUNK], out[CHUNK];
    double mean = 0;
    for (int64_t row = 0; row < task->rows; row++) {
        double slope = 0, product = 0;
        for (int64_t column = 0; column < task->width; column += CHUNK) {
            const int64_t count = smaller(CHUNK, task->width - column);
            load_row(task, token, row, column, count, values);
            load(&task->views[BY_OUT], token * task->width + column, count, out);
            slope += (double)inner_product(values, out, count);
            product += (double)inner_product(values, task->weights + column, count);
        }
        slopes[row] = (float)slope;
        products[row] = (float)product;
        mean += (double)probabilities[row] * slope;
    }
    for (int64_t row = 0; row < task->rows; row++) {
        slopes[row] = (float)((double)probabilities[row] * ((double)slopes[row] - mean));
    }
}

/* Of some columns of a token: the slopes of all its rows, and what these add to those of the weights. */
static void differentiate_chunk(const Task *task, int64_t token, int64_t column, const float *probabilities, double *sums)
{
    const int64_t count = smaller(CHUNK, task->width - column), at = token * task->rows;
    float values[CHUNK], out[CHUNK], inverse;
    load(&task->views[BY_OUT], token * task->width + column, count, out);
    for (int64_t row = 0; row < task->rows; row++) {
        load_row(task, token, row, column, count, values);
        load(&task->views[INVERSE], at + row, 1, &inverse);
        const float scaled = task->scores[at + row] * inverse;
        const float pull = scaled * task->products[at + row] * inverse * inverse / (float)task->width;
        for (int64_t c = 0; c < count; c++) {
            sums[column + c] += (double)scaled * (double)values[c];
            values[c] = out[c] * probabilities[row] + scaled * task->weights[column + c] - pull * values[c];
        }
        store_row(task, &task->views[TO_PARTIAL], &task->views[TO_BLOCKS], token, row, column, count, values);
    }
}

static void differentiate_range(void *context, int64_t piece)
{
    const Task *task = context;
    double *sums = task->sums + piece * task->width;
    memset(sums, 0, (size_t)task->width * sizeof *sums);
    const int64_t end = smaller(task->tokens, (piece + 1) * task->range);
    for (int64_t token = piece * task->range; token < end; token++) {
        float *probabilities = task->probabilities + token * task->rows;
        load(&task->views[PROBABILITIES], token * task->rows, task->rows, probabilities);
        find_slopes(task, token, probabilities, task->scores + token * task->rows, task->products + token * task->rows);
        for (int64_t column = 0; column < task->width; column += CHUNK) {
            differentiate_chunk(task, token, column, probabilities, sums);
        }
    }
}

/* The slopes of the products of both weights, then of each: that times the other. */
static void store_weight_slopes(const Task *task, int64_t ranges)
{
    for (int64_t column = 0; column < task->width; column += CHUNK) {
        const int64_t count = smaller(CHUNK, task->width - column);
        double sums[CHUNK] = {0}, by[CHUNK];
        for (int64_t range = 0; range < ranges; range++) {
            for (int64_t c = 0; c < count; c++) {
                sums[c] += task->sums[range * task->width + column + c];
            }
        }
        const int others[] = {BY_NORM, BY_PROJECTION}, to[] = {TO_PROJECTION, TO_NORM};
        for (int side = 0; side < 2; side++) {
            us_linear_load_double(&task->views[others[side]], column, count, by);
            for (int64_t c = 0; c < count; c++) {
                by[c] *= sums[c];
            }
            us_linear_store_double(&task->views[to[side]], column, count, by);
        }
    }
}

KernelStatus us_weigh_blocks_backward(const View *views, const void *attributes)
{
    (void)attributes;
    Task task = task_of(views, &views[BY_PARTIAL], &views[BY_BLOCKS]);
    const int64_t ranges = ceiling(task.tokens, task.range), numbers = us_scratch_count(ranges, task.width);
    float *sums, **const arrays[] = {&task.weights, &task.scores, &task.products, &task.probabilities, &sums};
    const int64_t sides[][2] = {{task.width, 1}, {task.tokens, task.rows}, {task.tokens, task.rows}, {task.tokens, task.rows},
                                {numbers, sizeof(double) / sizeof(float)}};
    void *block = attention_take_arrays(5, arrays, sides);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    task.sums = (double *)sums;
    multiply_weights(&task, &views[BY_PROJECTION], &views[BY_NORM]);
    run_pieces(ranges, work_of(&task), differentiate_range, &task);
    store_weight_slopes(&task, ranges);
    us_scratch_give_back(block);
    return KERNEL_OK;
}
