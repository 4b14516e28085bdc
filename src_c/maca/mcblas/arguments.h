/* Functions of BLAS whose arguments are those of its Fortran interface, in its order: a list says what each argument
 * is, and one function checks it, makes views and queues the call. */
#ifndef MCBLAS_ARGUMENTS_H
#define MCBLAS_ARGUMENTS_H

#include "call.h"

typedef enum ArgumentKind {
    ARGUMENT_SIZE,
    ARGUMENT_OPERATION,
    ARGUMENT_FILL,
    ARGUMENT_DIAGONAL,
    ARGUMENT_SIDE,
    ARGUMENT_LETTER, /* not the program's: goes to the function as it is */
    ARGUMENT_SCALAR,
    ARGUMENT_MATRIX,
    ARGUMENT_VECTOR,
    ARGUMENT_PACKED,
} ArgumentKind;

typedef struct Argument {
    ArgumentKind kind;
    const char *name, *step_name;
    int value;           /* of sizes and enumerators */
    const void *pointer; /* of the rest */
    int step;            /* leading dimension or increment */
    int64_t rows, columns; /* of a matrix; vectors and packed triangles have so many rows */
    DType dtype;         /* of a scalar that is not of the function's type */
    ViewPart part; /* of a matrix of which only some elements are used */
    bool written;
    bool scaled; /* the first scalar multiplies what the written array holds: with 0 it is not read */
    bool hermitian; /* a written matrix of which the routine does not know it */
} Argument;

#define SIZE(x) {.kind = ARGUMENT_SIZE, .name = #x, .value = x}
#define OPERATION(x) {.kind = ARGUMENT_OPERATION, .name = #x, .value = (int)x}
#define FILL(x) {.kind = ARGUMENT_FILL, .name = #x, .value = (int)x}
#define DIAGONAL(x) {.kind = ARGUMENT_DIAGONAL, .name = #x, .value = (int)x}
#define SIDE(x) {.kind = ARGUMENT_SIDE, .name = #x, .value = (int)x}
#define FIXED_LETTER(letter) {.kind = ARGUMENT_LETTER, .value = letter}
#define SCALAR(x) {.kind = ARGUMENT_SCALAR, .name = #x, .pointer = x}
#define SCALAR_OF(x, type) {.kind = ARGUMENT_SCALAR, .name = #x, .pointer = x, .dtype = type}
#define MATRIX(x, ld, r, c) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = r, .columns = c}
#define TRIANGLE(x, ld, n) TRIANGLE_OF(x, ld, n, MCBLAS_DIAG_NON_UNIT)
#define TRIANGLE_OF(x, ld, n, diag) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = n, .columns = n, \
     .part = blas_triangle(uplo, diag)}
#define TRIANGLE_WRITTEN(x, ld, n) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = n, .columns = n, \
     .part = blas_triangle(uplo, MCBLAS_DIAG_NON_UNIT), .written = true}
#define HERMITIAN_WRITTEN(x, ld, n) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = n, .columns = n, \
     .part = blas_triangle(uplo, MCBLAS_DIAG_NON_UNIT), .written = true, .hermitian = true}
#define BAND(x, ld, n, k, diag) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = (int64_t)(k) + 1, \
     .columns = n, .part = blas_band(uplo, n, k, diag)}
#define GENERAL_BAND(x, ld, m, n, kl, ku) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = (int64_t)(kl) + (ku) + 1, \
     .columns = n, .part = {.slope = 1, .least = ku, .most = (int64_t)(ku) + (m) - 1}}
#define MATRIX_WRITTEN(x, ld, r, c) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = r, .columns = c, \
     .written = true}
#define MATRIX_SCALED(x, ld, r, c) \
    {.kind = ARGUMENT_MATRIX, .name = #x, .step_name = #ld, .pointer = x, .step = ld, .rows = r, .columns = c, \
     .written = true, .scaled = true}
#define VECTOR(x, inc, n) {.kind = ARGUMENT_VECTOR, .name = #x, .step_name = #inc, .pointer = x, .step = inc, .rows = n}
#define VECTOR_WRITTEN(x, inc, n) \
    {.kind = ARGUMENT_VECTOR, .name = #x, .step_name = #inc, .pointer = x, .step = inc, .rows = n, .written = true}
#define PACKED(x, n) {.kind = ARGUMENT_PACKED, .name = #x, .pointer = x, .rows = ((int64_t)(n) + 1) * (n) / 2}
#define PACKED_WRITTEN(x, n) \
    {.kind = ARGUMENT_PACKED, .name = #x, .pointer = x, .rows = ((int64_t)(n) + 1) * (n) / 2, .written = true}

/* Checks the arguments, and calls `routine` ("sgbmv") on the stream unless the array that is written is empty. A
 * list holds one written array, the last one. Further checks: Hermitian functions know no plain transposition
 * (trans/range). */
mcblasStatus_t blas_call(const char *function, mcblasHandle_t handle, const char *routine, DType dtype, int count,
                         const Argument *arguments);

/* The same within a call that has begun, and which the caller ends. */
void blas_call_within(BlasCall *call, const char *routine, DType dtype, int count, const Argument *arguments);
void blas_check_arguments(BlasCall *call, int count, const Argument *arguments);

/* A call of a list written out in braces. */
#define BLAS_CALL(name, routine, ...) \
    blas_call(TEXT(name), handle, LETTER routine, DTYPE, \
              (int)(sizeof((const Argument[]){__VA_ARGS__}) / sizeof(Argument)), (const Argument[]){__VA_ARGS__})

#endif
