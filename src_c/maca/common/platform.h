/* The MACA platform as the vendor libraries see it: devices, the calling thread's device and last error, streams behind
 * the vendor's handles. Compiled into libmcruntime and libmcdnn, so it keeps no state: all state is libunderstudy's. */
#ifndef MACA_PLATFORM_H
#define MACA_PLATFORM_H

#include "device/device.h"
#include "launch/launch.h"
#include "maca/common/handle_kinds.h"
#include "report/report.h"

#include <mcr/mc_runtime_types.h>
#include <stdbool.h>

/* Our uses of the numbers that a context keeps for us. */
enum {
    CONTEXT_DEFAULT_WORK = 0, /* counts what was queued on the default stream */
    CONTEXT_FIRST_STREAM = 1, /* list of the context's blocking streams */
};

Platform *maca_platform(void); /* NULL: no memory */

/* ---- the calling thread ------------------------------------------------------------------------------------------ */

int maca_device_ordinal(void); /* the thread's current device; 0 until it chose another */
void maca_set_device_ordinal(int ordinal);

mcError_t maca_last_error(void);
void maca_set_last_error(mcError_t error);

/* Whether the thread is inside a function queued by mcLaunchHostFunc, which may not call the runtime. */
bool maca_in_host_function(void);
void maca_set_in_host_function(bool inside);

/* The thread's current device and its context, started if needed. NULL: no such device or no memory. */
Device *maca_device(void);
Context *maca_context(void);

/* The status of a fault, as the next call that meets it returns it. */
mcError_t maca_error_of_fault(DeviceFault fault);

/* Page-locked memory is on both sides of a copy: the device reaches it at the host's address (maca-runtime 5). */
void maca_relax_pinned_side(const void *address, Side *side);

/* Memory that only devices can reach. */
bool maca_is_device_memory(const void *pointer);

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* The stream behind a handle: 0 and mcStreamLegacy are the current device's default stream, mcStreamPerThread is the
 * calling thread's own. NULL when the handle is dead, foreign or made up, when the device cannot start, and inside a
 * host function. */
Stream *maca_stream(mcStream_t handle);

/* A blocking stream and the default stream wait for each other's work (maca-runtime 5.1). Everything that is queued on
 * a stream stands between these two calls. maca_stream_enter gives false when memory is exhausted. */
bool maca_stream_enter(Stream *stream);
void maca_stream_leave(Stream *stream);

/* Whether a library may give the stream work now. The default stream waits for blocking streams: while one of them is being
 * captured it takes none, and the attempt makes the capture invalid. */
bool maca_stream_takes_work(const Stream *stream);
/* parameter/launch: it takes none, or an earlier call left a device fault */
void maca_check_stream(Call *call, const char *parameter, int32_t status, Stream *stream);

/* Before waiting for a stream: waiting for the default stream is waiting for the blocking streams too. */
bool maca_stream_join(Stream *stream);
/* Whether such a wait would be over at once; nothing is queued. */
bool maca_stream_idle(Stream *stream);

/* us_stream_submit and us_launch_submit_task with that order, the latter also for a Launch. */
bool maca_submit(Stream *stream, const char *name, TaskRun *run, void (*release)(void *argument), void *argument);
/* A task of our own code, and what it uses. */
bool maca_submit_kernel(Stream *stream, const char *name, Uses uses, TaskRun *run, void (*release)(void *argument),
                        void *argument);
bool maca_launch(const Launch *launch, Stream *stream);
bool maca_launch_task(const LaunchTask *task, Stream *stream);

/* Streams in the context's order with the default stream: the runtime adds a stream it makes, and it stays until its work is
 * over. Streams made with STREAM_NON_BLOCKING are left out. */
void maca_stream_link(Stream *stream);
void maca_stream_destroy(Stream *stream); /* runs what is queued first */

#endif
