/* Launches of graphs, for the files about them. */
#ifndef UNDERSTUDY_GRAPH_LAUNCH_H
#define UNDERSTUDY_GRAPH_LAUNCH_H

#include "device/graph_internal.h"

/* The tasks that steps had before an update, for the launches that were queued before it. */
typedef struct Replaced {
    References references;
    size_t count;
    Body *bodies[]; /* of the step with that id; NULL: it has none. Held */
} Replaced;

/* A task of a step that is a launch's alone. NULL: none. */
typedef struct OwnTask {
    Body *original, *copy; /* held */
} OwnTask;

/* One launch. `records` has a number for each external step: the record it makes or waits for. */
typedef struct GraphLaunch {
    References references; /* its task, and the call that makes it */
    GraphState *graph;     /* held */
    StreamState *stream;
    struct GraphLaunch *next; /* in the graph's line: a later one */
    bool is_in_line;          /* false: not queued, or a step of another graph, which runs within that one's launches */
    uint64_t ticket;          /* of its task, once it is in line */
    _Atomic bool aborted;
    Replaced *replaced; /* held; NULL: no update since the launch. With the graph's lock */
    OwnTask *own;       /* by the step's id; while it runs with the graph's lock */
    size_t own_count;
    Moment *moment;     /* for the checks, of the call: what it waits for, then when it is over */
    uint64_t records[];
} GraphLaunch;

/* Runs the graph's steps, as that launch, or, without one, as a part of another graph. */
DeviceFault us_graph_run(GraphState *graph, const GraphLaunch *launch, Explanation *why);

/* The task of a step of the graph as it was at the launch, or the launch's own; NULL: none. With the graph's lock held. */
Body *us_graph_body_at_launch(const GraphLaunch *launch, const Step *step);
void us_replaced_let_go(Replaced *replaced);

/* ---- tasks that are a launch's own (graph_own.c) ---- */

/* Makes them; false: no memory. A launch has none where the graph decides by itself how often they run. */
bool us_graph_copy_own(GraphLaunch *launch);
/* Such a step runs, even if the program has disabled it since: others may wait for it. */
bool us_graph_has_own(const GraphLaunch *launch, const Step *step);
/* What the step is to run: a copy of its task as updates have left it, in the turn that the launch has drawn. With the graph's
 * lock held. */
Body *us_graph_own_body(const GraphLaunch *launch, const Step *step);
/* They take their turns among all that is queued, in the order in which they were recorded. */
void us_graph_draw_own(const GraphLaunch *launch);
bool us_graph_own_is_awaited(const GraphLaunch *launch);
void us_graph_end_own(GraphLaunch *launch);

/* ---- the line (graph_line.c) ---- */

/* While the stream is locked: so no launch is ahead of another one in the line and behind it in a stream. */
void us_graph_enter_line(void *launch, uint64_t ticket);
void us_graph_leave_line(const GraphLaunch *launch);
/* Once true it stays so until the launch is over. */
bool us_graph_has_turn(const GraphLaunch *launch);
/* False: the task gives up before its turn. */
bool us_graph_wait_for_turn(const GraphLaunch *launch);
/* Calls `visit` with each launch in the line. */
void us_graph_each_launch(GraphState *graph, void (*visit)(GraphLaunch *launch, void *context), void *context);

#endif
