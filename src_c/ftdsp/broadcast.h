/* Gradients of broadcast operands: arrays of a call as views, maps over them, and sums along the axes where an operand was
 * repeated. Computed as the map and reduce families do: sums of floats in float64, rounded once. */
#ifndef FTDSP_BROADCAST_H
#define FTDSP_BROADCAST_H

#include "ftdsp/call.h"
#include "ftdsp/shape.h"
#include "kernels/map/formulas.h"

/* An array of the call's element type. */
View ft_array(const FtCall *call, const void *data, const Shape *shape);

/* views: inputs, which are broadcast to the output, and the output. Converts to `compute` first, and from it last. */
void ft_map(FtCall *call, const MapFormula *formula, DType compute, int inputs, const View *views);

/* The sum of `from` along the axes where `to` has another size: 1. */
void ft_sum_to(FtCall *call, View from, View to);

#endif
