#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/comparison.inc"
#include "kernels/map/instantiate.inc"
