/* Instantiates a file of functions for the four element types of BLAS: FUNCTIONS is the file. In it, NAME(gemv) is
 * mcblasSgemv …, TEXT(gemv) its text, T the element, R its real part, DTYPE and REAL_DTYPE the same as values,
 * LETTER that of the BLAS, as a text, SMALL as a name, REAL_LETTER that of R; COMPLEX is defined, and IS_COMPLEX
 * true, for complex types. */
#define JOIN_EXPANDED(a, b) a##b
#define JOIN(a, b) JOIN_EXPANDED(a, b)
#define TEXT_OF(name) #name
#define TEXT_OF_NAME(name) TEXT_OF(name)
#define TEXT(name) TEXT_OF_NAME(NAME(name))

#define IS_COMPLEX false
#define NAME(name) JOIN(mcblasS, name)
#define T float
#define R float
#define DTYPE DTYPE_FLOAT32
#define REAL_DTYPE DTYPE_FLOAT32
#define LETTER "s"
#define SMALL s
#define REAL_LETTER S
#include FUNCTIONS
#undef NAME
#undef T
#undef R
#undef DTYPE
#undef REAL_DTYPE
#undef LETTER
#undef SMALL
#undef REAL_LETTER

#define NAME(name) JOIN(mcblasD, name)
#define T double
#define R double
#define DTYPE DTYPE_FLOAT64
#define REAL_DTYPE DTYPE_FLOAT64
#define LETTER "d"
#define SMALL d
#define REAL_LETTER D
#include FUNCTIONS
#undef NAME
#undef T
#undef R
#undef DTYPE
#undef REAL_DTYPE
#undef LETTER
#undef SMALL
#undef REAL_LETTER

#undef IS_COMPLEX
#define IS_COMPLEX true
#define COMPLEX
#define NAME(name) JOIN(mcblasC, name)
#define T mcComplex
#define R float
#define DTYPE DTYPE_COMPLEX64
#define REAL_DTYPE DTYPE_FLOAT32
#define LETTER "c"
#define SMALL c
#define REAL_LETTER S
#include FUNCTIONS
#undef NAME
#undef T
#undef R
#undef DTYPE
#undef REAL_DTYPE
#undef LETTER
#undef SMALL
#undef REAL_LETTER

#define NAME(name) JOIN(mcblasZ, name)
#define T mcDoubleComplex
#define R double
#define DTYPE DTYPE_COMPLEX128
#define REAL_DTYPE DTYPE_FLOAT64
#define LETTER "z"
#define SMALL z
#define REAL_LETTER D
#include FUNCTIONS
#undef NAME
#undef T
#undef R
#undef DTYPE
#undef REAL_DTYPE
#undef LETTER
#undef SMALL
#undef REAL_LETTER
#undef COMPLEX
#undef IS_COMPLEX
