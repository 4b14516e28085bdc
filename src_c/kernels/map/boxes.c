#include "kernels/map/formula.h"

#define FORMULAS "kernels/map/boxes.inc"
#include "kernels/map/instantiate.inc"
