#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/special.inc"
#include "kernels/map/instantiate.inc"
