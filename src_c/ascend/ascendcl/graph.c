/* Recorded work of streams (cann-runtime-3 13). Nothing can be recorded yet, so no stream is in capture; clients that
 * ask before each operator get that answer. */
#include "ascend/ascendcl/runtime.h"

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI)
{
    Call call = us_call_begin("aclmdlRICaptureGetInfo");
    us_require(&call, status != NULL, "status", "null", ACL_ERROR_INVALID_PARAM, "status is NULL");
    us_require(&call, modelRI != NULL, "modelRI", "null", ACL_ERROR_INVALID_PARAM, "modelRI is NULL");
    us_require(&call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s record no work", ascend_product()->series);
    acl_require_context(&call, "context", "none");
    acl_require_stream(&call, "stream", "dead", stream);
    if (call.status == 0) {
        *status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
        *modelRI = NULL;
    }
    return acl_end(&call);
}
