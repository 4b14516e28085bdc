#include "kernels/map/formula.h"

#define BODY "kernels/map/complex_quotients.inc"
#include "kernels/both_reals.inc"

#define FORMULAS "kernels/map/arithmetic.inc"
#include "kernels/map/instantiate.inc"
