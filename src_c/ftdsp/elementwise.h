/* Calls of element-wise operators: the operands' checks, then the formula (kernels/map) on the call's cores. */
#ifndef FTDSP_ELEMENTWISE_H
#define FTDSP_ELEMENTWISE_H

#include "ftdsp/call.h"
#include "kernels/map/item.h"

enum { ELEMENTWISE_NUMBERS = 5, ELEMENTWISE_INPUTS = 4, ELEMENTWISE_OUTPUTS = 3 };

typedef struct Operand {
    const char *name; /* the vendor's parameter */
    const void *data;
} Operand;

/* Inputs and outputs are those of the formula, in its order. An input without a name is one number for all elements: it
 * follows the formula's own numbers, in the order of such inputs. */
typedef struct Elementwise {
    const MapFormula *formula;
    double numbers[ELEMENTWISE_NUMBERS];
    Operand inputs[ELEMENTWISE_INPUTS], outputs[ELEMENTWISE_OUTPUTS];
    DType output_dtype; /* DTYPE_NONE: the prefix's */
    int first;          /* the first element worked on; those before are not looked at */
} Elementwise;

/* Checks the operands in the order given, inputs first, and computes elements first … first + count - 1, unless the
 * call has been refused. Every output may be the same array as an input, but outputs share nothing with each other. */
void ft_elementwise(FtCall *call, const Elementwise *work, int64_t count);

/* A formula on contiguous arrays of a type, and results of another. Integers compute in float64, or in float32 where that is
 * exact, too; results are truncated and saturate when stored. */
typedef struct ArrayMap {
    MapCall call;
    MapItem item;
} ArrayMap;

void ft_map_call(MapCall *call, const MapFormula *formula, const double *numbers, DType dtype);

/* Of `count` elements. NULL among the inputs: a number. The map stays where it is. */
void ft_array_map(ArrayMap *map, const MapFormula *formula, const double *numbers, DType dtype, const void *const *inputs,
                  DType output_dtype, void *const *outputs, int64_t count);

/* Elements begin … end-1: the body of an ft_split. */
void ft_run_array_map(void *map, int64_t begin, int64_t end);

#endif
