/* Long unit-stride arrays of floating types to and from float and double, by the best instructions of this machine;
 * the bits are those of the scalar forms. False: it is not such a case. */
#ifndef UNDERSTUDY_CONVERT_ARRAYS_H
#define UNDERSTUDY_CONVERT_ARRAYS_H

#include "tensor/lane.h"

bool us_load_array(Lane lane, void *to, const void *from, DType dtype, int64_t stride, int64_t count);
bool us_store_array(Lane lane, void *to, DType dtype, int64_t stride, const void *from, int64_t count);

/* Floats truncated and saturated. */
void us_store_bytes(int8_t *to, const float *from, int64_t count);

#endif
