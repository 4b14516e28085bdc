/* Two layers of a network, for groups of rows each by its own weights: y = activation(x W1 + b1) W2 + b2. */
#ifndef UNDERSTUDY_FEED_FORWARD_H
#define UNDERSTUDY_FEED_FORWARD_H

#include "kernels/matmul/grouped.h"

typedef enum FeedForwardKind {
    FEED_FLOATS,   /* us_product */
    FEED_INTEGERS, /* us_quantized_product: sums are (sum + b) * scale; between the layers stand integers of 8 bits,
                    * rint(activated * between_scale + between_offset), saturated */
    FEED_WEIGHTS,  /* us_quantized_weight_product */
} FeedForwardKind;

/* views: the list of int64 or absent (grouped.h), x, W1, scale1, offset1, b1, W2, scale2, offset2, b2, y, between_scale,
 * between_offset. x and y are [rows…, width], the others as the products take them, of items where there are groups.
 * What is between the layers is float32. `gated`: its first half is activated and multiplies the second one. */
typedef struct FeedForward {
    FeedForwardKind kind;
    const MapFormula *activation;
    bool gated;
    bool items; /* the weights and what belongs to them are items of axis 0, one for each group */
    GroupedKind how[2];
    GroupList list;
    int32_t groups;
    bool sizes_known;
    int64_t sizes[];
} FeedForward;
Kernel us_feed_forward;

#endif
