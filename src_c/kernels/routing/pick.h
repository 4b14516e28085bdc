/* Rows of tokens by their numbers: for the files of this folder. */
#ifndef UNDERSTUDY_ROUTING_PICK_H
#define UNDERSTUDY_ROUTING_PICK_H

#include "kernels/kernels.h"

/* Row i of `routed`, whose first axes count `rows` of them, is token picked[i], counted over as many axes as leave a row;
 * -1: zeros. `routed` has elements. */
KernelStatus us_pick_tokens(const int64_t *picked, int64_t rows, const View *tokens, const View *routed);

#endif
