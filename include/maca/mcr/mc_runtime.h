/* The MACA runtime: the header programs include. */
#ifndef __INCLUDE_MC_RUNTIME_H__
#define __INCLUDE_MC_RUNTIME_H__

/* Programs rely on these C headers being there already. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mc_runtime_types.h"

#include "mc_runtime_api.h"

#endif
