/* Devices of the process and of the thread (cann-runtime 8 and 9). */
#include "ascend/ascendcl/runtime.h"
#include "device/pool.h"

const char *aclrtGetSocName(void)
{
    return ascend_product()->soc_name;
}

aclError aclrtSetDevice(int32_t deviceId)
{
    Call call = us_call_begin("aclrtSetDevice");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    if (device != NULL) {
        acl_tell_device(deviceId, ACL_RT_DEVICE_STATE_SET_PRE);
    }
    Context *context = device != NULL ? us_context_primary(device) : NULL;
    us_require(&call, context != NULL, "deviceId", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory for the default context of device %d", (int)deviceId);
    if (call.status == 0) {
        us_platform_lock(device->platform);
        device->references++;
        us_platform_unlock(device->platform);
        us_context_set_current(device->platform, context);
        acl_remember_chosen_device(deviceId);
        acl_tell_stream_begins(context->default_stream);
        acl_tell_device(deviceId, ACL_RT_DEVICE_STATE_SET_POST);
    }
    return acl_end(&call);
}

/* Takes one reference (or all); true when the device is to be released. */
static bool drop_reference(Call *call, Device *device, bool all)
{
    us_platform_lock(device->platform);
    us_require(call, device->references > 0, "deviceId", "not-set", ACL_ERROR_RT_CONTEXT_RELEASE_ERROR,
               "device %d has not been set, or has been reset as often as it was set", (int)device->ordinal);
    bool last = false;
    if (call->status == 0) {
        device->references = all ? 0 : device->references - 1;
        last = device->references == 0;
    }
    us_platform_unlock(device->platform);
    return last;
}

static void reset_device(Call *call, int32_t ordinal, bool force)
{
    Device *device = acl_require_device(call, "deviceId", "range", ordinal);
    bool last = device != NULL && drop_reference(call, device, force);
    if (call->status != 0) {
        return;
    }
    acl_tell_device(ordinal, ACL_RT_DEVICE_STATE_RESET_PRE);
    if (last) {
        us_device_each_stream(device, NULL, acl_tell_stream_ends);
        us_device_reset(device, !force);
    }
    acl_tell_device(ordinal, ACL_RT_DEVICE_STATE_RESET_POST);
}

aclError aclrtResetDevice(int32_t deviceId)
{
    Call call = us_call_begin("aclrtResetDevice");
    reset_device(&call, deviceId, false);
    return acl_end(&call);
}

aclError aclrtResetDeviceForce(int32_t deviceId)
{
    Call call = us_call_begin("aclrtResetDeviceForce");
    reset_device(&call, deviceId, true);
    return acl_end(&call);
}

aclError aclrtGetDevice(int32_t *deviceId)
{
    Call call = us_call_begin("aclrtGetDevice");
    us_require(&call, deviceId != NULL, "deviceId", "null", ACL_ERROR_INVALID_PARAM, "deviceId is NULL");
    Context *context = acl_require_context(&call, "context", "none");
    if (call.status == 0) {
        *deviceId = context->device->ordinal;
    }
    return acl_end(&call);
}

aclError aclrtGetDeviceCount(uint32_t *count)
{
    Call call = us_call_begin("aclrtGetDeviceCount");
    us_require(&call, count != NULL, "count", "null", ACL_ERROR_INVALID_PARAM, "count is NULL");
    Platform *platform = acl_require_platform(&call);
    if (platform != NULL) {
        *count = (uint32_t)platform->device_count;
    }
    return acl_end(&call);
}

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
    Call call = us_call_begin("aclrtGetRunMode");
    us_require(&call, runMode != NULL, "runMode", "null", ACL_ERROR_INVALID_PARAM, "runMode is NULL");
    if (call.status == 0) {
        *runMode = ACL_HOST;
    }
    return acl_end(&call);
}

aclError aclrtSetTsDevice(aclrtTsId tsId)
{
    Call call = us_call_begin("aclrtSetTsDevice");
    us_require(&call, tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR, "tsId", "range", ACL_ERROR_INVALID_PARAM,
               "tsId is %d; it must be 0 or 1", (int)tsId);
    return acl_end(&call);
}

static void synchronize_device(Call *call, int64_t timeout_us)
{
    Context *context = acl_require_context(call, "context", "none");
    if (context != NULL) {
        acl_require_running_context(call, context);
    }
    if (call->status == 0) {
        acl_require_no_abort(call, context->device);
    }
    if (call->status != 0) {
        return;
    }
    const uint32_t past_aborts = acl_past_aborts(context->device);
    WaitStatus status = us_device_synchronize(context->device, timeout_us);
    us_require(call, status != WAIT_TIMEOUT, "timeout", "expired", ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               "device %d still has work to do after %lld ms", (int)context->device->ordinal,
               (long long)(timeout_us / 1000));
    if (status != WAIT_TIMEOUT) {
        us_pools_settle(context->device);
    }
    if (status == WAIT_FAULT) {
        Explanation why = {""};
        DeviceFault fault = us_device_fault(context->device, &why);
        acl_refuse_fault(call, "device", fault, &why);
    }
    if (call->status == 0) {
        acl_require_no_abort_since(call, context->device, past_aborts);
    }
}

aclError aclrtSynchronizeDevice(void)
{
    Call call = us_call_begin("aclrtSynchronizeDevice");
    synchronize_device(&call, -1);
    return acl_end(&call);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
{
    Call call = us_call_begin("aclrtSynchronizeDeviceWithTimeout");
    synchronize_device(&call, acl_require_timeout(&call, "timeout", "range", timeout));
    return acl_end(&call);
}
