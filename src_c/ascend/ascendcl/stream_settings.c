/* What a stream remembers about itself (cann-runtime 9, doc 06). */
#include "ascend/ascendcl/runtime.h"

#include "device/graph.h"

#include <stdatomic.h>

static Stream *require_stream(Call *call, aclrtStream handle)
{
    acl_require_context(call, "context", "none");
    return acl_require_stream(call, "stream", "dead", handle);
}

static void set_flag(Stream *stream, int64_t flag, bool on)
{
    if (on) {
        __atomic_fetch_or(&stream->vendor_state[STREAM_SETTINGS], flag, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_and(&stream->vendor_state[STREAM_SETTINGS], ~flag, __ATOMIC_RELAXED);
    }
}

static bool has_flag(const Stream *stream, int64_t flag)
{
    return (__atomic_load_n(&stream->vendor_state[STREAM_SETTINGS], __ATOMIC_RELAXED) & flag) != 0;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
    Call call = us_call_begin("aclrtStreamGetPriority");
    us_require(&call, priority != NULL, "priority", "null", ACL_ERROR_INVALID_PARAM, "priority is NULL");
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        *priority = (uint32_t)found->priority;
    }
    return acl_end(&call);
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
    Call call = us_call_begin("aclrtStreamGetFlags");
    us_require(&call, flags != NULL, "flags", "null", ACL_ERROR_INVALID_PARAM, "flags is NULL");
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        *flags = found->vendor_flags;
    }
    return acl_end(&call);
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
    Call call = us_call_begin("aclrtStreamGetId");
    us_require(&call, streamId != NULL, "streamId", "null", ACL_ERROR_INVALID_PARAM, "streamId is NULL");
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        *streamId = found->id;
    }
    return acl_end(&call);
}

/* ---- attributes ---- */

static void require_known_attribute(Call *call, aclrtStreamAttr attribute)
{
    us_require(call, (int)attribute >= ACL_STREAM_ATTR_FAILURE_MODE && (int)attribute <= ACL_STREAM_ATTR_CACHE_OP_INFO,
               "stmAttrType", "range", ACL_ERROR_RT_PARAM_INVALID, "stmAttrType is %d; it must be 1 to 4",
               (int)attribute);
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value)
{
    Call call = us_call_begin("aclrtSetStreamAttribute");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    require_known_attribute(&call, stmAttrType);
    Stream *found = require_stream(&call, stream);
    if (call.status != 0) {
        return acl_end(&call);
    }
    switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
        atomic_store(&found->context->stops_on_failure, (value->failureMode & ACL_STOP_ON_FAILURE) != 0);
        break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
        set_flag(found, STREAM_CHECKS_OVERFLOW, value->overflowSwitch != 0);
        break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
        __atomic_store_n(&found->vendor_state[STREAM_TAG], value->userCustomTag, __ATOMIC_RELAXED);
        break;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
        set_flag(found, STREAM_CACHES_OPERATORS, value->cacheOpInfoSwitch != 0);
        break;
    }
    return acl_end(&call);
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value)
{
    Call call = us_call_begin("aclrtGetStreamAttribute");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    require_known_attribute(&call, stmAttrType);
    Stream *found = require_stream(&call, stream);
    if (call.status != 0) {
        return acl_end(&call);
    }
    switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
        value->failureMode = atomic_load(&found->context->stops_on_failure) ? ACL_STOP_ON_FAILURE
                                                                             : ACL_CONTINUE_ON_FAILURE;
        break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
        value->overflowSwitch = has_flag(found, STREAM_CHECKS_OVERFLOW);
        break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
        value->userCustomTag = (uint32_t)__atomic_load_n(&found->vendor_state[STREAM_TAG], __ATOMIC_RELAXED);
        break;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
        value->cacheOpInfoSwitch = has_flag(found, STREAM_CACHES_OPERATORS);
        break;
    }
    return acl_end(&call);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
    Call call = us_call_begin("aclrtSetStreamFailureMode");
    Stream *found = require_stream(&call, stream);
    us_require(&call, !us_graph_has_bound(NULL, found), "stream", "bound", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "stream %d is bound to a model", (int)found->id);
    if (call.status == 0) {
        /* The mode is the context's: it holds for all its streams (cann-runtime 9). */
        atomic_store(&found->context->stops_on_failure, (mode & ACL_STOP_ON_FAILURE) != 0);
    }
    return acl_end(&call);
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag)
{
    Call call = us_call_begin("aclrtSetStreamOverflowSwitch");
    us_require(&call, flag <= 1, "flag", "range", ACL_ERROR_INVALID_PARAM, "flag is %u; it must be 0 or 1",
               (unsigned)flag);
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        set_flag(found, STREAM_CHECKS_OVERFLOW, flag == 1);
    }
    return acl_end(&call);
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag)
{
    Call call = us_call_begin("aclrtGetStreamOverflowSwitch");
    us_require(&call, flag != NULL, "flag", "null", ACL_ERROR_INVALID_PARAM, "flag is NULL");
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        *flag = has_flag(found, STREAM_CHECKS_OVERFLOW);
    }
    return acl_end(&call);
}
