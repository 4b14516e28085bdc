/* A scalar argument in the type a kernel computes in. Integer kernels read `integer` (uint64: its bits), floating ones
 * `real`, complex ones both parts. */
#ifndef UNDERSTUDY_NUMBER_H
#define UNDERSTUDY_NUMBER_H

#include <stdint.h>

typedef struct Number {
    double real, imaginary;
    int64_t integer;
} Number;

#endif
