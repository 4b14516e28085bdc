/* 8-bit floating-point numbers for products: sign, four bits of exponent, three of fraction (E4M3). The largest is 448,
 * there is no infinity, and 0x7f and 0xff are not a number. */
#ifndef UNDERSTUDY_E4M3_H
#define UNDERSTUDY_E4M3_H

#include "tensor/view.h"

/* Makes a view [batch, rows, columns] of such bytes, whose rows or columns are packed, one of float32 with the same
 * numbers. They lie in a block of scratch memory, which the caller gives back; NULL: no memory. */
float *us_e4m3_widen(View *view);

#endif
