/* Two threads meet in many rounds, at another distance in each: one gives what it has made to the other, and both do something
 * to it at about the same time. */
#ifndef UNDERSTUDY_TEST_MEETING_H
#define UNDERSTUDY_TEST_MEETING_H

#include "../check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int round_given, round_ended;

/* Awake, so that the two meet; where there is one processor for both, the other gets it. */
static inline void wait_until(atomic_int *number, int value)
{
    for (int i = 1; atomic_load(number) < value; i++) {
        if (i % 4096 == 0) {
            sched_yield();
        }
    }
}

/* For the one that gives: the other begins, and this one comes a little later. */
static inline void let_go_on(int round)
{
    enum { STEP = 37, MOST = 2500 };
    atomic_store(&round_given, round);
    for (volatile int pause = 0; pause < round * STEP % MOST; pause++) {
    }
}

static inline void wait_for_end(int round)
{
    wait_until(&round_ended, round);
}

/* For the other one. */
static inline void wait_for_round(int round)
{
    wait_until(&round_given, round);
}

static inline void end_round(int round)
{
    atomic_store(&round_ended, round);
}

#endif
