/* Sums, means and maxima of rows of a table (aclnn EmbeddingBag). */
#ifndef UNDERSTUDY_EMBEDDING_BAG_H
#define UNDERSTUDY_EMBEDDING_BAG_H

#include "kernels/kernels.h"

typedef enum BagMode { BAG_SUM, BAG_MEAN, BAG_MAX } BagMode;

/* views: table (rows, width), indices, offsets, scales of the indices or absent, output (bags, width), bag of each
 * index, -1 for one that is in none (empty: not wanted), size of each bag, and of BAG_MAX the rows that hold the maxima
 * (bags, width), else (bags) zeros. Bag b has the indices from offsets[b] up to offsets[b + 1], the last one up to the end
 * unless an offset more is given. Indices equal to `padding`, or outside the table, take no part; an empty bag is 0. Sums
 * are in float64. */
typedef struct EmbeddingBag {
    BagMode mode;
    int64_t padding; /* negative: none */
} EmbeddingBag;
Kernel us_embedding_bag;

#endif
