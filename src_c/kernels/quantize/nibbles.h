/* Integers of 4 bits, two's complement, two in a byte, the one in the low half first. */
#ifndef UNDERSTUDY_NIBBLES_H
#define UNDERSTUDY_NIBBLES_H

#include "kernels/kernels.h"

/* The numbers as int8: a view of `space`, which has room for two bytes for each of `bytes`, with twice its size along
 * `axis`, whose neighbours lie side by side. */
View us_unpack_nibbles(const View *bytes, int32_t axis, int8_t *space);

#endif
