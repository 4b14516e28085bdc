/* What the pooling functions need of their descriptor. */
#ifndef MCDNN_POOLING_H
#define MCDNN_POOLING_H

#include "check.h"

/* poolingDesc/alive, poolingDesc/set */
const PoolingDescriptor *check_pooling(Call *call, mcdnnPoolingDescriptor_t poolingDesc);

/* Output size of a spatial axis: 1 + floor((in + 2 padding - window) / stride); 0 when the window does not fit. */
int64_t pooling_output(const PoolingDescriptor *pooling, int axis, int64_t size);

#endif
