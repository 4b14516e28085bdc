#include "kernels/ft_arrays.h"

#include "kernels/maths/maths.h"
#include "kernels/ft_complex.h"
#include "kernels/ft_elementwise.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

#include <math.h>

enum { TILE = TILE_ELEMENTS };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const void *at(const void *array, DType dtype, int64_t index)
{
    return (const char *)array + index * (int64_t)us_dtype_size(dtype);
}

double us_ft_element(const void *array, DType dtype, int64_t index)
{
    double value;
    us_load_double(&value, at(array, dtype, index), dtype, 1, 1);
    return value;
}

void us_ft_set_element(void *array, DType dtype, int64_t index, double value)
{
    us_store_double((void *)at(array, dtype, index), dtype, 1, &value, 1);
}

/* ---- bias ---- */

/* The biases of elements begin … begin+count-1, one behind the other. */
static void spread_bias(const FtBiasAdd *work, int64_t begin, int64_t count, char *tile)
{
    const size_t size = us_dtype_size(work->dtype);
    int64_t channel = begin / work->inner % work->channels, left = work->inner - begin % work->inner;
    for (int64_t i = 0; i < count; i++) {
        memcpy(tile + (size_t)i * size, (const char *)work->bias + (size_t)channel * size, size);
        if (--left == 0) {
            left = work->inner;
            channel = channel + 1 == work->channels ? 0 : channel + 1;
        }
    }
}

void us_ft_bias_add(const FtBiasAdd *work, int64_t begin, int64_t end)
{
    double tile[2 * TILE]; /* the largest element */
    const bool pairs = us_ft_is_complex(work->dtype); /* whose parts are added apart */
    const DType part = work->dtype == DTYPE_COMPLEX64    ? DTYPE_FLOAT32
                       : work->dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64
                                                         : work->dtype;
    for (; begin < end; begin += TILE) {
        const int64_t count = least(end - begin, TILE);
        spread_bias(work, begin, count, (char *)tile);
        FtMap sum = {.kernel = &us_ft_add, .dtype = part, .output_dtype = part, .inputs = 2, .outputs = 1};
        sum.input[0] = at(work->x, work->dtype, begin);
        sum.input[1] = tile;
        sum.output[0] = (void *)at(work->out, work->dtype, begin);
        us_ft_map(&sum, 0, pairs ? 2 * count : count);
    }
}

KERNEL_CLONES static void accumulate(double *sums, const double *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += row[i];
    }
}

void us_ft_column_sums(const FtColumnSums *work, int64_t begin, int64_t end)
{
    double sums[TILE], row[TILE];
    for (; begin < end; begin += TILE) {
        const int64_t count = least(end - begin, TILE);
        memset(sums, 0, sizeof sums);
        for (int64_t r = 0; r < work->rows; r++) {
            us_load_double(row, at(work->x, work->dtype, r * work->columns + begin), work->dtype, 1, count);
            accumulate(sums, row, count);
        }
        us_store_double((void *)at(work->out, work->dtype, begin), work->dtype, 1, sums, count);
    }
}

/* ---- maximum, minimum ---- */

typedef struct Position {
    int64_t index[FT_RANK_LIMIT];
    int64_t offsets[3]; /* into the inputs and dy */
} Position;

/* Moves to the next index along the axes that `sizes` counts; false after the last. */
static bool advance(const FtExtremumGrad *work, const int64_t *dy_strides, const int64_t *sizes, Position *position)
{
    for (int axis = work->rank - 1; axis >= 0; axis--) {
        const int64_t steps[3] = {work->strides[0][axis], work->strides[1][axis], dy_strides[axis]};
        const bool next = ++position->index[axis] < sizes[axis];
        for (int k = 0; k < 3; k++) {
            position->offsets[k] += next ? steps[k] : -(sizes[axis] - 1) * steps[k];
        }
        if (next) {
            return true;
        }
        position->index[axis] = 0;
    }
    return false;
}

static double chosen_gradient(const FtExtremumGrad *work, const Position *position)
{
    const double first = us_ft_element(work->inputs[0], work->dtype, position->offsets[0]);
    const double second = us_ft_element(work->inputs[1], work->dtype, position->offsets[1]);
    const int chosen = (work->minimum ? first < second : first > second) ? 0 : 1;
    return chosen == work->which ? us_ft_element(work->dy, work->dtype, position->offsets[2]) : 0;
}

void us_ft_extremum_grad(const FtExtremumGrad *work, int64_t begin, int64_t end)
{
    int64_t dy_strides[FT_RANK_LIMIT], summed[FT_RANK_LIMIT];
    us_strides_contiguous(work->rank, work->shape, dy_strides);
    bool empty = false;
    for (int axis = 0; axis < work->rank; axis++) {
        summed[axis] = work->own[axis] == 1 ? work->shape[axis] : 1;
        empty = empty || work->shape[axis] == 0;
    }
    for (; begin < end; begin++) {
        Position position = {{0}, {0}};
        int64_t rest = begin;
        for (int axis = work->rank - 1; axis >= 0; axis--) {
            const int64_t index = rest % work->own[axis];
            rest /= work->own[axis];
            position.offsets[0] += index * work->strides[0][axis];
            position.offsets[1] += index * work->strides[1][axis];
            position.offsets[2] += index * dy_strides[axis];
        }
        double sum = 0;
        if (!empty) {
            do {
                sum += chosen_gradient(work, &position);
            } while (advance(work, dy_strides, summed, &position));
        }
        us_ft_set_element(work->dx, work->dtype, begin, sum);
    }
}

/* ---- softmax ---- */

/* Partial sums of fixed elements, so that they can be formed side by side. */
enum { PARTS = 8 };

KERNEL_CLONES void us_ft_softmax_row(const float *scores, float *weights, int64_t count)
{
    float highest = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        highest = scores[i] > highest || scores[i] != scores[i] ? scores[i] : highest;
    }
    for (int64_t i = 0; i < count; i++) {
        weights[i] = exp_float(scores[i] - highest);
    }
    double parts[PARTS] = {0}, sum = 0;
    int64_t done = 0;
    for (; done + PARTS <= count; done += PARTS) {
        for (int part = 0; part < PARTS; part++) {
            parts[part] += (double)weights[done + part];
        }
    }
    for (int part = 0; part < PARTS; part++) {
        sum += parts[part];
    }
    for (; done < count; done++) {
        sum += (double)weights[done];
    }
    for (int64_t i = 0; i < count; i++) {
        weights[i] = (float)((double)weights[i] / sum);
    }
}
