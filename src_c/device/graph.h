/* Work of streams that is recorded instead of run, and then runs as often as the program likes.
 *
 * A graph has branches, one for each stream whose work was recorded; a branch is a list of steps in the stream's
 * order. A run of the graph is one task of one stream: it goes through the branches as far as their waits for each
 * other allow, so that every step finds what it found in the original order. Runs of one graph follow each other. */
#ifndef UNDERSTUDY_GRAPH_H
#define UNDERSTUDY_GRAPH_H

#include "device/device.h"

enum { HANDLE_GRAPH = 0x06, HANDLE_GRAPH_STEP = 0x07, HANDLE_GRAPH_BRANCH = 0x08, HANDLE_STEP_GROUP = 0x09,
      HANDLE_LABEL = 0x0a };

typedef struct Graph {
    Device *device;
    void *handle;
    uint32_t id;
    bool from_capture; /* of streams; false: built by hand */
    void *vendor;      /* the vendor layer's, of malloc; ends with the graph */
} Graph;

typedef enum StepKind {
    STEP_TASK,
    STEP_RECORD, /* of an event inside the graph: other branches wait for it */
    STEP_WAIT,   /* for a record in another branch */
    STEP_EXTERNAL_RECORD, /* the same for events that the world outside sees */
    STEP_EXTERNAL_WAIT,
    STEP_EXTERNAL_RESET,
    STEP_CHOICE, /* runs a graph that a number in device memory chooses */
    STEP_LABEL,
    STEP_JUMP,   /* goes on behind a label that a number in device memory chooses */
    STEP_SWITCH, /* starts a branch and ends its own when two numbers in device memory compare so */
    STEP_START,  /* starts a branch */
    STEP_END,    /* the whole run ends */
} StepKind;

/* What the program says about a task: nothing that runs depends on it. */
typedef enum StepNote { STEP_NOTE_OPERATOR, STEP_NOTE_TEXT, STEP_NOTE_COUNT } StepNote;

/* What can be told of a step. */
typedef struct StepInfo {
    uint32_t id;     /* in the order of recording */
    uint32_t branch; /* 0, 1 … */
    StepKind kind;
    Work work;
    TaskRun *run;         /* of a task */
    const void *argument; /* of a task: what `run` gets */
    const void *event;    /* handle of the event; NULL: no event, or it is gone */
    uint32_t target;      /* STEP_WAIT: id of the record it waits for */
    bool disabled;
    const void *group;    /* handle of its group; NULL: none */
    const char *notes[STEP_NOTE_COUNT]; /* NULL: none; a 0 follows the bytes */
    size_t note_sizes[STEP_NOTE_COUNT];
} StepInfo;

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

Graph *us_graph_create(Device *device, bool from_capture); /* empty; NULL: no memory */
/* Ends the handle; what is queued or recorded elsewhere keeps what it needs. False: the handle was not alive. */
bool us_graph_destroy(Graph *graph);
Graph *us_graph_of_handle(const void *handle);
Graph *us_graph_copy(const Graph *graph); /* NULL: no memory */

/* Queues one run, or records it; `unrecorded`: as us_stream_submit_unrecorded. False: no memory. */
bool us_graph_launch(Graph *graph, Stream *stream, const char *name, bool unrecorded);
bool us_graph_is_running(const Graph *graph); /* a run is queued or not over */
bool us_graph_is_recording(const Graph *graph);
/* The run that goes on, or the first one that is queued, ends before its next step, and stops waiting. */
void us_graph_abort(Graph *graph);

size_t us_graph_branches(const Graph *graph);
size_t us_graph_steps(const Graph *graph); /* of all branches */
/* Handles that name a branch (made on demand), and what they name. `index` counts the steps of the branch. */
void *us_graph_branch_handle(Graph *graph, uint32_t branch);
void *us_graph_step_handle(Graph *graph, uint32_t branch, size_t index); /* NULL: no such step, or no memory */
Graph *us_graph_of_branch_handle(const void *handle, uint32_t *branch);
Graph *us_graph_of_step_handle(const void *handle, StepInfo *info);
size_t us_graph_branch_steps(const Graph *graph, uint32_t branch);
/* The step of a branch; false: there is none. */
bool us_graph_step(const Graph *graph, uint32_t branch, size_t index, StepInfo *info);

/* Another argument for the step's task, or none: the step does nothing then. False: the step is gone. */
bool us_graph_step_replace(const void *step, void (*release)(void *argument), void *argument);
bool us_graph_step_disable(const void *step);

/* Gives `graph` the tasks of `from`, for launches from now on. Nothing happens where their steps differ in more than arguments. */
typedef enum GraphUpdate { GRAPH_UPDATED, GRAPH_UNLIKE, GRAPH_NO_MEMORY } GraphUpdate;
GraphUpdate us_graph_update(Graph *graph, const Graph *from);

/* ---- recording (capture.c) --------------------------------------------------------------------------------------- */

typedef enum CaptureMode { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED } CaptureMode;
typedef enum GroupPlace { GROUP_NONE, GROUP_HERE, GROUP_ELSEWHERE } GroupPlace;
typedef enum CaptureStatus { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED } CaptureStatus;

typedef enum CaptureFault {
    CAPTURE_OK,
    CAPTURE_FAULT_BUSY,       /* the stream's work is recorded already */
    CAPTURE_FAULT_ENDED,      /* another thread destroys the stream */
    CAPTURE_FAULT_IDLE,       /* the stream's work is not recorded */
    CAPTURE_FAULT_ORIGIN,     /* the recording did not begin on this stream */
    CAPTURE_FAULT_THREAD,     /* it began in another thread, and its mode is not relaxed */
    CAPTURE_FAULT_UNJOINED,   /* work of another stream is not waited for */
    CAPTURE_FAULT_INVALID,    /* an earlier call has spoiled the recording */
    CAPTURE_FAULT_MERGE,      /* event and stream belong to different recordings */
    CAPTURE_FAULT_UNRECORDED, /* the event has no record in the recording */
    CAPTURE_FAULT_CHILD,      /* a graph inside the graph is still being recorded */
    CAPTURE_FAULT_GROUP,      /* groups of steps: begun twice, not begun, or of other size or kind */
    CAPTURE_FAULT_NO_MEMORY,
} CaptureFault;

/* Work of a stream is recorded or queued; these are of no use for streams that are bound to a graph (graph_build.c).
 * Records the stream's work, into `into` when that is not NULL (then it has no branches yet). */
CaptureFault us_capture_begin(Stream *stream, Graph *into, CaptureMode mode);
/* `*graph` becomes the caller's. After CAPTURE_FAULT_INVALID, GROUP and UNJOINED the recording is over, and there
 * is no graph. */
CaptureFault us_capture_end(Stream *stream, Graph **graph);
CaptureStatus us_capture_status(const Stream *stream, Graph **graph); /* `graph` may be NULL */
bool us_stream_is_recorded(const Stream *stream); /* in whatever way */
void us_capture_invalidate(const Stream *stream);

/* The calling thread's own mode, CAPTURE_GLOBAL at first; gives the old one. */
CaptureMode us_capture_exchange_mode(CaptureMode mode);
/* Whether anything is being recorded in the process; costs nothing. */
bool us_capture_exists(void);
/* Whether the calling thread may not call what is unsafe while work is recorded: synchronous copies, allocations … With
 * `spoil` the recordings that forbid it are invalid afterwards. */
bool us_capture_forbids_unsafe(const Platform *platform, bool spoil);
/* Whether some stream of the context that is ordered with the default stream is being recorded; with `spoil` these
 * recordings are invalid afterwards. */
bool us_capture_in_context(const Context *context, bool spoil);
bool us_capture_anywhere_in_context(const Context *context, bool spoil); /* some stream of any kind */

/* The event was recorded last on a stream whose recording is not over. */
bool us_event_is_captured(const Event *event);
void us_event_invalidate_capture(const Event *event);
/* What us_event_record and us_event_wait are for recorded streams and events. IDLE, as below: they are not recorded, so those
 * are meant; a recording that another thread begins after that comes too late for them. */
CaptureFault us_capture_record(Event *event, Stream *stream);
CaptureFault us_capture_wait(Stream *stream, Event *event);
/* The same for events that the world outside records or waits for: the event itself is not captured. A record counts as
 * issued, and a wait looks for its record, when the graph is launched; with `when_run` when the step runs. */
CaptureFault us_capture_external_record(Event *event, Stream *stream);
CaptureFault us_capture_external_wait(Stream *stream, Event *event, bool when_run);
CaptureFault us_capture_external_reset(Event *event, Stream *stream);

/* The stream of the task that the calling thread recorded last; NULL: none, or the stream is no longer recorded into that
 * graph. A note to that task, copied. False: no memory. */
Stream *us_last_recorded_stream(void);
bool us_last_recorded_annotate(StepNote note, const void *bytes, size_t size);

/* Groups: steps whose tasks can be given other arguments later. */
CaptureFault us_capture_group_begin(Stream *stream);
CaptureFault us_capture_group_end(Stream *stream, void **group);
/* Where the recording of the stream has an open group: in the stream itself, as one that updates a group has, or in another
 * one. */
GroupPlace us_capture_open_group(const Stream *stream);
/* Work of the stream is collected until the end, and then queued on the stream as one replacement of the group's
 * tasks. */
CaptureFault us_group_update_begin(Stream *stream, const void *group);
CaptureFault us_group_update_end(Stream *stream);

/* ---- building by hand (graph_build.c) ---------------------------------------------------------------------------- */

/* All work of the stream becomes steps of the graph, from now on; a branch that does not start waits for STEP_START. */
CaptureFault us_graph_bind(Graph *graph, Stream *stream, bool starts);
CaptureFault us_graph_unbind(Graph *graph, Stream *stream); /* IDLE: not bound to this graph. The steps stay. */
void us_graph_close(Graph *graph); /* takes no further steps */
bool us_stream_is_closed(const Stream *stream); /* it is bound to such a graph: its work would be lost */
/* Forgets the steps of a bound stream; the graph takes steps again. */
void us_graph_clear_stream(Stream *stream);
Graph *us_graph_of_bound(const Stream *stream); /* NULL: the stream is not bound */
bool us_graph_has_bound(const Graph *graph, const Stream *stream); /* NULL: any graph */

typedef enum Comparison { COMPARE_EQUAL, COMPARE_NOT_EQUAL, COMPARE_GREATER, COMPARE_NOT_LESS, COMPARE_LESS,
                          COMPARE_NOT_GREATER } Comparison;

CaptureFault us_graph_add_start(Stream *stream, Stream *started);
CaptureFault us_graph_add_end(Graph *graph, Stream *stream);
CaptureFault us_graph_add_switch(Stream *stream, Stream *started, Comparison comparison, const void *left,
                                 const void *right, bool wide);

typedef struct Label Label;
Label *us_label_create(Device *device); /* NULL: no memory */
bool us_label_destroy(void *handle);
Label *us_label_of_handle(const void *handle);
void *us_label_handle(const Label *label);
CaptureFault us_label_set(Label *label, Stream *stream); /* BUSY: it has been set */
CaptureFault us_graph_add_jump(Stream *stream, const void *index, Label *const *labels, size_t count);

/* The graphs of a choice belong to the graph of the stream. CHOOSE_IF: number != 0 runs the first, else the second
 * if there is one; WHILE: the first as long as it is not 0; SWITCH: number n runs graph n. */
typedef enum Choosing { CHOOSE_IF, CHOOSE_WHILE, CHOOSE_SWITCH } Choosing;
CaptureFault us_graph_add_choice(Stream *stream, Choosing choosing, const void *number, Graph *const *graphs,
                                 size_t count);
/* The number is set to `value` when a run of the graph begins. False: no memory. */
bool us_graph_initialise(Graph *graph, void *number, uint64_t value);
/* Device memory, and a handle with an object of malloc, that end with the graph. False: no memory, and nothing
 * changes. */
bool us_graph_owns(Graph *graph, void *memory, void *handle, HandleKind kind);
Graph *us_graph_parent(const Graph *graph); /* NULL: none */

#endif
