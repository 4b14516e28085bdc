/* Blocks of the vocabulary outside, blocks of tokens inside: of Q only one block exists at a time, weightGrad is
 * complete after each block of the vocabulary, inputGrad adds up in fp32 over all of them, in a fixed order. */
#include "kernels/fused_cross_entropy.h"

#include "kernels/exponential.h"
#include "kernels/fused_rows.h"
#include "kernels/matmul.h"
#include "kernels/scratch.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { GRAD, INPUT, WEIGHT, MASK, TARGET, LOGITS_MAX, SUM_EXP, SOFTMAX, INPUT_GRAD, WEIGHT_GRAD };
enum { PIECE_ROWS = 16, NO_TARGET = -1 };

typedef struct Backward {
    const View *views;
    int64_t tokens, features, vocabulary;
    bool from_softmax;
    /* Per token. */
    float *grad, *logits_max, *sum_exp;
    int64_t *target; /* NO_TARGET: masked, or outside this part of the vocabulary */
    /* Blocks. */
    float *input, *weight, *q, *input_grad, *weight_grad;
    /* The block at hand. */
    int64_t first_row, rows, first_entry, entries;
} Backward;

/* ---- one value per token ---- */

static bool is_masked(const View *mask, int64_t token)
{
    const uint8_t *bytes = mask->data;
    if (mask->dtype == DTYPE_BOOL) {
        return bytes[token * mask->strides[0]] != 0;
    }
    return (bytes[(token >> 3) * mask->strides[0]] >> (token & 7) & 1) != 0;
}

static void load_vector(const View *vector, int64_t count, float *to)
{
    us_load_float(to, vector->data, vector->dtype, vector->strides[0], count);
}

static void load_tokens(Backward *backward)
{
    const View *target = &backward->views[TARGET];
    load_vector(&backward->views[GRAD], backward->tokens, backward->grad);
    if (!backward->from_softmax) {
        load_vector(&backward->views[LOGITS_MAX], backward->tokens, backward->logits_max);
        load_vector(&backward->views[SUM_EXP], backward->tokens, backward->sum_exp);
    }
    for (int64_t token = 0; token < backward->tokens; token++) {
        const char *address = (const char *)target->data + token * target->strides[0] * (int64_t)us_dtype_size(target->dtype);
        int32_t narrow;
        int64_t entry;
        if (target->dtype == DTYPE_INT32) {
            memcpy(&narrow, address, sizeof narrow);
            entry = narrow;
        } else {
            memcpy(&entry, address, sizeof entry);
        }
        bool subtracts = !is_masked(&backward->views[MASK], token) && entry >= 0 && entry < backward->vocabulary;
        backward->target[token] = subtracts ? entry : NO_TARGET;
    }
}

/* ---- a block of Q ---- */

KERNEL_CLONES static void logits_to_probabilities(float *row, int64_t count, float max, float sum)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] = exp_float(row[i] - max) / sum;
    }
}

KERNEL_CLONES static void scale_to_half(float *row, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] = half_to_float(float_to_half(row[i] * factor));
    }
}

KERNEL_CLONES static void scale_to_bfloat(float *row, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] = bfloat_to_float(float_to_bfloat(row[i] * factor));
    }
}

static void finish_q(void *context, int64_t piece)
{
    const Backward *backward = context;
    const View *softmax = &backward->views[SOFTMAX];
    for (int64_t i = piece * PIECE_ROWS; i < least(backward->rows, (piece + 1) * PIECE_ROWS); i++) {
        int64_t token = backward->first_row + i;
        float *row = backward->q + i * backward->entries;
        if (backward->from_softmax) {
            us_load_float(row, element_at(softmax, token, backward->first_entry), softmax->dtype, softmax->strides[1],
                          backward->entries);
        } else {
            logits_to_probabilities(row, backward->entries, backward->logits_max[token], backward->sum_exp[token]);
        }
        int64_t target = backward->target[token] - backward->first_entry;
        if (backward->target[token] != NO_TARGET && target >= 0 && target < backward->entries) {
            row[target] -= 1.0f;
        }
        if (backward->views[INPUT].dtype == DTYPE_FLOAT16) {
            scale_to_half(row, backward->entries, backward->grad[token]);
        } else {
            scale_to_bfloat(row, backward->entries, backward->grad[token]);
        }
    }
}

static void make_q(Backward *backward)
{
    if (!backward->from_softmax) {
        MatrixProduct logits = {
            .a = {backward->input, backward->features, false},
            .b = {backward->weight, backward->features, true},
            .m = backward->rows, .n = backward->entries, .k = backward->features,
            .result = backward->q, .result_stride = backward->entries,
        };
        us_matmul(&logits);
    }
    us_parallel((backward->rows + PIECE_ROWS - 1) / PIECE_ROWS, finish_q, backward);
}

static void add_gradients(const Backward *backward)
{
    MatrixProduct input_grad = {
        .a = {backward->q, backward->entries, false},
        .b = {backward->weight, backward->features, false},
        .m = backward->rows, .n = backward->features, .k = backward->entries,
        .accumulate = backward->first_entry > 0,
        .result = backward->input_grad + backward->first_row * backward->features, .result_stride = backward->features,
    };
    us_matmul(&input_grad);
    MatrixProduct weight_grad = {
        .a = {backward->q, backward->entries, true},
        .b = {backward->input, backward->features, false},
        .m = backward->entries, .n = backward->features, .k = backward->rows,
        .accumulate = backward->first_row > 0,
        .result = backward->weight_grad, .result_stride = backward->features,
    };
    us_matmul(&weight_grad);
}

/* ---- the whole ---- */

static void *take_memory(Backward *backward)
{
    size_t row_block = (size_t)least(backward->tokens, ROW_BLOCK);
    size_t entry_block = (size_t)least(backward->vocabulary, VOCABULARY_BLOCK);
    size_t features = (size_t)backward->features;
    size_t tokens = (size_t)backward->tokens;
    size_t per_token = us_scratch_round(tokens * sizeof(float));
    size_t target = us_scratch_round(tokens * sizeof(int64_t));
    size_t input = us_scratch_round(row_block * features * sizeof(float));
    size_t weight = us_scratch_round(entry_block * features * sizeof(float));
    size_t q = us_scratch_round(row_block * entry_block * sizeof(float));
    size_t input_grad = us_scratch_round(tokens * features * sizeof(float));
    char *block = us_scratch_take(3 * per_token + target + input + 2 * weight + q + input_grad);
    if (block != NULL) {
        char *cursor = block;
        backward->grad = us_scratch_part(&cursor, per_token);
        backward->logits_max = us_scratch_part(&cursor, per_token);
        backward->sum_exp = us_scratch_part(&cursor, per_token);
        backward->target = us_scratch_part(&cursor, target);
        backward->input = us_scratch_part(&cursor, input);
        backward->weight = us_scratch_part(&cursor, weight);
        backward->weight_grad = us_scratch_part(&cursor, weight);
        backward->q = us_scratch_part(&cursor, q);
        backward->input_grad = us_scratch_part(&cursor, input_grad);
    }
    return block;
}

KernelStatus us_fused_cross_entropy_backward(const View *views, const void *attributes)
{
    (void)attributes;
    Backward backward = {
        .views = views,
        .tokens = views[INPUT].shape[0],
        .features = views[INPUT].shape[1],
        .vocabulary = views[WEIGHT].shape[0],
        .from_softmax = !us_view_is_absent(&views[SOFTMAX]),
    };
    void *block = take_memory(&backward);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    load_tokens(&backward);
    for (int64_t entry = 0; entry < backward.vocabulary; entry += VOCABULARY_BLOCK) {
        backward.first_entry = entry;
        backward.entries = least(VOCABULARY_BLOCK, backward.vocabulary - entry);
        fused_load_rows(&views[WEIGHT], entry, backward.entries, backward.weight);
        for (int64_t row = 0; row < backward.tokens; row += ROW_BLOCK) {
            backward.first_row = row;
            backward.rows = least(ROW_BLOCK, backward.tokens - row);
            if (entry == 0 || backward.tokens > ROW_BLOCK) { /* a single block stays loaded */
                fused_load_rows(&views[INPUT], row, backward.rows, backward.input);
            }
            make_q(&backward);
            add_gradients(&backward);
        }
        fused_store_rows(&views[WEIGHT_GRAD], entry, backward.entries, backward.weight_grad);
    }
    fused_store_rows(&views[INPUT_GRAD], 0, backward.tokens, backward.input_grad);
    us_scratch_give_back(block);
    return KERNEL_OK;
}
