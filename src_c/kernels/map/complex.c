#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/complex.inc"
#include "kernels/map/instantiate.inc"
