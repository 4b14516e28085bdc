#include "kernels/norm/narrow_lines.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

#include "kernels/norm/narrow_types.inc"

static const NarrowLoops loops[] = {{add_terms_half, apply_half, apply_each_half},
                                    {add_terms_bfloat, apply_bfloat, apply_each_bfloat}};

const NarrowLoops *us_narrow_loops(DType dtype)
{
    const bool is_bfloat = dtype == DTYPE_BFLOAT16;
    return is_bfloat || dtype == DTYPE_FLOAT16 ? &loops[is_bfloat] : NULL;
}
