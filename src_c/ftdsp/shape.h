/* Parameter arrays: dimensions and the like, read by the calling core; they may lie anywhere. */
#ifndef FTDSP_SHAPE_H
#define FTDSP_SHAPE_H

#include "ftdsp/call.h"
#include "kernels/arrays/arrays.h"

typedef struct Shape {
    int rank;
    int64_t size[ARRAY_RANK_LIMIT];
    int64_t elements;
} Shape;

/* Reads `rank` sizes (the caller has checked the rank): not NULL, none negative, not too many elements. After a refusal
 * the shape is empty. */
Shape ft_shape(FtCall *call, const char *name, const int *dims, int rank);

/* The strides that a caller gives are those of a row-major array; of an array without elements they may be any. */
void ft_strides(FtCall *call, const char *name, const int *strides, const Shape *shape);

/* lowest <= rank <= ARRAY_RANK_LIMIT */
void ft_rank(FtCall *call, const char *name, int rank, int lowest);

#endif
