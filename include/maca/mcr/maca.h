/* All of the MACA runtime. */
#ifndef MACA_MACA_H
#define MACA_MACA_H

#include "mc_runtime.h"

#endif
