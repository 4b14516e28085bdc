#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/logic.inc"
#include "kernels/map/instantiate.inc"
