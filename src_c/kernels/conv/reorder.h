/* Another order of filters of 8-bit integers in vectors of 32 channels, as units that multiply small matrices want them.
 *
 * A plain filter is rows of bytes, one for each result: blocks of 32 neighbours. Reordered, the blocks come first, then
 * groups of 8 rows, and the 256 bytes of a group's block stand by pieces of 4: see piece_of in reorder.c. Biases follow in
 * groups of 32. */
#ifndef UNDERSTUDY_CONV_REORDER_H
#define UNDERSTUDY_CONV_REORDER_H

#include "kernels/conv/conv.h"

enum { REORDER_BLOCK = 32 }; /* bytes of a block, biases of a group */

/* views: the plain bytes [rows, bytes of a row], as many reordered. Where the last group is not full, what belongs to no
 * row is 0, and what has no room is left out. */
Kernel us_conv_reorder_filter;

/* views: plain float32 [results], as many reordered */
Kernel us_conv_reorder_bias;

/* Where the bias of a result stands. */
int64_t us_conv_reordered_bias(int64_t result);

/* us_conv_forward of every 32nd result from `lane` on, with a reordered filter: w is the view of the whole plain filter
 * [results, blocks, 32, rows, columns], whose bytes are reordered; the other views are those of the lane. */
typedef struct ReorderedConvolution {
    Convolution conv;
    int64_t lane;
} ReorderedConvolution;
Kernel us_conv_forward_reordered;

#endif
