/* Calls of element-wise operators: the operands' checks, then the work on the call's cores. */
#ifndef FTDSP_ELEMENTWISE_H
#define FTDSP_ELEMENTWISE_H

#include "ftdsp/call.h"
#include "kernels/arrays/elementwise.h"

typedef struct Operand {
    const char *name; /* the vendor's parameter */
    const void *data;
} Operand;

typedef struct Elementwise {
    const TileKernel *kernel;
    double numbers[ARRAY_NUMBERS];
    Operand inputs[ARRAY_INPUTS], outputs[ARRAY_OUTPUTS]; /* end with a name that is NULL, or at the limit */
    DType output_dtype;                             /* DTYPE_NONE: the prefix's */
    int first;                                      /* the first element worked on; those before are not looked at */
} Elementwise;

/* Checks the operands in the order given, inputs first, and computes elements first … first + count - 1, unless the
 * call has been refused. Every output may be the same array as an input, but outputs share nothing with each other. */
void ft_elementwise(FtCall *call, const Elementwise *work, int64_t count);

#endif
