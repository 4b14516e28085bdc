#include "ascend/nnopbase/nnopbase.h"
#include "ascend/common/status.h"

#include <stdlib.h>
#include <string.h>

void *created(Call *call, HandleKind kind, void *object)
{
    void *handle = object != NULL ? us_handle_create(kind, object) : NULL;
    if (handle == NULL) {
        free(object);
        us_refuse(call, "memory", "exhausted", ACLNN_ERR_INNER_NULLPTR, "no host memory for the object");
    }
    us_call_end(call);
    return handle;
}

void *require_object(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    us_require(call, handle != NULL, parameter, "null", ACLNN_ERR_PARAM_NULLPTR, "%s is NULL", parameter);
    if (call->status != 0) {
        return NULL;
    }
    void *object = us_handle_object(handle, kind);
    us_require(call, object != NULL, parameter, "handle", ACLNN_ERR_PARAM_INVALID,
               "%s (%p) is not alive: destroyed, or never created by this library", parameter, handle);
    return object;
}

void require_result(Call *call, const char *parameter, const void *result)
{
    us_require(call, result != NULL, parameter, "null", ACLNN_ERR_PARAM_NULLPTR, "%s is NULL", parameter);
}

void end_object(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    if (handle == NULL) {
        return;
    }
    us_require(call, us_handle_release(handle, kind), parameter, "handle", ACLNN_ERR_PARAM_INVALID,
               "%s (%p) is not alive: destroyed before, or never created by this library", parameter, handle);
}
