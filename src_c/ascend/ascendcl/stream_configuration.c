/* Streams made from a configuration (cann-runtime 9, cann-runtime-3 8). */
#include "ascend/ascendcl/runtime.h"

#include <stdlib.h>
#include <string.h>

aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void)
{
    return calloc(1, sizeof(aclrtStreamConfigHandle));
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle)
{
    Call call = us_call_begin("aclrtDestroyStreamConfigHandle");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    free(handle);
    return acl_end(&call);
}

/* Programs pass 4 bytes for the flag, though its member has 8. */
static bool fits(aclrtStreamConfigAttr attribute, size_t size)
{
    switch (attribute) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
        return size == sizeof(void *);
    case ACL_RT_STREAM_WORK_SIZE:
        return size == sizeof(size_t);
    case ACL_RT_STREAM_FLAG:
        return size == sizeof(uint32_t) || size == sizeof(size_t);
    default:
        return size == sizeof(uint32_t);
    }
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr, const void *attrValue,
                                 size_t valueSize)
{
    Call call = us_call_begin("aclrtSetStreamConfigOpt");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    us_require(&call, attrValue != NULL, "attrValue", "null", ACL_ERROR_INVALID_PARAM, "attrValue is NULL");
    us_require(&call, (int)attr >= 0 && attr <= ACL_RT_STREAM_PRIORITY, "attr", "range", ACL_ERROR_INVALID_PARAM,
               "attr is %d; it must be 0 to 3", (int)attr);
    us_require(&call, fits(attr, valueSize), "valueSize", "range", ACL_ERROR_INVALID_PARAM,
               "valueSize is %zu, which attribute %d has not", valueSize, (int)attr);
    uint64_t value = 0;
    if (call.status == 0) {
        memcpy(&value, attrValue, valueSize);
    }
    us_require(&call, attr != ACL_RT_STREAM_PRIORITY || value <= ACL_STREAM_LOWEST_PRIORITY, "attrValue", "priority",
               ACL_ERROR_INVALID_PARAM, "the priority is %llu; it must be 0 to 7", (unsigned long long)value);
    if (call.status == 0) {
        switch (attr) {
        case ACL_RT_STREAM_WORK_ADDR_PTR:
            handle->workptr = (void *)(uintptr_t)value;
            break;
        case ACL_RT_STREAM_WORK_SIZE:
            handle->workSize = value;
            break;
        case ACL_RT_STREAM_FLAG:
            handle->flag = value;
            break;
        case ACL_RT_STREAM_PRIORITY:
            handle->priority = (uint32_t)value;
            break;
        }
    }
    return acl_end(&call);
}

aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle)
{
    Call call = us_call_begin("aclrtCreateStreamV2");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    uint32_t flag = call.status == 0 ? (uint32_t)handle->flag : 0;
    uint32_t priority = call.status == 0 ? handle->priority : 0;
    acl_create_stream(&call, stream, flag, priority);
    return acl_end(&call);
}
