/* A planned kernel call: from checked views to a task on a stream. Between the vendors' folders and device + kernels.
 * plan (views by value, device addresses) -> submit (copied into the stream's queue) -> open (addresses) -> kernel. */
#ifndef UNDERSTUDY_LAUNCH_H
#define UNDERSTUDY_LAUNCH_H

#include "device/device.h"
#include "kernels/kernels.h"
#include "launch/view_part.h"

/* What the kernel does with a view: for the checks of UNDERSTUDY_CHECK. */
typedef enum ViewAccess {
    VIEW_READ = 1,
    VIEW_WRITE = 2,
    VIEW_READ_WRITE = 3,
    VIEW_RESULT = 4, /* no device memory: a LaunchResult that the kernel leaves for LaunchTask.finish */
    VIEW_TEMPORARY = 8, /* no device memory: `data` is a place in memory that the kernel takes itself */
} ViewAccess;

/* ---- in full: any number of views, attributes of any size --------------------------------------------------------- */

/* A kernel may leave the view that an output really has: a View whose data is nothing. */
typedef View LaunchResult;
enum { LAUNCH_RESULT_LIMIT = 2 };

/* What concerns a kernel that meets those of other streams (ranks/exchange.h), of its attributes. */
typedef struct LaunchMeeting {
    /* When a queue takes its copy of the attributes, and when it gives it up; without memory for a copy, with those given. */
    void (*take)(void *attributes, bool recorded);
    void (*draw)(void *attributes); /* its turn, when it is queued; of a recorded one when its graph is launched */
    void (*inherit)(void *attributes, void *from); /* the turn of another one, which does not run any more */
    void (*release)(void *attributes, bool ran);
    bool (*ready)(const void *attributes);   /* as Task.ready */
    bool (*awaited)(const void *attributes); /* by another process, which cannot ask a deferred stream to go on */
    /* As Task.after and Task.over, which they get to keep. */
    struct Moment *(*after)(const void *attributes, Stream *stream);
    void (*over)(const void *attributes, struct Moment *moment);
} LaunchMeeting;

typedef struct LaunchTask {
    const char *function; /* the vendor's name: for messages and traces */
    Kernel *kernel;
    int32_t view_count;
    const View *const *views; /* `data` holds the address the program gave */
    const char *const *names; /* the vendor's parameter names: for messages */
    const ViewAccess *access;
    const ViewPart *parts; /* of views that are not used, or not read, as a whole; for the checks */
    int32_t part_count;
    const void *attributes;
    size_t attribute_size;
    /* Memory that the program lends the kernel: nothing of ours needs it, but UNDERSTUDY_CHECK=workspace does. */
    const void *workspace;
    size_t workspace_size;
    /* After the kernel, on the stream's worker, in the stream's order: what it left in each of its VIEW_RESULT views. */
    void (*finish)(void *argument, const LaunchResult *result);
    void *finish_arguments[LAUNCH_RESULT_LIMIT];
    int32_t result_count;
    bool unrecorded; /* as us_stream_submit_unrecorded */
    const LaunchMeeting *meeting; /* NULL: the kernel meets nobody */
} LaunchTask;

/* Queues a copy of the task. On the stream's worker every view's reach is opened on the stream's device; a range that is
 * freed, host memory, another device's or outside its block becomes DEVICE_FAULT_ADDRESS naming function and parameter.
 * Absent views and views without elements are not opened.
 * False: no memory. */
bool us_launch_submit_task(const LaunchTask *task, Stream *stream);

/* ---- for functions whose views are few and known ------------------------------------------------------------------- */

enum { LAUNCH_VIEW_LIMIT = 16, LAUNCH_ATTRIBUTE_LIMIT = 256, LAUNCH_PART_LIMIT = 4 };

typedef struct Launch {
    const char *function;
    Kernel *kernel; /* NULL: nothing to do (empty tensors) */
    bool overfull;  /* more views or attributes were added than there is room for: nothing is submitted */
    bool unrecorded; /* as that of its task */
    int32_t view_count;
    View views[LAUNCH_VIEW_LIMIT];
    const char *names[LAUNCH_VIEW_LIMIT];
    ViewAccess access[LAUNCH_VIEW_LIMIT];
    int32_t part_count;
    ViewPart parts[LAUNCH_PART_LIMIT];
    size_t attribute_size;
    _Alignas(16) unsigned char attributes[LAUNCH_ATTRIBUTE_LIMIT];
} Launch;

/* Sets up an empty launch; adds a view that is read, or one with another access; sets kernel and attributes. */
void us_launch_begin(Launch *launch, const char *function);
void us_launch_view(Launch *launch, const char *name, const View *view);
void us_launch_access(Launch *launch, const char *name, const View *view, ViewAccess access);
/* Says that the view added last is an output; its old values count only when `reads_prior`. */
void us_launch_output(Launch *launch, bool reads_prior);
/* Says that a view is not used, or not read, as a whole; nothing without checks. */
void us_launch_part(Launch *launch, const ViewPart *part);
/* The same: a view is not read where the number in another, if it is there, is 0. */
void us_launch_factor(Launch *launch, int32_t view, int32_t factor);
void us_launch_kernel(Launch *launch, Kernel *kernel, const void *attributes, size_t size);

/* The launch's task, which points into it and into a table of LAUNCH_VIEW_LIMIT views. */
LaunchTask us_launch_task(const Launch *launch, const View **views);

#endif
