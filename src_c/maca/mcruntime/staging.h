/* Copies whose source is read before they run, into memory of our own. */
#ifndef MACA_STAGING_H
#define MACA_STAGING_H

#include "device/device.h"

typedef struct StagedCopy StagedCopy;

/* Reads the copy's source, which must be host memory. NULL: no memory. */
StagedCopy *runtime_stage(const Copy *copy);

/* The task that writes the destination, and its release. */
DeviceFault runtime_run_staged(void *argument, Explanation *why);
void runtime_release_staged(void *argument);

#endif
