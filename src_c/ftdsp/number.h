/* Single elements of operands as float64, of those that do not lie beside each other (else: tensor/convert.h). A call of the
 * conversion would take ten times as long as the common types do. */
#ifndef FTDSP_NUMBER_H
#define FTDSP_NUMBER_H

#include "tensor/convert.h"
#include "tensor/view.h"

static inline double ft_number(const void *data, DType dtype, int64_t index)
{
    double value;
    switch (dtype) {
    case DTYPE_FLOAT32:
        return (double)((const float *)data)[index];
    case DTYPE_FLOAT16:
        return (double)half_to_float(((const uint16_t *)data)[index]);
    default:
        us_load_double(&value, (const char *)data + index * (int64_t)us_dtype_size(dtype), dtype, 1, 1);
        return value;
    }
}

static inline void ft_set_number(void *data, DType dtype, int64_t index, double value)
{
    if (dtype == DTYPE_FLOAT32) {
        ((float *)data)[index] = (float)value;
    } else {
        us_store_double((char *)data + index * (int64_t)us_dtype_size(dtype), dtype, 1, &value, 1);
    }
}

#endif
