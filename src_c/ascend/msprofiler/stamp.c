/* Marks and ranges that a program puts on the timeline (cann-runtime-3 15, msproftx). While nothing is traced they cost a
 * branch. */
#include "ascend/msprofiler/profiler.h"

#include "acl/error_codes/rt_error_codes.h"
#include "ascend/common/platform.h"
#include "device/graph.h"
#include "report/hash.h"
#include "report/trace.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 128, DEPTH_LIMIT = 128 };

typedef struct Stamp {
    char message[MESSAGE_BYTES];
} Stamp;

/* A range that has begun. */
typedef struct Range {
    struct Range *next; /* of those that threads share */
    uint32_t id;
    uint64_t start;
    char message[MESSAGE_BYTES];
} Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Range *ranges;
static uint32_t last_range;
static _Thread_local Range stack[DEPTH_LIMIT];
static _Thread_local size_t depth;

/* What a text of the program looks like inside a string of JSON; other bytes than printable ones become "?". */
static void quote(char *quoted, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            *quoted++ = '\\';
        }
        *quoted++ = (unsigned char)*text < ' ' ? '?' : *text;
    }
    *quoted = '\0';
}

static void trace(const char *category, const char *message, int64_t lane, uint64_t start)
{
    if (us_tracing) {
        char quoted[2 * MESSAGE_BYTES];
        quote(quoted, message);
        us_trace_event(category, quoted, lane, start, us_now(), "");
    }
}

/* ---- stamps ---- */

void *aclprofCreateStamp(void)
{
    Call call = us_call_begin("aclprofCreateStamp");
    void *handle = us_handle_new(HANDLE_STAMP, &(Stamp){0}, sizeof(Stamp));
    us_require(&call, handle != NULL, "stamp", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a stamp");
    us_call_end(&call);
    return handle;
}

void aclprofDestroyStamp(void *stamp)
{
    us_handle_release(stamp, HANDLE_STAMP);
}

static Stamp *require_stamp(Call *call, void *handle)
{
    us_require(call, handle != NULL, "stamp", "null", ACL_ERROR_INVALID_PARAM, "stamp is NULL");
    Stamp *stamp = call->status == 0 ? us_handle_object(handle, HANDLE_STAMP) : NULL;
    us_require(call, stamp != NULL, "stamp", "dead", ACL_ERROR_INVALID_PARAM,
               "%p has been destroyed, or never was a stamp", handle);
    return stamp;
}

static void require_message(Call *call, const char *message, size_t length, const char *length_name)
{
    us_require(call, message != NULL, "msg", "null", ACL_ERROR_INVALID_PARAM, "msg is NULL");
    us_require(call, length > 0 && length < MESSAGE_BYTES, length_name, "range", ACL_ERROR_INVALID_PARAM,
               "%s is %zu; it must be 1 to 127", length_name, length);
}

aclError aclprofSetStampTraceMessage(void *stamp, const char *msg, uint32_t msgLen)
{
    Call call = us_call_begin("aclprofSetStampTraceMessage");
    Stamp *found = require_stamp(&call, stamp);
    require_message(&call, msg, msgLen, "msgLen");
    if (call.status == 0) {
        memset(found->message, 0, sizeof found->message);
        strncpy(found->message, msg, msgLen);
    }
    return us_call_end(&call);
}

aclError aclprofMark(void *stamp)
{
    Call call = us_call_begin("aclprofMark");
    const Stamp *found = require_stamp(&call, stamp);
    if (call.status == 0) {
        trace("mark", found->message, 0, us_now());
    }
    return us_call_end(&call);
}

/* ---- marks in a stream ---- */

typedef struct StreamMark {
    int64_t lane;
    char message[MESSAGE_BYTES];
} StreamMark;

static DeviceFault run_mark(void *argument, Explanation *why)
{
    (void)why;
    const StreamMark *mark = argument;
    trace("mark", mark->message, mark->lane, us_now());
    return DEVICE_FAULT_NONE;
}

/* NULL is the default stream. */
static Stream *require_stream(Call *call, const void *handle)
{
    Stream *stream = ascend_stream(handle);
    us_require(call, stream != NULL || handle != NULL, "context", "none", ACL_ERROR_RT_CONTEXT_NULL,
               "this thread has no context, and so no default stream");
    us_require(call, stream != NULL, "stream", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "stream %p has been destroyed, or never existed", handle);
    us_require(call, stream != stream->context->default_stream || !us_capture_in_context(stream->context, true), "stream",
               "implicit", ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
               "the default stream cannot be used while another stream of its context is captured");
    us_require(call, !us_stream_is_closed(stream), "stream", "closed", ACL_ERROR_RT_PARAM_INVALID,
               "stream %d is bound to a model that takes no more work: aclmdlRIBuildEnd was called", (int)stream->id);
    return stream;
}

aclError aclprofMarkEx(const char *msg, size_t msgLen, aclrtStream stream)
{
    static const Work work = {.name = "mark", .category = "task"};
    Call call = us_call_begin("aclprofMarkEx");
    require_message(&call, msg, msgLen, "msgLen");
    Stream *found = call.status == 0 ? require_stream(&call, stream) : NULL;
    StreamMark *mark = call.status == 0 ? calloc(1, sizeof *mark) : NULL;
    bool queued = mark != NULL;
    if (queued) {
        mark->lane = 1 + (int64_t)found->id;
        strncpy(mark->message, msg, msgLen);
        trace("mark", mark->message, 0, us_now());
        queued = us_stream_submit_work(found, work, run_mark, free, mark);
    }
    us_require(&call, queued, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the mark");
    if (!queued) {
        free(mark);
    }
    return us_call_end(&call);
}

/* ---- ranges ---- */

static void push(Call *call, const char *message)
{
    us_require(call, depth < DEPTH_LIMIT, "range", "depth", ACL_ERROR_INVALID_PARAM,
               "%d ranges of this thread have begun already", DEPTH_LIMIT);
    if (call->status == 0) {
        stack[depth].start = us_now();
        memcpy(stack[depth].message, message, MESSAGE_BYTES);
        depth++;
    }
}

static void pop(Call *call)
{
    us_require(call, depth > 0, "range", "none", ACL_ERROR_INVALID_PARAM, "no range of this thread has begun");
    if (call->status == 0) {
        depth--;
        trace("range", stack[depth].message, 0, stack[depth].start);
    }
}

aclError aclprofPush(void *stamp)
{
    Call call = us_call_begin("aclprofPush");
    const Stamp *found = require_stamp(&call, stamp);
    if (call.status == 0) {
        push(&call, found->message);
    }
    return us_call_end(&call);
}

aclError aclprofPop(void)
{
    Call call = us_call_begin("aclprofPop");
    pop(&call);
    return us_call_end(&call);
}

aclError aclprofRangePushEx(aclprofEventAttributes *attr)
{
    static const char kernel[MESSAGE_BYTES] = "kernel";
    Call call = us_call_begin("aclprofRangePushEx");
    us_require(&call, attr != NULL, "attr", "null", ACL_ERROR_INVALID_PARAM, "attr is NULL");
    push(&call, kernel);
    return us_call_end(&call);
}

aclError aclprofRangePop(void)
{
    Call call = us_call_begin("aclprofRangePop");
    pop(&call);
    return us_call_end(&call);
}

aclError aclprofRangeStart(void *stamp, uint32_t *rangeId)
{
    Call call = us_call_begin("aclprofRangeStart");
    us_require(&call, rangeId != NULL, "rangeId", "null", ACL_ERROR_INVALID_PARAM, "rangeId is NULL");
    const Stamp *found = require_stamp(&call, stamp);
    Range *range = call.status == 0 ? calloc(1, sizeof *range) : NULL;
    us_require(&call, range != NULL, "range", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a range");
    if (found != NULL && range != NULL) {
        memcpy(range->message, found->message, MESSAGE_BYTES);
        range->start = us_now();
        pthread_mutex_lock(&lock);
        range->id = *rangeId = ++last_range;
        range->next = ranges;
        ranges = range;
        pthread_mutex_unlock(&lock);
    }
    return us_call_end(&call);
}

aclError aclprofRangeStop(uint32_t rangeId)
{
    Call call = us_call_begin("aclprofRangeStop");
    pthread_mutex_lock(&lock);
    Range **link = &ranges;
    while (*link != NULL && (*link)->id != rangeId) {
        link = &(*link)->next;
    }
    Range *range = *link;
    if (range != NULL) {
        *link = range->next;
    }
    pthread_mutex_unlock(&lock);
    us_require(&call, range != NULL, "rangeId", "unknown", ACL_ERROR_INVALID_PARAM, "no range %u has begun",
               (unsigned)rangeId);
    if (range != NULL) {
        trace("range", range->message, 0, range->start);
        free(range);
    }
    return us_call_end(&call);
}

uint64_t aclprofStr2Id(const char *message)
{
    if (message == NULL) {
        return UINT64_MAX;
    }
    const uint64_t hash = us_hash(message, strlen(message));
    return hash != UINT64_MAX ? hash : 0;
}

/* ---- steps of a training ---- */

typedef struct Step {
    uint64_t start;
    bool ended;
} Step;

aclprofStepInfo *aclprofCreateStepInfo(void)
{
    Call call = us_call_begin("aclprofCreateStepInfo");
    void *handle = us_handle_new(HANDLE_STEP, &(Step){0}, sizeof(Step));
    us_require(&call, handle != NULL, "stepInfo", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a step");
    us_call_end(&call);
    return handle;
}

void aclprofDestroyStepInfo(aclprofStepInfo *stepinfo)
{
    us_handle_release(stepinfo, HANDLE_STEP);
}

aclError aclprofGetStepTimestamp(aclprofStepInfo *stepInfo, aclprofStepTag tag, aclrtStream stream)
{
    static const char name[] = "step";
    Call call = us_call_begin("aclprofGetStepTimestamp");
    us_require(&call, stepInfo != NULL, "stepInfo", "null", ACL_ERROR_INVALID_PARAM, "stepInfo is NULL");
    us_require(&call, tag == ACL_STEP_START || tag == ACL_STEP_END, "tag", "range", ACL_ERROR_INVALID_PARAM,
               "tag is %d; it must be 0 or 1", (int)tag);
    Step *step = call.status == 0 ? us_handle_object(stepInfo, HANDLE_STEP) : NULL;
    us_require(&call, step != NULL, "stepInfo", "dead", ACL_ERROR_INVALID_PARAM,
               "%p has been destroyed, or never was a step", (void *)stepInfo);
    us_require(&call, stream == NULL || us_stream_of_handle(stream) != NULL, "stream", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "stream %p has been destroyed, or never existed", stream);
    us_require(&call, tag == ACL_STEP_START ? step->start == 0 : step->start != 0 && !step->ended, "tag", "order",
               ACL_ERROR_INVALID_PARAM, "a step starts once and then ends once");
    if (call.status == 0 && tag == ACL_STEP_START) {
        step->start = us_now();
    } else if (call.status == 0) {
        step->ended = true;
        trace("range", name, 0, step->start);
    }
    return us_call_end(&call);
}
