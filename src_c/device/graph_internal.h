/* What the files about graphs share. */
#ifndef UNDERSTUDY_GRAPH_INTERNAL_H
#define UNDERSTUDY_GRAPH_INTERNAL_H

#include "device/event_internal.h"
#include "device/graph.h"
#include "device/stream_internal.h"

typedef struct GraphState GraphState;
typedef struct Capture Capture;

/* A task that graphs and their copies share. */
typedef struct Body {
    References references;
    Task task;
    Use uses[]; /* the task's */
} Body;

typedef struct Place {
    uint32_t branch, step;
} Place;

typedef struct Jump {
    const void *index; /* device memory: uint32 */
    void **labels;     /* handles, owned */
    size_t count;
    Place targets[];   /* branch UINT32_MAX: the label has not been set */
} Jump;

typedef struct Switch {
    Comparison comparison;
    const void *left, *right; /* device memory */
    bool wide;                /* 64 bits, else 32 */
} Switch;

typedef struct Choice {
    Choosing choosing;
    const void *number; /* device memory: uint64 */
    size_t count;
    GraphState *graphs[];
} Choice;

typedef struct Step {
    StepKind kind;
    uint32_t id;
    bool disabled;
    bool when_run;     /* STEP_EXTERNAL_WAIT */
    uint32_t external; /* which of the graph's external steps */
    Place target;      /* STEP_WAIT, STEP_SWITCH, STEP_START (the branch only) */
    Body *body;        /* STEP_TASK */
    EventState *event; /* held */
    void *control;     /* Jump, Switch, Choice: owned */
    void *handle;      /* HANDLE_GRAPH_STEP; NULL until somebody asks */
    void *group;
    char *notes[STEP_NOTE_COUNT]; /* owned; NULL: none */
    size_t note_sizes[STEP_NOTE_COUNT];
} Step;

typedef struct Branch {
    Step *steps;
    size_t count, capacity;
    bool dormant; /* waits for STEP_START or STEP_SWITCH */
    void *handle; /* HANDLE_GRAPH_BRANCH; NULL until somebody asks */
} Branch;

/* What ends with the graph. */
typedef struct Owned {
    void *memory; /* of the device; NULL: none */
    void *handle; /* its object is of malloc */
    HandleKind kind;
    void *object; /* of the handle, once that has ended */
} Owned;

/* A number in device memory that every run begins with. */
typedef struct Initial {
    void *number;
    uint64_t value;
} Initial;

struct GraphState {
    Graph public;
    References references; /* the handle, runs, the recording, groups */
    pthread_mutex_t line_lock; /* `launches`; nothing else is locked meanwhile */
    pthread_cond_t line_moved;
    _Atomic(struct GraphLaunch *) launches; /* queued and not over, in the order of the launches: the first may run */
    pthread_mutex_t lock; /* everything below */
    Branch *branches;
    size_t branch_count;
    uint32_t step_count;
    uint32_t external_count;
    bool recording, invalid;
    bool runs_program; /* a step is the program's own code */
    bool may_block;    /* a step waits for the world outside */
    bool copies;       /* launches have copies of some tasks (Task.copying) */
    bool compared;     /* its branches, for the check race */
    struct Moment *over;     /* for the checks: when the latest launch is over; the next one comes after it */
    Initial *initials;
    size_t initial_count;
    GraphState *parent; /* which owns this one; not held */
    Owned *owned;
    size_t owned_count;
    GraphState **children;
    size_t child_count;
};

static inline GraphState *graph_state(const Graph *graph)
{
    return (GraphState *)graph;
}

bool us_graph_hold(GraphState *graph);
void us_graph_let_go(GraphState *graph);

/* Adds a branch; its number, or UINT32_MAX: no memory. Adds a step to a branch; NULL: no memory. With the lock held. */
uint32_t us_graph_add_branch(GraphState *graph, bool dormant);
Step *us_graph_add_step(GraphState *graph, uint32_t branch, StepKind kind);
/* Gives a new STEP_TASK its body, held. With the lock held. */
void us_graph_put_body(GraphState *graph, Step *step, Body *body);
/* Ends the steps of a branch. With the lock held. */
void us_graph_empty_branch(Branch *branch);
bool us_graph_annotate(GraphState *graph, Place place, StepNote note, const void *bytes, size_t size);

Body *us_body_create(const Task *task);
void us_body_let_go(Body *body);

/* For the check race: tells of branches that use the same bytes in no order. With the lock held. */
void us_graph_compare_branches(const GraphState *graph);

/* ---- what a stream's work goes into instead of its queue (recorder.c) ---- */

typedef enum RecorderKind { RECORDER_CAPTURE, RECORDER_BUILD, RECORDER_UPDATE } RecorderKind;

typedef struct Recorder {
    RecorderKind kind;
    Capture *capture; /* RECORDER_CAPTURE: held */
    GraphState *graph; /* CAPTURE, BUILD: where the steps go; held */
    uint32_t branch;
    struct StepGroup *group; /* UPDATE: held */
    Body **collected;        /* UPDATE */
    size_t collected_count;
    bool failed;
} Recorder;

/* With the recorder lock: that of a stream; NULL: its work is queued. */
void us_recorder_lock(void);
void us_recorder_unlock(void);
Recorder *us_recorder_of(const StreamState *stream);
/* of CAPTURE and BUILD: false when it has failed or is closed */
bool us_recorder_takes_steps(const Recorder *recorder);
/* Why the stream cannot get one now; CAPTURE_OK: it can. */
CaptureFault us_recorder_obstacle(const StreamState *stream);
CaptureFault us_recorder_attach(StreamState *stream, const Recorder *recorder);
void us_recorder_detach(StreamState *stream);

#endif
