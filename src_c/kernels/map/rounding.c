#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/rounding.inc"
#include "kernels/map/instantiate.inc"
