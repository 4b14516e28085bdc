/* What the memory registry tells the pools. All of it with the memory lock held. */
#ifndef UNDERSTUDY_POOL_INTERNAL_H
#define UNDERSTUDY_POOL_INTERNAL_H

#include "device/device_internal.h"

void us_pool_loses(Allocation *block); /* the block ends */
void us_pools_end(DeviceState *device); /* all blocks of the device have ended: so do its pools */

#endif
