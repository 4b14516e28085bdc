/* How many cores operators may use (cann-runtime-3 7): numbers that are kept, and read by programs. A stream's limit
 * holds for the threads that use it, then the device's, then what the product has. */
#include "ascend/ascendcl/runtime.h"

#include <stdatomic.h>

static uint32_t cores_of_product(aclrtDevResLimitType type)
{
    const ProductProfile *product = ascend_product();
    return (uint32_t)(type == ACL_RT_DEV_RES_CUBE_CORE ? product->cube_cores : product->vector_cores);
}

static void require_type(Call *call, aclrtDevResLimitType type)
{
    us_require(call, type == ACL_RT_DEV_RES_CUBE_CORE || type == ACL_RT_DEV_RES_VECTOR_CORE, "type", "range",
               ACL_ERROR_RT_PARAM_INVALID, "type is %d; it must be 0 or 1", (int)type);
}

static void require_cores(Call *call, aclrtDevResLimitType type, uint32_t value)
{
    us_require(call, value > 0 && value <= cores_of_product(type), "value", "range", ACL_ERROR_RT_PARAM_INVALID,
               "value is %u; it must be 1 to %u", (unsigned)value, (unsigned)cores_of_product(type));
}

static void require_value(Call *call, const uint32_t *value)
{
    us_require(call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
}

/* ---- of a device; 0 is none ---- */

static uint32_t limit_of_device(Runtime *runtime, int32_t ordinal, aclrtDevResLimitType type)
{
    uint32_t limit = atomic_load(&runtime->core_limits[ordinal][type]);
    return limit != 0 ? limit : cores_of_product(type);
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value)
{
    Call call = us_call_begin("aclrtGetDeviceResLimit");
    require_value(&call, value);
    acl_require_device(&call, "deviceId", "range", deviceId);
    require_type(&call, type);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        *value = limit_of_device(runtime, deviceId, type);
    }
    return acl_end(&call);
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value)
{
    Call call = us_call_begin("aclrtSetDeviceResLimit");
    acl_require_device(&call, "deviceId", "range", deviceId);
    require_type(&call, type);
    require_cores(&call, type, value);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        atomic_store(&runtime->core_limits[deviceId][type], value);
    }
    return acl_end(&call);
}

aclError aclrtResetDeviceResLimit(int32_t deviceId)
{
    Call call = us_call_begin("aclrtResetDeviceResLimit");
    acl_require_device(&call, "deviceId", "range", deviceId);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        atomic_store(&runtime->core_limits[deviceId][ACL_RT_DEV_RES_CUBE_CORE], 0);
        atomic_store(&runtime->core_limits[deviceId][ACL_RT_DEV_RES_VECTOR_CORE], 0);
    }
    return acl_end(&call);
}

/* ---- of a stream: both limits in one number, so that neither needs a lock ---- */

static uint32_t limit_of_stream(const Stream *stream, aclrtDevResLimitType type)
{
    uint64_t both = (uint64_t)__atomic_load_n(&stream->vendor_state[STREAM_CORE_LIMITS], __ATOMIC_RELAXED);
    return (uint32_t)(both >> (type == ACL_RT_DEV_RES_CUBE_CORE ? 0 : 32));
}

static Stream *require_stream(Call *call, aclrtStream handle)
{
    acl_require_context(call, "context", "none");
    return acl_require_stream(call, "stream", "dead", handle);
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value)
{
    Call call = us_call_begin("aclrtGetStreamResLimit");
    require_value(&call, value);
    Stream *found = require_stream(&call, stream);
    require_type(&call, type);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        uint32_t own = limit_of_stream(found, type);
        *value = own != 0 ? own : limit_of_device(runtime, found->context->device->ordinal, type);
    }
    return acl_end(&call);
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value)
{
    Call call = us_call_begin("aclrtSetStreamResLimit");
    Stream *found = require_stream(&call, stream);
    require_type(&call, type);
    require_cores(&call, type, value);
    if (call.status == 0) {
        int shift = type == ACL_RT_DEV_RES_CUBE_CORE ? 0 : 32;
        int64_t *both = &found->vendor_state[STREAM_CORE_LIMITS];
        __atomic_fetch_and(both, (int64_t)~((uint64_t)UINT32_MAX << shift), __ATOMIC_RELAXED);
        __atomic_fetch_or(both, (int64_t)((uint64_t)value << shift), __ATOMIC_RELAXED);
    }
    return acl_end(&call);
}

aclError aclrtResetStreamResLimit(aclrtStream stream)
{
    Call call = us_call_begin("aclrtResetStreamResLimit");
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        __atomic_store_n(&found->vendor_state[STREAM_CORE_LIMITS], 0, __ATOMIC_RELAXED);
    }
    return acl_end(&call);
}

/* ---- of a thread: the stream whose limits it uses, by handle, so that a destroyed stream is simply not used ---- */

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream)
{
    Call call = us_call_begin("aclrtUseStreamResInCurrentThread");
    Stream *found = require_stream(&call, stream);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        pthread_setspecific(runtime->stream_of_limits, found->handle);
    }
    return acl_end(&call);
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream)
{
    Call call = us_call_begin("aclrtUnuseStreamResInCurrentThread");
    Stream *found = require_stream(&call, stream);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0 && pthread_getspecific(runtime->stream_of_limits) == found->handle) {
        pthread_setspecific(runtime->stream_of_limits, NULL);
    }
    return acl_end(&call);
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value)
{
    Call call = us_call_begin("aclrtGetResInCurrentThread");
    require_value(&call, value);
    Context *context = acl_require_context(&call, "context", "none");
    require_type(&call, type);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        const Stream *used = us_stream_of_handle(pthread_getspecific(runtime->stream_of_limits));
        uint32_t own = used != NULL ? limit_of_stream(used, type) : 0;
        *value = own != 0 ? own : limit_of_device(runtime, context->device->ordinal, type);
    }
    return acl_end(&call);
}
