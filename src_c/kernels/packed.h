/* Inputs whose elements do not follow each other, as copies whose elements do: for kernels that walk elements in row-major
 * order, to which one that lies apart costs as much as dozens of neighbours. */
#ifndef UNDERSTUDY_PACKED_H
#define UNDERSTUDY_PACKED_H

#include "tensor/view.h"

typedef struct Packed {
    View view; /* the copy; or the view itself, which is contiguous, absent, small or repeats elements, or there is no memory */
    void *copy;
} Packed;

Packed us_pack(const View *view);
/* By the same thread; what was packed last first. */
void us_pack_end(const Packed *packed);

#endif
