#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/optimizer.inc"
#include "kernels/map/instantiate.inc"
