/* Copies between tensors and memory in which one or two of their axes are cut into blocks, which lie side by side. */
#ifndef UNDERSTUDY_BLOCKS_H
#define UNDERSTUDY_BLOCKS_H

#include "kernels/kernels.h"

enum { BLOCKED_RANK_LIMIT = 8 };

/* Of an axis of the memory: the tensor's axis that it counts, and how. */
typedef struct BlockedAxis {
    int32_t axis;
    int32_t block; /* elements of a block; 0: the axis is not cut */
    bool inside;   /* it counts the elements of a block, not the blocks */
} BlockedAxis;

typedef struct Blocks {
    BlockedAxis axes[BLOCKED_RANK_LIMIT];
} Blocks;

/* views: the tensor; the memory, contiguous, with an axis for each that Blocks describes, of whole blocks. Into blocks what the
 * tensor does not fill becomes 0; out of blocks it is not read. Elements of one size keep their bits. */
Kernel us_into_blocks;
Kernel us_out_of_blocks;

#endif
