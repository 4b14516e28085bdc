/* Types that runtime and device code have in common: programs include it beside mc_runtime.h. */
#ifndef MACA_MC_COMMON_H
#define MACA_MC_COMMON_H

#include "mc_runtime_types.h"

#endif
