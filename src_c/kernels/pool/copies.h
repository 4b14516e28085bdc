/* Pooling gradients of views that loops cannot walk along. */
#ifndef UNDERSTUDY_POOL_COPIES_H
#define UNDERSTUDY_POOL_COPIES_H

#include "kernels/pool/pooling.h"

/* Runs a kernel with the views of us_pooling_backward on packed copies of them, of a few images at a time where these stay in
 * the cache. */
KernelStatus us_pooling_of_copies(Kernel *run, const View *views, const Pooling *pooling);

#endif
