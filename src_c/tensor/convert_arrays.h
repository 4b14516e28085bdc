/* Long unit-stride arrays of floating types to and from float, by the best instructions of this machine; the bits are
 * those of the scalar forms. False: it is not such a case. */
#ifndef UNDERSTUDY_CONVERT_ARRAYS_H
#define UNDERSTUDY_CONVERT_ARRAYS_H

#include "tensor/view.h"

bool us_load_array(float *to, const void *from, DType dtype, int64_t stride, int64_t count);
bool us_store_array(void *to, DType dtype, int64_t stride, const float *from, int64_t count);

#endif
