#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/exponential.inc"
#include "kernels/map/instantiate.inc"
