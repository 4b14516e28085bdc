/* Host functions in streams: on threads of the program that serve them, or on the runtime's own (cann-runtime 9, doc 12;
 * cann-runtime-3 6). */
#include "ascend/ascendcl/report_queue.h"

#include <stdlib.h>

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    Call call = us_call_begin("aclrtSubscribeReport");
    queue_subscribe(&call, QUEUE_OF_CALLBACKS, threadId, stream);
    return acl_end(&call);
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    Call call = us_call_begin("aclrtUnSubscribeReport");
    queue_unsubscribe(&call, QUEUE_OF_CALLBACKS, threadId, stream);
    return acl_end(&call);
}

aclError aclrtProcessReport(int32_t timeout)
{
    Call call = us_call_begin("aclrtProcessReport");
    queue_process(&call, QUEUE_OF_CALLBACKS, timeout);
    return acl_end(&call);
}

static void require_execution_stream(Call *call, aclrtStream stream)
{
    us_require(call, stream != NULL, "stream", "null", ACL_ERROR_INVALID_PARAM, "exeStream is NULL");
}

aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream)
{
    Call call = us_call_begin("aclrtSubscribeHostFunc");
    require_execution_stream(&call, exeStream);
    queue_subscribe(&call, QUEUE_OF_HOST_FUNCTIONS, hostFuncThreadId, exeStream);
    return acl_end(&call);
}

aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream)
{
    Call call = us_call_begin("aclrtUnSubscribeHostFunc");
    require_execution_stream(&call, exeStream);
    queue_unsubscribe(&call, QUEUE_OF_HOST_FUNCTIONS, hostFuncThreadId, exeStream);
    return acl_end(&call);
}

aclError aclrtProcessHostFunc(int32_t timeout)
{
    Call call = us_call_begin("aclrtProcessHostFunc");
    queue_process(&call, QUEUE_OF_HOST_FUNCTIONS, timeout);
    return acl_end(&call);
}

/* Without a thread for its host functions a stream has either callbacks or host functions. */
static bool runs_host_functions(const Stream *stream)
{
    int64_t settings = __atomic_load_n(&stream->vendor_state[STREAM_SETTINGS], __ATOMIC_RELAXED);
    return (settings & STREAM_RUNS_HOST_FUNCTIONS) != 0;
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream)
{
    Call call = us_call_begin("aclrtLaunchCallback");
    us_require(&call, blockType == ACL_CALLBACK_NO_BLOCK || blockType == ACL_CALLBACK_BLOCK, "blockType", "range",
               ACL_ERROR_INVALID_PARAM, "blockType is %d; it must be 0 or 1", (int)blockType);
    us_require(&call, fn != NULL, "fn", "null", ACL_ERROR_RT_PARAM_INVALID, "fn is NULL; it is what shall run");
    Stream *found = acl_require_work_stream(&call, stream);
    acl_require_no_group(&call, found);
    us_require(&call, !queue_serves(QUEUE_OF_CALLBACKS, found) || !runs_host_functions(found), "stream",
               "host-function", ACL_ERROR_RT_STREAM_SUBSCRIBE,
               "stream %d has been used with aclrtLaunchHostFunc", (int)found->id);
    if (call.status == 0) {
        queue_submit(&call, QUEUE_OF_CALLBACKS, found, fn, userData, blockType == ACL_CALLBACK_BLOCK);
    }
    return acl_end(&call);
}

/* ---- functions on the runtime's own threads ---- */

typedef struct HostFunction {
    const Platform *platform;
    aclrtHostFunc function;
    void *arguments;
} HostFunction;

static DeviceFault run_host_function(void *argument, Explanation *why)
{
    (void)why;
    const HostFunction *call = argument;
    /* A thread of the runtime has no context, so that the function does not wait for its own stream; this may be another. */
    void *context = us_context_exchange(call->platform, NULL);
    call->function(call->arguments);
    us_context_exchange(call->platform, context);
    return DEVICE_FAULT_NONE;
}

/* On a thread of the runtime. */
static void run_on_own_thread(Call *call, Stream *stream, aclrtHostFunc function, void *arguments)
{
    HostFunction *task = malloc(sizeof *task);
    bool queued = false;
    if (task != NULL) {
        *task = (HostFunction){stream->context->device->platform, function, arguments};
        __atomic_fetch_or(&stream->vendor_state[STREAM_SETTINGS], STREAM_RUNS_HOST_FUNCTIONS, __ATOMIC_RELAXED);
        queued = us_stream_submit(stream, "aclrtLaunchHostFunc", run_host_function, free, task);
        if (!queued) {
            free(task);
        }
    }
    us_require(call, queued, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the function");
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
    Call call = us_call_begin("aclrtLaunchHostFunc");
    us_require(&call, fn != NULL, "fn", "null", ACL_ERROR_RT_PARAM_INVALID, "fn is NULL; it is what shall run");
    Stream *found = acl_require_work_stream(&call, stream);
    acl_require_no_group(&call, found);
    bool served = call.status == 0 && queue_serves(QUEUE_OF_HOST_FUNCTIONS, found);
    us_require(&call, served || !queue_serves(QUEUE_OF_CALLBACKS, found), "stream", "subscribed",
               ACL_ERROR_RT_STREAM_SUBSCRIBE, "stream %d is served by a thread (aclrtSubscribeReport)",
               (int)found->id);
    if (served) {
        queue_submit(&call, QUEUE_OF_HOST_FUNCTIONS, found, fn, args, true);
    } else if (call.status == 0) {
        run_on_own_thread(&call, found, fn, args);
    }
    return acl_end(&call);
}
