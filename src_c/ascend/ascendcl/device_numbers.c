/* Which device is which, what it can do, and how far it is from others (cann-runtime-3 14). */
#include "ascend/ascendcl/runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers: the program's (of the devices that it sees), and those of all devices ---- */

/* A number that a program uses, as the number among all devices. */
static void number_of_all(Call *call, int32_t own, const char *parameter, int32_t *all)
{
    us_require(call, all != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    Device *device = acl_require_device(call, "device", "range", own);
    if (call->status == 0) {
        *all = device->platform->physical_number[own];
    }
}

/* The reverse. */
static void number_of_program(Call *call, int32_t all, const char *parameter, int32_t *own)
{
    us_require(call, own != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    Platform *platform = acl_require_platform(call);
    for (int32_t i = 0; platform != NULL && i < platform->device_count; i++) {
        if (platform->physical_number[i] == all) {
            *own = i;
            return;
        }
    }
    us_require(call, false, "device", "range", ACL_ERROR_RT_INVALID_DEVICEID,
               "device %d is none of those that this process sees", (int)all);
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId)
{
    Call call = us_call_begin("aclrtGetLogicDevIdByUserDevId");
    number_of_all(&call, userDevid, "logicDevId", logicDevId);
    return acl_end(&call);
}

aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t *const phyDevId)
{
    Call call = us_call_begin("aclrtGetPhyDevIdByUserDevId");
    number_of_all(&call, userDevId, "phyDevId", phyDevId);
    return acl_end(&call);
}

/* The name says otherwise, but this one takes the program's number too. */
aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId)
{
    Call call = us_call_begin("aclrtGetPhyDevIdByLogicDevId");
    number_of_all(&call, logicDevId, "phyDevId", phyDevId);
    return acl_end(&call);
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid)
{
    Call call = us_call_begin("aclrtGetUserDevIdByLogicDevId");
    number_of_program(&call, logicDevId, "userDevid", userDevid);
    return acl_end(&call);
}

aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t *const userDevId)
{
    Call call = us_call_begin("aclrtGetUserDevIdByPhyDevId");
    number_of_program(&call, phyDevId, "userDevId", userDevId);
    return acl_end(&call);
}

/* Gives the program's number, as above. */
aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId)
{
    Call call = us_call_begin("aclrtGetLogicDevIdByPhyDevId");
    number_of_program(&call, phyDevId, "logicDevId", logicDevId);
    return acl_end(&call);
}

/* ---- the bus ---- */

enum { BUS_ID_SIZE = 13 }; /* "0000:01:00.0" and its end */

static void require_bus(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s have no number on the bus",
               ascend_product()->series);
}

static void write_bus_id(const Device *device, char text[BUS_ID_SIZE])
{
    snprintf(text, BUS_ID_SIZE, "0000:%02x:00.0", (unsigned)(device->platform->physical_number[device->ordinal] + 1));
}

aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char *pciBusId, int32_t len)
{
    Call call = us_call_begin("aclrtDeviceGetPCIBusId");
    us_require(&call, pciBusId != NULL, "pciBusId", "null", ACL_ERROR_INVALID_PARAM, "pciBusId is NULL");
    us_require(&call, len >= BUS_ID_SIZE, "len", "range", ACL_ERROR_RT_PARAM_INVALID,
               "len is %d; the text needs %d bytes", (int)len, BUS_ID_SIZE);
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    require_bus(&call);
    if (call.status == 0) {
        write_bus_id(device, pciBusId);
    }
    return acl_end(&call);
}

aclError aclrtDeviceGetByPCIBusId(const char *pciBusId, int32_t *deviceId)
{
    Call call = us_call_begin("aclrtDeviceGetByPCIBusId");
    us_require(&call, pciBusId != NULL, "pciBusId", "null", ACL_ERROR_INVALID_PARAM, "pciBusId is NULL");
    us_require(&call, deviceId != NULL, "deviceId", "null", ACL_ERROR_INVALID_PARAM, "deviceId is NULL");
    require_bus(&call);
    Platform *platform = acl_require_platform(&call);
    int32_t found = -1;
    for (int32_t i = 0; platform != NULL && i < platform->device_count; i++) {
        char text[BUS_ID_SIZE];
        const Device *device = us_device(platform, i);
        if (device != NULL && (write_bus_id(device, text), strcmp(text, pciBusId) == 0)) {
            found = i;
        }
    }
    us_require(&call, found >= 0, "pciBusId", "unknown", ACL_ERROR_RT_PARAM_INVALID, "no device is %.32s on the bus",
               pciBusId);
    if (call.status == 0) {
        *deviceId = found;
    }
    return acl_end(&call);
}

aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t *value)
{
    Call call = us_call_begin("aclrtGetDevicesTopo");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    acl_require_device(&call, "deviceId", "range", deviceId);
    acl_require_device(&call, "otherDeviceId", "range", otherDeviceId);
    if (call.status == 0) {
        *value = ACL_RT_DEVS_TOPOLOGY_HCCS;
    }
    return acl_end(&call);
}

/* This one function gives no 107001. */
static void require_number(Call *call, const char *parameter, int32_t ordinal)
{
    const Platform *platform = acl_require_platform(call);
    us_require(call, ordinal >= 0 && ordinal < platform->device_count, parameter, "range", ACL_ERROR_RT_PARAM_INVALID,
               "%s is %d: there are %d devices, numbered from 0", parameter, (int)ordinal, (int)platform->device_count);
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status)
{
    Call call = us_call_begin("aclrtDevicePeerAccessStatus");
    us_require(&call, status != NULL, "status", "null", ACL_ERROR_INVALID_PARAM, "status is NULL");
    require_number(&call, "deviceId", deviceId);
    require_number(&call, "peerDeviceId", peerDeviceId);
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    if (call.status == 0) {
        *status = (atomic_load(&device->peers) >> peerDeviceId & 1) != 0;
    }
    return acl_end(&call);
}

/* ---- abilities ---- */

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority)
{
    Call call = us_call_begin("aclrtDeviceGetStreamPriorityRange");
    us_require(&call, leastPriority != NULL, "leastPriority", "null", ACL_ERROR_INVALID_PARAM, "leastPriority is NULL");
    us_require(&call, greatestPriority != NULL, "greatestPriority", "null", ACL_ERROR_INVALID_PARAM,
               "greatestPriority is NULL");
    if (call.status == 0) {
        *leastPriority = 7;
        *greatestPriority = 0;
    }
    return acl_end(&call);
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType, int32_t *value)
{
    Call call = us_call_begin("aclrtGetDeviceCapability");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    acl_require_device(&call, "deviceId", "range", deviceId);
    bool update = devFeatureType == ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV;
    us_require(&call, update || devFeatureType == ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, "devFeatureType", "range",
               ACL_ERROR_RT_PARAM_INVALID, "devFeatureType is %d; it must be 1 or 21", (int)devFeatureType);
    if (call.status == 0) {
        *value = update && ascend_product()->product != PRODUCT_910A ? ACL_DEV_FEATURE_SUPPORT
                                                                      : ACL_DEV_FEATURE_NOT_SUPPORT;
    }
    return acl_end(&call);
}

aclError aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible)
{
    Call call = us_call_begin("aclrtCheckArchCompatibility");
    us_require(&call, socVersion != NULL, "socVersion", "null", ACL_ERROR_INVALID_PARAM, "socVersion is NULL");
    us_require(&call, canCompatible != NULL, "canCompatible", "null", ACL_ERROR_INVALID_PARAM, "canCompatible is NULL");
    if (call.status == 0) {
        *canCompatible = strcmp(socVersion, ascend_product()->soc_name) == 0;
    }
    return acl_end(&call);
}

aclError aclrtDeviceL2CacheFlush(void *rsv)
{
    Call call = us_call_begin("aclrtDeviceL2CacheFlush");
    us_require(&call, rsv == NULL, "rsv", "reserved", ACL_ERROR_INVALID_PARAM, "rsv is %p; it must be NULL", rsv);
    acl_require_context(&call, "context", "none"); /* nothing is cached between the device and its memory */
    return acl_end(&call);
}
