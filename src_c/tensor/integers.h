/* Neighbours of one integer type (or bool) to those of another one, modulo 2^n; to bool whether they are not 0. False: one of
 * the types is none. */
#ifndef UNDERSTUDY_INTEGERS_H
#define UNDERSTUDY_INTEGERS_H

#include "tensor/view.h"

bool us_convert_integers(void *to, DType to_dtype, const void *from, DType from_dtype, int64_t count);

#endif
