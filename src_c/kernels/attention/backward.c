#include "kernels/attention/tiles.h"
#include "kernels/maths/maths.h"
#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

/* What a backward pass is cut into where there are few heads. */
enum { BACKWARD_PIECES = 8 };

/* What a tile needs, and the gradients of its keys. */
typedef struct Space {
    float weights[ROWS * KEYS], slopes[ROWS * KEYS];
    float *out, *out_gradient;          /* a row each */
    float *key_gradient, *value_gradient; /* KEYS x depth, KEYS x value_depth */
    float *query_gradient;              /* of the head at hand, query_count x depth */
} Space;

static float first_of_row(const Head *head, int operand, int64_t row)
{
    return *(const float *)attention_place(head, operand, row);
}

/* Weights, after dropout, and slopes of the scores. */
static void find_slopes(const Head *head, Tile tile, Space *space)
{
    const int64_t depth = head->attention->sizes.value_depth, first = head->sequence->query_begin + tile.row;
    for (int64_t i = 0; i < tile.rows; i++) {
        float *weights = space->weights + i * tile.keys, *slopes = space->slopes + i * tile.keys;
        const float maximum = first_of_row(head, MAXIMUM, first + i);
        const float sum = attention_is_given(head, SUM) ? first_of_row(head, SUM, first + i) : 1;
        attention_load_row(head, OUT, first + i, 0, depth, space->out);
        attention_load_row(head, OUT_GRADIENT, first + i, 0, depth, space->out_gradient);
        const float mean = inner_product(space->out, space->out_gradient, depth);
        attention_finish_scores(head, tile, i, weights);
        attention_exponentials(weights, tile.keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(weights, tile.keys, sum == 0 ? 0 : 1 / sum);
        attention_drop_row(head, tile, i, slopes);
        for (int64_t j = 0; j < tile.keys; j++) {
            slopes[j] = weights[j] * (slopes[j] - mean);
        }
        attention_drop_row(head, tile, i, weights);
    }
}

static KernelStatus differentiate_tile(const Head *head, Tile tile, Space *space)
{
    const AttentionSizes *sizes = &head->attention->sizes;
    const int64_t row = head->sequence->query_begin + tile.row, key = head->sequence->key_begin + tile.key;
    const Matrix gradient = attention_matrix_at(head, OUT_GRADIENT, row);
    const Matrix weights = matrix_of_rows(space->weights, DTYPE_FLOAT32, tile.keys);
    const Matrix slopes = matrix_of_rows(space->slopes, DTYPE_FLOAT32, tile.keys);
    KernelStatus status = attention_find_scores(head, tile, attention_matrix_at(head, KEY, key), space->weights);
    status = status != KERNEL_OK ? status
                                 : attention_multiply_matrices(tile.rows, tile.keys, sizes->value_depth, gradient,
                                                     transposed(attention_matrix_at(head, VALUE, key)), space->slopes, false);
    if (status != KERNEL_OK) {
        return status;
    }
    find_slopes(head, tile, space);
    status = attention_multiply_matrices(tile.keys, sizes->value_depth, tile.rows, transposed(weights), gradient,
                               space->value_gradient, true);
    status = status != KERNEL_OK ? status
                                 : attention_multiply_matrices(tile.keys, sizes->depth, tile.rows, transposed(slopes),
                                                     attention_matrix_at(head, QUERY, row), space->key_gradient, true);
    return status != KERNEL_OK ? status
                               : attention_multiply_matrices(tile.rows, sizes->depth, tile.keys, slopes,
                                                   attention_matrix_at(head, KEY, key),
                                                   space->query_gradient + tile.row * sizes->depth, true);
}

static float *partial_of(const Work *work, int64_t batch, int64_t head, int64_t range)
{
    const AttentionSizes *sizes = &work->attention->sizes;
    const AttentionSequence *sequence = &work->attention->of[batch];
    const int64_t rows = (sequence->rows_before * sizes->heads + head * sequence->query_count) * work->blocks;
    return work->partial + (rows + range * sequence->query_count) * sizes->depth;
}

/* All rows that see some keys, of all heads that share them. */
static KernelStatus differentiate_keys(const Work *work, int64_t batch, int64_t key_head, int64_t key, int64_t keys,
                                       Space *space)
{
    const AttentionSizes *sizes = &work->attention->sizes;
    const int64_t shared = sizes->heads / sizes->key_heads;
    memset(space->key_gradient, 0, (size_t)(KEYS * sizes->depth) * sizeof(float));
    memset(space->value_gradient, 0, (size_t)(KEYS * sizes->value_depth) * sizeof(float));
    Head head = attention_head_of(work->attention, work->views, batch, key_head * shared);
    KernelStatus status = KERNEL_OK;
    for (; head.head < (key_head + 1) * shared; head.head++) {
        space->query_gradient = partial_of(work, batch, head.head, key / work->range_keys);
        Tile tile = {.key = key, .keys = keys};
        for (; tile.row < head.sequence->query_count && status == KERNEL_OK; tile.row += ROWS) {
            tile.rows = smaller(ROWS, head.sequence->query_count - tile.row);
            status = attention_is_seen(&head, tile) ? differentiate_tile(&head, tile, space) : KERNEL_OK;
        }
    }
    attention_multiply(space->key_gradient, keys * sizes->depth, work->attention->scale);
    head.head = key_head * shared;
    attention_store_rows(&head, KEY_GRADIENT, head.sequence->key_begin + key, keys, sizes->depth, space->key_gradient);
    attention_store_rows(&head, VALUE_GRADIENT, head.sequence->key_begin + key, keys, sizes->value_depth, space->value_gradient);
    return status;
}

static Space *take_space(const AttentionSizes *sizes)
{
    const size_t rows = us_scratch_bytes(sizes->value_depth, sizeof(float));
    const size_t keys = us_scratch_bytes(sizes->depth, KEYS * sizeof(float));
    const size_t values = us_scratch_bytes(sizes->value_depth, KEYS * sizeof(float));
    char *cursor = us_scratch_take(us_scratch_round(sizeof(Space)) + 2 * rows + keys + values);
    if (cursor == NULL) {
        return NULL;
    }
    Space *space = us_scratch_part(&cursor, sizeof *space);
    space->out = us_scratch_part(&cursor, rows);
    space->out_gradient = us_scratch_part(&cursor, rows);
    space->key_gradient = us_scratch_part(&cursor, keys);
    space->value_gradient = us_scratch_part(&cursor, values);
    return space;
}

static void differentiate_piece(void *context, int64_t piece)
{
    Work *work = context;
    const AttentionSizes *sizes = &work->attention->sizes;
    const int64_t range = piece % work->blocks, line = piece / work->blocks;
    const int64_t batch = line / sizes->key_heads, key_head = line % sizes->key_heads;
    const int64_t shared = sizes->heads / sizes->key_heads;
    for (int64_t head = key_head * shared; head < (key_head + 1) * shared; head++) {
        memset(partial_of(work, batch, head, range), 0,
               (size_t)(work->attention->of[batch].query_count * sizes->depth) * sizeof(float));
    }
    const int64_t count = work->attention->of[batch].key_count;
    const int64_t end = smaller((range + 1) * work->range_keys, count);
    Space *space = take_space(sizes);
    KernelStatus status = space == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    for (int64_t key = range * work->range_keys; key < end && status == KERNEL_OK; key += KEYS) {
        status = differentiate_keys(work, batch, key_head, key, smaller(KEYS, end - key), space);
    }
    us_scratch_give_back(space);
    attention_note(work, status);
}

/* The ranges' gradients of a query, one after the other. */
static void store_query_gradient(void *context, int64_t piece)
{
    const Work *work = context;
    const AttentionSizes *sizes = &work->attention->sizes;
    const Head head = attention_head_of(work->attention, work->views, piece / sizes->heads, piece % sizes->heads);
    const int64_t count = head.sequence->query_count * sizes->depth;
    float *sum = partial_of(work, head.batch, head.head, 0);
    for (int64_t range = 1; range < work->blocks; range++) {
        const float *own = partial_of(work, head.batch, head.head, range);
        for (int64_t i = 0; i < count; i++) {
            sum[i] += own[i];
        }
    }
    attention_multiply(sum, count, work->attention->scale);
    attention_store_rows(&head, QUERY_GRADIENT, head.sequence->query_begin, head.sequence->query_count, sizes->depth, sum);
}

/* Gradients of keys that no sequence has: those behind the keys of a batch. */
static void fill_rest(const Attention *attention, const View *views, int operand)
{
    View rest = views[operand];
    for (int64_t s = 0; s < attention->sizes.sequences && rest.shape[0] == attention->sizes.sequences; s++) {
        const int64_t keys = attention->of[s].key_count, batch = s * rest.strides[0] + keys * rest.strides[2];
        View own = us_view_remove_axis(rest, 0);
        own.data = (char *)rest.data + batch * (int64_t)us_dtype_size(rest.dtype);
        own.shape[1] -= keys;
        attention_fill_zeros(&own);
    }
}

KernelStatus us_attention_backward(const View *views, const void *attributes)
{
    const Attention *attention = attributes;
    const AttentionSizes *sizes = &attention->sizes;
    Work work = {.attention = attention, .views = views};
    fill_rest(attention, views, KEY_GRADIENT);
    fill_rest(attention, views, VALUE_GRADIENT);
    const int64_t lines = sizes->sequences * sizes->key_heads, keys = attention_longest(attention, true);
    const int64_t tiles = keys > 0 ? (keys + KEYS - 1) / KEYS : 1;
    const int64_t ranges = lines >= BACKWARD_PIECES ? 1 : smaller(BACKWARD_PIECES / (lines > 0 ? lines : 1), tiles);
    work.range_keys = (tiles + ranges - 1) / ranges * KEYS;
    work.blocks = (tiles * KEYS + work.range_keys - 1) / work.range_keys;
    const AttentionSequence *last = &attention->of[sizes->sequences - 1];
    const int64_t rows = (last->rows_before + last->query_count) * sizes->heads * work.blocks;
    work.partial = us_scratch_array(us_scratch_count(rows, sizes->depth), sizeof(float));
    if (work.partial == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(lines * work.blocks, us_scratch_count(rows, keys), differentiate_piece, &work);
    if (!work.out_of_memory) {
        run_pieces(sizes->sequences * sizes->heads, rows * sizes->depth, store_query_gradient, &work);
    }
    us_scratch_give_back(work.partial);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- heads in two parts ---- */

static size_t bytes_of_wide(const View *whole, const View *part)
{
    const int64_t rows = us_shape_elements(3, whole->shape);
    return us_scratch_bytes(rows, (size_t)(whole->shape[3] + part->shape[3]) * us_dtype_size(whole->dtype));
}

/* Room for both side by side. Packed sequences share the first place of the first axis. */
static View wide_view(const View *whole, const View *part, char **cursor)
{
    const int64_t shape[] = {whole->shape[0], whole->shape[1], whole->shape[2], whole->shape[3] + part->shape[3]};
    View wide = us_view_contiguous(us_scratch_part(cursor, bytes_of_wide(whole, part)), whole->dtype, 4, shape);
    wide.strides[0] = shape[0] == 1 ? 0 : wide.strides[0];
    return wide;
}

/* Numbers of every head from `begin` on. */
static View numbers_of(const View *wide, int64_t begin, int64_t count)
{
    View numbers = *wide;
    numbers.data = (char *)wide->data + begin * (int64_t)us_dtype_size(wide->dtype);
    numbers.shape[3] = count;
    return numbers;
}

static void join(const View *wide, const View *whole, const View *part)
{
    const View first = numbers_of(wide, 0, whole->shape[3]), second = numbers_of(wide, whole->shape[3], part->shape[3]);
    us_copy_view(&first, whole);
    us_copy_view(&second, part);
}

static void split(const View *wide, const View *whole, const View *part)
{
    const View first = numbers_of(wide, 0, whole->shape[3]), second = numbers_of(wide, whole->shape[3], part->shape[3]);
    us_copy_view(whole, &first);
    us_copy_view(part, &second);
}

KernelStatus us_attention_backward_of_parts(const View *views, const void *attributes)
{
    static const int whole[] = {QUERY, KEY, QUERY_GRADIENT, KEY_GRADIENT};
    static const int part[] = {PART_QUERY, PART_KEY, PART_QUERY_GRADIENT, PART_KEY_GRADIENT};
    const Attention *attention = attributes;
    const size_t size = sizeof *attention + (size_t)attention->sizes.sequences * sizeof *attention->of;
    size_t bytes = us_scratch_round(size);
    for (int i = 0; i < 4; i++) {
        bytes += bytes_of_wide(&views[whole[i]], &views[part[i]]);
    }
    char *block = us_scratch_take(bytes), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Attention *wide = us_scratch_part(&cursor, size);
    memcpy(wide, attention, size);
    wide->sizes.depth += attention->rotary_depth;
    wide->rotary_depth = 0;
    View own[VALUE_GRADIENT + 1];
    memcpy(own, views, sizeof own);
    for (int i = 0; i < 4; i++) {
        own[whole[i]] = wide_view(&views[whole[i]], &views[part[i]], &cursor);
        if (i < 2) {
            join(&own[whole[i]], &views[whole[i]], &views[part[i]]);
        }
    }
    const KernelStatus status = us_attention_backward(own, wide);
    for (int i = 2; i < 4 && status == KERNEL_OK; i++) {
        split(&own[whole[i]], &views[whole[i]], &views[part[i]]);
    }
    us_scratch_give_back(block);
    return status;
}

/* ---- sinks ---- */

typedef struct SinkWork {
    const View *views;
    const Attention *attention;
    bool out_of_memory;
} SinkWork;

static float statistic_at(const Head *head, int operand, int64_t row)
{
    float value;
    attention_load_row(head, operand, row, 0, 1, &value);
    return value;
}

/* What a row's sink adds to its slope; `rows` has room for two. */
static double sink_slope(const Head *head, int64_t row, float sink, float *rows)
{
    const int64_t depth = head->attention->sizes.value_depth;
    const float sum = statistic_at(head, SUM, row);
    if (sum == 0) {
        return 0;
    }
    attention_load_row(head, OUT, row, 0, depth, rows);
    attention_load_row(head, OUT_GRADIENT, row, 0, depth, rows + depth);
    return -(double)(exp_float(sink - statistic_at(head, MAXIMUM, row)) / sum) * (double)inner_product(rows, rows + depth, depth);
}

static void differentiate_sink(void *context, int64_t number)
{
    SinkWork *work = context;
    const AttentionSizes *sizes = &work->attention->sizes;
    const View *sinks = &work->views[BACKWARD_SINK], *slopes = &work->views[SINK_GRADIENT];
    float *rows = us_scratch_array(us_scratch_count(sizes->value_depth, 2), sizeof *rows);
    if (rows == NULL) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
        return;
    }
    const float sink = ((const float *)sinks->data)[number * sinks->strides[1]];
    double slope = 0;
    for (int64_t s = 0; s < sizes->sequences; s++) {
        const Head head = attention_head_of(work->attention, work->views, s, number);
        for (int64_t i = 0; i < head.sequence->query_count; i++) {
            slope += sink_slope(&head, head.sequence->query_begin + i, sink, rows);
        }
    }
    ((float *)slopes->data)[number * slopes->strides[1]] = (float)slope;
    us_scratch_give_back(rows);
}

KernelStatus us_attention_backward_with_sink(const View *views, const void *attributes)
{
    const Attention *attention = attributes;
    Kernel *kernel = us_view_is_absent(&views[PART_QUERY]) ? us_attention_backward : us_attention_backward_of_parts;
    const KernelStatus status = kernel(views, attributes);
    SinkWork work = {views, attention, false};
    if (status == KERNEL_OK) {
        run_pieces(attention->sizes.heads, us_view_elements(&views[OUT]), differentiate_sink, &work);
    }
    return status == KERNEL_OK && work.out_of_memory ? KERNEL_NO_MEMORY : status;
}
