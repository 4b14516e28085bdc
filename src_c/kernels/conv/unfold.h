/* Windows of images as columns, and back. */
#ifndef UNDERSTUDY_CONV_UNFOLD_H
#define UNDERSTUDY_CONV_UNFOLD_H

#include "kernels/conv/conv.h"

/* images [n, c, h, w], columns [n, c * taps, positions]: row c * taps + t holds tap t of channel c. Real types. */
Kernel us_conv_unfold; /* images, columns; attributes ConvColumns */
Kernel us_conv_fold;   /* columns, images: the sum of all taps of an element, in the order of the taps, in float32 */

#endif
