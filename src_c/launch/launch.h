/* A planned kernel call: from checked views to a task on a stream. Between the vendors' folders and device + kernels.
 * plan (views by value, device addresses) -> submit (copied into the stream's queue) -> open (addresses) -> kernel. */
#ifndef UNDERSTUDY_LAUNCH_H
#define UNDERSTUDY_LAUNCH_H

#include "device/device.h"
#include "kernels/kernels.h"

enum { LAUNCH_VIEW_LIMIT = 16, LAUNCH_ATTRIBUTE_LIMIT = 256 };

/* What the kernel does with a view: for the checks of UNDERSTUDY_CHECK. */
typedef enum ViewAccess { VIEW_READ = 1, VIEW_WRITE = 2, VIEW_READ_WRITE = 3 } ViewAccess;

typedef struct Launch {
    const char *function; /* the vendor's name: for messages and traces */
    Kernel *kernel;       /* NULL: nothing to do (empty tensors) */
    int32_t view_count;
    View views[LAUNCH_VIEW_LIMIT]; /* `data` holds the address the program gave */
    const char *names[LAUNCH_VIEW_LIMIT]; /* the vendor's parameter names: for messages */
    ViewAccess access[LAUNCH_VIEW_LIMIT];
    _Alignas(16) unsigned char attributes[LAUNCH_ATTRIBUTE_LIMIT];
} Launch;

/* Sets up an empty launch; adds a view that is read, or one with another access; sets kernel and attributes (size <= LAUNCH_ATTRIBUTE_LIMIT). */
void us_launch_begin(Launch *launch, const char *function);
void us_launch_view(Launch *launch, const char *name, const View *view);
void us_launch_access(Launch *launch, const char *name, const View *view, ViewAccess access);
/* Says that the view added last is an output; its old values count only when `reads_prior`. */
void us_launch_output(Launch *launch, bool reads_prior);
void us_launch_kernel(Launch *launch, Kernel *kernel, const void *attributes, size_t size);

/* Queues a copy of the launch. On the stream's worker every view's reach is opened on the stream's device; a range that is
 * freed, host memory, another device's or outside its block becomes DEVICE_FAULT_ADDRESS naming function and parameter.
 * Absent views and views without elements are not opened.
 * False: no memory. */
bool us_launch_submit(const Launch *launch, Stream *stream);

#endif
