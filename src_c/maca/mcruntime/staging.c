#include "maca/mcruntime/staging.h"

#include "maca/common/platform.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct StagedCopy {
    Copy copy;
    size_t room; /* of `bytes` */
    unsigned char bytes[];
};

/* One released buffer is kept for the next copy: touching fresh pages takes longer than the copy itself. */
enum { SPARE_LIMIT = 128 << 20 };
static StagedCopy *spare;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

/* The spare buffer, when it is large enough. */
static StagedCopy *take_spare(size_t bytes)
{
    StagedCopy *found = NULL;
    pthread_mutex_lock(&spare_lock);
    if (spare != NULL && spare->room >= bytes) {
        found = spare;
        spare = NULL;
    }
    pthread_mutex_unlock(&spare_lock);
    return found;
}

/* The larger of the spare and the released buffer stays. */
void runtime_release_staged(void *argument)
{
    StagedCopy *released = argument;
    if (released->room <= SPARE_LIMIT) {
        pthread_mutex_lock(&spare_lock);
        if (spare == NULL || spare->room < released->room) {
            StagedCopy *smaller = spare;
            spare = released;
            released = smaller;
        }
        pthread_mutex_unlock(&spare_lock);
    }
    free(released);
}

StagedCopy *runtime_stage(const Copy *copy)
{
    size_t bytes = copy->width * copy->height; /* fits: the copy has been checked */
    StagedCopy *staged = take_spare(bytes);
    if (staged == NULL) {
        staged = malloc(sizeof *staged + bytes);
        if (staged == NULL) {
            return NULL;
        }
        staged->room = bytes;
    }
    for (size_t row = 0; row < copy->height; row++) {
        memcpy(staged->bytes + row * copy->width, (const char *)copy->source + row * copy->source_pitch, copy->width);
    }
    staged->copy = *copy;
    staged->copy.source = staged->bytes;
    staged->copy.source_side = SIDE_HOST;
    staged->copy.source_pitch = copy->width;
    return staged;
}

DeviceFault runtime_run_staged(void *argument, Explanation *why)
{
    const StagedCopy *staged = argument;
    return us_copy_perform(maca_platform(), &staged->copy, why) == COPY_OK ? DEVICE_FAULT_NONE : DEVICE_FAULT_COPY;
}
