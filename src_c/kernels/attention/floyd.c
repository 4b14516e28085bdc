#include "kernels/attention/floyd.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { OF_QUERY, OF_KEY1, OF_VALUE1, OF_KEY2, OF_VALUE2, OF_MASK, OF_OUT, OF_MAXIMUM, OF_SUM, OF_SLOPES, TO_QUERY, TO_KEY1,
       TO_VALUE1, TO_KEY2, TO_VALUE2 };
enum { FIRST, SECOND, SIDES }; /* along n: pairs (n, k); along m: pairs (k, m) */

typedef struct Task {
    const View *views;
    float scale;
    int64_t heads, places[SIDES], keys, depth;
    int64_t patch; /* places along a side */
    KernelStatus status;
} Task;

/* Of some places along a side, one behind the other: keys and values [k, depth] of each, and their slopes. */
typedef struct Pairs {
    float *keys, *values, *key_slopes, *value_slopes;
} Pairs;

/* Rows (n, m) of a batch and head, which `line` counts; and what they need and give, m within n. */
typedef struct Patch {
    const Task *task;
    int64_t line, first[SIDES], count[SIDES];
    Pairs pairs[SIDES];
    float *query, *scores, *out;
    float *slopes, *score_slopes, *query_slopes;
} Patch;

enum { FORWARDS = SIDES };

/* `side`: the one whose pairs get slopes, or FORWARDS. */
static void *take_patch(Patch *patch, int side)
{
    const int64_t t = patch->task->patch, rows = t * t, k = patch->task->keys, d = patch->task->depth;
    const int64_t all = us_scratch_count(t, k);
    Pairs *pairs = patch->pairs, *to = &pairs[side % SIDES];
    float **const arrays[] = {&pairs[FIRST].keys, &pairs[FIRST].values, &pairs[SECOND].keys, &pairs[SECOND].values, &patch->query,
                              &patch->scores, &patch->out, &patch->slopes, &patch->score_slopes, &patch->query_slopes,
                              &to->key_slopes, &to->value_slopes};
    const int64_t sides[][2] = {{all, d}, {all, d}, {all, d}, {all, d}, {rows, d}, {rows, k}, {rows, d},
                                {rows, d}, {rows, k}, {rows, d}, {all, d}, {all, d}};
    return attention_take_arrays(side == FORWARDS ? 7 : 12, arrays, sides);
}

/* Patch number `at` along a side. */
static void set_side(Patch *patch, int side, int64_t at)
{
    patch->first[side] = at * patch->task->patch;
    patch->count[side] = smaller(patch->task->patch, patch->task->places[side] - patch->first[side]);
}

static int64_t patch_count(const Task *task, int side)
{
    return ceiling(task->places[side], task->patch);
}

/* ---- places ---- */

/* Where key k of the pairs of a place begins. */
static int64_t pair_at(const Patch *patch, int side, int64_t place, int64_t k)
{
    const Task *task = patch->task;
    const int64_t first = (patch->line * task->places[FIRST] + place) * task->keys + k;
    const int64_t second = (patch->line * task->keys + k) * task->places[SECOND] + place;
    return (side == FIRST ? first : second) * task->depth;
}

typedef void Move(const View *view, int64_t begin, int64_t count, float *numbers);

static void store(const View *view, int64_t begin, int64_t count, float *numbers)
{
    us_linear_store_float(view, begin, count, numbers);
}

static void move_pairs(const Patch *patch, int side, int operand, float *numbers, Move *move)
{
    const int64_t k = patch->task->keys, d = patch->task->depth, run = side == FIRST ? k : 1; /* keys that follow each other */
    for (int64_t at = 0; at < patch->count[side]; at++) {
        for (int64_t key = 0; key < k; key += run) {
            move(&patch->task->views[operand], pair_at(patch, side, patch->first[side] + at, key), run * d, numbers);
            numbers += run * d;
        }
    }
}

static void load_pairs(const Patch *patch, int side)
{
    move_pairs(patch, side, side == FIRST ? OF_KEY1 : OF_KEY2, patch->pairs[side].keys, us_linear_load_float);
    move_pairs(patch, side, side == FIRST ? OF_VALUE1 : OF_VALUE2, patch->pairs[side].values, us_linear_load_float);
}

static void store_pair_slopes(const Patch *patch, int side)
{
    move_pairs(patch, side, side == FIRST ? TO_KEY1 : TO_KEY2, patch->pairs[side].key_slopes, store);
    move_pairs(patch, side, side == FIRST ? TO_VALUE1 : TO_VALUE2, patch->pairs[side].value_slopes, store);
}

static void move_rows(const Patch *patch, int operand, float *rows, Move *move)
{
    const Task *task = patch->task;
    const int64_t count = patch->count[SECOND] * task->depth;
    for (int64_t i = 0; i < patch->count[FIRST]; i++) {
        const int64_t row = (patch->line * task->places[FIRST] + patch->first[FIRST] + i) * task->places[SECOND];
        move(&task->views[operand], (row + patch->first[SECOND]) * task->depth, count, rows + i * count);
    }
}

static bool is_masked(const Patch *patch, int64_t i, int64_t k)
{
    const View *mask = &patch->task->views[OF_MASK];
    return ((const uint8_t *)mask->data)[patch->line / patch->task->heads * mask->strides[0] +
                                         (patch->first[FIRST] + i) * mask->strides[2] + k * mask->strides[4]] != 0;
}

/* Of row r of the patch. */
static float *statistic(const Patch *patch, int operand, int64_t r)
{
    const View *view = &patch->task->views[operand];
    const int64_t heads = patch->task->heads, n = patch->first[FIRST] + r / patch->count[SECOND];
    return (float *)view->data + patch->line / heads * view->strides[0] + patch->line % heads * view->strides[1] +
           n * view->strides[2] + (patch->first[SECOND] + r % patch->count[SECOND]) * view->strides[3];
}

/* ---- products ---- */

/* The rows of a place along a side, which see the same pairs of that side. */
static Matrix rows_of(const Patch *patch, int side, int64_t at, const float *rows, int64_t width)
{
    const int64_t across = patch->count[SECOND] * width;
    return side == FIRST ? float_rows(rows + at * across, width) : float_rows(rows + at * width, across);
}

static const float *pair_of(const Patch *patch, int side, int64_t at, bool values)
{
    const Pairs *pairs = &patch->pairs[side];
    return (values ? pairs->values : pairs->keys) + at * patch->task->keys * patch->task->depth;
}

/* Each row with its pairs: to[k] = the product with both of pair k, or, `sums`, to = the sum over k of from[k] times both. */
static KernelStatus apply_pairs(const Patch *patch, const float *from, bool values, bool sums, float *to)
{
    const int64_t k = patch->task->keys, d = patch->task->depth, size = sums ? k : d, result = sums ? d : k;
    KernelStatus status = KERNEL_OK;
    for (int side = FIRST; side < SIDES; side++) {
        for (int64_t at = 0; at < patch->count[side] && status == KERNEL_OK; at++) {
            const Matrix pairs = float_rows(pair_of(patch, side, at, values), d);
            status = attention_multiply_into(patch->count[!side], result, size, rows_of(patch, side, at, from, size),
                                             sums ? pairs : transposed(pairs), rows_of(patch, side, at, to, result),
                                             side == SECOND);
        }
    }
    return status;
}

static KernelStatus multiply_pairs(const Patch *patch, const float *rows, bool values, float *to)
{
    return apply_pairs(patch, rows, values, false, to);
}

static KernelStatus sum_pairs(const Patch *patch, const float *weights, bool values, float *to)
{
    return apply_pairs(patch, weights, values, true, to);
}

/* Each pair's slopes += the sum over its rows of weights[k] times the row. */
static KernelStatus add_rows(const Patch *patch, int side, const float *weights, const float *rows, float *slopes)
{
    const int64_t k = patch->task->keys, d = patch->task->depth;
    KernelStatus status = KERNEL_OK;
    for (int64_t at = 0; at < patch->count[side] && status == KERNEL_OK; at++) {
        status = attention_multiply_into(k, d, patch->count[!side], transposed(rows_of(patch, side, at, weights, k)),
                                         rows_of(patch, side, at, rows, d), float_rows(slopes + at * k * d, d), true);
    }
    return status;
}

/* ---- rows ---- */

static int64_t row_count(const Patch *patch)
{
    return patch->count[FIRST] * patch->count[SECOND];
}

/* The rows' scores, scaled and masked. */
static KernelStatus find_scores(const Patch *patch)
{
    const int64_t keys = patch->task->keys, rows = patch->count[SECOND];
    move_rows(patch, OF_QUERY, patch->query, us_linear_load_float);
    const KernelStatus status = multiply_pairs(patch, patch->query, false, patch->scores);
    attention_multiply(patch->scores, row_count(patch) * keys, patch->task->scale);
    if (us_view_is_absent(&patch->task->views[OF_MASK])) {
        return status;
    }
    for (int64_t i = 0; i < patch->count[FIRST]; i++) {
        for (int64_t k = 0; k < keys; k++) {
            const int64_t masked = is_masked(patch, i, k) ? rows : 0;
            for (int64_t j = 0; j < masked; j++) {
                patch->scores[(i * rows + j) * keys + k] = -INFINITY;
            }
        }
    }
    return status;
}

static KernelStatus attend(const Patch *patch)
{
    const View *maxima = &patch->task->views[OF_MAXIMUM], *sums = &patch->task->views[OF_SUM];
    const int64_t keys = patch->task->keys;
    KernelStatus status = find_scores(patch);
    for (int64_t r = 0; r < row_count(patch); r++) {
        float *scores = patch->scores + r * keys;
        const float maximum = attention_scale(scores, keys, 1, NULL, 0);
        const float sum = attention_exponentials(scores, keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(scores, keys, sum == 0 ? 0 : 1 / sum);
        for (int64_t i = 0; i < maxima->shape[4]; i++) {
            statistic(patch, OF_MAXIMUM, r)[i * maxima->strides[4]] = maximum;
            statistic(patch, OF_SUM, r)[i * sums->strides[4]] = sum;
        }
    }
    status = status != KERNEL_OK ? status : sum_pairs(patch, patch->scores, true, patch->out);
    move_rows(patch, OF_OUT, patch->out, store);
    return status;
}

/* The scores become weights, and the slopes of the scores. */
static KernelStatus find_slopes(const Patch *patch)
{
    const int64_t keys = patch->task->keys, depth = patch->task->depth;
    move_rows(patch, OF_OUT, patch->out, us_linear_load_float);
    move_rows(patch, OF_SLOPES, patch->slopes, us_linear_load_float);
    KernelStatus status = find_scores(patch);
    status = status != KERNEL_OK ? status : multiply_pairs(patch, patch->slopes, true, patch->score_slopes);
    for (int64_t r = 0; r < row_count(patch); r++) {
        float *weights = patch->scores + r * keys, *slopes = patch->score_slopes + r * keys;
        const float maximum = *statistic(patch, OF_MAXIMUM, r), sum = *statistic(patch, OF_SUM, r);
        const float mean = inner_product(patch->out + r * depth, patch->slopes + r * depth, depth);
        attention_exponentials(weights, keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(weights, keys, sum == 0 ? 0 : 1 / sum);
        for (int64_t k = 0; k < keys; k++) {
            slopes[k] = patch->task->scale * weights[k] * (slopes[k] - mean);
        }
    }
    return status;
}

/* What the rows add to the slopes of a side's pairs; their own slopes beside the first ones. */
static KernelStatus differentiate(const Patch *patch, int side)
{
    const Pairs *pairs = &patch->pairs[side];
    KernelStatus status = find_slopes(patch);
    if (side == FIRST && status == KERNEL_OK) {
        status = sum_pairs(patch, patch->score_slopes, false, patch->query_slopes);
        move_rows(patch, TO_QUERY, patch->query_slopes, store);
    }
    status = status != KERNEL_OK ? status : add_rows(patch, side, patch->score_slopes, patch->query, pairs->key_slopes);
    return status != KERNEL_OK ? status : add_rows(patch, side, patch->scores, patch->slopes, pairs->value_slopes);
}

/* ---- patches ---- */

static void attend_patch(void *context, int64_t piece)
{
    Task *task = context;
    const int64_t across = patch_count(task, SECOND), down = patch_count(task, FIRST);
    Patch patch = {.task = task, .line = piece / across / down};
    set_side(&patch, FIRST, piece / across % down);
    set_side(&patch, SECOND, piece % across);
    void *block = take_patch(&patch, FORWARDS);
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
        return;
    }
    load_pairs(&patch, FIRST);
    load_pairs(&patch, SECOND);
    const KernelStatus status = attend(&patch);
    us_scratch_give_back(block);
    us_keep_status(&task->status, status);
}

/* Slopes of the pairs of some places along a side: all rows that see them, patch after patch. */
static void differentiate_side(Task *task, int64_t piece, int side)
{
    const int64_t patches = patch_count(task, side), numbers = task->keys * task->depth;
    Patch patch = {.task = task, .line = piece / patches};
    set_side(&patch, side, piece % patches);
    void *block = take_patch(&patch, side);
    if (block == NULL) {
        us_keep_status(&task->status, KERNEL_NO_MEMORY);
        return;
    }
    KernelStatus status = KERNEL_OK;
    memset(patch.pairs[side].key_slopes, 0, (size_t)(patch.count[side] * numbers) * sizeof(float));
    memset(patch.pairs[side].value_slopes, 0, (size_t)(patch.count[side] * numbers) * sizeof(float));
    load_pairs(&patch, side);
    for (int64_t at = 0; at < patch_count(task, !side) && status == KERNEL_OK; at++) {
        set_side(&patch, !side, at);
        load_pairs(&patch, !side);
        status = differentiate(&patch, side);
    }
    store_pair_slopes(&patch, side);
    us_scratch_give_back(block);
    us_keep_status(&task->status, status);
}

static void differentiate_first(void *context, int64_t piece)
{
    differentiate_side(context, piece, FIRST);
}

static void differentiate_second(void *context, int64_t piece)
{
    differentiate_side(context, piece, SECOND);
}

/* ---- kernels ---- */

enum { PATCH = 16, PATCH_NUMBERS = 1 << 21 };

static Task task_of(const View *views, const FloydAttention *floyd)
{
    const View *query = &views[OF_QUERY];
    const int64_t keys = views[OF_KEY1].shape[3], depth = query->shape[4];
    return (Task){.views = views, .scale = floyd->scale, .heads = query->shape[1], .places = {query->shape[2], query->shape[3]},
                  .keys = keys, .depth = depth, .patch = bounded(PATCH_NUMBERS / us_scratch_count(keys, depth), 1, PATCH)};
}

/* So many patches of every batch and head. */
static void run_patches(Task *task, int64_t patches, ParallelBody *body)
{
    const View *query = &task->views[OF_QUERY];
    if (task->status == KERNEL_OK) {
        run_pieces(query->shape[0] * task->heads * patches, us_scratch_count(us_view_elements(query), task->keys), body, task);
    }
}

KernelStatus us_floyd_attention(const View *views, const void *attributes)
{
    Task task = task_of(views, attributes);
    run_patches(&task, patch_count(&task, FIRST) * patch_count(&task, SECOND), attend_patch);
    return task.status;
}

KernelStatus us_floyd_attention_backward(const View *views, const void *attributes)
{
    Task task = task_of(views, attributes);
    run_patches(&task, patch_count(&task, FIRST), differentiate_first);
    run_patches(&task, patch_count(&task, SECOND), differentiate_second);
    return task.status;
}
