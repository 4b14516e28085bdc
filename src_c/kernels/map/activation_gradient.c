#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/activation_gradient.inc"
#include "kernels/map/instantiate.inc"
