/* Lists of different lengths that lie behind each other. */
#ifndef UNDERSTUDY_INDEX_JAGGED_H
#define UNDERSTUDY_INDEX_JAGGED_H

#include "kernels/kernels.h"

/* A permutation of lists as one of their elements: the places of list i of the results, from ends[i] to ends[i + 1], get
 * begins[permutation[i]] and the numbers behind it. Ends that do not go from 0 to the number of results, or fall back, and
 * lists that are not there, are a fault, before anything is written.
 * views: permutation [lists]; begins, ends [lists + 1]; results; all int32. */
Kernel us_expand_permutation;

#endif
