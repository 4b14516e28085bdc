#include "launch/launch.h"

#include "device/check.h"
#include "launch/view_check.h"
#include "report/trace.h"

#include <stdlib.h>
#include <string.h>

void us_launch_begin(Launch *launch, const char *function)
{
    launch->function = function;
    launch->kernel = NULL;
    launch->view_count = 0;
}

void us_launch_view(Launch *launch, const char *name, const View *view)
{
    us_launch_access(launch, name, view, VIEW_READ);
}

void us_launch_access(Launch *launch, const char *name, const View *view, ViewAccess access)
{
    launch->access[launch->view_count] = access;
    launch->views[launch->view_count] = *view;
    launch->names[launch->view_count] = name;
    launch->view_count++;
}

void us_launch_output(Launch *launch, bool reads_prior)
{
    launch->access[launch->view_count - 1] = reads_prior ? VIEW_READ_WRITE : VIEW_WRITE;
}

void us_launch_kernel(Launch *launch, Kernel *kernel, const void *attributes, size_t size)
{
    launch->kernel = kernel;
    memcpy(launch->attributes, attributes, size);
}

/* What waits in the stream's queue: only as many views as there are. */
typedef struct QueuedLaunch {
    const Device *device;
    const char *function;
    Kernel *kernel;
    int32_t view_count;
    const char *names[LAUNCH_VIEW_LIMIT];
    ViewAccess access[LAUNCH_VIEW_LIMIT];
    _Alignas(16) unsigned char attributes[LAUNCH_ATTRIBUTE_LIMIT];
    View views[];
} QueuedLaunch;

/* The bytes a view reaches, as the program addresses them; false when they exceed the address space. */
static bool reach_of(const View *view, Use *use)
{
    int64_t lowest = 0;
    int64_t highest = 0;
    int64_t element = (int64_t)us_dtype_size(view->dtype);
    int64_t first = 0;
    int64_t bytes = 0;
    if (!us_view_extent(view, &lowest, &highest) || __builtin_mul_overflow(lowest, element, &first) ||
        __builtin_sub_overflow(highest, lowest, &bytes) || __builtin_add_overflow(bytes, 1, &bytes) ||
        __builtin_mul_overflow(bytes, element, &bytes)) {
        return false;
    }
    use->address = (uintptr_t)view->data + (uintptr_t)first;
    use->size = (size_t)bytes;
    return true;
}

static bool is_used(const View *view)
{
    return !us_view_is_absent(view) && !us_view_is_empty(view);
}

/* Replaces the program's address by ours, after checking everything the view reaches. */
static bool open_view(const Device *device, View *view, const char *name, Explanation *why)
{
    Use use = {0};
    if (!is_used(view)) {
        return true;
    }
    if (view->data == NULL) {
        us_explain(why, "%s has no address", name);
        return false;
    }
    if (!reach_of(view, &use)) {
        us_explain(why, "%s reaches beyond the address space", name);
        return false;
    }
    Explanation detail = {{0}};
    char *opened = us_memory_open(device->platform, device, (void *)use.address, use.size, MEMORY_USER_KERNEL, &detail);
    if (opened == NULL) {
        us_explain(why, "%s: %s", name, detail.text);
        return false;
    }
    view->data = opened + ((uintptr_t)view->data - use.address);
    return true;
}

/* UNDERSTUDY_CHECK=init: inputs must have been written, outputs are now. */
static void check_contents(const QueuedLaunch *launch)
{
    if ((us_checks() & CHECK_INIT) == 0) {
        return;
    }
    Platform *platform = launch->device->platform;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < launch->view_count; i++) {
            const View *view = &launch->views[i];
            if (!is_used(view) || view->data == NULL) {
                continue;
            }
            if (pass == 0 && launch->access[i] & VIEW_READ) {
                us_check_view_is_written(platform, view, launch->function, launch->names[i]);
            } else if (pass == 1 && launch->access[i] & VIEW_WRITE) {
                us_check_view_written(platform, view);
            }
        }
    }
}

static DeviceFault run(void *argument, Explanation *why)
{
    QueuedLaunch *launch = argument;
    check_contents(launch);
    for (int32_t i = 0; i < launch->view_count; i++) {
        if (!open_view(launch->device, &launch->views[i], launch->names[i], why)) {
            return DEVICE_FAULT_ADDRESS;
        }
    }
    if (launch->kernel != NULL && launch->kernel(launch->views, launch->attributes) != KERNEL_OK) {
        us_explain(why, "no host memory for scratch space");
        return DEVICE_FAULT_NO_MEMORY;
    }
    return DEVICE_FAULT_NONE;
}

/* Bytes of all elements the views show, each counted once per view. */
static uint64_t bytes_of(const Launch *launch)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < launch->view_count; i++) {
        int64_t elements = us_view_is_absent(&launch->views[i]) ? 0 : us_view_elements(&launch->views[i]);
        bytes += (uint64_t)elements * us_dtype_size(launch->views[i].dtype);
    }
    return bytes;
}

/* For the checks: what a task in the queue is going to use. */
static void announce_use(const Launch *launch, Stream *stream)
{
    if ((us_checks() & (CHECK_SYNC | CHECK_MEMORY)) == 0) {
        return;
    }
    Use uses[LAUNCH_VIEW_LIMIT];
    int count = 0;
    for (int32_t i = 0; i < launch->view_count; i++) {
        if (is_used(&launch->views[i]) && reach_of(&launch->views[i], &uses[count])) {
            uses[count++].writes = (launch->access[i] & VIEW_WRITE) != 0;
        }
    }
    us_check_queued(stream, launch->function, uses, count);
}

bool us_launch_submit(const Launch *launch, Stream *stream)
{
    QueuedLaunch *queued = malloc(sizeof *queued + (size_t)launch->view_count * sizeof(View));
    if (queued == NULL) {
        return false;
    }
    queued->device = stream->context->device;
    queued->function = launch->function;
    queued->kernel = launch->kernel;
    queued->view_count = launch->view_count;
    memcpy(queued->names, launch->names, sizeof queued->names);
    memcpy(queued->access, launch->access, sizeof queued->access);
    memcpy(queued->attributes, launch->attributes, sizeof queued->attributes);
    memcpy(queued->views, launch->views, (size_t)launch->view_count * sizeof(View));
    Work work = {launch->function, "kernel", us_tracing ? bytes_of(launch) : 0};
    if (!us_stream_submit_work(stream, work, run, free, queued)) {
        free(queued);
        return false;
    }
    announce_use(launch, stream);
    return true;
}
