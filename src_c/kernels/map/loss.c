#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/loss.inc"
#include "kernels/map/instantiate.inc"
