/* Kernels one after another as one task of a stream, some of which meet the other ranks. */
#ifndef UNDERSTUDY_RANKS_STEPS_H
#define UNDERSTUDY_RANKS_STEPS_H

#include "ranks/exchange.h"

typedef struct Step {
    Kernel *kernel;
    int32_t view_count;
    bool meets;        /* its attributes begin with a RankTask */
    size_t attributes; /* where they begin, in bytes behind the begin of the RankSteps, as do the next */
} Step;

/* views: those of the steps, in their order. Where a view is a temporary, its data is a place in scratch memory. */
typedef struct RankSteps {
    int32_t count;
    size_t scratch_size; /* of all temporaries; aligned to 64 */
    size_t temporaries;  /* a bool for each view */
    Step steps[];
} RankSteps;
Kernel us_rank_steps;

extern const LaunchMeeting us_rank_steps_meeting;

#endif
