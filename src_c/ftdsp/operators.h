/* The operators, written once for all prefixes: the element type comes with the call. Parameters are the vendor's, in
 * its order, without core_mask. A file per prefix (fp.c, hp.c …) gives them the vendor's names and types. */
#ifndef FTDSP_OPERATORS_H
#define FTDSP_OPERATORS_H

#include "ftdsp/call.h"

void ft_binarycrossentropygrad(FtCall *call, int input_size, int reduction, const void *input_x, const void *input_y,
                               const void *weight, const void *dloss, void *dx, int weight_defined);

#endif
