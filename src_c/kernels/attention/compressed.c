#include "kernels/attention/compressed.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/sort/sort.h"

#include <string.h>

enum { OF_QUERY, OF_KEY, OF_VALUE, OF_MASK, OF_BLOCK_MASK, OF_OUT, OF_MAXIMUM, OF_SUM, OF_BLOCKS };

typedef struct Task {
    const View *views;
    const Compressed *compressed;
    int64_t group, depth, value_depth, count; /* heads that share a key; sizes of heads; blocks of a row */
    KernelStatus status;
} Task;

/* Some rows of a sequence for a head of its keys. */
typedef struct Part {
    int64_t head, row, rows, first_row, key, keys, blocks;
} Part;

/* A line of each for every row. */
typedef struct Lines {
    float *scores, *weights, *blocks, *best, *out;
} Lines;

static void *take_lines(const Task *task, Part part, Lines *lines)
{
    float **const arrays[] = {&lines->scores, &lines->weights, &lines->blocks, &lines->best, &lines->out};
    const int64_t rows = part.rows;
    return attention_take_arrays(5, arrays, (const int64_t[][2]){{rows, part.keys}, {rows, part.keys}, {rows, part.blocks},
                                                                 {rows, task->count}, {rows, task->value_depth}});
}

/* ---- weights ---- */

/* Head `head` of rows from `row` on. */
static Matrix matrix_of(const View *view, int64_t row, int64_t head)
{
    const int64_t at = row * view->strides[0] + head * view->strides[1];
    return (Matrix){.data = (const char *)view->data + at * (int64_t)us_dtype_size(view->dtype), .dtype = view->dtype,
                    .row = view->strides[0], .column = view->strides[2]};
}

static void leave_out(const View *mask, int64_t row, int64_t count, float *scores)
{
    const uint8_t *line = mask->data;
    for (int64_t i = 0; !us_view_is_absent(mask) && i < count; i++) {
        scores[i] = line[row * mask->strides[0] + i * mask->strides[1]] != 0 ? -INFINITY : scores[i];
    }
}

static void store_statistic(const View *view, int64_t row, int64_t head, float value)
{
    float *to = (float *)view->data + row * view->strides[0] + head * view->strides[1];
    for (int64_t i = 0; i < view->shape[2]; i++) {
        to[i * view->strides[2]] = value;
    }
}

/* The scores of a row of a head become its weights. */
static void weigh(const Task *task, Part part, int64_t head, int64_t i, float *scores)
{
    attention_multiply(scores, part.keys, task->compressed->scale);
    leave_out(&task->views[OF_MASK], part.row + i - part.first_row, part.keys, scores);
    const float maximum = attention_scale(scores, part.keys, 1, NULL, 0);
    const float sum = attention_exponentials(scores, part.keys, maximum == -INFINITY ? 0 : maximum);
    attention_multiply(scores, part.keys, sum == 0 ? 0 : 1 / sum);
    store_statistic(&task->views[OF_MAXIMUM], part.row + i, head, maximum);
    store_statistic(&task->views[OF_SUM], part.row + i, head, sum);
}

static KernelStatus attend(const Task *task, Part part, int64_t head, const Lines *lines)
{
    const View *views = task->views, *out = &views[OF_OUT];
    const int64_t e = task->value_depth;
    KernelStatus status = attention_multiply_matrices(part.rows, part.keys, task->depth,
                                                      matrix_of(&views[OF_QUERY], part.row, head),
                                                      transposed(matrix_of(&views[OF_KEY], part.key, part.head)), lines->scores,
                                                      false);
    for (int64_t i = 0; i < part.rows && status == KERNEL_OK; i++) {
        weigh(task, part, head, i, lines->scores + i * part.keys);
        attention_add(lines->weights + i * part.keys, lines->scores + i * part.keys, part.keys);
    }
    status = status != KERNEL_OK ? status
                                 : attention_multiply_matrices(part.rows, e, part.keys, float_rows(lines->scores, part.keys),
                                                               matrix_of(&views[OF_VALUE], part.key, part.head), lines->out,
                                                               false);
    for (int64_t i = 0; i < part.rows && status == KERNEL_OK; i++) {
        us_linear_store_float(out, ((part.row + i) * out->shape[1] + head) * e, e, lines->out + i * e);
    }
    return status;
}

/* ---- blocks ---- */

static float weight_of_block(const Compressed *compressed, int64_t block, const float *weights, int64_t keys)
{
    float sum = 0;
    for (int64_t m = 0; m < compressed->step; m++) {
        for (int64_t n = 0; n < compressed->width; n++) {
            const int64_t key = compressed->step * block - m - n;
            sum += key >= 0 && key < keys ? weights[key] : 0;
        }
    }
    return sum;
}

static KernelStatus find_blocks(const Task *task, Part part, const Lines *lines)
{
    for (int64_t i = 0; i < part.rows; i++) {
        float *of_row = lines->blocks + i * part.blocks;
        for (int64_t block = 0; block < part.blocks; block++) {
            of_row[block] = weight_of_block(task->compressed, block, lines->weights + i * part.keys, part.keys);
        }
        leave_out(&task->views[OF_BLOCK_MASK], part.row + i - part.first_row, part.blocks, of_row);
    }
    const View all = us_view_rows(&task->views[OF_BLOCKS], part.row, part.row + part.rows);
    View places = us_view_remove_axis(all, 1);
    places.data = (int32_t *)all.data + part.head * all.strides[1];
    const View views[] = {
        us_view_contiguous(lines->blocks, DTYPE_FLOAT32, 2, (const int64_t[]){part.rows, part.blocks}),
        us_view_contiguous(lines->best, DTYPE_FLOAT32, 2, (const int64_t[]){part.rows, task->count}), places};
    return us_topk(views, &(SortLines){.axis = 1, .descending = true});
}

/* ---- rows ---- */

static KernelStatus run_part(const Task *task, Part part)
{
    Lines lines;
    void *block = take_lines(task, part, &lines);
    KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    if (status == KERNEL_OK) {
        memset(lines.weights, 0, (size_t)(part.rows * part.keys) * sizeof(float));
    }
    for (int64_t g = 0; g < task->group && status == KERNEL_OK; g++) {
        status = attend(task, part, part.head * task->group + g, &lines);
    }
    status = status == KERNEL_OK ? find_blocks(task, part, &lines) : status;
    us_scratch_give_back(block);
    return status;
}

static int64_t begin_of(const Compressed *compressed, int kind, int64_t sequence)
{
    return sequence == 0 ? 0 : compressed->ends[kind * compressed->sequences + sequence - 1];
}

static int64_t length_of(const Compressed *compressed, int kind, int64_t sequence)
{
    return compressed->ends[kind * compressed->sequences + sequence] - begin_of(compressed, kind, sequence);
}

/* ROWS rows of all sequences, sequence by sequence. */
static void run_rows(void *context, int64_t piece)
{
    Task *task = context;
    const Compressed *compressed = task->compressed;
    const int64_t heads = task->views[OF_KEY].shape[1], begin = piece / heads * ROWS;
    const int64_t end = smaller(begin + ROWS, task->views[OF_QUERY].shape[0]);
    for (int64_t s = 0; s < compressed->sequences; s++) {
        const int64_t first = begin_of(compressed, 0, s), from = larger(first, begin);
        const int64_t to = smaller(compressed->ends[s], end);
        if (from < to) {
            us_keep_status(&task->status, run_part(task, (Part){piece % heads, from, to - from, first,
                                                                begin_of(compressed, 1, s), length_of(compressed, 1, s),
                                                                length_of(compressed, 2, s)}));
        }
    }
}

KernelStatus us_compressed_attention(const View *views, const void *attributes)
{
    const View *query = &views[OF_QUERY], *key = &views[OF_KEY];
    if (query->shape[0] == 0) {
        return KERNEL_OK;
    }
    Task task = {.views = views, .compressed = attributes, .group = query->shape[1] / key->shape[1], .depth = query->shape[2],
                 .value_depth = views[OF_VALUE].shape[2], .count = views[OF_BLOCKS].shape[2]};
    run_pieces(us_scratch_count(ceiling(query->shape[0], ROWS), key->shape[1]),
               us_scratch_count(us_view_elements(query), key->shape[0]), run_rows, &task);
    return task.status;
}
