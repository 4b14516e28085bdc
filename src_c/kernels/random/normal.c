#include "kernels/random/normal.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"

/* SplitMix64: the number's bits, well mixed. */
static uint64_t mixed(uint64_t number)
{
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* In (0, 1]. */
static double uniform(uint64_t seed, uint64_t number)
{
    return (double)((mixed(mixed(seed) ^ number) >> 11) + 1) * 0x1p-53;
}

/* Two draws come from two uniform numbers. */
static double draw(uint64_t seed, int64_t index)
{
    const uint64_t pair = (uint64_t)index & ~UINT64_C(1);
    const double radius = __builtin_sqrt(-2 * log_double(uniform(seed, pair)));
    const double angle = 6.283185307179586476925 * uniform(seed, pair + 1);
    return radius * (index % 2 == 0 ? cos_double(angle) : sin_double(angle));
}

void us_normal_draws(const NormalDraws *draws, int64_t begin, int64_t end)
{
    const int64_t size = (int64_t)us_dtype_size(draws->dtype);
    for (int64_t i = begin; i < end; i++) {
        const double value = draws->mean + draws->deviation * draw(draws->seed, i);
        us_store_double((char *)draws->out + i * size, draws->dtype, 1, &value, 1);
    }
}
