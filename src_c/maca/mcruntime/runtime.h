/* What the files of libmcruntime share: the checks nearly every function begins with, and the end of a call. */
#ifndef MACA_RUNTIME_H
#define MACA_RUNTIME_H

#include "maca/common/platform.h"
#include "report/report.h"

#include <mcr/mc_runtime_api.h>

/* Ends a call: an error becomes the thread's last error; a success leaves that alone (maca-runtime 5.9). */
mcError_t runtime_end(Call *call);

/* An answer that is not mcSuccess and yet no refusal (mcErrorNotReady). */
mcError_t runtime_answer(Call *call, mcError_t error);

/* Refuses inside a function that mcLaunchHostFunc queued. */
void require_outside_host_function(Call *call);

/* Refuses when there is no device of that number. */
void require_ordinal(Call *call, int device);

/* NULL and refused in a process that was forked too late. */
Platform *require_platform(Call *call);

/* The current device, started; NULL and refused when that is not possible. */
Device *runtime_started_device(Call *call);

/* Refuses after a fault on the device. */
void require_working(Call *call, Device *device);

/* These also refuse inside a host function. After a refusal they may give NULL, and the later checks do nothing.
 * The current device, started and working. */
Device *require_device(Call *call);

/* The stream, or event, of a live handle, its device working. */
Stream *require_stream(Call *call, mcStream_t handle);
Event *require_event(Call *call, mcEvent_t handle);

/* Ties a new event to its context; the context of an event, NULL when that is gone. */
void runtime_bind_event(Event *event, const Context *context);
Context *runtime_context_of_event(const Event *event);
/* Destroys the events whose device has been reset since. */
void runtime_end_events(void);

/* Allocates size > 0 bytes charged to the device. */
void runtime_allocate(Call *call, Device *device, MemoryKind kind, size_t size, void **address);

/* Whether mcFreeAsync has queued the end of the block at this address. */
bool runtime_free_is_queued(const void *address);

/* ---- while work is captured; what is refused makes the capture invalid ---- */

/* Refuse to wait for, or ask about, what is recorded and so does not run; to call what a capture forbids this thread. */
void require_running_stream(Call *call, const Stream *stream);
void require_running_event(Call *call, const Event *event);
void require_safe(Call *call, const Device *device);

/* An event's record and wait in a capture (graphs.c). False: nothing is captured, and nothing happens. */
bool runtime_capture_record(Call *call, Event *event, Stream *stream);
bool runtime_capture_wait(Call *call, Stream *stream, Event *event);

/* Refuses when a submission failed. */
void require_queued(Call *call, bool queued);

/* Waits until the stream (or device) has done everything; a fault refuses. */
void runtime_synchronize(Call *call, Stream *stream);
void runtime_synchronize_device(Call *call, Device *device);

#endif
