#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/activation.inc"
#include "kernels/map/instantiate.inc"
