#include "kernels/reduce/reduction.h"
#include "kernels/reduce/reductions.h"

#define REDUCTIONS "kernels/reduce/extrema.inc"
#include "kernels/reduce/instantiate.inc"
