#include "kernels/fused_rows.h"

#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { PIECE_ROWS = 16 };

typedef struct Transfer {
    const View *matrix;
    int64_t first, count;
    float *to;
    const float *from;
} Transfer;

static void load_piece(void *context, int64_t piece)
{
    const Transfer *transfer = context;
    const View *matrix = transfer->matrix;
    int64_t columns = matrix->shape[1];
    for (int64_t row = piece * PIECE_ROWS; row < least(transfer->count, (piece + 1) * PIECE_ROWS); row++) {
        us_load_float(transfer->to + row * columns, element_at(matrix, transfer->first + row, 0), matrix->dtype,
                      matrix->strides[1], columns);
    }
}

static void store_piece(void *context, int64_t piece)
{
    const Transfer *transfer = context;
    const View *matrix = transfer->matrix;
    int64_t columns = matrix->shape[1];
    for (int64_t row = piece * PIECE_ROWS; row < least(transfer->count, (piece + 1) * PIECE_ROWS); row++) {
        us_store_float(element_at(matrix, transfer->first + row, 0), matrix->dtype, matrix->strides[1],
                       transfer->from + row * columns, columns);
    }
}

void fused_load_rows(const View *matrix, int64_t first, int64_t count, float *to)
{
    Transfer transfer = {.matrix = matrix, .first = first, .count = count, .to = to};
    us_parallel((count + PIECE_ROWS - 1) / PIECE_ROWS, load_piece, &transfer);
}

void fused_store_rows(const View *matrix, int64_t first, int64_t count, const float *from)
{
    Transfer transfer = {.matrix = matrix, .first = first, .count = count, .from = from};
    us_parallel((count + PIECE_ROWS - 1) / PIECE_ROWS, store_piece, &transfer);
}
