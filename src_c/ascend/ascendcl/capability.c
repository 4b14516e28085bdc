/* What the software and the devices can do (cann-runtime 9, doc 24). */
#include "ascend/ascendcl/runtime.h"

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
    static const int64_t L2_BYTES = (int64_t)192 << 20;
    static const int64_t L2_BYTES_910A = (int64_t)32 << 20;
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
        int64_t l2_bytes = product->product == PRODUCT_910A ? L2_BYTES_910A : L2_BYTES;
        const int64_t answers[] = {product->cube_cores, product->vector_cores, l2_bytes};
        *value = answers[deviceInfo];
    }
    return acl_end(&call);
}
