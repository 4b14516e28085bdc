#include "ranks/steps.h"

#include "device/order.h"
#include "kernels/scratch.h"

#include <string.h>

static const void *attributes_of(const RankSteps *steps, int32_t i)
{
    return (const char *)steps + steps->steps[i].attributes;
}

static int32_t count_views(const RankSteps *steps)
{
    int32_t count = 0;
    for (int32_t i = 0; i < steps->count; i++) {
        count += steps->steps[i].view_count;
    }
    return count;
}

static KernelStatus run_all(const RankSteps *steps, const View *views)
{
    KernelStatus status = KERNEL_OK;
    for (int32_t i = 0; i < steps->count; i++) {
        const Step *step = &steps->steps[i];
        if (status == KERNEL_OK) {
            status = step->kernel(views, attributes_of(steps, i));
        } else if (step->meets) {
            us_rank_task_drop(attributes_of(steps, i));
        }
        views += step->view_count;
    }
    return status;
}

static KernelStatus drop_all(const RankSteps *steps)
{
    for (int32_t i = 0; i < steps->count; i++) {
        if (steps->steps[i].meets) {
            us_rank_task_drop(attributes_of(steps, i));
        }
    }
    return KERNEL_NO_MEMORY;
}

KernelStatus us_rank_steps(const View *views, const void *attributes)
{
    const RankSteps *steps = attributes;
    const bool *temporaries = (const bool *)((const char *)steps + steps->temporaries);
    const int32_t count = count_views(steps);
    const size_t own_size = us_scratch_bytes(count, sizeof *views);
    char *memory = steps->scratch_size > SIZE_MAX - own_size ? NULL : us_scratch_take(own_size + steps->scratch_size);
    if (memory == NULL) {
        return drop_all(steps);
    }
    View *own = (View *)(void *)memory;
    memcpy(own, views, (size_t)count * sizeof *own);
    for (int32_t i = 0; i < count; i++) {
        if (temporaries[i]) {
            own[i].data = memory + own_size + (uintptr_t)views[i].data;
        }
    }
    const KernelStatus status = run_all(steps, own);
    us_scratch_give_back(memory);
    return status;
}

/* Of the first step that meets the others; NULL: none does. */
static const RankTask *first_meeting(const RankSteps *steps)
{
    int32_t i = 0;
    while (i < steps->count && !steps->steps[i].meets) {
        i++;
    }
    return i < steps->count ? attributes_of(steps, i) : NULL;
}

static bool are_ready(const void *attributes)
{
    const RankTask *first = first_meeting(attributes);
    return first == NULL || us_rank_task_is_ready(first);
}

static bool are_awaited(const void *attributes)
{
    const RankTask *first = first_meeting(attributes);
    return first != NULL && us_rank_task_is_awaited(first);
}

/* All steps meet the same ranks. */
static struct Moment *come_after(const void *attributes, Stream *stream)
{
    const RankSteps *steps = attributes;
    struct Moment *after = NULL;
    for (int32_t i = 0; i < steps->count; i++) {
        if (steps->steps[i].meets) {
            after = us_order_join(after, us_rank_task_after(attributes_of(steps, i), stream));
        }
    }
    return after;
}

static void be_over(const void *attributes, struct Moment *moment)
{
    const RankTask *first = first_meeting(attributes);
    if (first != NULL) {
        us_rank_task_over(first, moment);
    } else {
        us_order_let_go(moment);
    }
}

static void take(void *attributes, bool recorded)
{
    const RankSteps *steps = attributes;
    for (int32_t i = 0; i < steps->count; i++) {
        if (steps->steps[i].meets) {
            us_rank_task_take((void *)(uintptr_t)attributes_of(steps, i), recorded);
        }
    }
}

static void draw(void *attributes)
{
    const RankSteps *steps = attributes;
    for (int32_t i = 0; i < steps->count; i++) {
        if (steps->steps[i].meets) {
            us_rank_task_draw((void *)(uintptr_t)attributes_of(steps, i));
        }
    }
}

static void inherit(void *attributes, void *from)
{
    const RankSteps *steps = attributes, *before = from;
    for (int32_t i = 0; i < steps->count && steps->count == before->count; i++) {
        if (steps->steps[i].meets && before->steps[i].meets) {
            us_rank_task_inherit((void *)(uintptr_t)attributes_of(steps, i), (void *)(uintptr_t)attributes_of(before, i));
        }
    }
}

static void release(void *attributes, bool ran)
{
    const RankSteps *steps = attributes;
    for (int32_t i = 0; i < steps->count; i++) {
        if (steps->steps[i].meets) {
            us_rank_task_release((void *)(uintptr_t)attributes_of(steps, i), ran);
        }
    }
}

const LaunchMeeting us_rank_steps_meeting = {take, draw, inherit, release, are_ready, are_awaited, come_after, be_over};
