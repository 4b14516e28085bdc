/* Every reduction: us_reduce_<name>. What they compute stands in the files named in all_reductions.inc (see reduction.h). */
#ifndef UNDERSTUDY_REDUCTIONS_H
#define UNDERSTUDY_REDUCTIONS_H

#include "kernels/reduce/reduce.h"

#define REDUCE(name, ...) \
    extern const Reduction us_reduce_##name; \
    const ReduceLanes *us_reduce_lanes_##name(void);
#define REDUCE_SUM REDUCE
#define REDUCE_FACTORS REDUCE
#define REDUCE_EXACT REDUCE
#define REDUCE_EXTREMUM REDUCE
#define REDUCE_RESULT(sum, name, ...) REDUCE(name)
#define REDUCE_INDEX(values, name, ...) REDUCE(name)
#define REDUCE_AFTER(first, name, ...) REDUCE(name)
#include "kernels/reduce/all_reductions.inc"

/* The p-norm: number 0 of the call is p. */
const Reduction *us_reduce_norm(double p);

#endif
