/* Which way sums of a gather are found, by sizes and values. */
#ifndef UNDERSTUDY_CONV_WAY_H
#define UNDERSTUDY_CONV_WAY_H

#include "kernels/conv/conv.h"
#include "kernels/conv/gather.h"

/* As matrix products over columns, along rows of the input or of cells, or by Winograd's method in tiles. */
typedef enum Way { BY_PRODUCT, BY_ROWS, BY_TILES } Way;

/* The way for values that are not in its way; `slopes`: of the filter's. */
Way us_conv_usual_way(const Gather *gather, ConvMethod method, bool slopes, const View *in);

/* The way for these values. `outside`: some of the filter meets zeros outside the input. */
Way us_conv_way(const Gather *gather, ConvMethod method, bool outside, const View *in, const View *filter);

/* Whether some tap of some result lies outside the input. */
bool us_conv_looks_outside(const Gather *gather);

/* The largest magnitude of a floating type; not finite where there are infinities or NaN (or doubles beyond float,
 * which does no harm). 0 for integers. */
float us_conv_largest_magnitude(const View *view);

#endif
