/* Devices of the process and of the thread (cann-runtime 8 and 9). */
#include "ascend/ascendcl/runtime.h"

const char *aclrtGetSocName(void)
{
    return ascend_product()->soc_name;
}

aclError aclrtSetDevice(int32_t deviceId)
{
    Call call = us_call_begin("aclrtSetDevice");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    Context *context = device != NULL ? us_context_primary(device) : NULL;
    us_require(&call, context != NULL, "deviceId", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory for the default context of device %d", (int)deviceId);
    if (call.status == 0) {
        us_platform_lock(device->platform);
        device->references++;
        us_platform_unlock(device->platform);
        us_context_set_current(device->platform, context);
        acl_remember_chosen_device(deviceId);
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

aclError aclrtResetDevice(int32_t deviceId)
{
    Call call = us_call_begin("aclrtResetDevice");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    if (device != NULL && drop_reference(&call, device, false)) {
        us_device_reset(device);
    }
    return acl_end(&call);
}
