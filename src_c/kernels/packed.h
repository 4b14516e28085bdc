/* Views whose elements do not follow each other, as copies whose elements do: for kernels that walk elements in row-major
 * order, to which one that lies apart costs as much as dozens of neighbours. */
#ifndef UNDERSTUDY_PACKED_H
#define UNDERSTUDY_PACKED_H

#include "kernels/kernels.h"

typedef struct Packed {
    View view; /* the copy; or the view itself, which is contiguous, absent, small or repeats elements, or there is no memory */
    void *copy;
} Packed;

Packed us_pack(const View *view);
/* By the same thread; what was packed last first. */
void us_pack_end(const Packed *packed);

/* Whether some of the views have elements of their last axis side by side, and others do not. Absent ones do not count. */
bool us_rows_differ(const View *views, int count);

/* Runs a kernel that reads the first `inputs` of some views and writes the next `outputs`, all of them and whatever they held, on
 * copies of those whose elements of the last axis do not lie side by side. */
KernelStatus us_run_on_rows(Kernel *kernel, int inputs, int outputs, int count, const View *views, const void *attributes);

#endif
