#include "kernels/attention/teacher.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/scratch.h"

#include <string.h>

/* What a head of the keys needs: both parts of each side by side, and the weights of its heads. */
typedef struct Parts {
    float *query, *keys, *weights;
} Parts;

static void load_both(const View *view, const View *rotary, const Teacher *teacher, int64_t number, float *to)
{
    us_linear_load_float(view, number * teacher->depth, teacher->depth, to);
    if (teacher->rotary > 0) {
        us_linear_load_float(rotary, number * teacher->rotary, teacher->rotary, to + teacher->depth);
    }
}

/* Of a head of a row: its number in row-major order. */
static float statistic_of(const Teacher *teacher, const Tokens *tokens, const View *view, int64_t number, int64_t head, int64_t g)
{
    const bool packed = tokens->layout.packed_rows;
    const int64_t lines = tokens->rows->shape[packed ? 0 : 1], batch = number / lines, row = number % lines;
    float value;
    us_linear_load_float(view, ((batch * teacher->key_heads + head) * lines + row) * teacher->group + g, 1, &value);
    return value;
}

static void load_head(const Teacher *teacher, const Tokens *tokens, const Lesson *lesson, int64_t head, const Parts *parts)
{
    const int64_t both = teacher->depth + teacher->rotary, group = teacher->group, heads = teacher->key_heads;
    for (int64_t i = 0; i < lesson->keys; i++) {
        const int64_t key = lesson->places == NULL ? lesson->key + i : lesson->places[i];
        const int64_t at = us_token_key(tokens, lesson->sequence, key);
        load_both(teacher->key, teacher->rotary_key, teacher, at * heads + head, parts->keys + i * both);
    }
    for (int64_t line = 0; line < lesson->rows * group; line++) {
        const int64_t number = ((lesson->row + line / group) * heads + head) * group + line % group;
        load_both(teacher->query, teacher->rotary_query, teacher, number, parts->query + line * both);
    }
}

/* Adds the weights of the heads that share a head of the keys. */
static KernelStatus add_head(const Teacher *teacher, const Tokens *tokens, const Lesson *lesson, int64_t head, const Parts *parts)
{
    const int64_t both = teacher->depth + teacher->rotary, lines = lesson->rows * teacher->group, keys = lesson->keys;
    load_head(teacher, tokens, lesson, head, parts);
    const KernelStatus status =
        attention_multiply_matrices(lines, keys, both, float_rows(parts->query, both),
                                    transposed(float_rows(parts->keys, both)), parts->weights, false);
    for (int64_t line = 0; line < lines && status == KERNEL_OK; line++) {
        const int64_t row = line / teacher->group, number = lesson->row + row;
        float *weights = parts->weights + line * keys;
        const float maximum = statistic_of(teacher, tokens, teacher->maximum, number, head, line % teacher->group);
        const float sum = statistic_of(teacher, tokens, teacher->sum, number, head, line % teacher->group);
        attention_multiply(weights, keys, teacher->scale);
        attention_exponentials(weights, keys, maximum == -INFINITY ? 0 : maximum);
        attention_multiply(weights, keys, sum == 0 ? 0 : 1 / sum);
        attention_add(lesson->taught + row * lesson->stride, weights, keys);
    }
    return status;
}

KernelStatus us_teach(const Teacher *teacher, const Tokens *tokens, const Lesson *lesson)
{
    const int64_t both = teacher->depth + teacher->rotary, lines = lesson->rows * teacher->group, keys = lesson->keys;
    Parts parts;
    float **const arrays[] = {&parts.query, &parts.keys, &parts.weights};
    void *const block = attention_take_arrays(3, arrays, (const int64_t[][2]){{lines, both}, {keys, both}, {lines, keys}});
    KernelStatus status = block == NULL ? KERNEL_NO_MEMORY : KERNEL_OK;
    for (int64_t row = 0; row < lesson->rows; row++) {
        memset(lesson->taught + row * lesson->stride, 0, (size_t)keys * sizeof(float));
    }
    for (int64_t head = 0; head < teacher->key_heads && status == KERNEL_OK; head++) {
        status = add_head(teacher, tokens, lesson, head, &parts);
    }
    us_scratch_give_back(block);
    return status;
}
