/* Integers of 4 bits, two's complement, two in a byte, the one in the low half first. */
#ifndef UNDERSTUDY_NIBBLES_H
#define UNDERSTUDY_NIBBLES_H

#include "kernels/kernels.h"

/* In place of the axis along which a byte has two numbers. */
enum { NOT_PACKED = -1 };

/* The numbers as int8: a view of `space`, which has room for two bytes for each of `bytes`, with twice its size along
 * `axis`, whose neighbours lie side by side. */
View us_unpack_nibbles(const View *bytes, int32_t axis, int8_t *space);

/* Row-major neighbours in float32, two for each of `count` bytes, and the values of these bytes, in float32 too. Numbers
 * beyond -8 … 7 become the nearest, NaN 0; `numbers` and `bytes` may be one array. */
void us_nibbles_to_bytes(const float *numbers, int64_t count, float *bytes);
void us_bytes_to_nibbles(const float *bytes, int64_t count, float *numbers);

#endif
