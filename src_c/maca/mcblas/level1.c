/* Level 1: vectors (mcblas 5), and its forms in mixed types (mcblas 8). */
#include "gemm.h"

#include "kernels/linear_algebra/vectors.h"
#include "kernels/matmul/lines.h"

/* ---- what the functions share ------------------------------------------------------------------------------------ */

typedef struct Vector {
    const char *name;
    const void *data;
    DType dtype;
    int step;
} Vector;

/* NULL is refused only where there is something to read. */
static View view_of(BlasCall *call, const Vector *vector, int n)
{
    check_pointer(&call->call, vector->name, vector->data);
    return blas_vector(vector->data, vector->dtype, n, vector->step);
}

/* A step of 0 names one element, which changes as often as there are elements. */
static void update(BlasCall *call, VectorOperation operation, int n, const Vector *x, const Vector *y,
                   const BlasScalar *first, const BlasScalar *second)
{
    VectorUpdate attributes = {.operation = operation};
    const View absent = us_view_absent();
    if (!blas_ok(call) || n <= 0) {
        return;
    }
    const View views[] = {view_of(call, x, n), y != NULL ? view_of(call, y, n) : absent,
                          first != NULL ? first->view : absent, second != NULL ? second->view : absent};
    if (!blas_ok(call)) {
        return;
    }
    const bool writes_x = operation != VECTOR_COPY && operation != VECTOR_AXPY;
    us_launch_access(&call->launch, x->name, &views[0], writes_x ? VIEW_READ_WRITE : VIEW_READ);
    us_launch_access(&call->launch, y != NULL ? y->name : "", &views[1],
                     operation == VECTOR_COPY ? VIEW_WRITE : VIEW_READ_WRITE);
    us_launch_view(&call->launch, "scalar", &views[2]);
    us_launch_view(&call->launch, "scalar", &views[3]);
    if (first != NULL) {
        memcpy(attributes.scalars, first->values, sizeof attributes.scalars);
        attributes.real[0] = !is_complex(first->dtype);
    }
    if (second != NULL) {
        memcpy(attributes.scalars[1], second->values[0], sizeof attributes.scalars[1]);
        attributes.real[1] = !is_complex(second->dtype);
    }
    blas_submit(call, us_vector_update, &attributes, sizeof attributes, false);
}

/* One vector with a step that is not positive has nothing to reduce (mcblas 5). */
static void reduce(BlasCall *call, VectorReduction reduction, int n, const Vector *x, const Vector *y, DType compute,
                   void *result, DType result_dtype)
{
    const BlasResult place = blas_result(call, "result", result, result_dtype, 1);
    const bool empty = n <= 0 || (y == NULL && x->step <= 0);
    const View absent = us_view_absent();
    if (!blas_ok(call)) {
        return;
    }
    const View views[] = {empty ? absent : view_of(call, x, n), empty || y == NULL ? absent : view_of(call, y, n)};
    if (!blas_ok(call)) {
        return;
    }
    us_launch_view(&call->launch, "x", &views[0]);
    us_launch_view(&call->launch, "y", &views[1]);
    us_launch_access(&call->launch, "result", &place.view, VIEW_WRITE);
    const VectorSum sum = {.reduction = reduction, .result = result_dtype, .compute = compute, .host = place.host};
    blas_submit(call, us_vector_sum, &sum, sizeof sum, place.host != NULL);
}

static mcblasStatus_t reduce_alone(const char *function, mcblasHandle_t handle, VectorReduction reduction, int n,
                                   const Vector *x, const Vector *y, void *result, DType result_dtype)
{
    BlasCall call = blas_begin(function, handle);
    reduce(&call, reduction, n, x, y, x->dtype, result, result_dtype);
    return blas_end(&call);
}

static mcblasStatus_t move(const char *function, mcblasHandle_t handle, VectorOperation operation, int n,
                           const Vector *x, const Vector *y)
{
    BlasCall call = blas_begin(function, handle);
    update(&call, operation, n, x, y, NULL, NULL);
    return blas_end(&call);
}

static mcblasStatus_t scale(const char *function, mcblasHandle_t handle, int n, const void *alpha, DType alpha_dtype,
                            const Vector *x)
{
    BlasCall call = blas_begin(function, handle);
    const BlasScalar factor = blas_scalar(&call, "alpha", alpha, alpha_dtype, 1);
    update(&call, VECTOR_SCALE, x->step > 0 ? n : 0, x, NULL, &factor, NULL);
    return blas_end(&call);
}

static mcblasStatus_t add_scaled(const char *function, mcblasHandle_t handle, int n, const void *alpha, const Vector *x,
                                 const Vector *y)
{
    BlasCall call = blas_begin(function, handle);
    const BlasScalar factor = blas_scalar(&call, "alpha", alpha, x->dtype, 1);
    update(&call, VECTOR_AXPY, blas_is_zero(&factor) ? 0 : n, x, y, &factor, NULL);
    return blas_end(&call);
}

static mcblasStatus_t rotate(const char *function, mcblasHandle_t handle, int n, const Vector *x, const Vector *y,
                             const void *c, DType c_dtype, const void *s, DType s_dtype)
{
    BlasCall call = blas_begin(function, handle);
    const BlasScalar cosine = blas_scalar(&call, "c", c, c_dtype, 1), sine = blas_scalar(&call, "s", s, s_dtype, 1);
    update(&call, VECTOR_ROTATE, n, x, y, &cosine, &sine);
    return blas_end(&call);
}

typedef struct SetupOperand {
    const char *name;
    void *data;
    DType dtype;
    ViewAccess access;
} SetupOperand;

/* In host mode there is nothing to wait for: all of it is scalars, and is done at once. */
static mcblasStatus_t set_up(const char *function, mcblasHandle_t handle, bool modified, DType dtype,
                             const SetupOperand *operands)
{
    BlasCall call = blas_begin(function, handle);
    RotationSetup setup = {.modified = modified, .dtype = dtype};
    const int count = modified ? 5 : 4;
    View views[5];
    for (int i = 0; i < count; i++) {
        const BlasResult place = blas_result(&call, operands[i].name, operands[i].data, operands[i].dtype,
                                             i == 4 ? 5 : 1);
        views[i] = place.view;
        setup.host[i] = place.host;
    }
    if (blas_ok(&call) && call.blas->pointer_mode == MCBLAS_POINTER_MODE_HOST) {
        us_rotation_setup(views, &setup);
    } else if (blas_ok(&call)) {
        for (int i = 0; i < count; i++) {
            us_launch_access(&call.launch, operands[i].name, &views[i], operands[i].access);
        }
        blas_submit(&call, us_rotation_setup, &setup, sizeof setup, false);
    }
    return blas_end(&call);
}

#define VECTOR(x, inc) (&(Vector){#x, x, DTYPE, inc})

#define FUNCTIONS "level1.inc"
#include "types.h"

/* ---- functions whose names carry two types ----------------------------------------------------------------------- */

mcblasStatus_t mcblasCsscal(mcblasHandle_t handle, int n, const float *alpha, mcComplex *x, int incx)
{
    return scale("mcblasCsscal", handle, n, alpha, DTYPE_FLOAT32, &(Vector){"x", x, DTYPE_COMPLEX64, incx});
}

mcblasStatus_t mcblasZdscal(mcblasHandle_t handle, int n, const double *alpha, mcDoubleComplex *x, int incx)
{
    return scale("mcblasZdscal", handle, n, alpha, DTYPE_FLOAT64, &(Vector){"x", x, DTYPE_COMPLEX128, incx});
}

mcblasStatus_t mcblasCsrot(mcblasHandle_t handle, int n, mcComplex *x, int incx, mcComplex *y, int incy, const float *c,
                           const float *s)
{
    return rotate("mcblasCsrot", handle, n, &(Vector){"x", x, DTYPE_COMPLEX64, incx},
                  &(Vector){"y", y, DTYPE_COMPLEX64, incy}, c, DTYPE_FLOAT32, s, DTYPE_FLOAT32);
}

mcblasStatus_t mcblasZdrot(mcblasHandle_t handle, int n, mcDoubleComplex *x, int incx, mcDoubleComplex *y, int incy,
                           const double *c, const double *s)
{
    return rotate("mcblasZdrot", handle, n, &(Vector){"x", x, DTYPE_COMPLEX128, incx},
                  &(Vector){"y", y, DTYPE_COMPLEX128, incy}, c, DTYPE_FLOAT64, s, DTYPE_FLOAT64);
}

/* ---- types as parameters (mcblas 8.1) ---------------------------------------------------------------------------- */

static bool is_16_bit(DType dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

/* Each type with itself, 16-bit types with float as execution type. */
static DType vector_type(BlasCall *call, const char *parameter, macaDataType_t type, const char *execution_name,
                         macaDataType_t execution)
{
    us_require(&call->call, blas_is_known_type(type), parameter, "range", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %d, which is no data type", parameter, (int)type);
    us_require(&call->call, blas_is_known_type(execution), execution_name, "range", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %d, which is no data type", execution_name, (int)execution);
    const DType dtype = blas_dtype(type);
    const bool floating = us_dtype_is_float(dtype) || is_complex(dtype);
    us_require(&call->call, floating && (is_16_bit(dtype) ? execution == MACA_R_32F : execution == type),
               execution_name, "combination", MCBLAS_STATUS_NOT_SUPPORTED, "%s is %s, %s %s: they do not go together",
               parameter, blas_type_name(type), execution_name, blas_type_name(execution));
    return dtype;
}

static void require_same(BlasCall *call, const char *parameter, macaDataType_t type, macaDataType_t wanted)
{
    us_require(&call->call, blas_is_known_type(type), parameter, "range", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %d, which is no data type", parameter, (int)type);
    us_require(&call->call, type == wanted, parameter, "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "%s is %d; with these vectors it has to be %d", parameter, (int)type, (int)wanted);
}

/* A scalar of the vectors' type, or float for 16-bit vectors; `real_too`: real for complex vectors. */
static DType scalar_type(BlasCall *call, const char *parameter, macaDataType_t type, DType vectors, bool real_too)
{
    us_require(&call->call, blas_is_known_type(type), parameter, "range", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %d, which is no data type", parameter, (int)type);
    const DType dtype = blas_dtype(type);
    const DType real = vectors == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    us_require(&call->call, dtype == vectors || (is_16_bit(vectors) && type == MACA_R_32F) ||
               (real_too && is_complex(vectors) &&
                dtype == real), parameter, "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "%s is %d, which does not go with vectors of %s", parameter, (int)type, us_dtype_name(vectors));
    return dtype;
}

mcblasStatus_t mcblasAxpyEx(mcblasHandle_t handle, int n, const void *alpha, macaDataType_t alphaType, const void *x,
                            macaDataType_t xType, int incx, void *y, macaDataType_t yType, int incy,
                            macaDataType_t executiontype)
{
    BlasCall call = blas_begin("mcblasAxpyEx", handle);
    const DType dtype = vector_type(&call, "xType", xType, "executiontype", executiontype);
    require_same(&call, "yType", yType, xType);
    const DType factor_type = scalar_type(&call, "alphaType", alphaType, dtype, false);
    const BlasScalar factor = blas_scalar(&call, "alpha", alpha, factor_type, 1);
    update(&call, VECTOR_AXPY, blas_is_zero(&factor) ? 0 : n, &(Vector){"x", x, dtype, incx},
           &(Vector){"y", y, dtype, incy}, &factor, NULL);
    return blas_end(&call);
}

static mcblasStatus_t dot_ex(const char *function, mcblasHandle_t handle, VectorReduction reduction, int n,
                             const void *x, macaDataType_t xType, int incx, const void *y, macaDataType_t yType,
                             int incy, void *result, macaDataType_t resultType, macaDataType_t executionType)
{
    BlasCall call = blas_begin(function, handle);
    const DType dtype = vector_type(&call, "xType", xType, "executionType", executionType);
    require_same(&call, "yType", yType, xType);
    require_same(&call, "resultType", resultType, xType);
    reduce(&call, reduction, n, &(Vector){"x", x, dtype, incx}, &(Vector){"y", y, dtype, incy},
           is_16_bit(dtype) ? DTYPE_FLOAT32 : dtype, result, dtype);
    return blas_end(&call);
}

mcblasStatus_t mcblasDotEx(mcblasHandle_t handle, int n, const void *x, macaDataType_t xType, int incx, const void *y,
                           macaDataType_t yType, int incy, void *result, macaDataType_t resultType,
                           macaDataType_t executionType)
{
    return dot_ex("mcblasDotEx", handle, VECTOR_DOT, n, x, xType, incx, y, yType, incy, result, resultType,
                  executionType);
}

mcblasStatus_t mcblasDotcEx(mcblasHandle_t handle, int n, const void *x, macaDataType_t xType, int incx, const void *y,
                            macaDataType_t yType, int incy, void *result, macaDataType_t resultType,
                            macaDataType_t executionType)
{
    return dot_ex("mcblasDotcEx", handle, VECTOR_DOT_CONJUGATED, n, x, xType, incx, y, yType, incy, result, resultType,
                  executionType);
}

mcblasStatus_t mcblasRotEx(mcblasHandle_t handle, int n, void *x, macaDataType_t xType, int incx, void *y,
                           macaDataType_t yType, int incy, const void *c, const void *s, macaDataType_t csType,
                           macaDataType_t executiontype)
{
    BlasCall call = blas_begin("mcblasRotEx", handle);
    const DType dtype = vector_type(&call, "xType", xType, "executiontype", executiontype);
    require_same(&call, "yType", yType, xType);
    const DType given = scalar_type(&call, "csType", csType, dtype, true);
    const BlasScalar cosine = blas_scalar(&call, "c", c, given, 1), sine = blas_scalar(&call, "s", s, given, 1);
    update(&call, VECTOR_ROTATE, n, &(Vector){"x", x, dtype, incx}, &(Vector){"y", y, dtype, incy}, &cosine, &sine);
    return blas_end(&call);
}

mcblasStatus_t mcblasScalEx(mcblasHandle_t handle, int n, const void *alpha, macaDataType_t alphaType, void *x,
                            macaDataType_t xType, int incx, macaDataType_t executionType)
{
    BlasCall call = blas_begin("mcblasScalEx", handle);
    const DType dtype = vector_type(&call, "xType", xType, "executionType", executionType);
    const DType factor_type = scalar_type(&call, "alphaType", alphaType, dtype, true);
    const BlasScalar factor = blas_scalar(&call, "alpha", alpha, factor_type, 1);
    update(&call, VECTOR_SCALE, incx > 0 ? n : 0, &(Vector){"x", x, dtype, incx}, NULL, &factor, NULL);
    return blas_end(&call);
}

static macaDataType_t real_type(macaDataType_t type)
{
    return type == MACA_C_32F ? MACA_R_32F : type == MACA_C_64F ? MACA_R_64F : type;
}

/* The norm of complex elements is real, and so may be the type in which it is computed: the tables of libraries of the same
 * interface have that one only. */
mcblasStatus_t mcblasNrm2Ex(mcblasHandle_t handle, int n, const void *x, macaDataType_t xType, int incx, void *result,
                            macaDataType_t resultType, macaDataType_t executionType)
{
    BlasCall call = blas_begin("mcblasNrm2Ex", handle);
    const macaDataType_t execution = executionType == real_type(xType) ? xType : executionType;
    const DType dtype = vector_type(&call, "xType", xType, "executionType", execution);
    const DType real = blas_dtype(real_type(xType));
    us_require(&call.call, blas_is_known_type(resultType), "resultType", "range", MCBLAS_STATUS_INVALID_VALUE,
               "resultType is %d, which is no data type", (int)resultType);
    us_require(&call.call, blas_dtype(resultType) == real, "resultType", "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "resultType is %d; the norm of %s is %s", (int)resultType, us_dtype_name(dtype), us_dtype_name(real));
    reduce(&call, VECTOR_NORM, n, &(Vector){"x", x, dtype, incx}, NULL, dtype, result, real);
    return blas_end(&call);
}
