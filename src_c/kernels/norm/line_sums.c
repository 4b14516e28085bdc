#include "kernels/norm/line_sums.h"

#include "kernels/maths/maths.h"
#include "tensor/levels.h"

#include <math.h>
#include <string.h>

#define TYPES "kernels/norm/line_sums.inc"
#include "tensor/instantiate.inc"

#define LOOP_OF(level) add_terms_##level

void us_add_terms(double *sums, const void *x, int64_t count, bool wide, Term term, double center, double power)
{
    typedef void Add(double *, const void *, int64_t, bool, Term, double, double);
    static Add *const loops[LEVEL_COUNT] = {US_EACH_LEVEL(LOOP_OF)};
    loops[us_level()](sums, x, count, wide, term, center, power);
}
