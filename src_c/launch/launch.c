#include "launch/launch.h"

#include "device/check.h"
#include "device/graph.h"
#include "device/order.h"
#include "kernels/matmul/lines.h"
#include "launch/blocks.h"
#include "launch/trusted.h"
#include "launch/view_check.h"
#include "launch/view_use.h"
#include "report/trace.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void us_launch_begin(Launch *launch, const char *function)
{
    launch->function = function;
    launch->kernel = NULL;
    launch->overfull = false;
    launch->unrecorded = false;
    launch->view_count = 0;
    launch->part_count = 0;
    launch->attribute_size = 0;
}

void us_launch_view(Launch *launch, const char *name, const View *view)
{
    us_launch_access(launch, name, view, VIEW_READ);
}

void us_launch_access(Launch *launch, const char *name, const View *view, ViewAccess access)
{
    if (launch->view_count == LAUNCH_VIEW_LIMIT) {
        launch->overfull = true;
        return;
    }
    launch->access[launch->view_count] = access;
    launch->views[launch->view_count] = *view;
    launch->names[launch->view_count] = name;
    launch->view_count++;
}

void us_launch_output(Launch *launch, bool reads_prior)
{
    if (launch->view_count > 0) {
        launch->access[launch->view_count - 1] = reads_prior ? VIEW_READ_WRITE : VIEW_WRITE;
    }
}

void us_launch_part(Launch *launch, const ViewPart *part)
{
    if (us_checks() != 0 && launch->part_count < LAUNCH_PART_LIMIT) {
        launch->parts[launch->part_count++] = *part;
    }
}

void us_launch_factor(Launch *launch, int32_t view, int32_t factor)
{
    if (!us_view_is_absent(&launch->views[factor])) {
        us_launch_part(launch, &(ViewPart){.view = view, .factor = factor});
    }
}

void us_launch_kernel(Launch *launch, Kernel *kernel, const void *attributes, size_t size)
{
    launch->kernel = kernel;
    launch->overfull |= size > LAUNCH_ATTRIBUTE_LIMIT;
    if (size > 0 && size <= LAUNCH_ATTRIBUTE_LIMIT) {
        memcpy(launch->attributes, attributes, size);
        launch->attribute_size = size;
    }
}

/* A view without the room for the axes that it does not have: lists of hundreds of tensors are written by one core and
 * read by another. */
typedef struct PackedView {
    void *data;
    DType dtype;
    int32_t rank;
    int64_t axes[][2]; /* size, stride */
} PackedView;

static size_t packed_size(int32_t rank)
{
    return sizeof(PackedView) + (size_t)rank * sizeof(int64_t[2]);
}

static void pack(void *to, const View *view)
{
    PackedView *packed = to;
    packed->data = view->data;
    packed->dtype = view->dtype;
    packed->rank = view->rank;
    for (int32_t axis = 0; axis < view->rank; axis++) {
        packed->axes[axis][0] = view->shape[axis];
        packed->axes[axis][1] = view->strides[axis];
    }
}

static void unpack(const void *from, View *view)
{
    const PackedView *packed = from;
    view->data = packed->data;
    view->dtype = packed->dtype;
    view->rank = packed->rank;
    for (int32_t axis = 0; axis < view->rank; axis++) {
        view->shape[axis] = packed->axes[axis][0];
        view->strides[axis] = packed->axes[axis][1];
    }
}

/* What waits in the stream's queue: the task with copies of its arrays behind it. */
typedef struct QueuedLaunch {
    const Device *device;
    LaunchTask task;    /* `views` is not used */
    const char *packed; /* the views, as PackedViews of the largest rank */
    size_t packed_size; /* of each */
    View *views;        /* the same, opened anew for each run: a graph runs a task many times */
    LaunchResult results[LAUNCH_RESULT_LIMIT];
    bool ran;
    size_t size; /* bytes of this block */
} QueuedLaunch;

static bool is_of_device(ViewAccess access)
{
    return (access & VIEW_READ_WRITE) != 0;
}

static bool is_used(const View *view)
{
    return !us_view_is_absent(view) && !us_view_is_empty(view);
}

/* The stride of an axis with one element may be any number: none that kernels cannot calculate with. */
static void tame_strides(View *view)
{
    static const int64_t LARGEST = (int64_t)1 << 46; /* elements: far more than there are addresses */
    for (int32_t axis = 0; axis < view->rank; axis++) {
        if (view->shape[axis] == 1 && (view->strides[axis] > LARGEST || view->strides[axis] < -LARGEST)) {
            view->strides[axis] = 0;
        }
    }
}

/* Elements lie at multiples of their size; those of complex types at multiples of their parts'. */
static bool is_aligned(const View *view)
{
    const size_t size = us_dtype_size(view->dtype), unit = size < sizeof(double) ? size : sizeof(double); /* a power of 2 */
    return ((uintptr_t)view->data & (unit - 1)) == 0;
}

/* Replaces the program's address by ours, after checking everything the view reaches. The memory is held. */
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
    if (!us_view_use_reach(view, &use)) {
        us_explain(why, "%s reaches beyond the address space", name);
        return false;
    }
    if (!is_aligned(view)) {
        us_explain(why, "%s begins at %p, which is no multiple of its %zu-byte elements", name, view->data,
                   us_dtype_size(view->dtype));
        return false;
    }
    tame_strides(view);
    Explanation detail;
    detail.text[0] = '\0';
    char *opened = us_memory_open_held(device->platform, device, (void *)use.address, use.size, MEMORY_USER_KERNEL, &detail);
    if (opened == NULL) {
        us_explain(why, "%s: %s", name, detail.text);
        return false;
    }
    view->data = opened + ((uintptr_t)view->data - use.address);
    return true;
}

static void unpack_view(const QueuedLaunch *launch, int32_t i)
{
    unpack(launch->packed + (size_t)i * launch->packed_size, &launch->views[i]);
}

/* What is used of a view, where that is not all; NULL: all of it. */
static const ViewPart *part_of(const LaunchTask *task, int32_t view)
{
    for (int32_t i = 0; i < task->part_count; i++) {
        if (task->parts[i].view == view) {
            return &task->parts[i];
        }
    }
    return NULL;
}

/* When the work runs: whether the number at the program's address is 0. What cannot be opened is told of as a fault. */
static bool is_factor_zero(const Device *device, const View *factor)
{
    Explanation why = {{0}};
    double value[2] = {0};
    const size_t size = us_dtype_size(factor->dtype);
    const void *data = us_memory_open(device->platform, device, factor->data, size, MEMORY_USER_KERNEL, &why);
    if (data != NULL) {
        us_line_load(is_complex(factor->dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, value, data, factor->dtype, 1, 1, false);
    }
    return data != NULL && is_zero(value);
}

static bool reads(const QueuedLaunch *launch, int32_t view)
{
    const ViewPart *part = part_of(&launch->task, view);
    return (launch->task.access[view] & VIEW_READ) != 0 &&
           (part == NULL || part->factor < 0 || !is_factor_zero(launch->device, &launch->views[part->factor]));
}

/* UNDERSTUDY_CHECK=init: inputs must have been written, outputs count as written. Before the views are opened. */
static void check_contents(const QueuedLaunch *launch)
{
    const LaunchTask *task = &launch->task;
    if ((us_checks() & CHECK_INIT) == 0) {
        return;
    }
    for (int32_t i = 0; i < task->view_count; i++) {
        unpack_view(launch, i);
    }
    Platform *platform = launch->device->platform;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < task->view_count; i++) {
            const View *view = &launch->views[i];
            if (!is_used(view) || view->data == NULL) {
                continue;
            }
            if (pass == 0 && reads(launch, i)) {
                us_check_view_is_written(platform, view, part_of(task, i), task->function, task->names[i]);
            } else if (pass == 1 && task->access[i] & VIEW_WRITE) {
                us_check_mark_view_written(platform, view, part_of(task, i));
            }
        }
    }
}

/* Views of a piece of parallel work: what other threads must be asked for costs as much as opening some ten. */
enum { PIECE_VIEWS = 64 };

typedef struct Opening {
    QueuedLaunch *launch;
    _Atomic int32_t refused; /* the first view that was refused; `view_count`: none */
} Opening;

static void open_piece(void *context, int64_t piece)
{
    Opening *opening = context;
    QueuedLaunch *launch = opening->launch;
    const LaunchTask *task = &launch->task;
    const int32_t begin = (int32_t)piece * PIECE_VIEWS, left = task->view_count - begin;
    for (int32_t i = begin; i < begin + (left < PIECE_VIEWS ? left : PIECE_VIEWS); i++) {
        unpack_view(launch, i);
        if (!is_of_device(task->access[i]) || open_view(launch->device, &launch->views[i], task->names[i], NULL)) {
            continue;
        }
        int32_t first = atomic_load_explicit(&opening->refused, memory_order_relaxed);
        while (i < first && !atomic_compare_exchange_weak(&opening->refused, &first, i)) {
        }
        return;
    }
}

static bool open_views(QueuedLaunch *launch, Explanation *why)
{
    const LaunchTask *task = &launch->task;
    const int32_t count = task->view_count;
    Opening opening = {launch, count};
    us_memory_hold(launch->device->platform);
    us_parallel((count + PIECE_VIEWS - 1) / PIECE_VIEWS, open_piece, &opening);
    const int32_t refused = atomic_load_explicit(&opening.refused, memory_order_relaxed);
    if (refused < count) {
        open_view(launch->device, &launch->views[refused], task->names[refused], why);
    }
    us_memory_let_go(launch->device->platform);
    LaunchResult *result = launch->results;
    for (int32_t i = count - task->result_count; i < count; i++) {
        launch->views[i].data = result++; /* the last ones */
    }
    return refused == count;
}

static KernelStatus run_kernel(QueuedLaunch *launch)
{
    const LaunchTask *task = &launch->task;
    Trusted trusted;
    if (task->kernel == NULL) {
        launch->ran = true;
        return KERNEL_OK;
    }
    launch->ran = us_trusted_begin(&trusted, task->view_count, launch->views, task->access);
    const KernelStatus status = launch->ran ? task->kernel(launch->views, task->attributes) : KERNEL_NO_MEMORY;
    us_trusted_end(&trusted);
    return status;
}

static DeviceFault run(void *argument, Explanation *why)
{
    QueuedLaunch *launch = argument;
    const LaunchTask *task = &launch->task;
    check_contents(launch);
    if (task->workspace_size > 0) {
        us_check_workspace(launch->device, task->function, task->workspace, task->workspace_size, task->workspace_size);
    }
    if (!open_views(launch, why)) {
        return DEVICE_FAULT_ADDRESS;
    }
    const KernelStatus status = run_kernel(launch);
    if (status != KERNEL_OK && task->meeting != NULL && us_task_gives_up()) {
        return DEVICE_FAULT_NONE; /* it waited for others when its stream was stopped: as other waits it ends without a fault */
    }
    switch (status) {
    case KERNEL_OK:
        break;
    case KERNEL_NO_MEMORY:
        us_explain(why, "no host memory for scratch space");
        return DEVICE_FAULT_NO_MEMORY;
    case KERNEL_FAULT:
        us_explain(why, "%s", us_kernel_fault_text());
        return DEVICE_FAULT_ADDRESS;
    case KERNEL_TIMEOUT:
        us_explain(why, "%s", us_kernel_fault_text());
        return DEVICE_FAULT_TIMEOUT;
    }
    for (int32_t i = 0; i < task->result_count; i++) {
        task->finish(task->finish_arguments[i], &launch->results[i]);
    }
    return DEVICE_FAULT_NONE;
}

/* Bytes of all elements the views show, each counted once per view. */
static uint64_t bytes_of(const LaunchTask *task)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < task->view_count; i++) {
        int64_t elements = us_view_is_absent(task->views[i]) ? 0 : us_view_elements(task->views[i]);
        bytes += (uint64_t)elements * us_dtype_size(task->views[i]->dtype);
    }
    return bytes;
}

/* For the checks: what a task is going to use; false: no memory. */
static bool find_uses(const LaunchTask *task, Use **uses, size_t *count)
{
    *uses = NULL;
    *count = 0;
    if (us_checks() == 0) {
        return true;
    }
    *uses = calloc((size_t)task->view_count + 1 + (size_t)task->part_count * USES_OF_A_VIEW, sizeof **uses);
    if (*uses != NULL && task->workspace_size > 0) {
        const uintptr_t workspace = (uintptr_t)task->workspace;
        (*uses)[(*count)++] = (Use){.address = workspace, .size = task->workspace_size, .writes = true};
    }
    for (int32_t i = 0; i < task->view_count && *uses != NULL; i++) {
        if (is_of_device(task->access[i]) && is_used(task->views[i])) {
            Use found[USES_OF_A_VIEW];
            const size_t of_view = us_uses_of_view(task->views[i], part_of(task, i), (task->access[i] & VIEW_WRITE) != 0,
                                                   found);
            memcpy(*uses + *count, found, of_view * sizeof *found);
            *count += of_view;
        }
    }
    return *uses != NULL;
}

/* Copies an array behind the queued launch; *cursor steps over it. */
static void *keep(char **cursor, const void *array, size_t size)
{
    char *copy = *cursor;
    if (size > 0) {
        memcpy(copy, array, size);
    }
    *cursor += (size + 15) / 16 * 16;
    return copy;
}

static bool is_ready(void *argument)
{
    const LaunchTask *task = &((const QueuedLaunch *)argument)->task;
    return task->meeting->ready(task->attributes);
}

static void give_back_block(void *block)
{
    const QueuedLaunch *launch = block;
    if (launch->task.meeting != NULL) {
        launch->task.meeting->release((void *)launch->task.attributes, launch->ran);
    }
    us_block_give(block, ((const QueuedLaunch *)block)->size);
}

static QueuedLaunch *copy_task(const LaunchTask *task, const Device *device)
{
    const size_t count = (size_t)task->view_count;
    const size_t views = count * sizeof(View), names = count * sizeof *task->names;
    const size_t access = count * sizeof *task->access;
    int32_t rank = 0; /* the largest */
    for (size_t i = 0; i < count; i++) {
        rank = task->views[i]->rank > rank ? task->views[i]->rank : rank;
    }
    const size_t packed = packed_size(rank);
    const size_t parts = (size_t)task->part_count * sizeof *task->parts;
    size_t size = sizeof(QueuedLaunch) + 7 * 16 + count * packed + views + names + access + parts + task->attribute_size;
    QueuedLaunch *queued = us_block_take(&size);
    if (queued == NULL) {
        return NULL;
    }
    queued->size = size;
    queued->ran = false;
    char *cursor = (char *)queued + (sizeof *queued + 15) / 16 * 16;
    queued->device = device;
    queued->task = *task;
    queued->task.attributes = keep(&cursor, task->attributes, task->attribute_size);
    queued->task.names = keep(&cursor, task->names, names);
    queued->task.access = keep(&cursor, task->access, access);
    queued->task.parts = keep(&cursor, task->parts, parts);
    queued->task.views = NULL;
    queued->packed = cursor;
    queued->packed_size = packed;
    for (size_t i = 0; i < count; i++, cursor += packed) {
        pack(cursor, task->views[i]);
    }
    queued->views = (View *)(void *)cursor;
    memset(queued->results, 0, sizeof queued->results);
    return queued;
}

/* ---- of a recorded launch that meets others: one for each launch of its graph ---- */

static void *moved(const QueuedLaunch *from, QueuedLaunch *to, const void *part)
{
    return (char *)to + ((const char *)part - (const char *)from);
}

static void *copy_recorded(void *argument)
{
    const QueuedLaunch *from = argument;
    size_t size = from->size;
    QueuedLaunch *copy = us_block_take(&size);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, from, from->size);
    copy->size = size;
    copy->ran = false;
    copy->task.attributes = moved(from, copy, from->task.attributes);
    copy->task.names = moved(from, copy, from->task.names);
    copy->task.access = moved(from, copy, from->task.access);
    copy->task.parts = moved(from, copy, from->task.parts);
    copy->packed = moved(from, copy, from->packed);
    copy->views = moved(from, copy, from->views);
    copy->task.meeting->take((void *)copy->task.attributes, true);
    return copy;
}

static void draw_recorded(void *argument)
{
    const LaunchTask *task = &((const QueuedLaunch *)argument)->task;
    task->meeting->draw((void *)task->attributes);
}

static void inherit(void *argument, void *from)
{
    const LaunchTask *task = &((const QueuedLaunch *)argument)->task, *before = &((const QueuedLaunch *)from)->task;
    if (task->meeting == before->meeting) {
        task->meeting->inherit((void *)task->attributes, (void *)before->attributes);
    }
}

static bool is_awaited(void *argument)
{
    const LaunchTask *task = &((const QueuedLaunch *)argument)->task;
    return task->meeting->awaited(task->attributes);
}

static const TaskCopying copying = {copy_recorded, draw_recorded, inherit, is_awaited};

/* Of a launch that was to be recorded, where the recording was over before it came. */
static void draw_in_place(void *argument, uint64_t ticket)
{
    (void)ticket;
    draw_recorded(argument);
}

/* The launch may be over, and gone, once it is queued. */
static bool queue_meeting(const LaunchTask *given, Task task, QueuedLaunch *launch, StreamState *stream)
{
    const LaunchMeeting *meeting = given->meeting;
    Moment *after = meeting->after(launch->task.attributes, &stream->public), *over = NULL;
    uint64_t ticket = 0;
    task.ready = is_ready;
    task.takes_place = task.unrecorded ? NULL : draw_in_place;
    task.copying = &copying;
    task.after = after;
    task.over = &over;
    const bool queued = us_stream_queue(stream, task, &ticket);
    us_order_let_go(after);
    if (queued) {
        meeting->over(given->attributes, over);
    }
    if (queued && us_stream_mode() == STREAM_MODE_DEFERRED && meeting->awaited(given->attributes)) {
        us_stream_allow(stream, ticket);
    }
    return queued;
}

static bool queue_launch(const LaunchTask *given, QueuedLaunch *launch, StreamState *stream, Uses uses)
{
    const Task task = {.work = {given->function, "kernel", us_tracing ? bytes_of(given) : 0}, .run = run,
                       .release = give_back_block, .argument = launch, .uses = uses.first, .use_count = uses.count,
                       .anywhere = true, .unrecorded = launch->task.unrecorded};
    uint64_t ticket = 0;
    return given->meeting != NULL ? queue_meeting(given, task, launch, stream) : us_stream_queue(stream, task, &ticket);
}

bool us_launch_submit_task(const LaunchTask *task, Stream *stream)
{
    QueuedLaunch *queued = copy_task(task, stream->context->device);
    if (task->meeting != NULL) {
        void *attributes = (void *)(queued != NULL ? &queued->task : task)->attributes;
        const bool recorded = us_stream_is_recorded(stream);
        task->meeting->take(attributes, recorded);
        if (!recorded) {
            task->meeting->draw(attributes);
        }
        if (queued != NULL) {
            queued->task.unrecorded = !recorded;
        }
    }
    if (queued == NULL) {
        if (task->meeting != NULL) {
            task->meeting->release((void *)task->attributes, false);
        }
        return false;
    }
    Use *uses = NULL;
    size_t use_count = 0;
    bool submitted = find_uses(task, &uses, &use_count) &&
                     queue_launch(task, queued, stream_state(stream), (Uses){uses, use_count});
    free(uses);
    if (!submitted) {
        give_back_block(queued);
    }
    return submitted;
}

LaunchTask us_launch_task(const Launch *launch, const View **views)
{
    for (int32_t i = 0; i < launch->view_count; i++) {
        views[i] = &launch->views[i];
    }
    return (LaunchTask){
        .function = launch->function,
        .kernel = launch->kernel,
        .unrecorded = launch->unrecorded,
        .view_count = launch->view_count,
        .views = views,
        .names = launch->names,
        .access = launch->access,
        .parts = launch->parts,
        .part_count = launch->part_count,
        .attributes = launch->attributes,
        .attribute_size = launch->attribute_size,
    };
}
