/* Which bytes two uses of memory (device.h) have in common. */
#ifndef UNDERSTUDY_USE_H
#define UNDERSTUDY_USE_H

#include "device/device.h"

/* From their first bytes to their last. */
bool us_uses_overlap(const Use *a, const Use *b);
/* Some byte is used by both, and written by one. */
bool us_uses_conflict(const Use *a, const Use *b);
/* The same bytes from the same address on, by their levels. */
bool us_uses_are_alike(const Use *a, const Use *b);

#endif
