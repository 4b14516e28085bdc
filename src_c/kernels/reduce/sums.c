#include "kernels/reduce/reduction.h"
#include "kernels/reduce/reductions.h"

#define REDUCTIONS "kernels/reduce/sums.inc"
#include "kernels/reduce/instantiate.inc"

const Reduction *us_reduce_norm(double p)
{
    return p == 0                    ? &us_reduce_norm_0
           : p == 1                  ? &us_reduce_norm_1
           : p == 2                  ? &us_reduce_norm_2
           : p == __builtin_inf()    ? &us_reduce_norm_high
           : p == -__builtin_inf()   ? &us_reduce_norm_low
                                     : &us_reduce_norm_of;
}
