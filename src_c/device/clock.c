/* Time, and waiting for a short time. */
#include "device/stream_internal.h"

#include <time.h>
#include <unistd.h>

static const uint64_t SPIN_NANOSECONDS = 30 * 1000;

uint64_t us_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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

static bool single_processor(void)
{
    static _Atomic int processors = 0;
    int known = atomic_load_explicit(&processors, memory_order_relaxed);
    if (known == 0) {
        known = (int)sysconf(_SC_NPROCESSORS_ONLN);
        atomic_store_explicit(&processors, known, memory_order_relaxed);
    }
    return known == 1;
}

bool us_spin(Spin *spin)
{
    enum { ROUNDS_PER_LOOK = 32 };
    if (spin->deadline == 0) {
        if (single_processor()) {
            return false;
        }
        spin->deadline = us_now() + SPIN_NANOSECONDS;
    }
    __builtin_ia32_pause();
    spin->rounds++;
    return spin->rounds % ROUNDS_PER_LOOK != 0 || us_now() < spin->deadline;
}
