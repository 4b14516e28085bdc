/* Marks that a program puts into a stream for the profiler (cann-runtime-3 10, doc 24): on the timeline when the stream comes
 * to them. */
#include "ascend/ascendcl/runtime.h"
#include "report/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_BYTES = 18 };

typedef struct StreamMark {
    int64_t lane;
    unsigned char data[MARK_BYTES];
} StreamMark;

static DeviceFault run_mark(void *argument, Explanation *why)
{
    (void)why;
    const StreamMark *mark = argument;
    if (us_tracing) {
        char text[32 + 2 * MARK_BYTES] = "\"data\":\"";
        size_t end = strlen(text);
        for (size_t i = 0; i < MARK_BYTES; i++, end += 2) {
            snprintf(text + end, sizeof text - end, "%02x", mark->data[i]);
        }
        strcpy(text + end, "\"");
        const uint64_t now = us_now();
        us_trace_event("mark", "aclrtProfTrace", mark->lane, now, now, text);
    }
    return DEVICE_FAULT_NONE;
}

aclError aclrtProfTrace(void *userdata, int32_t length, aclrtStream stream)
{
    Call call = us_call_begin("aclrtProfTrace");
    us_require(&call, userdata != NULL, "userdata", "null", ACL_ERROR_INVALID_PARAM, "userdata is NULL");
    us_require(&call, length != 0, "length", "zero", ACL_ERROR_INVALID_PARAM, "length is 0; it must be at least 1");
    us_require(&call, length > 0 && length <= MARK_BYTES, "length", "range", ACL_ERROR_RT_PARAM_INVALID,
               "length is %d; a mark has at most %d bytes", (int)length, (int)MARK_BYTES);
    Stream *found = acl_require_task_stream(&call, stream);
    StreamMark *mark = found != NULL ? calloc(1, sizeof *mark) : NULL;
    bool queued = mark != NULL;
    if (queued) {
        mark->lane = 1 + (int64_t)found->id;
        memcpy(mark->data, userdata, (size_t)length);
        queued = us_stream_submit_work(found, (Work){call.function, "task", 0}, run_mark, free, mark);
    }
    us_require(&call, queued, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the mark");
    if (!queued) {
        free(mark);
    }
    return acl_end(&call);
}
