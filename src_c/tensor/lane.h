/* Lanes: the few types that kernels compute in, and conversion between them and every element type.
 *
 * Integers become integers modulo 2^n, floating types become integers by truncation and saturation (NaN gives 0), all
 * real types become complex with imaginary part 0, complex types become real by dropping it, and anything but zero (of
 * complex: either part) is true. Floating types round once, to nearest even. */
#ifndef UNDERSTUDY_LANE_H
#define UNDERSTUDY_LANE_H

#include "tensor/number.h"
#include "tensor/view.h"

typedef enum Lane {
    LANE_FLOAT,  /* float16, bfloat16, float32 */
    LANE_DOUBLE, /* float64 */
    LANE_INT32,  /* bool, int8, uint8, int16, uint16, int32 */
    LANE_INT64,  /* uint32, int64 */
    LANE_UINT64,
    LANE_COMPLEX64,
    LANE_COMPLEX128,
    LANE_COUNT
} Lane;

/* In tables of code for every lane, after the lanes: code that reads and writes 16-bit floats itself, and code that computes in
 * an integer type narrower than its lane. */
enum { FUSED_HALF = LANE_COUNT, FUSED_BFLOAT, NARROW_INT8, NARROW_UINT8, NARROW_INT16, NARROW_BOOL, LANE_BODIES };

/* The code that an element type has of its own; 0: none but that of its lane. */
static inline int us_own_body(DType dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT16: return FUSED_HALF;
    case DTYPE_BFLOAT16: return FUSED_BFLOAT;
    case DTYPE_INT8: return NARROW_INT8;
    case DTYPE_UINT8: return NARROW_UINT8;
    case DTYPE_INT16: return NARROW_INT16;
    case DTYPE_BOOL: return NARROW_BOOL;
    default: return 0;
    }
}

/* The lane that holds every value of an element type. */
Lane us_lane_of(DType dtype);

/* The element type that is a lane as it is: DTYPE_FLOAT32 for LANE_FLOAT. */
DType us_lane_dtype(Lane lane);

/* The element type that sums of elements of a type are computed in: float64, int64, uint64 or complex128. */
DType us_wide_dtype(DType dtype);

/* Reads `count` elements of `dtype`, `stride` elements apart, into unit-stride elements of a lane, and back. */
void us_lane_load(Lane lane, void *to, const void *from, DType dtype, int64_t stride, int64_t count);
void us_lane_store(Lane lane, void *to, DType dtype, int64_t stride, const void *from, int64_t count);

/* A number as one element of a type. */
void us_number_store(void *to, DType dtype, Number number);

/* Elements of `size` bytes from places to places, strides apart; stride 0 of `from` repeats one. */
void us_copy_elements(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t size, int64_t count);

/* Neighbours of one type to neighbours of another one, elsewhere. */
void us_convert(void *to, DType to_dtype, const void *from, DType from_dtype, int64_t count);

#endif
