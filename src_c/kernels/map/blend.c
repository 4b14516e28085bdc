#include "kernels/lanes/lanes.h"
#include "kernels/map/item.h"

#define BODIES "kernels/map/blend.inc"
#include "kernels/lanes/instantiate.inc"

MapBlendBody *us_map_blend_body(DType dtype)
{
    static MapBlendBody *const bodies[LANE_BODIES] = BODIES_FLOATS16(blend);
    return bodies[us_own_body(dtype) != 0 ? us_own_body(dtype) : (int)us_lane_of(dtype)];
}
