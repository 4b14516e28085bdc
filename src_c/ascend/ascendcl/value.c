/* Streams that write a number to memory or wait for one (cann-runtime-3 9). */
#include "device/value.h"

#include "ascend/ascendcl/runtime.h"

/* What both functions check; NULL after a refusal. */
static Stream *require_task(Call *call, ValueTask *task, uint32_t flag, uint32_t largest, aclrtStream handle)
{
    us_require(call, task->address != NULL, "devAddr", "null", ACL_ERROR_INVALID_PARAM, "devAddr is NULL");
    us_require(call, (uintptr_t)task->address % sizeof(uint64_t) == 0, "devAddr", "alignment",
               ACL_ERROR_RT_PARAM_INVALID,
               "devAddr is %p; it must be a multiple of 8", task->address);
    us_require(call, flag <= largest, "flag", "range", ACL_ERROR_RT_PARAM_INVALID, "flag is %u; it must be at most %u",
               (unsigned)flag, (unsigned)largest);
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "streams of the %s do not wait for numbers in memory",
               ascend_product()->series);
    Stream *stream = acl_require_task_stream(call, handle);
    if (stream != NULL) {
        task->device = stream->context->device;
    }
    return stream;
}

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    Call call = us_call_begin("aclrtValueWrite");
    ValueTask task = {.address = devAddr, .value = value};
    Stream *found = require_task(&call, &task, flag, 0, stream);
    us_require(&call, us_value_write(found, &task), "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the write");
    return acl_end(&call);
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    Call call = us_call_begin("aclrtValueWait");
    ValueTask task = {.address = devAddr, .value = value, .test = (ValueTest)flag};
    Stream *found = require_task(&call, &task, flag, VALUE_NOR, stream);
    us_require(&call, us_value_wait(found, &task), "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the wait");
    return acl_end(&call);
}
