#include "kernels/loss/fused_rows.h"

#include "kernels/matmul/bf16.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { PIECE_ROWS = 16 };

typedef struct Transfer {
    const View *matrix;
    int64_t first, count;
    DType type; /* of the rows; fp32 where they are stored */
    char *to;
    const float *from;
} Transfer;

static void copy_halves(uint16_t *to, const char *from, int64_t stride, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i, from + i * stride * (int64_t)sizeof *to, sizeof *to);
    }
}

static void load_piece(void *context, int64_t piece)
{
    const Transfer *transfer = context;
    const View *matrix = transfer->matrix;
    int64_t columns = matrix->shape[1];
    for (int64_t row = piece * PIECE_ROWS; row < smaller(transfer->count, (piece + 1) * PIECE_ROWS); row++) {
        void *to = transfer->to + row * columns * (int64_t)us_dtype_size(transfer->type);
        const char *from = element_at(matrix, transfer->first + row, 0);
        if (transfer->type == DTYPE_FLOAT32) {
            us_load_float(to, from, matrix->dtype, matrix->strides[1], columns);
        } else {
            copy_halves(to, from, matrix->strides[1], columns);
        }
    }
}

static void store_piece(void *context, int64_t piece)
{
    const Transfer *transfer = context;
    const View *matrix = transfer->matrix;
    int64_t columns = matrix->shape[1];
    for (int64_t row = piece * PIECE_ROWS; row < smaller(transfer->count, (piece + 1) * PIECE_ROWS); row++) {
        us_store_float(element_at(matrix, transfer->first + row, 0), matrix->dtype, matrix->strides[1],
                       transfer->from + row * columns, columns);
    }
}

DType fused_type(const View *a, const View *b)
{
    return us_bf16_takes(a->dtype, b->dtype) ? a->dtype : DTYPE_FLOAT32;
}

bool fused_is_operand(const View *matrix, DType type)
{
    return matrix->dtype == type && matrix->strides[1] == 1;
}

Matrix fused_rows(const View *matrix, DType type, int64_t first, int64_t count, void *memory)
{
    if (memory == NULL) {
        return matrix_of_rows(element_at(matrix, first, 0), type, matrix->strides[0]);
    }
    Transfer transfer = {.matrix = matrix, .first = first, .count = count, .type = type, .to = memory};
    us_parallel((count + PIECE_ROWS - 1) / PIECE_ROWS, load_piece, &transfer);
    return matrix_of_rows(memory, type, matrix->shape[1]);
}

void fused_multiply(const Matmul *product, bool *no_memory)
{
    if (us_matmul(product) != KERNEL_OK) {
        __atomic_store_n(no_memory, true, __ATOMIC_RELAXED);
    }
}

void fused_store_rows(const View *matrix, int64_t first, int64_t count, const float *from)
{
    Transfer transfer = {.matrix = matrix, .first = first, .count = count, .from = from};
    us_parallel((count + PIECE_ROWS - 1) / PIECE_ROWS, store_piece, &transfer);
}
