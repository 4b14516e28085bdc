#include "kernels/matmul/lines.h"

#include "tensor/convert.h"
#include "tensor/levels.h"

/* ---- the types a product is computed in -------------------------------------------------------------------------- */

typedef struct ComplexFloat {
    float real, imaginary;
} ComplexFloat;

typedef struct ComplexDouble {
    double real, imaginary;
} ComplexDouble;

US_ALWAYS_INLINE ComplexFloat complex_float(double real, double imaginary)
{
    return (ComplexFloat){(float)real, (float)imaginary};
}

US_ALWAYS_INLINE ComplexFloat plus_complex_float(ComplexFloat x, ComplexFloat y)
{
    return (ComplexFloat){x.real + y.real, x.imaginary + y.imaginary};
}

US_ALWAYS_INLINE ComplexFloat times_complex_float(ComplexFloat x, ComplexFloat y)
{
    return (ComplexFloat){x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
}

US_ALWAYS_INLINE ComplexDouble complex_double(double real, double imaginary)
{
    return (ComplexDouble){real, imaginary};
}

US_ALWAYS_INLINE ComplexDouble plus_complex_double(ComplexDouble x, ComplexDouble y)
{
    return (ComplexDouble){x.real + y.real, x.imaginary + y.imaginary};
}

US_ALWAYS_INLINE ComplexDouble times_complex_double(ComplexDouble x, ComplexDouble y)
{
    return (ComplexDouble){x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
}

#define LOOP
#define NAME(name) name##_float
#define ELEMENT float
#define TIMES(x, y) ((x) * (y))
#define PLUS(x, y) ((x) + (y))
#define OF(real, imaginary) ((void)(imaginary), (float)(real))
#include "kernels/matmul/loops.inc"

#define NAME(name) name##_double
#define ELEMENT double
#define TIMES(x, y) ((x) * (y))
#define PLUS(x, y) ((x) + (y))
#define OF(real, imaginary) ((void)(imaginary), (real))
#include "kernels/matmul/loops.inc"

#define NAME(name) name##_integer
#define ELEMENT uint64_t
#define TIMES(x, y) ((x) * (y))
#define PLUS(x, y) ((x) + (y))
#define OF(real, imaginary) ((void)(imaginary), (uint64_t)(int64_t)(real))
#include "kernels/matmul/loops.inc"

#undef LOOP
#define LOOP US_SCALAR
#define NAME(name) name##_complex_float
#define ELEMENT ComplexFloat
#define TIMES(x, y) times_complex_float(x, y)
#define PLUS(x, y) plus_complex_float(x, y)
#define OF(real, imaginary) complex_float(real, imaginary)
#include "kernels/matmul/loops.inc"

#define NAME(name) name##_complex_double
#define ELEMENT ComplexDouble
#define TIMES(x, y) times_complex_double(x, y)
#define PLUS(x, y) plus_complex_double(x, y)
#define OF(real, imaginary) complex_double(real, imaginary)
#include "kernels/matmul/loops.inc"

typedef struct Loops {
    void (*blend)(void *line, const double *alpha, const void *addend, const double *beta, int64_t count);
    void (*multiply)(const Sizes *sizes, const Matrix *a, const Matrix *b, const double *alpha, const double *beta,
                     void *c, int64_t stride);
} Loops;

static const Loops loops[DTYPE_COUNT] = {
    [DTYPE_FLOAT32] = {blend_float, multiply_float},
    [DTYPE_FLOAT64] = {blend_double, multiply_double},
    [DTYPE_INT64] = {blend_integer, multiply_integer},
    [DTYPE_COMPLEX64] = {blend_complex_float, multiply_complex_float},
    [DTYPE_COMPLEX128] = {blend_complex_double, multiply_complex_double},
};

void us_line_blend(DType compute, void *line, const double *alpha, const void *addend, const double *beta,
                   int64_t count)
{
    loops[compute].blend(line, alpha, addend, beta, count);
}

void us_multiply_by_loops(DType compute, const Sizes *sizes, const Matrix *a, const Matrix *b, const double *alpha,
                          const double *beta, void *c, int64_t stride)
{
    loops[compute].multiply(sizes, a, b, alpha, beta, c, stride);
}

void us_add_exact(int64_t *sums, const float *products, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += (int32_t)products[i];
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static DType part_of(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : dtype;
}

/* A value that is worth the element, modulo 2^64. */
US_ALWAYS_INLINE int64_t integer_of(const void *element, DType dtype)
{
    switch (dtype) {
    case DTYPE_INT8: return *(const int8_t *)element;
    case DTYPE_UINT8: return *(const uint8_t *)element;
    case DTYPE_BOOL: return *(const uint8_t *)element != 0;
    case DTYPE_INT16: return *(const int16_t *)element;
    case DTYPE_UINT16: return *(const uint16_t *)element;
    case DTYPE_INT32: return *(const int32_t *)element;
    case DTYPE_UINT32: return *(const uint32_t *)element;
    default: return *(const int64_t *)element;
    }
}

static void load_integers(int64_t *to, const char *from, DType dtype, int64_t stride, int64_t count)
{
    const int64_t step = stride * (int64_t)us_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        to[i] = integer_of(from + i * step, dtype);
    }
}

/* Integers keep their low bits; bool says whether a value is not 0. */
static void store_integers(char *to, DType dtype, int64_t stride, const int64_t *from, int64_t count)
{
    const size_t size = us_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        const int64_t value = dtype == DTYPE_BOOL ? from[i] != 0 : from[i];
        memcpy(to + i * stride * (int64_t)size, &value, size);
    }
}

static void load_parts(DType part, void *to, const void *from, DType dtype, int64_t stride, int64_t count)
{
    if (part == DTYPE_FLOAT32) {
        us_load_float(to, from, dtype, stride, count);
    } else {
        us_load_double(to, from, dtype, stride, count);
    }
}

static void store_parts(DType part, void *to, DType dtype, int64_t stride, const void *from, int64_t count)
{
    if (part == DTYPE_FLOAT32) {
        us_store_float(to, dtype, stride, from, count);
    } else {
        us_store_double(to, dtype, stride, from, count);
    }
}

static void conjugate(DType compute, void *line, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (compute == DTYPE_COMPLEX64) {
            ((float *)line)[2 * i + 1] *= -1;
        } else {
            ((double *)line)[2 * i + 1] *= -1;
        }
    }
}

void us_line_load(DType compute, void *to, const void *from, DType dtype, int64_t stride, int64_t count,
                  bool conjugated)
{
    if (compute == DTYPE_INT64) {
        load_integers(to, from, dtype, stride, count);
        return;
    }
    if (!is_complex(compute)) {
        load_parts(compute, to, from, dtype, stride, count);
        return;
    }
    const DType part = part_of(compute), own = part_of(dtype);
    if (stride == 1) {
        load_parts(part, to, from, own, 1, 2 * count);
    } else {
        const int64_t step = stride * 2 * (int64_t)us_dtype_size(own), size = (int64_t)us_dtype_size(compute);
        for (int64_t i = 0; i < count; i++) {
            load_parts(part, (char *)to + i * size, (const char *)from + i * step, own, 1, 2);
        }
    }
    if (conjugated) {
        conjugate(compute, to, count);
    }
}

void us_line_store(DType compute, void *to, DType dtype, int64_t stride, const void *from, int64_t count)
{
    if (compute == DTYPE_INT64) {
        store_integers(to, dtype, stride, from, count);
        return;
    }
    if (!is_complex(compute)) {
        store_parts(compute, to, dtype, stride, from, count);
        return;
    }
    const DType part = part_of(compute), own = part_of(dtype);
    if (stride == 1) {
        store_parts(part, to, own, 1, from, 2 * count);
        return;
    }
    const int64_t step = stride * 2 * (int64_t)us_dtype_size(own), size = (int64_t)us_dtype_size(compute);
    for (int64_t i = 0; i < count; i++) {
        store_parts(part, (char *)to + i * step, own, 1, (const char *)from + i * size, 2);
    }
}

void us_elements_clear(void *elements, DType dtype, int64_t stride, int64_t count)
{
    const int64_t size = (int64_t)us_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        memset((char *)elements + i * stride * size, 0, (size_t)size);
    }
}
