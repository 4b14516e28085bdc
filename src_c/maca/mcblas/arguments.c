#include "arguments.h"

#include "kernels/matmul/blas.h"
#include "kernels/matmul/fortran.h"
#include "kernels/matmul/lines.h"

static bool is_array(const Argument *argument)
{
    return argument->kind >= ARGUMENT_MATRIX;
}

static void check_enumerator(Call *call, const Argument *argument)
{
    switch (argument->kind) {
    case ARGUMENT_OPERATION:
        check_operation(call, argument->name, (mcblasOperation_t)argument->value);
        break;
    case ARGUMENT_FILL:
        check_fill(call, (mcblasFillMode_t)argument->value);
        break;
    case ARGUMENT_DIAGONAL:
        check_diagonal(call, (mcblasDiagType_t)argument->value);
        break;
    case ARGUMENT_SIDE:
        check_side(call, argument->name, (mcblasSideMode_t)argument->value);
        break;
    default:
        break;
    }
}

void blas_check_arguments(BlasCall *call, int count, const Argument *arguments)
{
    for (const Argument *argument = arguments; argument < arguments + count; argument++) {
        if (argument->kind == ARGUMENT_SIZE) {
            check_size(&call->call, argument->name, argument->value);
        }
    }
    for (const Argument *argument = arguments; argument < arguments + count; argument++) {
        check_enumerator(&call->call, argument);
    }
    for (const Argument *argument = arguments; argument < arguments + count; argument++) {
        if (argument->kind == ARGUMENT_MATRIX) {
            check_leading(&call->call, argument->step_name, argument->step, argument->rows);
        } else if (argument->kind == ARGUMENT_VECTOR) {
            check_step(&call->call, argument->step_name, argument->step);
        }
    }
}

static bool is_empty(const Argument *array)
{
    return array->rows <= 0 || (array->kind == ARGUMENT_MATRIX && array->columns <= 0);
}

static int letter_of(const Argument *argument)
{
    static const char *const letters[] = {
        [ARGUMENT_OPERATION] = "NTC", [ARGUMENT_FILL] = "LU", [ARGUMENT_DIAGONAL] = "NU", [ARGUMENT_SIDE] = "LR",
    };
    return letters[argument->kind][argument->value];
}

/* Scalars go to the routine as it reads them. Gives the view of one in device memory, -1 for others. */
static int add_scalar(BlasCall *call, FortranCall *fortran, const Argument *argument, const BlasScalar *scalar,
                      DType dtype, int index)
{
    const DType type = argument->dtype != DTYPE_NONE ? argument->dtype : dtype;
    FortranArgument *slot = &fortran->arguments[fortran->count++];
    *slot = (FortranArgument){.kind = FORTRAN_SCALAR, .place = (int8_t)index};
    if (scalar->on_device) {
        slot->kind = FORTRAN_DEVICE_SCALAR;
        slot->value = call->launch.view_count;
        us_launch_view(&call->launch, argument->name, &scalar->view);
        return slot->value;
    }
    const DType wide = is_complex(type) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64;
    us_line_store(wide, fortran->scalars[index], type, 1, scalar->values, 1);
    return -1;
}

/* The scalar with which what the array holds counts: alpha with an input, beta with an output; -1: none. */
static int factor_of(const Argument *array, int scalar_count)
{
    return array->written ? (array->scaled ? 0 : scalar_count == 2 ? 1 : -1) : scalar_count > 0 ? 0 : -1;
}

/* `factor` is known, or the view `factor_view`; NULL: there is none. */
static void add_array(BlasCall *call, FortranCall *fortran, const Argument *array, DType dtype, bool used,
                      const BlasScalar *factor, int factor_view)
{
    View view = us_view_absent();
    if (used) { /* the routines want the first byte of a vector, whatever the sign of its step */
        const int64_t step = array->step < 0 ? -(int64_t)array->step : array->step;
        view = array->kind == ARGUMENT_MATRIX   ? blas_matrix(array->pointer, dtype, array->rows, array->columns,
                                                              array->step)
               : array->kind == ARGUMENT_VECTOR ? blas_vector(array->pointer, dtype, array->rows, step)
                                                : blas_array(array->pointer, dtype, array->rows);
    }
    fortran->arguments[fortran->count++] = (FortranArgument){FORTRAN_VIEW, (int8_t)call->launch.view_count, 0};
    if (array->written) {
        fortran->output = (int8_t)call->launch.view_count;
        fortran->hermitian = array->hermitian;
    }
    ViewPart part = array->part;
    part.view = call->launch.view_count;
    part.factor = factor_view;
    if (part.slope != 0 || factor_view >= 0) {
        us_launch_part(&call->launch, &part);
    }
    const bool reads_old = factor == NULL || !blas_is_zero(factor);
    us_launch_access(&call->launch, array->name, &view,
                     !array->written ? VIEW_READ : reads_old ? VIEW_READ_WRITE : VIEW_WRITE);
    if (array->kind != ARGUMENT_PACKED) {
        fortran->arguments[fortran->count++] = (FortranArgument){FORTRAN_INTEGER, 0, array->step};
    }
}

void blas_call_within(BlasCall *call, const char *routine, DType dtype, int count, const Argument *arguments)
{
    FortranCall fortran = {.function = us_lapack_function(routine), .beta = -1};
    BlasScalar scalars[FORTRAN_SCALAR_LIMIT];
    const Argument *output = NULL;
    int scalar_count = 0, output_kind = ARGUMENT_MATRIX;
    for (const Argument *argument = arguments; argument < arguments + count; argument++) {
        if (argument->kind == ARGUMENT_SCALAR) {
            const DType type = argument->dtype != DTYPE_NONE ? argument->dtype : dtype;
            scalars[scalar_count++] = blas_scalar(call, argument->name, argument->pointer, type, 1);
        } else if (argument->written) {
            output = argument;
            output_kind = argument->kind;
        }
    }
    if (!blas_ok(call) || is_empty(output)) {
        return;
    }
    const bool reads_inputs = scalar_count == 0 || !blas_is_zero(&scalars[0]);
    for (const Argument *argument = arguments; argument < arguments + count; argument++) {
        if (is_array(argument) && (argument->written || reads_inputs) && !is_empty(argument)) {
            check_pointer(&call->call, argument->name, argument->pointer);
        }
    }
    us_require(&call->call, fortran.function != NULL, "handle", "library", MCBLAS_STATUS_NOT_SUPPORTED,
               "no library with the BLAS function %s was found; UNDERSTUDY_BLAS may name one", routine);
    if (!blas_ok(call)) {
        return;
    }
    int scalar = 0, scalar_views[FORTRAN_SCALAR_LIMIT];
    for (const Argument *argument = arguments; argument < arguments + count; argument++) {
        if (argument->kind == ARGUMENT_SIZE || argument->kind == ARGUMENT_LETTER) {
            const int8_t kind = argument->kind == ARGUMENT_SIZE ? FORTRAN_INTEGER : FORTRAN_LETTER;
            fortran.arguments[fortran.count++] = (FortranArgument){kind, 0, argument->value};
        } else if (argument->kind == ARGUMENT_SCALAR) {
            if (scalar == 1 && output_kind == ARGUMENT_VECTOR) {
                fortran.beta = fortran.count;
            }
            scalar_views[scalar] = add_scalar(call, &fortran, argument, &scalars[scalar], dtype, scalar);
            scalar++;
        } else if (is_array(argument)) {
            const int factor = factor_of(argument, scalar_count);
            add_array(call, &fortran, argument, dtype, argument->written || (reads_inputs && !is_empty(argument)),
                      factor < 0 ? NULL : &scalars[factor], factor < 0 ? -1 : scalar_views[factor]);
        } else {
            fortran.arguments[fortran.count++] = (FortranArgument){FORTRAN_LETTER, 0, letter_of(argument)};
        }
    }
    blas_submit(call, us_fortran_call, &fortran, sizeof fortran, false);
}

mcblasStatus_t blas_call(const char *function, mcblasHandle_t handle, const char *routine, DType dtype, int count,
                         const Argument *arguments)
{
    BlasCall call = blas_begin(function, handle);
    blas_check_arguments(&call, count, arguments);
    blas_call_within(&call, routine, dtype, count, arguments);
    return blas_end(&call);
}
