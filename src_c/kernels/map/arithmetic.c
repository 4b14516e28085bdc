#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/arithmetic.inc"
#include "kernels/map/instantiate.inc"
