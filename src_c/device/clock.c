/* Waiting until a time. */
#include "device/stream_internal.h"

#include <time.h>

struct timespec us_deadline(uint64_t nanoseconds_from_now)
{
    uint64_t deadline = us_now() + nanoseconds_from_now;
    return (struct timespec){.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};
}

bool us_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool made = pthread_cond_init(condition, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return made;
}
