#include "kernels/reduce/reduction.h"
#include "kernels/reduce/reductions.h"

/* As with sums; more would not fit into the registers, indices being states too. */
#define REDUCE_ROWS 4
#define REDUCTIONS "kernels/reduce/extrema.inc"
#include "kernels/reduce/instantiate.inc"
