/* Level 2: a matrix and vectors (mcblas 6). Products of general matrices are in gemm.c. */
#include "arguments.h"

#define FUNCTIONS "level2.inc"
#include "types.h"
