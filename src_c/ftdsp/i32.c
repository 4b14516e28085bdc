/* The functions of prefix i32_: elements are 32-bit integers. */
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
#include "subfusion.h"
#include "tensorarrayread.h"
#include "ftdsp/operators.h"

#define PREFIX i32
#define T int32_t
#define DTYPE DTYPE_INT32
#define FACTOR_T int /* scale and shift of a power */
#define NUMBER_T int /* start and step of a sequence */
#define EXP_T float /* result of exp */
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
#include "ftdsp/entries/subfusion.inc"
#include "ftdsp/entries/tensorarrayread.inc"
