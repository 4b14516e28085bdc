/* The functions of prefix dp_: elements are binary64. */
#include "add.h"
#include "biasadd.h"
#include "concat.h"
#include "div.h"
#include "exp.h"
#include "matmulfusion.h"
#include "mul.h"
#include "pow_fusion.h"
#include "raggedrange.h"
#include "range.h"
#include "slice.h"
#include "stack.h"
#include "sub.h"
#include "subext.h"
#include "tensorarrayread.h"
#include "ftdsp/operators.h"

#define PREFIX dp
#define T double
#define DTYPE DTYPE_FLOAT64
#define FACTOR_T double /* scale and shift of a power */
#define NUMBER_T double /* start and step of a sequence */
#define EXP_T double /* result of exp */
#include "ftdsp/names.h"

#include "ftdsp/entries/add.inc"
#include "ftdsp/entries/biasadd.inc"
#include "ftdsp/entries/concat.inc"
#include "ftdsp/entries/div.inc"
#include "ftdsp/entries/exp.inc"
#include "ftdsp/entries/matmulfusion.inc"
#include "ftdsp/entries/mul.inc"
#include "ftdsp/entries/pow_fusion.inc"
#include "ftdsp/entries/raggedrange.inc"
#include "ftdsp/entries/range.inc"
#include "ftdsp/entries/slice.inc"
#include "ftdsp/entries/stack.inc"
#include "ftdsp/entries/sub.inc"
#include "ftdsp/entries/subext.inc"
#include "ftdsp/entries/tensorarrayread.inc"
