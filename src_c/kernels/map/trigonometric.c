#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/trigonometric.inc"
#include "kernels/map/instantiate.inc"
