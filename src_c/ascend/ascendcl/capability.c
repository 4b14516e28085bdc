/* What the software and the devices can do (cann-runtime 9, doc 24). */
#include "acl/acl_platform.h"
#include "ascend/ascendcl/runtime.h"

#include <stdio.h>
#include <string.h>

static const aclCannAttr known_attributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16, ACL_CANN_ATTR_JIT_COMPILE};

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num)
{
    Call call = us_call_begin("aclGetCannAttributeList");
    us_require(&call, cannAttrList != NULL, "cannAttrList", "null", ACL_ERROR_INVALID_PARAM, "cannAttrList is NULL");
    us_require(&call, num != NULL, "num", "null", ACL_ERROR_INVALID_PARAM, "num is NULL");
    if (call.status == 0) {
        *cannAttrList = known_attributes;
        *num = sizeof known_attributes / sizeof known_attributes[0];
    }
    return acl_end(&call);
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value)
{
    Call call = us_call_begin("aclGetCannAttribute");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    us_require(&call, (int)cannAttr >= ACL_CANN_ATTR_INF_NAN && (int)cannAttr <= ACL_CANN_ATTR_JIT_COMPILE, "cannAttr",
               "range", ACL_ERROR_INVALID_PARAM, "cannAttr is %d; it must be 0 to 2", (int)cannAttr);
    if (call.status == 0) {
        /* The Atlas training series has neither bfloat16 nor infinities; nothing here compiles operators. */
        bool newer = ascend_product()->product != PRODUCT_910A;
        *value = cannAttr != ACL_CANN_ATTR_JIT_COMPILE && newer;
    }
    return acl_end(&call);
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value)
{
    Call call = us_call_begin("aclGetDeviceCapability");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    Platform *platform = acl_require_platform(&call);
    uint32_t count = platform != NULL ? (uint32_t)platform->device_count : 0;
    us_require(&call, deviceId < count, "deviceId", "range", ACL_ERROR_INVALID_PARAM,
               "device %u does not exist: there are %u devices, numbered from 0", (unsigned)deviceId, (unsigned)count);
    us_require(&call, (int)deviceInfo >= ACL_DEVICE_INFO_AI_CORE_NUM && (int)deviceInfo <= ACL_DEVICE_INFO_L2_SIZE,
               "deviceInfo", "range", ACL_ERROR_INVALID_PARAM, "deviceInfo is %d; it must be 0 to 2", (int)deviceInfo);
    if (call.status == 0) {
        const ProductProfile *product = ascend_product();
        const int64_t answers[] = {product->cube_cores, product->vector_cores, (int64_t)product->cache_bytes};
        *value = answers[deviceInfo];
    }
    return acl_end(&call);
}

/* The text; false: the property is not known. */
static bool describe_product(aclplatformDevInfo property, char *text, size_t size)
{
    const ProductProfile *product = ascend_product();
    long long number = 0;
    switch (property) {
    case ACL_PLATFORM_AICORE_CNT:
    case ACL_PLATFORM_CUBE_CORE_CNT: number = product->cube_cores; break;
    case ACL_PLATFORM_VECTOR_CORE_CNT: number = product->vector_cores; break;
    case ACL_PLATFORM_L2_SIZE: number = (long long)product->cache_bytes; break;
    case ACL_PLATFORM_MEMORY_SIZE: number = (long long)product->memory_bytes; break;
    case ACL_PLATFORM_SOC_VERSION: snprintf(text, size, "%s", product->soc_name); return true;
    default: return false;
    }
    snprintf(text, size, "%lld", number);
    return true;
}

aclError aclplatformGetDeviceInfo(aclplatformDevInfo infoType, char *value, uint32_t maxLen)
{
    char text[32] = "";
    Call call = us_call_begin("aclplatformGetDeviceInfo");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    us_require(&call, (int)infoType >= ACL_PLATFORM_AICORE_CNT && (int)infoType <= ACL_PLATFORM_MEMORY_TYPE, "infoType",
               "range", ACL_ERROR_RT_PARAM_INVALID, "infoType is %d; it must be 0 to %d", (int)infoType,
               (int)ACL_PLATFORM_MEMORY_TYPE);
    us_require(&call, describe_product(infoType, text, sizeof text), "infoType", "unknown",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "property %d of the %s is documented nowhere", (int)infoType,
               ascend_product()->series);
    us_require(&call, strlen(text) < maxLen, "maxLen", "short", ACL_ERROR_RT_PARAM_INVALID,
               "maxLen is %u; the text \"%s\" and its end need %zu bytes", (unsigned)maxLen, text, strlen(text) + 1);
    if (call.status == 0) {
        strcpy(value, text);
    }
    return acl_end(&call);
}

aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType, aclrtHostMemMapCapability *capabilities)
{
    Call call = us_call_begin("aclrtHostMemMapCapabilities");
    us_require(&call, capabilities != NULL, "capabilities", "null", ACL_ERROR_INVALID_PARAM, "capabilities is NULL");
    us_require(&call, (int)hacType >= ACL_RT_HAC_TYPE_STARS && (int)hacType <= ACL_RT_HAC_TYPE_CCU, "hacType", "range",
               ACL_ERROR_RT_PARAM_INVALID, "hacType is %d; it must be 0 to %d", (int)hacType, (int)ACL_RT_HAC_TYPE_CCU);
    acl_require_device(&call, "deviceId", "range", deviceId);
    if (call.status == 0) {
        const bool copies = hacType == ACL_RT_HAC_TYPE_PCIEDMA || hacType == ACL_RT_HAC_TYPE_SDMA;
        const bool computes = hacType == ACL_RT_HAC_TYPE_AIC || hacType == ACL_RT_HAC_TYPE_AIV;
        *capabilities = copies || computes ? ACL_RT_HOST_MEM_MAP_SUPPORTED : ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED;
    }
    return acl_end(&call);
}
