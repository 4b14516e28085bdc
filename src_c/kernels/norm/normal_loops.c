#include "kernels/norm/normal_loops.h"

#include "kernels/maths/maths.h"
#include "kernels/norm/copy_some.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

US_ALWAYS_INLINE uintptr_t place_of(Ahead ahead, int64_t i)
{
    return (uintptr_t)ahead.from + (uintptr_t)(i * ahead.bytes);
}

US_ALWAYS_INLINE void fetch_read(Ahead ahead, int64_t i)
{
    __builtin_prefetch((const void *)place_of(ahead, i));
}

US_ALWAYS_INLINE void fetch_written(Ahead ahead, int64_t i)
{
    __builtin_prefetch((const void *)place_of(ahead, i), 1);
}

/* Parts come together by halves. */
US_ALWAYS_INLINE double sum_of_parts(const double *parts)
{
    double sums[LANES];
    memcpy(sums, parts, sizeof sums);
#pragma GCC unroll 4
    for (int width = LANES / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
        for (int k = 0; k < width; k++) {
            sums[k] += sums[k + width];
        }
    }
    return sums[0];
}

double us_sum_of_parts(const double *parts)
{
    return sum_of_parts(parts);
}

US_ALWAYS_INLINE float unit_of(float x, LineNumbers line)
{
    return ((x - line.mean) - line.mean_rest) * line.inverse;
}

US_ALWAYS_INLINE float gradient_at(float slope, float unit, Means means)
{
    return (slope - means.slope) - unit * means.product;
}

#include "kernels/norm/normal_types.inc"

#define OF(type) \
    {sum_moments_##type, find_normal_##type, sum_slopes_##type, find_gradient_##type, normal_runs_##type, \
     sum_runs_##type, gradient_runs_##type, normal_columns_##type, gradient_columns_##type}

const NormalLoops *us_normal_loops(DType dtype)
{
    static const NormalLoops loops[] = {OF(float), OF(half), OF(bfloat)};
    switch (dtype) {
    case DTYPE_FLOAT32:
        return &loops[0];
    case DTYPE_FLOAT16:
        return &loops[1];
    case DTYPE_BFLOAT16:
        return &loops[2];
    default:
        return NULL;
    }
}

void us_apply_swish(float *y, int64_t count, float swish)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = y[i] * sigmoid_float(swish * y[i]);
    }
}

/* The slope of v sigmoid(swish v): s (1 + z (1 - s)), z = swish v. */
void us_apply_swish_slope(float *dy, const float *v, int64_t count, float swish)
{
    for (int64_t i = 0; i < count; i++) {
        dy[i] *= silu_slope_float(swish * v[i]);
    }
}

void us_scale_and_add(float *t, const float *added, const float *bias, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        t[i] *= factor;
    }
    for (int64_t i = 0; added != NULL && i < count; i++) {
        t[i] += added[i];
    }
    for (int64_t i = 0; bias != NULL && i < count; i++) {
        t[i] += bias[i];
    }
}
