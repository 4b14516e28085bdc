#include "kernels/arrays/arrays.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"

#include <math.h>

enum { TILE = 1024 };

static const void *at(const void *array, DType dtype, int64_t index)
{
    return (const char *)array + index * (int64_t)us_dtype_size(dtype);
}

/* ---- sequence ---- */

void us_array_sequence(double start, double step, void *out, DType dtype, int64_t begin, int64_t end)
{
    double values[TILE];
    for (; begin < end; begin += TILE) {
        const int64_t count = end - begin < TILE ? end - begin : TILE;
        for (int64_t i = 0; i < count; i++) {
            values[i] = start + (double)(begin + i) * step;
        }
        us_store_double((void *)at(out, dtype, begin), dtype, 1, values, count);
    }
}

/* ---- softmax ---- */

/* Partial sums of fixed elements, so that they can be formed side by side. */
enum { PARTS = 8 };

void us_array_softmax_row(const float *scores, float *weights, int64_t count)
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
