/* Every formula of the map family: us_map_<name>. What they compute stands in the files named here (see formula.h). */
#ifndef UNDERSTUDY_MAP_FORMULAS_H
#define UNDERSTUDY_MAP_FORMULAS_H

#include "kernels/map/map.h"

#define MAP(name, ...) extern const MapFormula us_map_##name;
#define MAP_TEST MAP
#define MAP_PART MAP
#define MAP_MANY MAP
#define MAP_SPLIT MAP
#define MAP_UNLESS MAP
#define MAP_POWER MAP
#include "kernels/map/activation.inc"
#include "kernels/map/activation_gradient.inc"
#include "kernels/map/arithmetic.inc"
#include "kernels/map/comparison.inc"
#include "kernels/map/complex.inc"
#include "kernels/map/exponential.inc"
#include "kernels/map/logic.inc"
#include "kernels/map/loss.inc"
#include "kernels/map/optimizer.inc"
#include "kernels/map/rounding.inc"
#include "kernels/map/special.inc"
#include "kernels/map/trigonometric.inc"
#undef MAP
#undef MAP_TEST
#undef MAP_PART
#undef MAP_MANY
#undef MAP_SPLIT
#undef MAP_UNLESS
#undef MAP_POWER

#endif
