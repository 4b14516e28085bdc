/* A function of the BLAS on views: its Fortran interface takes every argument by address, so that one kernel calls
 * all. */
#ifndef UNDERSTUDY_FORTRAN_H
#define UNDERSTUDY_FORTRAN_H

#include "kernels/kernels.h"

enum { FORTRAN_ARGUMENT_LIMIT = 16, FORTRAN_SCALAR_LIMIT = 2 };

typedef enum FortranKind {
    FORTRAN_LETTER, /* `value` is a character */
    FORTRAN_INTEGER, /* `value` */
    FORTRAN_VIEW,   /* the data of view `place` */
    FORTRAN_SCALAR, /* scalar `place` */
    FORTRAN_DEVICE_SCALAR, /* the element of view `value`, copied to scalar `place` */
} FortranKind;

typedef struct FortranArgument {
    int8_t kind, place;
    int32_t value;
} FortranArgument;

typedef struct FortranCall {
    void *function; /* of us_lapack_function */
    int8_t count;
    /* the argument that is the factor of the vector `output`, or -1: by 0 it is cleared, not multiplied */
    int8_t beta;
    int8_t output;  /* a view */
    bool hermitian; /* the output is, and the function does not know: the imaginary parts of its diagonal are 0 before and after */
    FortranArgument arguments[FORTRAN_ARGUMENT_LIMIT];
    double scalars[FORTRAN_SCALAR_LIMIT][2]; /* as the function reads them: float, double, or a pair of either */
} FortranCall;
Kernel us_fortran_call;

#endif
