#include "kernels/loss/fused_cross_entropy.h"

#include "kernels/loss/fused_rows.h"
#include "kernels/maths/maths.h"
#include "kernels/matmul/matmul.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <math.h>

enum { PIECE_ROWS = 16, SUM_LANES = 16 };

/* ---- maximum and sum of exponentials, block by block of the vocabulary ---- */

enum { INPUT, WEIGHT, TARGET, LOGITS_MAX, SUM_EXP, PREDICTED, MASK, MASKED_TARGET, LOGITS };

typedef struct Online {
    const View *views;
    const OnlineMaxSum *range;
    int64_t tokens, features, vocabulary;
    float *max, *sum, *predicted; /* per token; predicted: the logit itself until the end */
    int64_t *masked_target;
    bool *masked;
    DType type;           /* of the operands of products */
    void *input, *weight; /* copies; NULL: they are operands where they lie */
    float *logits;
    int64_t first_row, rows, first_entry, entries;
    bool no_memory; /* a product had none */
} Online;

static float row_max(const float *row, int64_t count, float max)
{
    float lanes[SUM_LANES];
    for (int k = 0; k < SUM_LANES; k++) {
        lanes[k] = max;
    }
    int64_t i = 0;
    for (; i + SUM_LANES <= count; i += SUM_LANES) {
        for (int k = 0; k < SUM_LANES; k++) {
            lanes[k] = row[i + k] > lanes[k] ? row[i + k] : lanes[k];
        }
    }
    for (; i < count; i++) {
        lanes[0] = row[i] > lanes[0] ? row[i] : lanes[0];
    }
    for (int k = 0; k < SUM_LANES; k++) {
        max = lanes[k] > max ? lanes[k] : max;
    }
    return max;
}

/* In lanes, and then the lanes in order: the same sum on every machine. */
static float row_sum_exp(const float *row, int64_t count, float max)
{
    float lanes[SUM_LANES] = {0};
    int64_t i = 0;
    for (; i + SUM_LANES <= count; i += SUM_LANES) {
        for (int k = 0; k < SUM_LANES; k++) {
            lanes[k] += exp_float(row[i + k] - max);
        }
    }
    for (int k = 0; i < count; i++, k++) {
        lanes[k] += exp_float(row[i] - max);
    }
    float sum = 0.0f;
    for (int k = 0; k < SUM_LANES; k++) {
        sum += lanes[k];
    }
    return sum;
}

static void add_rows(void *context, int64_t piece)
{
    const Online *online = context;
    const View *logits = &online->views[LOGITS];
    for (int64_t i = piece * PIECE_ROWS; i < smaller(online->rows, (piece + 1) * PIECE_ROWS); i++) {
        int64_t token = online->first_row + i;
        const float *row = online->logits + i * online->entries;
        float max = row_max(row, online->entries, online->max[token]);
        float before = online->first_entry == 0 ? 0.0f : online->sum[token] * exp_float(online->max[token] - max);
        online->sum[token] = before + row_sum_exp(row, online->entries, max);
        online->max[token] = max;
        int64_t target = online->masked_target[token] - online->first_entry;
        if (!online->masked[token] && target >= 0 && target < online->entries) {
            online->predicted[token] = row[target];
        }
        if (!us_view_is_absent(logits)) {
            us_store_float(element_at(logits, token, online->first_entry), logits->dtype, logits->strides[1], row,
                           online->entries);
        }
    }
}

static int64_t read_integer(const View *vector, int64_t index)
{
    const char *address = (const char *)vector->data + index * vector->strides[0] * (int64_t)us_dtype_size(vector->dtype);
    int32_t narrow;
    int64_t wide;
    if (vector->dtype == DTYPE_INT32) {
        memcpy(&narrow, address, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, address, sizeof wide);
    return wide;
}

static void write_integer(const View *vector, int64_t index, int64_t value)
{
    char *address = (char *)vector->data + index * vector->strides[0] * (int64_t)us_dtype_size(vector->dtype);
    int32_t narrow = (int32_t)value;
    if (vector->dtype == DTYPE_INT32) {
        memcpy(address, &narrow, sizeof narrow);
    } else {
        memcpy(address, &value, sizeof value);
    }
}

static void begin_tokens(Online *online)
{
    const OnlineMaxSum *range = online->range;
    for (int64_t token = 0; token < online->tokens; token++) {
        int64_t target = read_integer(&online->views[TARGET], token);
        online->masked[token] = target < range->start || target >= range->end;
        /* Modulo 2^64: beyond int64 it becomes negative, and is no entry of the vocabulary. */
        int64_t local = (int64_t)((uint64_t)target - (uint64_t)range->start);
        online->masked_target[token] = online->masked[token] ? 0 : local;
        online->max[token] = -INFINITY;
        online->predicted[token] = 0.0f;
    }
}

static void store_vector(const View *vector, int64_t count, const float *from)
{
    us_store_float(vector->data, vector->dtype, vector->strides[0], from, count);
}

static void end_tokens(Online *online)
{
    const View *views = online->views;
    const View *mask = &views[MASK];
    uint8_t byte = 0;
    int64_t padded = (online->tokens + 7) / 8 * 8;
    for (int64_t token = 0; token < padded; token++) {
        bool padding = token >= online->tokens;
        byte = (uint8_t)(byte | (padding || online->masked[token] ? 1u << (token & 7) : 0u));
        if ((token & 7) == 7) {
            ((uint8_t *)mask->data)[(token >> 3) * mask->strides[0]] = byte;
            byte = 0;
        }
        if (padding) {
            continue;
        }
        write_integer(&views[MASKED_TARGET], token, online->masked_target[token]);
        int64_t local = online->masked_target[token];
        bool known = !online->masked[token] && local >= 0 && local < online->vocabulary;
        online->predicted[token] = known ? online->predicted[token] - online->max[token] : 0.0f;
    }
    store_vector(&views[LOGITS_MAX], online->tokens, online->max);
    store_vector(&views[SUM_EXP], online->tokens, online->sum);
    store_vector(&views[PREDICTED], online->tokens, online->predicted);
}

static void *take_memory(Online *online)
{
    const int64_t rows = smaller(online->tokens, ROW_BLOCK), entries = smaller(online->vocabulary, VOCABULARY_BLOCK);
    const size_t per_token = us_scratch_bytes(online->tokens, sizeof(float));
    const size_t masked_target = us_scratch_bytes(online->tokens, sizeof(int64_t));
    const size_t masked = us_scratch_bytes(online->tokens, sizeof(bool));
    const bool copies_input = !fused_is_operand(&online->views[INPUT], online->type);
    const bool copies_weight = !fused_is_operand(&online->views[WEIGHT], online->type);
    const size_t input = us_scratch_bytes(copies_input ? us_scratch_count(rows, online->features) : 0, sizeof(float));
    const size_t weight = us_scratch_bytes(copies_weight ? us_scratch_count(entries, online->features) : 0, sizeof(float));
    const size_t logits = us_scratch_bytes(rows * entries, sizeof(float));
    char *block = us_scratch_take(3 * per_token + masked_target + masked + input + weight + logits);
    if (block != NULL) {
        char *cursor = block;
        online->max = us_scratch_part(&cursor, per_token);
        online->sum = us_scratch_part(&cursor, per_token);
        online->predicted = us_scratch_part(&cursor, per_token);
        online->masked_target = us_scratch_part(&cursor, masked_target);
        online->masked = us_scratch_part(&cursor, masked);
        online->input = copies_input ? us_scratch_part(&cursor, input) : NULL;
        online->weight = copies_weight ? us_scratch_part(&cursor, weight) : NULL;
        online->logits = us_scratch_part(&cursor, logits);
    }
    return block;
}

KernelStatus us_fused_linear_online_max_sum(const View *views, const void *attributes)
{
    Online online = {
        .views = views,
        .range = attributes,
        .tokens = views[INPUT].shape[0],
        .features = views[INPUT].shape[1],
        .vocabulary = views[WEIGHT].shape[0],
        .type = fused_type(&views[INPUT], &views[WEIGHT]),
    };
    void *block = take_memory(&online);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Matrix input = {0};
    begin_tokens(&online);
    for (int64_t entry = 0; entry < online.vocabulary; entry += VOCABULARY_BLOCK) {
        online.first_entry = entry;
        online.entries = smaller(VOCABULARY_BLOCK, online.vocabulary - entry);
        const Matrix weight = fused_rows(&views[WEIGHT], online.type, entry, online.entries, online.weight);
        for (int64_t row = 0; row < online.tokens; row += ROW_BLOCK) {
            online.first_row = row;
            online.rows = smaller(ROW_BLOCK, online.tokens - row);
            if (entry == 0 || online.tokens > ROW_BLOCK) {
                input = fused_rows(&views[INPUT], online.type, row, online.rows, online.input);
            }
            const Matmul logits = {
                .m = online.rows, .n = online.entries, .k = online.features,
                .a = input, .b = matrix_transposed(weight.data, online.type, weight.row),
                .c = matrix_of_rows(online.logits, DTYPE_FLOAT32, online.entries),
                .compute = DTYPE_FLOAT32, .alpha = {1},
            };
            fused_multiply(&logits, &online.no_memory);
            us_parallel((online.rows + PIECE_ROWS - 1) / PIECE_ROWS, add_rows, &online);
        }
    }
    end_tokens(&online);
    us_scratch_give_back(block);
    return online.no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- loss and softmax from the global maximum and sum ---- */

typedef struct Loss {
    const View *logits_max, *sum_exp, *predicted, *logits, *loss, *softmax;
    int64_t tokens;
} Loss;

static void softmax_row(float *row, int64_t count, float max, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] = exp_float(row[i] - max) * factor;
    }
}

static float read_float(const View *vector, int64_t index)
{
    float value;
    memcpy(&value, (const float *)vector->data + index * vector->strides[0], sizeof value);
    return value;
}

static void loss_piece(void *context, int64_t piece)
{
    const Loss *loss = context;
    float row[VOCABULARY_BLOCK];
    for (int64_t token = piece * PIECE_ROWS; token < smaller(loss->tokens, (piece + 1) * PIECE_ROWS); token++) {
        float sum = read_float(loss->sum_exp, token);
        float value = log_float(sum) - read_float(loss->predicted, token);
        memcpy((float *)loss->loss->data + token * loss->loss->strides[0], &value, sizeof value);
        if (us_view_is_absent(loss->logits) || us_view_is_absent(loss->softmax)) {
            continue;
        }
        const View *logits = loss->logits;
        for (int64_t entry = 0; entry < logits->shape[1]; entry += VOCABULARY_BLOCK) {
            int64_t count = smaller(VOCABULARY_BLOCK, logits->shape[1] - entry);
            us_load_float(row, element_at(logits, token, entry), logits->dtype, logits->strides[1], count);
            softmax_row(row, count, read_float(loss->logits_max, token), 1.0f / sum);
            us_store_float(element_at(loss->softmax, token, entry), loss->softmax->dtype, loss->softmax->strides[1], row,
                           count);
        }
    }
}

KernelStatus us_fused_cross_entropy_loss(const View *views, const void *attributes)
{
    (void)attributes;
    Loss loss = {&views[0], &views[1], &views[2], &views[3], &views[4], &views[5], views[0].shape[0]};
    us_parallel((loss.tokens + PIECE_ROWS - 1) / PIECE_ROWS, loss_piece, &loss);
    return KERNEL_OK;
}
