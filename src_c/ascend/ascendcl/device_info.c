/* What can be asked about a device (cann-runtime 9, doc 04). */
#include "ascend/ascendcl/runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus)
{
    Call call = us_call_begin("aclrtQueryDeviceStatus");
    us_require(&call, deviceStatus != NULL, "deviceStatus", "null", ACL_ERROR_INVALID_PARAM, "deviceStatus is NULL");
    acl_require_device(&call, "deviceId", "range", deviceId);
    if (call.status == 0) {
        *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL; /* about the hardware, which does not break here */
    }
    return acl_end(&call);
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo)
{
    static const int32_t NOT_AVAILABLE = -1;
    Call call = us_call_begin("aclrtGetDeviceUtilizationRate");
    us_require(&call, utilizationInfo != NULL, "utilizationInfo", "null", ACL_ERROR_INVALID_PARAM,
               "utilizationInfo is NULL");
    us_require(&call, utilizationInfo->utilizationExtend == NULL, "utilizationInfo", "extend", ACL_ERROR_INVALID_PARAM,
               "utilizationExtend is %p; it must be NULL", (void *)utilizationInfo->utilizationExtend);
    acl_require_device(&call, "deviceId", "range", deviceId);
    if (call.status == 0) {
        utilizationInfo->cubeUtilization = NOT_AVAILABLE;
        utilizationInfo->vectorUtilization = NOT_AVAILABLE;
        utilizationInfo->aicpuUtilization = NOT_AVAILABLE;
        utilizationInfo->memoryUtilization = NOT_AVAILABLE;
    }
    return acl_end(&call);
}

/* False: nothing is known. */
static bool attribute_of_device(const Device *device, aclrtDevAttr attribute, int64_t *value)
{
    const ProductProfile *product = ascend_product();
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    us_memory_info(device, &free_bytes, &total_bytes);
    switch (attribute) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
        *value = product->cube_cores;
        return true;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
        *value = product->vector_cores;
        return true;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
        *value = (int64_t)total_bytes;
        return true;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
        *value = (int64_t)product->cache_bytes;
        return true;
    case ACL_DEV_ATTR_PHY_CHIP_ID:
        *value = device->platform->physical_number[device->ordinal];
        return true;
    case ACL_DEV_ATTR_IS_VIRTUAL:
        *value = 0;
        return true;
    default:
        return false;
    }
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
    Call call = us_call_begin("aclrtGetDeviceInfo");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    us_require(&call, attribute_of_device(device, attr, value), "attr", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "nothing is known about attribute %d of this product", (int)attr);
    return acl_end(&call);
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active)
{
    Call call = us_call_begin("aclrtGetPrimaryCtxState");
    us_require(&call, flags != NULL, "flags", "null", ACL_ERROR_INVALID_PARAM, "flags is NULL");
    us_require(&call, active != NULL, "active", "null", ACL_ERROR_INVALID_PARAM, "active is NULL");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    if (call.status == 0) {
        *flags = 0;
        *active = __atomic_load_n(&device->primary, __ATOMIC_ACQUIRE) != NULL;
    }
    return acl_end(&call);
}

/* ---- peers ---- */

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId)
{
    Call call = us_call_begin("aclrtDeviceCanAccessPeer");
    us_require(&call, canAccessPeer != NULL, "canAccessPeer", "null", ACL_ERROR_INVALID_PARAM, "canAccessPeer is NULL");
    us_require(&call, deviceId != peerDeviceId, "peerDeviceId", "same", ACL_ERROR_INVALID_PARAM,
               "device %d is no peer of itself", (int)deviceId);
    acl_require_device(&call, "deviceId", "range", deviceId);
    acl_require_device(&call, "peerDeviceId", "range", peerDeviceId);
    if (call.status == 0) {
        *canAccessPeer = 1;
    }
    return acl_end(&call);
}

static void set_peer(Call *call, int32_t peer, bool enabled)
{
    Context *context = acl_require_context(call, "context", "none");
    us_require(call, context->device->ordinal != peer, "peerDeviceId", "same", ACL_ERROR_INVALID_PARAM,
               "device %d is the current one and no peer of itself", (int)peer);
    acl_require_device(call, "peerDeviceId", "range", peer);
    if (call->status == 0) {
        uint64_t bit = (uint64_t)1 << peer;
        enabled ? atomic_fetch_or(&context->device->peers, bit) : atomic_fetch_and(&context->device->peers, ~bit);
    }
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
    Call call = us_call_begin("aclrtDeviceEnablePeerAccess");
    us_require(&call, flags == 0, "flags", "range", ACL_ERROR_FEATURE_UNSUPPORTED, "flags is %u; it must be 0",
               (unsigned)flags);
    set_peer(&call, peerDeviceId, true);
    return acl_end(&call);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)
{
    Call call = us_call_begin("aclrtDeviceDisablePeerAccess");
    set_peer(&call, peerDeviceId, false);
    return acl_end(&call);
}

/* ---- floating point overflow: kernels always compute with infinities and NaN and record nothing ---- */

enum { OVERFLOW_STATUS_SIZE = 64 };

static _Atomic int32_t *overflow_mode(Call *call)
{
    Context *context = acl_require_context(call, "context", "none");
    Runtime *runtime = context != NULL ? acl_runtime() : NULL;
    return runtime != NULL ? &runtime->overflow_modes[context->device->ordinal] : NULL;
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
    Call call = us_call_begin("aclrtSetDeviceSatMode");
    us_require(&call, mode == ACL_RT_OVERFLOW_MODE_SATURATION || mode == ACL_RT_OVERFLOW_MODE_INFNAN, "mode", "range",
               ACL_ERROR_RT_PARAM_INVALID, "mode is %d; it must be 0 or 1", (int)mode);
    _Atomic int32_t *slot = overflow_mode(&call);
    if (slot != NULL) {
        atomic_store(slot, (int32_t)mode + 1);
    }
    return acl_end(&call);
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
    Call call = us_call_begin("aclrtGetDeviceSatMode");
    us_require(&call, mode != NULL, "mode", "null", ACL_ERROR_INVALID_PARAM, "mode is NULL");
    _Atomic int32_t *slot = overflow_mode(&call);
    if (slot != NULL) {
        int32_t chosen = atomic_load(slot);
        bool saturates = chosen == 0 && ascend_product()->product == PRODUCT_910A;
        *mode = chosen > 0 ? (aclrtFloatOverflowMode)(chosen - 1)
                           : (saturates ? ACL_RT_OVERFLOW_MODE_SATURATION : ACL_RT_OVERFLOW_MODE_INFNAN);
    }
    return acl_end(&call);
}

aclError aclrtGetOverflowStatus(void *outputAddr, size_t outputSize, aclrtStream stream)
{
    Call call = us_call_begin("aclrtGetOverflowStatus");
    us_require(&call, outputAddr != NULL, "outputAddr", "null", ACL_ERROR_INVALID_PARAM, "outputAddr is NULL");
    us_require(&call, outputSize == OVERFLOW_STATUS_SIZE, "outputSize", "range", ACL_ERROR_RT_PARAM_INVALID,
               "outputSize is %zu; it must be %d", outputSize, (int)OVERFLOW_STATUS_SIZE);
    Stream *found = acl_require_work_stream(&call, stream);
    acl_require_no_group(&call, found);
    if (call.status != 0) {
        return acl_end(&call);
    }
    Fill zero = {.destination = outputAddr, .count = OVERFLOW_STATUS_SIZE, .element_size = 1, .value = 0};
    Explanation why = {""};
    us_require(&call, us_fill_check(found->context->device->platform, &zero, &why) == COPY_OK, "outputAddr", "bounds",
               ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
    us_require(&call, us_stream_fill(found, &zero, "aclrtGetOverflowStatus"), "stream", "resources",
               ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the work");
    return acl_end(&call);
}

aclError aclrtResetOverflowStatus(aclrtStream stream)
{
    Call call = us_call_begin("aclrtResetOverflowStatus");
    acl_require_no_group(&call, acl_require_work_stream(&call, stream));
    return acl_end(&call);
}

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid)
{
    Call call = us_call_begin("aclrtDeviceGetUuid");
    us_require(&call, uuid != NULL, "uuid", "null", ACL_ERROR_INVALID_PARAM, "uuid is NULL");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    us_require(&call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s have no UUID", ascend_product()->series);
    if (call.status == 0) {
        char text[sizeof uuid->bytes + 1];
        snprintf(text, sizeof text, "emulated%08x",
                 (unsigned)device->platform->physical_number[device->ordinal]);
        memcpy(uuid->bytes, text, sizeof uuid->bytes);
    }
    return acl_end(&call);
}

aclError aclrtDeviceGetBareTgid(int32_t *pid)
{
    Call call = us_call_begin("aclrtDeviceGetBareTgid");
    us_require(&call, pid != NULL, "pid", "null", ACL_ERROR_INVALID_PARAM, "pid is NULL");
    if (call.status == 0) {
        *pid = (int32_t)getpid();
    }
    return acl_end(&call);
}
