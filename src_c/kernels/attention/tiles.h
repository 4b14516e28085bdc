/* Tiles of scores, and what attention and its gradients do with them. */
#ifndef UNDERSTUDY_ATTENTION_TILES_H
#define UNDERSTUDY_ATTENTION_TILES_H

#include "kernels/attention/attention.h"
#include "kernels/matmul/matmul.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"

#include <math.h>

/* Rows and keys of a tile; sums of a row. */
enum { ROWS = 128, KEYS = 128, PARTS = 16 };

/* One head of one sequence. */
typedef struct Head {
    const Attention *attention;
    const View *views;
    const AttentionSequence *sequence;
    int64_t batch, head, key_head;
} Head;

typedef struct Tile {
    int64_t row, rows, key, keys; /* within the sequence */
} Tile;

typedef struct Work {
    const Attention *attention;
    const View *views;
    int64_t blocks; /* forwards: of rows; backwards: ranges of keys. Of the longest sequence */
    int64_t range_keys;
    float *partial; /* backwards: gradients of the query, for every sequence, head and range of keys */
    bool out_of_memory;
} Work;

US_ALWAYS_INLINE float sum_of_parts(const float *sums)
{
    float total = 0;
    for (int k = 0; k < PARTS; k++) {
        total += sums[k];
    }
    return total;
}

US_ALWAYS_INLINE float inner_product(const float *a, const float *b, int64_t count)
{
    float parts[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            parts[k] += a[i + k] * b[i + k];
        }
    }
    for (int k = 0; i < count; i++, k++) {
        parts[k] += a[i] * b[i];
    }
    return sum_of_parts(parts);
}

static inline Matrix float_rows(const float *rows, int64_t width)
{
    return matrix_of_rows(rows, DTYPE_FLOAT32, width);
}

static inline Matrix transposed(Matrix matrix)
{
    const int64_t row = matrix.row;
    matrix.row = matrix.column;
    matrix.column = row;
    return matrix;
}

/* t = t * scale + shift, and the largest of them. */
float attention_scale(float *t, int64_t count, float scale, const float *shift, float shift_scale);
/* t = e^(t - maximum), and their sum. */
float attention_exponentials(float *t, int64_t count, float maximum);
void attention_multiply(float *x, int64_t count, float factor);
void attention_add(float *to, const float *from, int64_t count);
void attention_fill_zeros(const View *view);
Head attention_head_of(const Attention *attention, const View *views, int64_t batch, int64_t head);
int64_t attention_page_at(const View *pages, int64_t sequence, int64_t number);
/* Element (row, 0) of the head. */
void *attention_place(const Head *head, int operand, int64_t row);
/* Rows from `row` on as a matrix. */
Matrix attention_matrix_at(const Head *head, int operand, int64_t row);
/* Arrays of so many rows and columns in one block of scratch memory; NULL: no memory. */
void *attention_take_arrays(int count, float **const *arrays, const int64_t (*sides)[2]);
/* c = a b, or c += a b; without strides its rows follow each other. */
KernelStatus attention_multiply_into(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, Matrix c, bool adds);
KernelStatus attention_multiply_matrices(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, float *c, bool adds);
void attention_load_row(const Head *head, int operand, int64_t row, int64_t first, int64_t count, float *to);
void attention_store_rows(const Head *head, int operand, int64_t row, int64_t rows, int64_t count, const float *from);
bool attention_is_given(const Head *head, int operand);
/* Whether any score of the tile is kept. */
bool attention_is_seen(const Head *head, Tile tile);
/* Weights that the dropout's mask does not keep become 0, the others grow. */
void attention_drop_row(const Head *head, Tile tile, int64_t i, float *weights);
float attention_one_number(const Head *head, int operand);
/* q k^T of a tile. */
KernelStatus attention_find_scores(const Head *head, Tile tile, Matrix keys, float *scores);
/* A row of scores, scaled, shifted and masked; the largest. */
float attention_finish_scores(const Head *head, Tile tile, int64_t i, float *scores);
int64_t attention_longest(const Attention *attention, bool of_keys);
void attention_note(Work *work, KernelStatus status);

#endif
