#include "kernels/norm/narrow_lines.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

#define TYPES "kernels/norm/narrow_types.inc"
#include "tensor/instantiate.inc"

#define LOOPS_OF(level) \
    {{add_terms_half_##level, apply_half_##level, apply_each_half_##level}, \
     {add_terms_bfloat_##level, apply_bfloat_##level, apply_each_bfloat_##level}}

static const NarrowLoops loops[LEVEL_COUNT][2] = {US_EACH_LEVEL(LOOPS_OF)};

const NarrowLoops *us_narrow_loops(DType dtype)
{
    const bool is_bfloat = dtype == DTYPE_BFLOAT16;
    return is_bfloat || dtype == DTYPE_FLOAT16 ? &loops[us_level()][is_bfloat] : NULL;
}
