/* The functions of prefix i16_: elements are 16-bit integers. */
#include "add.h"
#include "exp.h"
#include "mul.h"
#include "pow_fusion.h"
#include "range.h"
#include "sub.h"
#include "subfusion.h"
#include "ftdsp/operators.h"

#define PREFIX i16
#define T int16_t
#define DTYPE DTYPE_INT16
#define FACTOR_T int /* scale and shift of a power */
#define NUMBER_T int /* start and step of a sequence */
#define EXP_T int16_t /* result of exp */
#include "ftdsp/names.h"

#include "ftdsp/entries/add.inc"
#include "ftdsp/entries/exp.inc"
#include "ftdsp/entries/mul.inc"
#include "ftdsp/entries/pow_fusion.inc"
#include "ftdsp/entries/range.inc"
#include "ftdsp/entries/sub.inc"
#include "ftdsp/entries/subfusion.inc"
