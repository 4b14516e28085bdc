/* Branches of a graph that use the same bytes, which nothing in the graph orders: for the check race. Graphs in which numbers
 * in memory choose the steps are not looked at. */
#include "device/graph_internal.h"
#include "device/order.h"
#include "device/use.h"

#include <stdlib.h>

/* Steps are taken in an order that the graph allows. Each has a clock: so many steps of every branch are over behind it. */
typedef struct Walk {
    const GraphState *graph;
    size_t *offsets; /* of a branch's steps among all */
    size_t *next;    /* a branch's step */
    uint32_t *clocks;
} Walk;

static bool is_straight(const GraphState *graph, size_t *steps)
{
    bool is = graph->branch_count > 1;
    for (size_t b = 0; b < graph->branch_count; b++) {
        const Branch *branch = &graph->branches[b];
        is &= !branch->dormant;
        for (size_t s = 0; s < branch->count; s++) {
            const StepKind kind = branch->steps[s].kind;
            is &= kind != STEP_CHOICE && kind != STEP_JUMP && kind != STEP_SWITCH && kind != STEP_START;
        }
        *steps += branch->count;
    }
    return is;
}

static uint32_t *clock_of(const Walk *walk, size_t branch, size_t step)
{
    return walk->clocks + (walk->offsets[branch] + step) * walk->graph->branch_count;
}

/* Takes the branch's next step; false: there is none, or it waits. */
static bool take_step(const Walk *walk, size_t b)
{
    const Branch *branch = &walk->graph->branches[b];
    const size_t s = walk->next[b];
    const Step *step = s < branch->count ? &branch->steps[s] : NULL;
    const bool waits = step != NULL && step->kind == STEP_WAIT && !step->disabled;
    if (step == NULL || (waits && walk->next[step->target.branch] <= step->target.step)) {
        return false;
    }
    const uint32_t *before = s > 0 ? clock_of(walk, b, s - 1) : NULL;
    const uint32_t *awaited = waits ? clock_of(walk, step->target.branch, step->target.step) : NULL;
    uint32_t *clock = clock_of(walk, b, s);
    for (size_t k = 0; k < walk->graph->branch_count; k++) {
        clock[k] = before != NULL ? before[k] : 0;
        clock[k] = awaited != NULL && awaited[k] > clock[k] ? awaited[k] : clock[k];
    }
    clock[b] = (uint32_t)s + 1;
    walk->next[b]++;
    return true;
}

static void take_all(const Walk *walk)
{
    bool is_moving = true;
    while (is_moving) {
        is_moving = false;
        for (size_t b = 0; b < walk->graph->branch_count; b++) {
            while (take_step(walk, b)) {
                is_moving = true;
            }
        }
    }
}

static const Task *task_of(const Walk *walk, size_t branch, size_t step)
{
    const Step *found = &walk->graph->branches[branch].steps[step];
    return found->kind == STEP_TASK && !found->disabled ? &found->body->task : NULL;
}

/* The first uses of two tasks that are in conflict. */
static bool find_conflict(const Task *first, const Task *second, const Use **of_first, const Use **of_second)
{
    for (size_t i = 0; i < first->use_count; i++) {
        for (size_t k = 0; k < second->use_count; k++) {
            if (us_uses_conflict(&first->uses[i], &second->uses[k])) {
                *of_first = &first->uses[i];
                *of_second = &second->uses[k];
                return true;
            }
        }
    }
    return false;
}

/* Tells of the first task of an earlier branch that is in conflict with this one. */
static void compare(const Walk *walk, size_t b, size_t s)
{
    const Task *task = task_of(walk, b, s);
    for (size_t other = 0; other < b && task != NULL; other++) {
        for (size_t k = clock_of(walk, b, s)[other]; k < walk->next[other]; k++) {
            const Task *with = task_of(walk, other, k);
            const Use *of_with = NULL, *of_task = NULL;
            if (with == NULL || clock_of(walk, other, k)[b] > s || !find_conflict(with, task, &of_with, &of_task)) {
                continue;
            }
            us_order_tell_branches(with, of_with, task, of_task);
            return;
        }
    }
}

void us_graph_compare_branches(const GraphState *graph)
{
    size_t steps = 0;
    if (!is_straight(graph, &steps)) {
        return;
    }
    const size_t branches = graph->branch_count;
    Walk walk = {.graph = graph, .offsets = calloc(2 * branches, sizeof *walk.offsets),
                 .clocks = calloc(steps * branches, sizeof *walk.clocks)};
    if (walk.offsets != NULL && walk.clocks != NULL) {
        walk.next = walk.offsets + branches;
        for (size_t b = 1; b < branches; b++) {
            walk.offsets[b] = walk.offsets[b - 1] + graph->branches[b - 1].count;
        }
        take_all(&walk);
        for (size_t b = 1; b < branches; b++) {
            for (size_t s = 0; s < walk.next[b]; s++) {
                compare(&walk, b, s);
            }
        }
    }
    free(walk.offsets);
    free(walk.clocks);
}
