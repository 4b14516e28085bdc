/* Numbers of classes as rows of which one element is on. */
#ifndef UNDERSTUDY_INDEX_ONE_HOT_H
#define UNDERSTUDY_INDEX_ONE_HOT_H

#include "kernels/kernels.h"

/* out[..., c, ...] = on where self[..., ...] is c, else off; c counts along the axis that out has more. Numbers that are no
 * place on it have off everywhere. views: self, integers; on, off, whose first elements count, and out, of one type. */
typedef struct OneHot {
    int32_t axis; /* of out */
} OneHot;
Kernel us_one_hot;

#endif
