/* The line of a graph's launches: they run one after the other, in the order of the launches. */
#include "device/graph_launch.h"

static void wake_line(void *argument)
{
    GraphState *graph = argument;
    pthread_mutex_lock(&graph->line_lock);
    pthread_cond_broadcast(&graph->line_moved);
    pthread_mutex_unlock(&graph->line_lock);
}

void us_graph_enter_line(void *argument, uint64_t ticket)
{
    GraphLaunch *launch = argument;
    GraphState *graph = launch->graph;
    launch->is_in_line = true;
    launch->ticket = ticket;
    pthread_mutex_lock(&graph->line_lock);
    GraphLaunch *last = atomic_load(&graph->launches);
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    if (last == NULL) {
        atomic_store(&graph->launches, launch);
    } else {
        last->next = launch;
    }
    us_graph_draw_own(launch); /* here, so that of two launches the first in line has the earlier turns */
    pthread_mutex_unlock(&graph->line_lock);
}

void us_graph_leave_line(const GraphLaunch *launch)
{
    GraphState *graph = launch->graph;
    pthread_mutex_lock(&graph->line_lock);
    GraphLaunch *before = atomic_load(&graph->launches);
    if (before == launch) {
        atomic_store(&graph->launches, launch->next);
    } else {
        while (before->next != launch) {
            before = before->next;
        }
        before->next = launch->next;
    }
    pthread_cond_broadcast(&graph->line_moved);
    pthread_mutex_unlock(&graph->line_lock);
}

bool us_graph_has_turn(const GraphLaunch *launch)
{
    return !launch->is_in_line || atomic_load(&launch->graph->launches) == launch;
}

/* With the line's lock held, which is released meanwhile. Nobody may wait for the stream of the first (deferred mode). */
static void allow_first(GraphState *graph)
{
    const GraphLaunch *first = atomic_load(&graph->launches);
    StreamState *stream = us_stream_hold(first->stream) ? first->stream : NULL; /* NULL: it drops what it has */
    const uint64_t ticket = first->ticket;
    pthread_mutex_unlock(&graph->line_lock);
    if (stream != NULL) {
        us_stream_allow(stream, ticket);
        us_stream_let_go(stream);
    }
    pthread_mutex_lock(&graph->line_lock);
}

bool us_graph_wait_for_turn(const GraphLaunch *launch)
{
    GraphState *graph = launch->graph;
    us_task_sleeps(wake_line, graph);
    const GraphLaunch *allowed = NULL;
    pthread_mutex_lock(&graph->line_lock);
    while (!us_graph_has_turn(launch) && !us_task_gives_up()) {
        const GraphLaunch *first = atomic_load(&graph->launches);
        if (first != allowed) {
            allowed = first;
            allow_first(graph);
        } else {
            pthread_cond_wait(&graph->line_moved, &graph->line_lock);
        }
    }
    pthread_mutex_unlock(&graph->line_lock);
    us_task_sleeps(NULL, NULL);
    return us_graph_has_turn(launch);
}

void us_graph_each_launch(GraphState *graph, void (*visit)(GraphLaunch *launch, void *context), void *context)
{
    pthread_mutex_lock(&graph->line_lock);
    for (GraphLaunch *launch = atomic_load(&graph->launches); launch != NULL; launch = launch->next) {
        visit(launch, context);
    }
    pthread_mutex_unlock(&graph->line_lock);
}

/* The run that goes on; or the first that is queued, which a card would have begun. */
void us_graph_abort(Graph *public)
{
    GraphState *graph = graph_state(public);
    StreamState *stream = NULL;
    pthread_mutex_lock(&graph->line_lock);
    GraphLaunch *launch = atomic_load(&graph->launches);
    if (launch != NULL) {
        atomic_store(&launch->aborted, true);
        stream = us_stream_hold(launch->stream) ? launch->stream : NULL;
    }
    pthread_mutex_unlock(&graph->line_lock);
    if (stream != NULL) { /* without the lock, which the task takes when it wakes */
        us_stream_rouse(stream);
        us_stream_let_go(stream);
    }
}
