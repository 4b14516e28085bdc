#include "kernels/matmul/fortran.h"

#include "kernels/matmul/lines.h"

typedef void Fortran(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                     void *, void *, void *, void *);

static bool is_zero_scalar(const void *bytes, size_t size)
{
    static const char zeros[LARGEST_ELEMENT];
    return memcmp(bytes, zeros, size) == 0;
}

/* Of a complex matrix. */
static void clear_imaginary_diagonal(const View *matrix)
{
    const DType real = matrix->dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    us_elements_clear((char *)matrix->data + us_dtype_size(real), real, 2 * (matrix->strides[0] + matrix->strides[1]),
                      matrix->shape[0]);
}

KernelStatus us_fortran_call(const View *views, const void *attributes)
{
    FortranCall call = *(const FortranCall *)attributes;
    void *addresses[FORTRAN_ARGUMENT_LIMIT] = {NULL};
    for (int i = 0; i < call.count; i++) {
        FortranArgument *argument = &call.arguments[i];
        if (argument->kind == FORTRAN_VIEW) {
            addresses[i] = views[argument->place].data;
        } else if (argument->kind == FORTRAN_SCALAR || argument->kind == FORTRAN_DEVICE_SCALAR) {
            addresses[i] = call.scalars[argument->place];
            if (argument->kind == FORTRAN_DEVICE_SCALAR) {
                const View *given = &views[argument->value];
                memcpy(addresses[i], given->data, us_dtype_size(given->dtype));
            }
        } else {
            addresses[i] = &argument->value;
        }
    }
    if (call.beta >= 0) {
        const View *output = &views[call.output];
        if (is_zero_scalar(addresses[call.beta], us_dtype_size(output->dtype))) {
            us_elements_clear(output->data, output->dtype, output->strides[0], output->shape[0]);
        }
    }
    if (call.hermitian) {
        clear_imaginary_diagonal(&views[call.output]);
    }
    Fortran *function;
    *(void **)&function = call.function;
    function(addresses[0], addresses[1], addresses[2], addresses[3], addresses[4], addresses[5], addresses[6],
             addresses[7], addresses[8], addresses[9], addresses[10], addresses[11], addresses[12], addresses[13],
             addresses[14], addresses[15]);
    if (call.hermitian) {
        clear_imaginary_diagonal(&views[call.output]);
    }
    return KERNEL_OK;
}
