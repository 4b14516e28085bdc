/* Matrix products and attention on arrays, in blocks of a fixed size: who computes a block, and how many do,
 * changes no bit. */
#include "kernels/arrays/arrays.h"
#include "kernels/arrays/complex.h"
#include "kernels/matmul/matmul.h"
#include "kernels/sizes.h"

#include <math.h>

enum { BLOCK = 256 }; /* rows, and columns */

static int64_t blocks_of(int64_t size)
{
    return (size + BLOCK - 1) / BLOCK;
}

/* ---- product ---- */

static void activate_float(float *values, int64_t count, float highest)
{
    for (int64_t i = 0; i < count; i++) {
        const float positive = values[i] < 0 ? 0 : values[i];
        values[i] = positive > highest ? highest : positive;
    }
}

static void activate_double(double *values, int64_t count, double highest)
{
    for (int64_t i = 0; i < count; i++) {
        const double positive = values[i] < 0 ? 0 : values[i];
        values[i] = positive > highest ? highest : positive;
    }
}

static DType compute_type(DType dtype)
{
    return us_array_is_complex(dtype) ? DTYPE_COMPLEX128
           : dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
}

static void activate(const void *context, const MatmulTile *tile)
{
    const ArrayMatrixProduct *work = context;
    const double highest = work->activation == ARRAY_ACTIVATION_RELU6 ? 6 : INFINITY;
    for (int64_t row = 0; row < tile->rows; row++) {
        if (compute_type(work->dtype) == DTYPE_FLOAT32) {
            activate_float((float *)tile->values + row * tile->row_stride, tile->columns, (float)highest);
        } else {
            activate_double((double *)tile->values + row * tile->row_stride, tile->columns, highest);
        }
    }
}

static Matrix block_of(const ArrayMatrixProduct *work, const void *data, int64_t row, int64_t column, int64_t stride)
{
    const int64_t offset = (row * stride + column) * (int64_t)us_dtype_size(work->dtype);
    return matrix_of_rows((const char *)data + offset, work->dtype, stride);
}

int64_t us_array_matrix_product_pieces(const ArrayMatrixProduct *work)
{
    return blocks_of(work->m) * blocks_of(work->n);
}

void us_array_matrix_product(ArrayMatrixProduct *work, int64_t begin, int64_t end)
{
    const int64_t across = blocks_of(work->n);
    for (; begin < end; begin++) {
        const int64_t row = begin / across * BLOCK, column = begin % across * BLOCK;
        const Matmul block = {
            .m = smaller(work->m - row, BLOCK), .n = smaller(work->n - column, BLOCK), .k = work->k,
            .a = block_of(work, work->a, row, 0, work->k),
            .b = block_of(work, work->b, 0, column, work->n),
            .addend = work->bias != NULL ? block_of(work, work->bias, row, column, work->n) : (Matrix){0},
            .c = block_of(work, work->c, row, column, work->n),
            .compute = compute_type(work->dtype), .alpha = {1}, .beta = {1},
            .finish = work->activation != ARRAY_ACTIVATION_NONE ? activate : NULL, .finish_context = work,
            .undivided = true,
        };
        if (us_matmul(&block) != KERNEL_OK) {
            __atomic_store_n(&work->no_memory, true, __ATOMIC_RELAXED);
        }
    }
}

/* ---- attention ---- */

int64_t us_array_attention_pieces(const ArrayAttention *work)
{
    return work->heads * blocks_of(work->length);
}

void us_array_attention(ArrayAttention *work, int64_t begin, int64_t end)
{
    const int64_t length = work->length, depth = work->depth, blocks = blocks_of(length);
    for (; begin < end; begin++) {
        const int64_t first_row = begin / blocks * length; /* of the head */
        const int64_t row = first_row + begin % blocks * BLOCK;
        const int64_t rows = smaller(first_row + length - row, BLOCK);
        float *scores = work->scores + row * length, *weights = work->weights + row * length;
        const Matmul similarity = {
            .m = rows, .n = length, .k = depth,
            .a = matrix_of_rows(work->q + row * depth, DTYPE_FLOAT32, depth),
            .b = matrix_transposed(work->k + first_row * depth, DTYPE_FLOAT32, depth),
            .c = matrix_of_rows(scores, DTYPE_FLOAT32, length),
            .compute = DTYPE_FLOAT32, .alpha = {1 / sqrt((double)depth)},
        };
        bool done = us_matmul(&similarity) == KERNEL_OK;
        for (int64_t i = 0; i < rows; i++) {
            us_array_softmax_row(scores + i * length, weights + i * length, length);
        }
        const Matmul mixture = {
            .m = rows, .n = depth, .k = length,
            .a = matrix_of_rows(weights, DTYPE_FLOAT32, length),
            .b = matrix_of_rows(work->v + first_row * depth, DTYPE_FLOAT32, depth),
            .c = matrix_of_rows(work->out + row * depth, DTYPE_FLOAT32, depth),
            .compute = DTYPE_FLOAT32, .alpha = {1},
        };
        done = done && us_matmul(&mixture) == KERNEL_OK;
        if (!done) {
            __atomic_store_n(&work->no_memory, true, __ATOMIC_RELAXED);
        }
    }
}
