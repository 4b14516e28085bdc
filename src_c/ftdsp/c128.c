/* The functions of prefix c128_: elements are complex: pairs of binary64. */
#include "add.h"
#include "biasadd.h"
#include "concat.h"
#include "div.h"
#include "exp.h"
#include "matmulfusion.h"
#include "mul.h"
#include "slice.h"
#include "stack.h"
#include "sub.h"
#include "subext.h"
#include "tensorarrayread.h"
#include "ftdsp/operators.h"

#define PREFIX c128
#define T double
#define DTYPE DTYPE_COMPLEX128
#define EXP_T double /* result of exp */
#include "ftdsp/names.h"

#include "ftdsp/entries/add.inc"
#include "ftdsp/entries/biasadd.inc"
#include "ftdsp/entries/concat.inc"
#include "ftdsp/entries/div.inc"
#include "ftdsp/entries/exp.inc"
#include "ftdsp/entries/matmulfusion.inc"
#include "ftdsp/entries/mul.inc"
#include "ftdsp/entries/slice.inc"
#include "ftdsp/entries/stack.inc"
#include "ftdsp/entries/sub.inc"
#include "ftdsp/entries/subext.inc"
#include "ftdsp/entries/tensorarrayread.inc"
