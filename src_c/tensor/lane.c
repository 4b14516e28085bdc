#include "tensor/lane.h"

#include "tensor/convert.h"
#include "tensor/convert_arrays.h"
#include "tensor/integers.h"

#include <complex.h>

/* Values of the lanes as scalars: convert_<from>_<to>. C leaves float -> integer undefined outside the integer's range:
 * saturate instead. */
US_ALWAYS_INLINE int64_t saturate_signed(double value, int64_t lowest, int64_t highest)
{
    if (value != value) {
        return 0;
    }
    return value <= (double)lowest ? lowest : value >= (double)highest ? highest : (int64_t)value;
}

/* The same of a range inside int32, of which float has both ends where VALUE is float: without branches, so loops vectorise. */
#define SATURATE_NARROW(VALUE) \
    US_ALWAYS_INLINE int32_t saturate_narrow_##VALUE(VALUE value, VALUE lowest, VALUE highest) \
    { \
        value = value == value ? value : 0; \
        value = value < lowest ? lowest : value; \
        return (int32_t)(value > highest ? highest : value); \
    }
SATURATE_NARROW(float)
SATURATE_NARROW(double)

/* The largest int32 is no float: 2^31 is. */
US_ALWAYS_INLINE int32_t saturate_int32_float(float value)
{
    const float last = 0x1.fffffep30f, known = value == value ? value : 0, above = known < -0x1p31f ? -0x1p31f : known;
    const int32_t whole = (int32_t)(above > last ? last : above);
    return above > last ? INT32_MAX : whole;
}

US_ALWAYS_INLINE uint64_t saturate_unsigned(double value, uint64_t highest)
{
    if (!(value > 0)) {
        return 0;
    }
    return value >= (double)highest ? highest : (uint64_t)value;
}

#define LANE_JOIN(direction, dtype, lane) direction##_##dtype##_##lane
#define LANE_NAME(direction, dtype, lane) LANE_JOIN(direction, dtype, lane)

/* ---- one element type after the other: see lane_array.inc ---- */

#define DTYPE int8
#define ELEMENT int8_t
#define NARROW_RANGE INT8_MIN, INT8_MAX
#include "tensor/lane_array.inc"

#define DTYPE int16
#define ELEMENT int16_t
#define NARROW_RANGE INT16_MIN, INT16_MAX
#include "tensor/lane_array.inc"

#define DTYPE int32
#define ELEMENT int32_t
#define NARROW_RANGE INT32_MIN, INT32_MAX
#define WRITE_FLOAT saturate_int32_float
#include "tensor/lane_array.inc"

#define DTYPE int64
#define ELEMENT int64_t
#define SIGNED_RANGE INT64_MIN, INT64_MAX
#include "tensor/lane_array.inc"

#define DTYPE uint8
#define ELEMENT uint8_t
#define NARROW_RANGE 0, UINT8_MAX
#include "tensor/lane_array.inc"

#define DTYPE uint16
#define ELEMENT uint16_t
#define NARROW_RANGE 0, UINT16_MAX
#include "tensor/lane_array.inc"

#define DTYPE uint32
#define ELEMENT uint32_t
#define UNSIGNED_RANGE UINT32_MAX
#include "tensor/lane_array.inc"

#define DTYPE uint64
#define ELEMENT uint64_t
#define UNSIGNED_RANGE UINT64_MAX
#include "tensor/lane_array.inc"

#define READ_BOOL(element) ((element) != 0)
#define WRITE_BOOL(value) ((value) != 0)
#define DTYPE bool
#define ELEMENT uint8_t
#define READ READ_BOOL
#define WRITE_INTEGER WRITE_BOOL
#define WRITE_FLOAT WRITE_BOOL
#define WRITE_DOUBLE WRITE_BOOL
#define WRITE_COMPLEX WRITE_BOOL
#include "tensor/lane_array.inc"

#define WRITE_BFLOAT(value) float_to_bfloat((float)(value))
#define DTYPE bfloat16
#define ELEMENT uint16_t
#define READ bfloat_to_float
#define READS_FLOAT
#define WRITE_INTEGER WRITE_BFLOAT
#define WRITE_FLOAT float_to_bfloat
#define WRITE_DOUBLE(value) float_to_bfloat(double_to_float_odd(value))
#include "tensor/lane_array.inc"

#define WRITE_HALF(value) float_to_half((float)(value))
#define DTYPE float16
#define ELEMENT uint16_t
#define READ half_to_float
#define READS_FLOAT
#define WRITE_INTEGER WRITE_HALF
#define WRITE_FLOAT float_to_half
#define WRITE_DOUBLE(value) float_to_half(double_to_float_odd(value))
#include "tensor/lane_array.inc"

#define CAST_FLOAT(value) ((float)(value))
#define DTYPE float32
#define ELEMENT float
#define READS_FLOAT
#define WRITE_INTEGER CAST_FLOAT
#define WRITE_FLOAT CAST_FLOAT
#define WRITE_DOUBLE CAST_FLOAT
#include "tensor/lane_array.inc"

#define CAST_DOUBLE(value) ((double)(value))
#define DTYPE float64
#define ELEMENT double
#define READS_FLOAT
#define WRITE_INTEGER CAST_DOUBLE
#define WRITE_FLOAT CAST_DOUBLE
#define WRITE_DOUBLE CAST_DOUBLE
#include "tensor/lane_array.inc"

#define CAST_COMPLEX64(value) ((float complex)(value))
#define DTYPE complex64
#define ELEMENT float complex
#define READS_COMPLEX
#define WRITE_INTEGER CAST_COMPLEX64
#define WRITE_FLOAT CAST_COMPLEX64
#define WRITE_DOUBLE CAST_COMPLEX64
#define WRITE_COMPLEX CAST_COMPLEX64
#include "tensor/lane_array.inc"

#define CAST_COMPLEX128(value) ((double complex)(value))
#define DTYPE complex128
#define ELEMENT double complex
#define READS_COMPLEX
#define WRITE_INTEGER CAST_COMPLEX128
#define WRITE_FLOAT CAST_COMPLEX128
#define WRITE_DOUBLE CAST_COMPLEX128
#define WRITE_COMPLEX CAST_COMPLEX128
#include "tensor/lane_array.inc"

/* ---- tables ---- */

typedef void LoadArray(void *to, const void *from, int64_t stride, int64_t count);
typedef void StoreArray(void *to, int64_t stride, const void *from, int64_t count);

typedef struct Conversions {
    Lane home;
    LoadArray *load[LANE_COUNT];
    StoreArray *store[LANE_COUNT];
} Conversions;

#define LANES_OF(direction, dtype) \
    {direction##_##dtype##_float, direction##_##dtype##_double, direction##_##dtype##_int32, \
     direction##_##dtype##_int64, direction##_##dtype##_uint64, direction##_##dtype##_complex64, \
     direction##_##dtype##_complex128}
#define CONVERSIONS_OF(dtype, home) {home, LANES_OF(load, dtype), LANES_OF(store, dtype)}

static const Conversions conversions[DTYPE_COUNT] = {
    [DTYPE_FLOAT32] = CONVERSIONS_OF(float32, LANE_FLOAT),
    [DTYPE_FLOAT16] = CONVERSIONS_OF(float16, LANE_FLOAT),
    [DTYPE_BFLOAT16] = CONVERSIONS_OF(bfloat16, LANE_FLOAT),
    [DTYPE_FLOAT64] = CONVERSIONS_OF(float64, LANE_DOUBLE),
    [DTYPE_INT8] = CONVERSIONS_OF(int8, LANE_INT32),
    [DTYPE_INT16] = CONVERSIONS_OF(int16, LANE_INT32),
    [DTYPE_INT32] = CONVERSIONS_OF(int32, LANE_INT32),
    [DTYPE_INT64] = CONVERSIONS_OF(int64, LANE_INT64),
    [DTYPE_UINT8] = CONVERSIONS_OF(uint8, LANE_INT32),
    [DTYPE_UINT16] = CONVERSIONS_OF(uint16, LANE_INT32),
    [DTYPE_UINT32] = CONVERSIONS_OF(uint32, LANE_INT64),
    [DTYPE_UINT64] = CONVERSIONS_OF(uint64, LANE_UINT64),
    [DTYPE_BOOL] = CONVERSIONS_OF(bool, LANE_INT32),
    [DTYPE_COMPLEX64] = CONVERSIONS_OF(complex64, LANE_COMPLEX64),
    [DTYPE_COMPLEX128] = CONVERSIONS_OF(complex128, LANE_COMPLEX128),
};

Lane us_lane_of(DType dtype)
{
    return conversions[dtype].home;
}

DType us_lane_dtype(Lane lane)
{
    static const DType dtypes[] = {
        [LANE_FLOAT] = DTYPE_FLOAT32,   [LANE_DOUBLE] = DTYPE_FLOAT64, [LANE_INT32] = DTYPE_INT32,
        [LANE_INT64] = DTYPE_INT64,     [LANE_UINT64] = DTYPE_UINT64,  [LANE_COMPLEX64] = DTYPE_COMPLEX64,
        [LANE_COMPLEX128] = DTYPE_COMPLEX128,
    };
    return dtypes[lane];
}

DType us_wide_dtype(DType dtype)
{
    static const DType wide[] = {
        [LANE_FLOAT] = DTYPE_FLOAT64,        [LANE_DOUBLE] = DTYPE_FLOAT64,       [LANE_INT32] = DTYPE_INT64,
        [LANE_INT64] = DTYPE_INT64,          [LANE_UINT64] = DTYPE_UINT64,        [LANE_COMPLEX64] = DTYPE_COMPLEX128,
        [LANE_COMPLEX128] = DTYPE_COMPLEX128,
    };
    return wide[us_lane_of(dtype)];
}

void us_lane_load(Lane lane, void *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    if (!us_load_array(lane, to, from, dtype, stride, count)) {
        conversions[dtype].load[lane](to, from, stride, count);
    }
}

void us_lane_store(Lane lane, void *to, DType dtype, int64_t stride, const void *from, int64_t count)
{
    if (!us_store_array(lane, to, dtype, stride, from, count)) {
        conversions[dtype].store[lane](to, stride, from, count);
    }
}

void us_convert(void *to, DType to_dtype, const void *from, DType from_dtype, int64_t count)
{
    enum { AT_ONCE = 256, WIDEST = 16 };
    const Lane lane = us_lane_of(from_dtype);
    const int64_t to_size = (int64_t)us_dtype_size(to_dtype), from_size = (int64_t)us_dtype_size(from_dtype);
    const bool from_float = from_dtype == DTYPE_FLOAT32 || from_dtype == DTYPE_FLOAT64;
    if (to_dtype == from_dtype) {
        memcpy(to, from, (size_t)(count * to_size));
    } else if (us_convert_integers(to, to_dtype, from, from_dtype, count)) {
        return;
    } else if (from_float && to_dtype == DTYPE_INT32) { /* storing is the way that takes vectors */
        us_lane_store(lane, to, to_dtype, 1, from, count);
    } else if (to_dtype == us_lane_dtype(us_lane_of(to_dtype))) {
        us_lane_load(us_lane_of(to_dtype), to, from, from_dtype, 1, count);
    } else if (from_dtype == us_lane_dtype(lane)) {
        us_lane_store(lane, to, to_dtype, 1, from, count);
    } else {
        for (int64_t done = 0; done < count; done += AT_ONCE) {
            _Alignas(64) char values[AT_ONCE * WIDEST];
            const int64_t part = count - done < AT_ONCE ? count - done : AT_ONCE;
            us_lane_load(lane, values, (const char *)from + done * from_size, from_dtype, 1, part);
            us_lane_store(lane, (char *)to + done * to_size, to_dtype, 1, values, part);
        }
    }
}

/* One value to neighbours apart: such loops vectorise. Complex elements may lie at multiples of their parts' size. */
#define COPY_ELEMENTS(type) \
    if (from_stride == 0 && to_stride == 1 && count > 0) { \
        type value; \
        memcpy(&value, from, sizeof value); \
        for (int64_t i = 0; i < count; i++) { \
            memcpy((char *)to + i * (int64_t)sizeof value, &value, sizeof value); \
        } \
        return; \
    } \
    for (int64_t i = 0; i < count; i++) { \
        memcpy((char *)to + i * to_stride * (int64_t)sizeof(type), \
               (const char *)from + i * from_stride * (int64_t)sizeof(type), sizeof(type)); \
    } \
    return;

void us_copy_elements(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t size, int64_t count)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)(count * size));
        return;
    }
    switch (size) {
    case 1: COPY_ELEMENTS(uint8_t)
    case 2: COPY_ELEMENTS(uint16_t)
    case 4: COPY_ELEMENTS(uint32_t)
    case 8: COPY_ELEMENTS(uint64_t)
    default:
        for (int64_t i = 0; i < count; i++) {
            memcpy((char *)to + i * to_stride * size, (const char *)from + i * from_stride * size, (size_t)size);
        }
    }
}

void us_number_store(void *to, DType dtype, Number number)
{
    const Lane lane = us_lane_of(dtype);
    const bool whole = lane == LANE_INT32 || lane == LANE_INT64 || lane == LANE_UINT64;
    const DType wide = whole ? DTYPE_INT64 : lane == LANE_FLOAT || lane == LANE_DOUBLE ? DTYPE_FLOAT64 : DTYPE_COMPLEX128;
    const double parts[] = {number.real, number.imaginary};
    us_convert(to, dtype, whole ? (const void *)&number.integer : parts, wide, 1);
}
