#include "kernels/random/normal.h"

#include "kernels/maths/maths.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

/* SplitMix64: the number's bits, well mixed. */
US_ALWAYS_INLINE uint64_t mixed(uint64_t number)
{
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* In (0, 1]. */
US_ALWAYS_INLINE double uniform(uint64_t key, uint64_t number)
{
    return (double)(int64_t)((mixed(key ^ number) >> 11) + 1) * 0x1p-53;
}

enum { PAIRS = 256 };

/* Draws 2 * pair and 2 * pair + 1 of every pair: both come from the same two uniform numbers. */
KERNEL_CLONES static void draw_pairs(double *values, uint64_t key, int64_t pair, int64_t count, double mean, double deviation)
{
    double radius[PAIRS], angle[PAIRS];
    for (int64_t k = 0; k < count; k++) {
        const uint64_t number = 2 * (uint64_t)(pair + k);
        radius[k] = uniform(key, number);
        angle[k] = 6.283185307179586476925 * uniform(key, number + 1);
    }
    for (int64_t k = 0; k < count; k++) {
        radius[k] = __builtin_sqrt(-2 * log_double(radius[k]));
    }
    for (int64_t k = 0; k < count; k++) {
        values[2 * k] = mean + deviation * (radius[k] * cos_double(angle[k]));
        values[2 * k + 1] = mean + deviation * (radius[k] * sin_double(angle[k]));
    }
}

void us_normal_draws(const NormalDraws *draws, int64_t begin, int64_t end)
{
    const int64_t size = (int64_t)us_dtype_size(draws->dtype);
    const uint64_t key = mixed(draws->seed);
    for (int64_t pair = begin / 2; 2 * pair < end; pair += PAIRS) {
        double values[2 * PAIRS];
        const int64_t pairs = (end + 1) / 2 - pair < PAIRS ? (end + 1) / 2 - pair : PAIRS;
        const int64_t first = 2 * pair < begin ? begin : 2 * pair, last = 2 * (pair + pairs) < end ? 2 * (pair + pairs) : end;
        draw_pairs(values, key, pair, pairs, draws->mean, draws->deviation);
        us_store_double((char *)draws->out + first * size, draws->dtype, 1, values + (first - 2 * pair), last - first);
    }
}
