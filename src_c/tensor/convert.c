#include "tensor/convert.h"

#include "tensor/levels.h"

/* C leaves float -> integer undefined outside the integer's range: saturate instead. */
US_ALWAYS_INLINE int64_t to_signed(double value, int64_t lowest, int64_t highest)
{
    if (value != value) {
        return 0;
    }
    return value <= (double)lowest ? lowest : value >= (double)highest ? highest : (int64_t)value;
}

US_ALWAYS_INLINE uint64_t to_unsigned(double value, uint64_t highest)
{
    if (!(value > 0)) {
        return 0;
    }
    return value >= (double)highest ? highest : (uint64_t)value;
}

#define ELEMENT float
#define NAME(function) function##_float32
#define READ_FLOAT(element) (element)
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) (value)
#define WRITE_DOUBLE(value) ((float)(value))
#include "tensor/convert_array.inc"

#define ELEMENT uint16_t
#define NAME(function) function##_float16
#define READ_FLOAT(element) half_to_float(element)
#define READ_DOUBLE(element) ((double)half_to_float(element))
#define WRITE_FLOAT(value) float_to_half(value)
#define WRITE_DOUBLE(value) float_to_half(double_to_float_odd(value))
#include "tensor/convert_array.inc"

#define ELEMENT uint16_t
#define NAME(function) function##_bfloat16
#define READ_FLOAT(element) bfloat_to_float(element)
#define READ_DOUBLE(element) ((double)bfloat_to_float(element))
#define WRITE_FLOAT(value) float_to_bfloat(value)
#define WRITE_DOUBLE(value) float_to_bfloat(double_to_float_odd(value))
#include "tensor/convert_array.inc"

#define ELEMENT double
#define NAME(function) function##_float64
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) (element)
#define WRITE_FLOAT(value) ((double)(value))
#define WRITE_DOUBLE(value) (value)
#include "tensor/convert_array.inc"

#define ELEMENT int8_t
#define NAME(function) function##_int8
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) ((int8_t)to_signed((double)(value), INT8_MIN, INT8_MAX))
#define WRITE_DOUBLE(value) ((int8_t)to_signed(value, INT8_MIN, INT8_MAX))
#include "tensor/convert_array.inc"

#define ELEMENT int16_t
#define NAME(function) function##_int16
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) ((int16_t)to_signed((double)(value), INT16_MIN, INT16_MAX))
#define WRITE_DOUBLE(value) ((int16_t)to_signed(value, INT16_MIN, INT16_MAX))
#include "tensor/convert_array.inc"

#define ELEMENT int32_t
#define NAME(function) function##_int32
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) ((int32_t)to_signed((double)(value), INT32_MIN, INT32_MAX))
#define WRITE_DOUBLE(value) ((int32_t)to_signed(value, INT32_MIN, INT32_MAX))
#include "tensor/convert_array.inc"

#define ELEMENT int64_t
#define NAME(function) function##_int64
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) to_signed((double)(value), INT64_MIN, INT64_MAX)
#define WRITE_DOUBLE(value) to_signed(value, INT64_MIN, INT64_MAX)
#include "tensor/convert_array.inc"

#define ELEMENT uint8_t
#define NAME(function) function##_uint8
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) ((uint8_t)to_unsigned((double)(value), UINT8_MAX))
#define WRITE_DOUBLE(value) ((uint8_t)to_unsigned(value, UINT8_MAX))
#include "tensor/convert_array.inc"

#define ELEMENT uint16_t
#define NAME(function) function##_uint16
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) ((uint16_t)to_unsigned((double)(value), UINT16_MAX))
#define WRITE_DOUBLE(value) ((uint16_t)to_unsigned(value, UINT16_MAX))
#include "tensor/convert_array.inc"

#define ELEMENT uint32_t
#define NAME(function) function##_uint32
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) ((uint32_t)to_unsigned((double)(value), UINT32_MAX))
#define WRITE_DOUBLE(value) ((uint32_t)to_unsigned(value, UINT32_MAX))
#include "tensor/convert_array.inc"

#define ELEMENT uint64_t
#define NAME(function) function##_uint64
#define READ_FLOAT(element) ((float)(element))
#define READ_DOUBLE(element) ((double)(element))
#define WRITE_FLOAT(value) to_unsigned((double)(value), UINT64_MAX)
#define WRITE_DOUBLE(value) to_unsigned(value, UINT64_MAX)
#include "tensor/convert_array.inc"

#define ELEMENT uint8_t
#define NAME(function) function##_bool
#define READ_FLOAT(element) ((element) != 0 ? 1.0f : 0.0f)
#define READ_DOUBLE(element) ((element) != 0 ? 1.0 : 0.0)
#define WRITE_FLOAT(value) ((value) != 0)
#define WRITE_DOUBLE(value) ((value) != 0)
#include "tensor/convert_array.inc"

#define LOOPS "tensor/convert_lanes.inc"
#include "tensor/instantiate.inc"

typedef struct Conversions {
    void (*load_float)(float *to, const void *from, int64_t stride, int64_t count);
    void (*load_double)(double *to, const void *from, int64_t stride, int64_t count);
    void (*store_float)(void *to, int64_t stride, const float *from, int64_t count);
    void (*store_double)(void *to, int64_t stride, const double *from, int64_t count);
} Conversions;

#define CONVERSIONS_OF(type) {load_float_##type, load_double_##type, store_float_##type, store_double_##type}

/* Complex types have no entry: nobody may pass them. */
static const Conversions conversions[DTYPE_COUNT] = {
    [DTYPE_FLOAT32] = CONVERSIONS_OF(float32),
    [DTYPE_FLOAT16] = CONVERSIONS_OF(float16),
    [DTYPE_BFLOAT16] = CONVERSIONS_OF(bfloat16),
    [DTYPE_FLOAT64] = CONVERSIONS_OF(float64),
    [DTYPE_INT8] = CONVERSIONS_OF(int8),
    [DTYPE_INT16] = CONVERSIONS_OF(int16),
    [DTYPE_INT32] = CONVERSIONS_OF(int32),
    [DTYPE_INT64] = CONVERSIONS_OF(int64),
    [DTYPE_UINT8] = CONVERSIONS_OF(uint8),
    [DTYPE_UINT16] = CONVERSIONS_OF(uint16),
    [DTYPE_UINT32] = CONVERSIONS_OF(uint32),
    [DTYPE_UINT64] = CONVERSIONS_OF(uint64),
    [DTYPE_BOOL] = CONVERSIONS_OF(bool),
};

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

void us_load_float(float *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    if (is_array(dtype, stride, count)) {
        arrays[us_level()][dtype].load(to, from, count);
        return;
    }
    conversions[dtype].load_float(to, from, stride, count);
}

void us_load_double(double *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    conversions[dtype].load_double(to, from, stride, count);
}

void us_store_float(void *to, DType dtype, int64_t stride, const float *from, int64_t count)
{
    if (is_array(dtype, stride, count)) {
        arrays[us_level()][dtype].store(to, from, count);
        return;
    }
    conversions[dtype].store_float(to, stride, from, count);
}

void us_store_double(void *to, DType dtype, int64_t stride, const double *from, int64_t count)
{
    conversions[dtype].store_double(to, stride, from, count);
}
