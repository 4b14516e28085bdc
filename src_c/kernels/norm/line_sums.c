#include "kernels/norm/line_sums.h"

#include "kernels/maths/maths.h"
#include "tensor/levels.h"

#include <math.h>
#include <string.h>

#define TYPES "kernels/norm/line_sums.inc"
#include "tensor/instantiate.inc"

void us_add_terms(double *sums, const void *x, int64_t count, bool wide, Term term, double center, double power)
{
    typedef void Add(double *, const void *, int64_t, bool, Term, double, double);
    static Add *const loops[LEVEL_COUNT] = {
        [LEVEL_BASE] = add_terms_base,
#ifdef US_HAS_LEVELS
        [LEVEL_V3] = add_terms_v3,
        [LEVEL_V4] = add_terms_v4,
#endif
    };
    loops[us_level()](sums, x, count, wide, term, center, power);
}
