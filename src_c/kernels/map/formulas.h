/* Every formula of the map family: us_map_<name>. What they compute stands in the files named in all_formulas.inc (see
 * formula.h). */
#ifndef UNDERSTUDY_MAP_FORMULAS_H
#define UNDERSTUDY_MAP_FORMULAS_H

#include "kernels/map/map.h"

#define MAP(name, ...) \
    extern const MapFormula us_map_##name; \
    MapBodies us_map_bodies_##name;
#define MAP_TEST MAP
#define MAP_PART MAP
#define MAP_MANY MAP
#define MAP_SPLIT MAP
#define MAP_PREPARED MAP
#define MAP_UNLESS MAP
#define MAP_POWER MAP
#include "kernels/map/all_formulas.inc"

#endif
