/* Integers of 4 bits from integers that take 32 each. */
#ifndef UNDERSTUDY_PACKING_H
#define UNDERSTUDY_PACKING_H

#include "kernels/kernels.h"

/* Neighbours of a row are side by side in a byte, the first in its low half, 4 bits of each; what numbers do not fill is 0.
 * Views: numbers [batch, rows, columns] (int32), bytes [batch, rows and more, parts, bytes of a part] (uint8): each row is
 * in parts one after the other. */
Kernel us_pack_integers;

#endif
