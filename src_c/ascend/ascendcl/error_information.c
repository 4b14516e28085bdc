/* Faults of the hardware, which does not break here: nothing is reported, and there is nothing to repair
 * (cann-runtime-3 6). */
#include "ascend/ascendcl/runtime.h"

#include <string.h>

static void require_hardware_reports(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s do not report faults of the hardware",
               ascend_product()->series);
}

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo)
{
    Call call = us_call_begin("aclrtGetErrorVerbose");
    us_require(&call, errorInfo != NULL, "errorInfo", "null", ACL_ERROR_INVALID_PARAM, "errorInfo is NULL");
    acl_require_device(&call, "deviceId", "range", deviceId);
    require_hardware_reports(&call);
    if (call.status == 0) {
        memset(errorInfo, 0, sizeof *errorInfo);
        errorInfo->errorType = ACL_RT_NO_ERROR;
    }
    return acl_end(&call);
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo *errorInfo)
{
    Call call = us_call_begin("aclrtRepairError");
    us_require(&call, errorInfo != NULL, "errorInfo", "null", ACL_ERROR_INVALID_PARAM, "errorInfo is NULL");
    acl_require_device(&call, "deviceId", "range", deviceId);
    require_hardware_reports(&call);
    us_require(&call, errorInfo->errorType == ACL_RT_NO_ERROR, "errorInfo", "foreign", ACL_ERROR_RT_PARAM_INVALID,
               "errorInfo tells of an error of type %d, which no device has reported", (int)errorInfo->errorType);
    return acl_end(&call);
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize, size_t *retSize)
{
    Call call = us_call_begin("aclrtGetMemUceInfo");
    us_require(&call, memUceInfoArray != NULL, "memUceInfoArray", "null", ACL_ERROR_INVALID_PARAM,
               "memUceInfoArray is NULL");
    us_require(&call, retSize != NULL, "retSize", "null", ACL_ERROR_INVALID_PARAM, "retSize is NULL");
    us_require(&call, arraySize > 0, "arraySize", "range", ACL_ERROR_INVALID_PARAM,
               "arraySize is 0; there must be room for an entry");
    acl_require_device(&call, "deviceId", "range", deviceId);
    require_hardware_reports(&call);
    if (call.status == 0) {
        *retSize = 0;
    }
    return acl_end(&call);
}

aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize)
{
    Call call = us_call_begin("aclrtMemUceRepair");
    us_require(&call, memUceInfoArray != NULL, "memUceInfoArray", "null", ACL_ERROR_INVALID_PARAM,
               "memUceInfoArray is NULL");
    acl_require_device(&call, "deviceId", "range", deviceId);
    require_hardware_reports(&call);
    us_require(&call, arraySize == 0, "arraySize", "foreign", ACL_ERROR_RT_PARAM_INVALID,
               "%zu faults are to be repaired, but no device has reported one", arraySize);
    return acl_end(&call);
}
