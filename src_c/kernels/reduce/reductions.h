/* Every reduction: us_reduce_<name>. What they compute stands in the files named here (see reduction.h). */
#ifndef UNDERSTUDY_REDUCTIONS_H
#define UNDERSTUDY_REDUCTIONS_H

#include "kernels/reduce/reduce.h"

#define REDUCE(name, ...) extern const Reduction us_reduce_##name;
#define REDUCE_SUM(name, ...) extern const Reduction us_reduce_##name;
#define REDUCE_EXACT(name, ...) extern const Reduction us_reduce_##name;
#define REDUCE_EXTREMUM(name, ...) extern const Reduction us_reduce_##name;
#define REDUCE_INDEX(values, name, ...) extern const Reduction us_reduce_##name;
#define REDUCE_AFTER(first, name, ...) extern const Reduction us_reduce_##name;
#include "kernels/reduce/extrema.inc"
#include "kernels/reduce/sums.inc"
#undef REDUCE
#undef REDUCE_SUM
#undef REDUCE_EXACT
#undef REDUCE_EXTREMUM
#undef REDUCE_AFTER
#undef REDUCE_INDEX

/* The p-norm: number 0 of the call is p. */
const Reduction *us_reduce_norm(double p);

#endif
