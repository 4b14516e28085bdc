/* The two functions of the profiler's interface that need no profiler. */
#include "experiment/msprof/toolchain/prof_api.h"

#include "report/trace.h"

uint64_t MsprofGetHashId(const char *hashInfo, size_t length)
{
    if (hashInfo == NULL) {
        return 0;
    }
    uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a */
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)hashInfo[i]) * 0x100000001b3U;
    }
    return hash;
}

uint64_t MsprofSysCycleTime(void)
{
    return us_now();
}
