/* Of Q only a block exists at a time.
 *
 * In one pass, with blocks of the vocabulary outside and blocks of tokens inside, weightGrad is complete after each
 * block of the vocabulary; inputGrad adds up in fp32 over all of them, in a fixed order: the upper half of each sum
 * lies in inputGrad itself, the lower half in scratch memory. In two passes the second one has tokens outside, needs no
 * such memory, and computes the logits again: a third more work, where memory must be saved.
 *
 * Scratch memory, for blocks of r tokens and e entries:
 *     one pass     4 (r H + 2 e H + r e) + 2 BT H + 20 BT
 *     two passes   4 (r H + e H + max(r, e) H + r e) + 20 BT
 * The largest blocks are taken with which one pass, or else two, stays below BT V 4 / 8; when not even the smallest do
 * (V below about 4 H), one pass and the largest blocks. A thread has a tile of products on its stack besides. */
#include "kernels/loss/fused_cross_entropy.h"

#include "kernels/loss/fused_rows.h"
#include "kernels/maths/maths.h"
#include "kernels/matmul/matmul.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { GRAD, INPUT, WEIGHT, MASK, TARGET, LOGITS_MAX, SUM_EXP, SOFTMAX, INPUT_GRAD, WEIGHT_GRAD };
enum { PIECE_ROWS = 16, TILE = 256, MOST_ENTRIES = 512, NO_TARGET = -1 };

typedef struct Blocks {
    int64_t rows, entries;
    bool twice; /* two passes */
} Blocks;

typedef struct Backward {
    const View *views;
    int64_t tokens, features, vocabulary;
    bool from_softmax;
    Blocks blocks;
    /* Per token. */
    float *grad, *logits_max, *sum_exp;
    int64_t *target; /* NO_TARGET: masked, or outside this part of the vocabulary */
    /* Blocks; `gradient` is of weightGrad, in the second pass of inputGrad. Products take operands of one type. */
    DType type;
    void *input_copy, *weight_copy; /* NULL: they are operands where they lie */
    Matrix input, weight;
    float *q, *gradient;
    /* Halves of the sums of inputGrad; the upper one has strides of its own. */
    uint16_t *high, *low;
    int64_t high_row, high_column;
    /* The block at hand. */
    int64_t first_row, rows, first_entry, entries;
    bool no_memory; /* a product had none */
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
        const int64_t offset = token * target->strides[0];
        const char *address = (const char *)target->data + offset * (int64_t)us_dtype_size(target->dtype);
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

static void logits_to_probabilities(float *row, int64_t count, float max, float sum)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] = exp_float(row[i] - max) / sum;
    }
}

static void scale_to_half(float *row, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] = half_to_float(float_to_half(row[i] * factor));
    }
}

static void scale_to_bfloat(float *row, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] = bfloat_to_float(float_to_bfloat(row[i] * factor));
    }
}

/* Rows of Q as products take them: 16-bit ones lie at the beginning of those of fp32. */
static Matrix q_rows(const Backward *backward, int64_t first)
{
    const int64_t stride = backward->entries * (int64_t)(sizeof(float) / us_dtype_size(backward->type));
    return matrix_of_rows(backward->q + first * backward->entries, backward->type, stride);
}

static Matrix turned(Matrix rows)
{
    return matrix_transposed(rows.data, rows.dtype, rows.row);
}

/* The numbers are of the type already. */
static void narrow(float *row, DType type, int64_t count)
{
    uint16_t halves[MOST_ENTRIES];
    us_store_float(halves, type, 1, row, count);
    memcpy(row, halves, (size_t)count * sizeof *halves);
}

static void finish_q(void *context, int64_t piece)
{
    const Backward *backward = context;
    const View *softmax = &backward->views[SOFTMAX];
    const int64_t first = piece * PIECE_ROWS, end = smaller(backward->rows, first + PIECE_ROWS);
    const int64_t entries = backward->entries;
    for (int64_t i = first; i < end; i++) {
        int64_t token = backward->first_row + i;
        float *row = backward->q + i * entries;
        if (backward->from_softmax) {
            us_load_float(row, element_at(softmax, token, backward->first_entry), softmax->dtype, softmax->strides[1],
                          entries);
        } else {
            logits_to_probabilities(row, entries, backward->logits_max[token], backward->sum_exp[token]);
        }
        int64_t target = backward->target[token] - backward->first_entry;
        if (backward->target[token] != NO_TARGET && target >= 0 && target < entries) {
            row[target] -= 1.0f;
        }
        if (backward->views[INPUT].dtype == DTYPE_FLOAT16) {
            scale_to_half(row, entries, backward->grad[token]);
        } else {
            scale_to_bfloat(row, entries, backward->grad[token]);
        }
        if (backward->type != DTYPE_FLOAT32) {
            narrow(row, backward->type, entries);
        }
    }
}

static void load_weight(Backward *backward, int64_t entry)
{
    backward->first_entry = entry;
    backward->entries = smaller(backward->blocks.entries, backward->vocabulary - entry);
    backward->weight = fused_rows(&backward->views[WEIGHT], backward->type, entry, backward->entries,
                                  backward->weight_copy);
}

static void load_input(Backward *backward, int64_t row)
{
    backward->first_row = row;
    backward->rows = smaller(backward->blocks.rows, backward->tokens - row);
    backward->input = fused_rows(&backward->views[INPUT], backward->type, row, backward->rows,
                                 backward->input_copy);
}

static void make_q(Backward *backward)
{
    if (!backward->from_softmax) {
        const Matmul logits = {
            .m = backward->rows, .n = backward->entries, .k = backward->features,
            .a = backward->input, .b = turned(backward->weight),
            .c = matrix_of_rows(backward->q, DTYPE_FLOAT32, backward->entries),
            .compute = DTYPE_FLOAT32, .alpha = {1},
        };
        fused_multiply(&logits, &backward->no_memory);
    }
    us_parallel((backward->rows + PIECE_ROWS - 1) / PIECE_ROWS, finish_q, backward);
}

/* ---- gradients of a block ---- */

static void add_weight_gradient(Backward *backward)
{
    const Matrix gradient = matrix_of_rows(backward->gradient, DTYPE_FLOAT32, backward->features);
    const Matmul product = {
        .m = backward->entries, .n = backward->features, .k = backward->rows,
        .a = turned(q_rows(backward, 0)), .b = backward->input,
        .c = gradient, .addend = gradient,
        .compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {backward->first_row > 0},
    };
    fused_multiply(&product, &backward->no_memory);
}

US_ALWAYS_INLINE void add_halves(float *values, const uint16_t *high, int64_t stride, const uint16_t *low,
                                 int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] += bits_float((uint32_t)high[i * stride] << 16 | low[i]);
    }
}

US_ALWAYS_INLINE void keep_halves(const float *values, uint16_t *high, int64_t stride, uint16_t *low, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        high[i * stride] = (uint16_t)(float_bits(values[i]) >> 16);
        low[i] = (uint16_t)float_bits(values[i]);
    }
}

static void add_sums(float *values, const uint16_t *high, int64_t stride, const uint16_t *low, int64_t count)
{
    if (stride == 1) {
        add_halves(values, high, 1, low, count);
    } else {
        add_halves(values, high, stride, low, count);
    }
}

static void keep_sums(const float *values, uint16_t *high, int64_t stride, uint16_t *low, int64_t count)
{
    if (stride == 1) {
        keep_halves(values, high, 1, low, count);
    } else {
        keep_halves(values, high, stride, low, count);
    }
}

static void add_input_tile(void *context, int64_t piece)
{
    Backward *backward = context;
    const View *out = &backward->views[INPUT_GRAD];
    const int64_t features = backward->features, across = (features + TILE - 1) / TILE;
    const int64_t row = piece / across * TILE, column = piece % across * TILE;
    const int64_t rows = smaller(TILE, backward->rows - row), columns = smaller(TILE, features - column);
    float tile[TILE * TILE];
    Matrix weight = backward->weight;
    weight.data = (const char *)weight.data + column * (int64_t)us_dtype_size(weight.dtype);
    const Matmul product = {
        .m = rows, .n = columns, .k = backward->entries,
        .a = q_rows(backward, row), .b = weight,
        .c = matrix_of_rows(tile, DTYPE_FLOAT32, TILE),
        .compute = DTYPE_FLOAT32, .alpha = {1},
        .undivided = true,
    };
    fused_multiply(&product, &backward->no_memory);
    const bool begins = backward->first_entry == 0;
    const bool ends = backward->first_entry + backward->entries == backward->vocabulary;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t token = backward->first_row + row + i;
        float *values = tile + i * TILE;
        uint16_t *high = backward->high + token * backward->high_row + column * backward->high_column;
        uint16_t *low = backward->low + token * features + column;
        if (!begins) {
            add_sums(values, high, backward->high_column, low, columns);
        }
        if (ends) {
            us_store_float(element_at(out, token, column), out->dtype, out->strides[1], values, columns);
        } else {
            keep_sums(values, high, backward->high_column, low, columns);
        }
    }
}

static void add_input_gradient(Backward *backward)
{
    int64_t across = (backward->features + TILE - 1) / TILE;
    us_parallel((backward->rows + TILE - 1) / TILE * across, add_input_tile, backward);
}

/* ---- passes ---- */

/* weightGrad, and inputGrad too unless it has a pass of its own. */
static void pass_over_vocabulary(Backward *backward)
{
    for (int64_t entry = 0; entry < backward->vocabulary; entry += backward->blocks.entries) {
        load_weight(backward, entry);
        for (int64_t row = 0; row < backward->tokens; row += backward->blocks.rows) {
            if (entry == 0 || backward->tokens > backward->blocks.rows) { /* a single block stays loaded */
                load_input(backward, row);
            }
            make_q(backward);
            if (!backward->blocks.twice) {
                add_input_gradient(backward);
            }
            add_weight_gradient(backward);
        }
        fused_store_rows(&backward->views[WEIGHT_GRAD], entry, backward->entries, backward->gradient);
    }
}

static void pass_over_tokens(Backward *backward)
{
    for (int64_t row = 0; row < backward->tokens; row += backward->blocks.rows) {
        load_input(backward, row);
        for (int64_t entry = 0; entry < backward->vocabulary; entry += backward->blocks.entries) {
            load_weight(backward, entry);
            make_q(backward);
            const Matrix gradient = matrix_of_rows(backward->gradient, DTYPE_FLOAT32, backward->features);
            const Matmul product = {
                .m = backward->rows, .n = backward->features, .k = backward->entries,
                .a = q_rows(backward, 0), .b = backward->weight,
                .c = gradient, .addend = gradient,
                .compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {entry > 0},
            };
            fused_multiply(&product, &backward->no_memory);
        }
        fused_store_rows(&backward->views[INPUT_GRAD], row, backward->rows, backward->gradient);
    }
}

/* ---- memory ---- */

typedef struct Sizes {
    size_t per_token, target, input, weight, q, gradient, high, low;
} Sizes;

static Sizes sizes_for(Blocks blocks, int64_t tokens, int64_t features, int64_t vocabulary, bool keeps_high)
{
    const int64_t rows = smaller(tokens, blocks.rows), entries = smaller(vocabulary, blocks.entries);
    const int64_t most = blocks.twice && rows > entries ? rows : entries;
    const size_t halves = us_scratch_bytes(us_scratch_count(tokens, features), sizeof(uint16_t));
    return (Sizes){
        .per_token = us_scratch_bytes(tokens, sizeof(float)),
        .target = us_scratch_bytes(tokens, sizeof(int64_t)),
        .input = us_scratch_bytes(us_scratch_count(rows, features), sizeof(float)),
        .weight = us_scratch_bytes(us_scratch_count(entries, features), sizeof(float)),
        .q = us_scratch_bytes(rows * entries, sizeof(float)),
        .gradient = us_scratch_bytes(us_scratch_count(most, features), sizeof(float)),
        .high = keeps_high && !blocks.twice ? halves : 0,
        .low = blocks.twice ? 0 : halves,
    };
}

static size_t sum_of(const Sizes *sizes)
{
    return 3 * sizes->per_token + sizes->target + sizes->input + sizes->weight + sizes->q + sizes->gradient +
           sizes->high + sizes->low;
}

/* 512 rows are two tiles of the matrix product; 384 would be one and a half, and leave a thread idle. */
static const Blocks block_choices[] = {
    {1024, MOST_ENTRIES, false}, {512, 512, false}, {512, 256, false}, {512, 192, false}, {256, 256, false}, {256, 128, false},
    {1024, 512, true},  {512, 256, true},  {256, 256, true},  {128, 128, true},
};

static Blocks blocks_for(int64_t tokens, int64_t features, int64_t vocabulary)
{
    const double limit = (double)tokens * (double)vocabulary * 4 / 8;
    for (size_t i = 0; i < sizeof block_choices / sizeof block_choices[0]; i++) {
        Sizes sizes = sizes_for(block_choices[i], tokens, features, vocabulary, false);
        if ((double)sum_of(&sizes) < limit) {
            return block_choices[i];
        }
    }
    return block_choices[0];
}

size_t us_fused_cross_entropy_backward_scratch(int64_t tokens, int64_t features, int64_t vocabulary)
{
    Sizes sizes = sizes_for(blocks_for(tokens, features, vocabulary), tokens, features, vocabulary, false);
    return sum_of(&sizes);
}

static bool share_memory(const View *a, const View *b)
{
    int64_t low[2], high[2];
    if (us_view_is_absent(b) || !us_view_extent(a, &low[0], &high[0]) || !us_view_extent(b, &low[1], &high[1])) {
        return false;
    }
    const int64_t size[2] = {(int64_t)us_dtype_size(a->dtype), (int64_t)us_dtype_size(b->dtype)};
    const char *const data[2] = {a->data, b->data};
    return data[0] + low[0] * size[0] < data[1] + (high[1] + 1) * size[1] &&
           data[1] + low[1] * size[1] < data[0] + (high[0] + 1) * size[0];
}

/* Whether an output lies where something is read that is still needed when it is written, or its elements lie on each
 * other. Then no output holds anything on the way, and one pass reads what it needs before it writes. */
static bool works_in_place(const View *views)
{
    static const int inputs[] = {INPUT, WEIGHT, SOFTMAX, WEIGHT_GRAD};
    const View *input_grad = &views[INPUT_GRAD];
    bool shared = input_grad->strides[0] == 0 || input_grad->strides[1] == 0;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        const View *input = &views[inputs[i]];
        shared = shared || share_memory(input_grad, input);
        shared = shared || (inputs[i] != WEIGHT_GRAD && share_memory(&views[WEIGHT_GRAD], input));
    }
    return shared;
}

static void *take_memory(Backward *backward)
{
    const View *out = &backward->views[INPUT_GRAD];
    const bool keeps_high = works_in_place(backward->views);
    backward->blocks = keeps_high ? block_choices[0]
                                  : blocks_for(backward->tokens, backward->features, backward->vocabulary);
    Sizes sizes = sizes_for(backward->blocks, backward->tokens, backward->features, backward->vocabulary, keeps_high);
    /* What is read where it lies must not be written before the end. */
    const bool copies_input = keeps_high || !fused_is_operand(&backward->views[INPUT], backward->type);
    const bool copies_weight = keeps_high || !fused_is_operand(&backward->views[WEIGHT], backward->type);
    sizes.input = copies_input ? sizes.input : 0;
    sizes.weight = copies_weight ? sizes.weight : 0;
    char *block = us_scratch_take(sum_of(&sizes));
    if (block == NULL) {
        return NULL;
    }
    char *cursor = block;
    backward->grad = us_scratch_part(&cursor, sizes.per_token);
    backward->logits_max = us_scratch_part(&cursor, sizes.per_token);
    backward->sum_exp = us_scratch_part(&cursor, sizes.per_token);
    backward->target = us_scratch_part(&cursor, sizes.target);
    backward->input_copy = copies_input ? us_scratch_part(&cursor, sizes.input) : NULL;
    backward->weight_copy = copies_weight ? us_scratch_part(&cursor, sizes.weight) : NULL;
    backward->q = us_scratch_part(&cursor, sizes.q);
    backward->gradient = us_scratch_part(&cursor, sizes.gradient);
    backward->low = us_scratch_part(&cursor, sizes.low);
    backward->high = keeps_high ? us_scratch_part(&cursor, sizes.high) : out->data;
    backward->high_row = keeps_high ? backward->features : out->strides[0];
    backward->high_column = keeps_high ? 1 : out->strides[1];
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
        .type = fused_type(&views[INPUT], &views[WEIGHT]),
    };
    void *block = take_memory(&backward);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    load_tokens(&backward);
    pass_over_vocabulary(&backward);
    if (backward.blocks.twice) {
        pass_over_tokens(&backward);
    }
    us_scratch_give_back(block);
    return backward.no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}
