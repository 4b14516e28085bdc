/* The functions of prefix c64_: elements are complex: pairs of binary32. */
#include "add.h"
#include "biasadd.h"
#include "concat.h"
#include "div.h"
#include "exp.h"
#include "fft.h"
#include "getw.h"
#include "ifft.h"
#include "matmulfusion.h"
#include "mul.h"
#include "slice.h"
#include "stack.h"
#include "sub.h"
#include "subext.h"
#include "tensorarrayread.h"
#include "ftdsp/operators.h"

#define PREFIX c64
#define T float
#define DTYPE DTYPE_COMPLEX64
#define EXP_T float /* result of exp */
#include "ftdsp/names.h"

#include "ftdsp/entries/add.inc"
#include "ftdsp/entries/biasadd.inc"
#include "ftdsp/entries/concat.inc"
#include "ftdsp/entries/div.inc"
#include "ftdsp/entries/exp.inc"
#include "ftdsp/entries/fft.inc"
#include "ftdsp/entries/getw.inc"
#include "ftdsp/entries/ifft.inc"
#include "ftdsp/entries/matmulfusion.inc"
#include "ftdsp/entries/mul.inc"
#include "ftdsp/entries/slice.inc"
#include "ftdsp/entries/stack.inc"
#include "ftdsp/entries/sub.inc"
#include "ftdsp/entries/subext.inc"
#include "ftdsp/entries/tensorarrayread.inc"
