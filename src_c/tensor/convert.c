#include "tensor/convert.h"

#include "tensor/convert_arrays.h"
#include "tensor/lane.h"
#include "tensor/levels.h"

#define LOOPS "tensor/convert_lanes.inc"
#include "tensor/instantiate.inc"

/* Unit-stride fp32 conversions of the floating types, by level. */
typedef struct ArrayConversions {
    void (*load)(float *to, const void *from, int64_t count);
    void (*store)(void *to, const float *from, int64_t count);
} ArrayConversions;

#define ARRAYS_OF_LEVEL(level) {                                                                                   \
    [DTYPE_FLOAT32] = {load_array_float_##level, store_array_float_##level},                                       \
    [DTYPE_FLOAT16] = {load_array_half_##level, store_array_half_##level},                                         \
    [DTYPE_BFLOAT16] = {load_array_bfloat_##level, store_array_bfloat_##level},                                    \
    [DTYPE_FLOAT64] = {load_array_double_##level, store_array_double_##level}}

static const ArrayConversions arrays[LEVEL_COUNT][DTYPE_FLOAT64 + 1] = {
    [LEVEL_BASE] = ARRAYS_OF_LEVEL(base),
#ifdef US_HAS_LEVELS
    [LEVEL_V3] = ARRAYS_OF_LEVEL(v3),
    [LEVEL_V4] = ARRAYS_OF_LEVEL(v4),
#endif
};

static bool is_array(DType dtype, int64_t stride, int64_t count)
{
    return stride == 1 && count >= LANES && us_dtype_is_float(dtype);
}

bool us_load_array(float *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    if (is_array(dtype, stride, count)) {
        arrays[us_level()][dtype].load(to, from, count);
        return true;
    }
    return false;
}

bool us_store_array(void *to, DType dtype, int64_t stride, const float *from, int64_t count)
{
    if (is_array(dtype, stride, count)) {
        arrays[us_level()][dtype].store(to, from, count);
        return true;
    }
    return false;
}

void us_load_float(float *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    us_lane_load(LANE_FLOAT, to, from, dtype, stride, count);
}

void us_load_double(double *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    enum { AT_ONCE = 256 };
    if (us_dtype_size(dtype) == 2 && is_array(dtype, stride, count)) { /* by way of float, which is exact */
        float values[AT_ONCE];
        for (int64_t done = 0; done < count; done += AT_ONCE) {
            const int64_t part = count - done < AT_ONCE ? count - done : AT_ONCE;
            us_load_float(values, (const uint16_t *)from + done, dtype, 1, part);
            for (int64_t i = 0; i < part; i++) {
                to[done + i] = (double)values[i];
            }
        }
        return;
    }
    us_lane_load(LANE_DOUBLE, to, from, dtype, stride, count);
}

void us_store_float(void *to, DType dtype, int64_t stride, const float *from, int64_t count)
{
    us_lane_store(LANE_FLOAT, to, dtype, stride, from, count);
}

void us_store_double(void *to, DType dtype, int64_t stride, const double *from, int64_t count)
{
    us_lane_store(LANE_DOUBLE, to, dtype, stride, from, count);
}
