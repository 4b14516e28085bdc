/* Parameter arrays: dimensions and the like, read by the calling core; they may lie anywhere. */
#ifndef FTDSP_SHAPE_H
#define FTDSP_SHAPE_H

#include "ftdsp/call.h"
#include "kernels/ft_arrays.h"

/* Elements an operand may have: more than any memory holds, few enough for byte counts not to overflow. */
#define FT_ELEMENT_LIMIT (INT64_C(1) << 44)

typedef struct Shape {
    int rank;
    int64_t size[FT_RANK_LIMIT];
    int64_t elements;
} Shape;

/* Reads `rank` sizes (the caller has checked the rank): not NULL, none negative, not too many elements. After a refusal
 * the shape is empty. */
Shape ft_shape(FtCall *call, const char *name, const int *dims, int rank);

/* lowest <= rank <= FT_RANK_LIMIT */
void ft_rank(FtCall *call, const char *name, int rank, int lowest);

#endif
