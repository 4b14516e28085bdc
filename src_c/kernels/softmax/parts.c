#include "kernels/softmax/plan.h"

#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <math.h>

/* The group in hand. */
typedef struct Parts {
    const SoftmaxPlan *plan;
    int64_t count, base[3]; /* of parts; the group's offset in each view */
    double shift, sum;      /* of the whole group */
    double *partial;        /* of each part */
} Parts;

static void *part_of(const Parts *group, int k, int64_t part)
{
    return us_softmax_element(group->plan->views[k], group->base[k] + part * PART);
}

static int64_t part_size(const Parts *group, int64_t part)
{
    return smaller(group->plan->group - part * PART, PART);
}

static void part_max(void *context, int64_t part)
{
    const Parts *group = context;
    group->partial[part] = group->plan->loops->part_max(part_of(group, 0, part), part_size(group, part));
}

static void part_sum(void *context, int64_t part)
{
    const Parts *group = context;
    const SoftmaxPlan *plan = group->plan;
    group->partial[part] = plan->loops->part_sum(&plan->work, part_of(group, 0, part), part_size(group, part),
                                                 group->shift, NULL);
}

static void part_forward(void *context, int64_t part)
{
    const Parts *group = context;
    const SoftmaxPlan *plan = group->plan;
    plan->loops->part_forward(&plan->work, part_of(group, 0, part), part_size(group, part), group->shift, group->sum,
                              part_of(group, 1, part));
    us_softmax_ends(plan);
}

static void part_dot(void *context, int64_t part)
{
    const Parts *group = context;
    const SoftmaxPlan *plan = group->plan;
    group->partial[part] = plan->loops->part_dot(&plan->work, part_of(group, 0, part), part_of(group, 1, part),
                                                 part_size(group, part));
}

static void part_backward(void *context, int64_t part)
{
    const Parts *group = context;
    const SoftmaxPlan *plan = group->plan;
    plan->loops->part_backward(&plan->work, part_of(group, 0, part), part_of(group, 1, part), part_size(group, part),
                               group->sum, part_of(group, 2, part));
    us_softmax_ends(plan);
}

static double sum_of_parts(const Parts *group)
{
    double sum = 0;
    for (int64_t part = 0; part < group->count; part++) {
        sum += group->partial[part];
    }
    return sum;
}

static double max_of_parts(const Parts *group)
{
    double highest = -INFINITY;
    for (int64_t part = 0; part < group->count; part++) {
        highest = group->partial[part] > highest ? group->partial[part] : highest;
    }
    return highest;
}

static void run_group(Parts *group)
{
    const bool forward = us_softmax_is_forward(group->plan);
    group->shift = 0;
    if (forward && group->plan->work.algorithm != SOFTMAX_FAST) {
        us_parallel(group->count, part_max, group);
        group->shift = max_of_parts(group);
    }
    us_parallel(group->count, forward ? part_sum : part_dot, group);
    group->sum = sum_of_parts(group);
    us_parallel(group->count, forward ? part_forward : part_backward, group);
}

bool us_softmax_run_parts(const SoftmaxPlan *plan)
{
    Parts group = {.plan = plan, .count = (plan->group + PART - 1) / PART};
    group.partial = us_scratch_array(group.count, sizeof *group.partial);
    if (!group.partial) {
        return false;
    }
    for (int64_t row = 0; row < plan->others; row++) {
        for (int k = 0; k < plan->count; k++) {
            group.base[k] = us_axes_offset(&plan->other_axes, k, row);
        }
        run_group(&group);
    }
    us_scratch_give_back(group.partial);
    return true;
}
