/* The two functions of the profiler's interface that need no profiler. */
#include "experiment/msprof/toolchain/prof_api.h"

#include "report/hash.h"
#include "report/trace.h"

uint64_t MsprofGetHashId(const char *hashInfo, size_t length)
{
    return hashInfo != NULL ? us_hash(hashInfo, length) : 0;
}

uint64_t MsprofSysCycleTime(void)
{
    return us_now();
}
