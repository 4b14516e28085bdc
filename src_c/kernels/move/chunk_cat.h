/* Tensors cut into chunks along their first dimension, the chunks of one number side by side. */
#ifndef UNDERSTUDY_CHUNK_CAT_H
#define UNDERSTUDY_CHUNK_CAT_H

#include "kernels/kernels.h"

/* views: `count` tensors of rank 1 or more, then target [chunks, elements]. Chunk i of a tensor has as many rows as the
 * others, rows / chunks rounded up; rows that the tensor does not have are 0. Converts to the target's type. */
typedef struct ChunkCat {
    int32_t count;
} ChunkCat;
Kernel us_chunk_cat;

/* Elements of a chunk of the tensor. */
int64_t us_chunk_elements(const View *tensor, int64_t chunks);

#endif
