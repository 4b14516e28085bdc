/* Borders made from the inside: mirrored, repeated, or wrapped round; and the gradient. */
#ifndef UNDERSTUDY_PAD_H
#define UNDERSTUDY_PAD_H

#include "kernels/kernels.h"

typedef enum BorderMode {
    BORDER_REFLECT,   /* mirrored at the border element, which is not repeated */
    BORDER_REPLICATE, /* the border element */
    BORDER_WRAP,      /* from the other end */
} BorderMode;

enum { PAD_AXES = 3 };

/* The last `axes` axes are padded: place j of one is place j - before of the inside. Negative numbers cut. */
typedef struct BorderPad {
    BorderMode mode;
    int32_t axes;
    int64_t before[PAD_AXES];
} BorderPad;
Kernel us_border_pad; /* views: inside, padded; of one type */

/* Every element of the inside gets the sum of the elements of `padded` that were copied from it, in order, in the wide
 * type, rounded once. views: padded, inside. */
Kernel us_border_pad_gradient;

#endif
