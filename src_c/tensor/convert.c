#include "tensor/convert.h"

#include "tensor/convert_arrays.h"
#include "tensor/lane.h"
#include "tensor/levels.h"

#define LOOPS "tensor/convert_lanes.inc"
#include "tensor/instantiate.inc"

/* Unit-stride conversions between the floating types and float or double. */
typedef struct ArrayConversions {
    void (*load)(float *to, const void *from, int64_t count);
    void (*store)(void *to, const float *from, int64_t count);
    void (*load_doubles)(double *to, const void *from, int64_t count);
    void (*store_doubles)(void *to, const double *from, int64_t count);
} ArrayConversions;

#define ARRAYS_OF(type) {load_array_##type, store_array_##type, load_doubles_##type, store_doubles_##type}

static const ArrayConversions arrays[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = ARRAYS_OF(float), [DTYPE_FLOAT16] = ARRAYS_OF(half), [DTYPE_BFLOAT16] = ARRAYS_OF(bfloat),
    [DTYPE_FLOAT64] = ARRAYS_OF(double),
};

static bool is_array(Lane lane, DType dtype, int64_t stride, int64_t count)
{
    const bool is_float = lane == LANE_FLOAT || lane == LANE_DOUBLE;
    return is_float && stride == 1 && count >= LANES && us_dtype_is_float(dtype);
}

bool us_load_array(Lane lane, void *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    if (!is_array(lane, dtype, stride, count)) {
        return false;
    }
    const ArrayConversions *conversions = &arrays[dtype];
    if (lane == LANE_FLOAT) {
        conversions->load(to, from, count);
    } else {
        conversions->load_doubles(to, from, count);
    }
    return true;
}

bool us_store_array(Lane lane, void *to, DType dtype, int64_t stride, const void *from, int64_t count)
{
    if (lane == LANE_FLOAT && dtype == DTYPE_INT8 && stride == 1) {
        us_store_bytes(to, from, count);
        return true;
    }
    if (!is_array(lane, dtype, stride, count)) {
        return false;
    }
    const ArrayConversions *conversions = &arrays[dtype];
    if (lane == LANE_FLOAT) {
        conversions->store(to, from, count);
    } else {
        conversions->store_doubles(to, from, count);
    }
    return true;
}

void us_load_float(float *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    us_lane_load(LANE_FLOAT, to, from, dtype, stride, count);
}

void us_load_double(double *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
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
