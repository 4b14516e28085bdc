/* What the files of this folder share. */
#ifndef ASCEND_PROFILER_H
#define ASCEND_PROFILER_H

#include "acl/acl_prof.h"
#include "device/device.h"
#include "report/report.h"

#include <pthread.h>

enum {
    HANDLE_PROFILER_CONFIGURATION = 0x27,
    HANDLE_PROFILER_SUBSCRIPTION = 0x28,
    HANDLE_STAMP = 0x29,
    HANDLE_STEP = 0x1f,
};

#endif
