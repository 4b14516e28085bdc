/* What callers name: formulas, reductions and scans, whose loops are those of the level in use (tensor/levels.h). They are
 * compiled once, so that each has one address. */
#include "kernels/map/formulas.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scan/scan.h"

#define FORMULA(name, inputs, outputs, numbers, result) \
    const MapFormula us_map_##name = {#name, inputs, outputs, numbers, result, us_map_bodies_##name};
#define MAP(name, inputs, numbers, ...) FORMULA(name, inputs, 1, numbers, MAP_SAME)
#define MAP_TEST(name, inputs, numbers, ...) FORMULA(name, inputs, 1, numbers, MAP_BOOL)
#define MAP_PART(name, inputs, numbers, ...) FORMULA(name, inputs, 1, numbers, MAP_REAL)
#define MAP_MANY(name, inputs, outputs, numbers, ...) FORMULA(name, inputs, outputs, numbers, MAP_SAME)
#define MAP_PREPARED MAP_MANY
#define MAP_UNLESS MAP
#define MAP_POWER MAP
#define MAP_SPLIT(name, ...) FORMULA(name, 1, 1, 0, MAP_SAME)
#include "kernels/map/all_formulas.inc"

#define REDUCE_ONE 1
#define REDUCE_TWO 2
#define REDUCTION(name, numbers, outputs, first, values) \
    const Reduction us_reduce_##name = {#name, numbers, outputs, first, values, us_reduce_lanes_##name};
#define REDUCE(name, numbers, outputs, ...) REDUCTION(name, numbers, REDUCE_##outputs, NULL, NULL)
#define REDUCE_SUM(name, ...) REDUCTION(name, 0, 1, NULL, NULL)
#define REDUCE_RESULT(sum, name, ...) REDUCTION(name, 0, 1, NULL, NULL)
#define REDUCE_FACTORS(name, ...) REDUCTION(name, 0, 1, NULL, NULL)
#define REDUCE_EXACT(name, outputs, ...) REDUCTION(name, 0, REDUCE_##outputs, NULL, NULL)
#define REDUCE_EXTREMUM(name, ...) REDUCTION(name, 0, 1, NULL, NULL)
#define REDUCE_AFTER(first, name, numbers, outputs, ...) \
    REDUCTION(name, numbers, REDUCE_##outputs, &us_reduce_##first, NULL)
#define REDUCE_INDEX(values, name, ...) REDUCTION(name, 0, 2, NULL, &us_reduce_##values)
#include "kernels/reduce/all_reductions.inc"

#define SCAN(name, outputs, ...) const Scan us_scan_##name = {#name, outputs, us_scan_lanes_##name};
#include "kernels/scan/scans.inc"
