#include "ascend/common/dump.h"

#include <stdlib.h>

DumpState *ascend_dump_known(Platform *platform)
{
    return (DumpState *)(intptr_t)__atomic_load_n(&platform->options[DUMP_OPTION], __ATOMIC_ACQUIRE);
}

DumpState *ascend_dump(Platform *platform)
{
    DumpState *state = ascend_dump_known(platform);
    if (state != NULL) {
        return state;
    }
    us_platform_lock(platform);
    state = ascend_dump_known(platform);
    if (state == NULL) {
        state = calloc(1, sizeof *state);
        if (state != NULL) {
            pthread_mutex_init(&state->lock, NULL);
        }
        __atomic_store_n(&platform->options[DUMP_OPTION], (int64_t)(intptr_t)state, __ATOMIC_RELEASE);
    }
    us_platform_unlock(platform);
    return state;
}
