/* The functions of prefix dp_: elements are binary64. */
#include "add.h"
#include "exp.h"
#include "mul.h"
#include "pow_fusion.h"
#include "range.h"
#include "sub.h"
#include "subext.h"
#include "ftdsp/operators.h"

#define PREFIX dp
#define T double
#define DTYPE DTYPE_FLOAT64
#define FACTOR_T double /* scale and shift of a power */
#define NUMBER_T double /* start and step of a sequence */
#define EXP_T double /* result of exp */
#include "ftdsp/names.h"

#include "ftdsp/entries/add.inc"
#include "ftdsp/entries/exp.inc"
#include "ftdsp/entries/mul.inc"
#include "ftdsp/entries/pow_fusion.inc"
#include "ftdsp/entries/range.inc"
#include "ftdsp/entries/sub.inc"
#include "ftdsp/entries/subext.inc"
