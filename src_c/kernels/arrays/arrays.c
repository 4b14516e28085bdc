#include "kernels/arrays/arrays.h"

#include "kernels/arrays/complex.h"
#include "kernels/arrays/elementwise.h"
#include "kernels/maths/maths.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/lane.h"

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

double us_array_element(const void *array, DType dtype, int64_t index)
{
    double value;
    us_load_double(&value, at(array, dtype, index), dtype, 1, 1);
    return value;
}

void us_array_set_element(void *array, DType dtype, int64_t index, double value)
{
    us_store_double((void *)at(array, dtype, index), dtype, 1, &value, 1);
}

/* ---- bias ---- */

/* The biases of elements begin … begin+count-1, one behind the other. */
static void spread_bias(const ArrayBiasAdd *work, int64_t begin, int64_t count, char *tile)
{
    const int64_t size = (int64_t)us_dtype_size(work->dtype);
    for (int64_t i = 0; i < count;) {
        const int64_t run = (begin + i) / work->inner, channel = run % work->channels;
        const int64_t left = work->inner == 1 ? work->channels - channel : work->inner - (begin + i) % work->inner;
        const int64_t length = least(left, count - i);
        us_copy_elements(tile + i * size, 1, at(work->bias, work->dtype, channel), work->inner == 1, size, length);
        i += length;
    }
}

void us_array_bias_add(const ArrayBiasAdd *work, int64_t begin, int64_t end)
{
    double tile[2 * TILE]; /* the largest element */
    const bool pairs = us_array_is_complex(work->dtype); /* whose parts are added apart */
    const DType part = work->dtype == DTYPE_COMPLEX64    ? DTYPE_FLOAT32
                       : work->dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64
                                                         : work->dtype;
    for (; begin < end; begin += TILE) {
        const int64_t count = least(end - begin, TILE);
        spread_bias(work, begin, count, (char *)tile);
        ArrayMap sum = {.kernel = &us_array_add, .dtype = part, .output_dtype = part, .inputs = 2, .outputs = 1};
        sum.input[0] = at(work->x, work->dtype, begin);
        sum.input[1] = tile;
        sum.output[0] = (void *)at(work->out, work->dtype, begin);
        us_array_map(&sum, 0, pairs ? 2 * count : count);
    }
}

/* ---- softmax ---- */

/* Partial sums of fixed elements, so that they can be formed side by side. */
enum { PARTS = 8 };

KERNEL_CLONES void us_array_softmax_row(const float *scores, float *weights, int64_t count)
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
