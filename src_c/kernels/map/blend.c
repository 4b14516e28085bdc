#include "kernels/lanes/lanes.h"
#include "kernels/map/item.h"

#define BODIES "kernels/map/blend.inc"
#include "kernels/lanes/instantiate.inc"

MapBlendBody *us_map_blend_body(DType dtype)
{
    static MapBlendBody *const bodies[LANE_BODIES] = BODIES_FLOATS16(blend);
    return bodies[dtype == DTYPE_FLOAT16 ? FUSED_HALF : dtype == DTYPE_BFLOAT16 ? FUSED_BFLOAT : us_lane_of(dtype)];
}
