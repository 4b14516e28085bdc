/* What the files about recording share. Everything here is used with the recorder lock held. */
#ifndef UNDERSTUDY_CAPTURE_STATE_H
#define UNDERSTUDY_CAPTURE_STATE_H

#include "device/graph_internal.h"

struct Capture {
    Capture *next;         /* of those that are not over */
    References references; /* the list, recorders, events */
    CaptureMode mode;
    pid_t thread; /* that began it */
    const Platform *platform;
    const StreamState *origin;
    GraphState *graph; /* held; NULL: it is over */
    bool invalid, over;
    bool child; /* of a graph that another capture records */
    StreamState **streams; /* all of them, held, each with a recorder */
    size_t stream_count;
    bool group_open; /* steps of `group_branch` from `group_first` on */
    uint32_t group_branch;
    size_t group_first;
};

Capture *us_capture_of(const StreamState *stream); /* that records the stream; NULL: none */
CaptureFault us_capture_join(Capture *capture, StreamState *stream); /* the stream becomes a branch of the recording */
void us_capture_let_go(Capture *capture);
void us_group_update_forget(StreamState *stream); /* the stream ends: nobody can end its update any more */
Step *us_recorder_add_step(Recorder *recorder, StepKind kind); /* NULL: no memory */

#endif
