/* Physical memory between processes, by numbers (cann-runtime 9, cann-runtime-3 2, doc 11-04). */
#include "ascend/ascendcl/ipc.h"

#include <string.h>

static void require_flags(Call *call, uint64_t flags)
{
    us_require(call, flags <= 1, "flags", "range", ACL_ERROR_RT_PARAM_INVALID, "flags is %llu; it must be 0 or 1",
               (unsigned long long)flags);
}

static uint64_t require_shared(Call *call, Platform *platform, aclrtDrvMemHandle handle, uint64_t flags)
{
    uint64_t key = 0;
    if (call->status == 0) {
        bool anyone = flags == ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
        IpcStatus status = us_physical_share(platform, handle, anyone, &key);
        us_require(call, status != IPC_UNKNOWN, "handle", "dead", ACL_ERROR_RT_INVALID_HANDLE,
                   "%p is no live handle of physical memory", handle);
        us_require(call, status == IPC_OK, "handle", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
                   "no host memory, thread or file descriptor is left to share the memory");
    }
    return key;
}

static void require_imported(Call *call, Device *device, uint64_t key, aclrtDrvMemHandle *handle)
{
    if (call->status == 0) {
        Explanation why = {""};
        IpcStatus status = us_physical_import(device, key, handle, &why);
        us_require(call, status != IPC_UNKNOWN, "shareableHandle", "unknown", ACL_ERROR_RT_PARAM_INVALID,
                   "no physical memory was exported as %llu: %s", (unsigned long long)key, why.text);
        acl_require_ipc(call, "shareableHandle", status, &why);
    }
}

static void require_admitted(Call *call, uint64_t key, const int32_t *pid, size_t count)
{
    IpcStatus status = call->status == 0 ? us_ipc_admit(key, pid, count) : IPC_OK;
    us_require(call, status != IPC_UNKNOWN, "shareableHandle", "unknown", ACL_ERROR_RT_PARAM_INVALID,
               "no physical memory of this process was exported as %llu", (unsigned long long)key);
    us_require(call, status == IPC_OK, "shareableHandle", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory is left for %zu process numbers", count);
}

/* ---- first version ---- */

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
                                         uint64_t *shareableHandle)
{
    Call call = us_call_begin("aclrtMemExportToShareableHandle");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    us_require(&call, shareableHandle != NULL, "shareableHandle", "null", ACL_ERROR_INVALID_PARAM,
               "shareableHandle is NULL");
    us_require(&call, handleType == ACL_MEM_HANDLE_TYPE_NONE, "handleType", "range", ACL_ERROR_INVALID_PARAM,
               "handleType is %d; it must be 0", (int)handleType);
    require_flags(&call, flags);
    Platform *platform = acl_require_platform(&call);
    uint64_t key = require_shared(&call, platform, handle, flags);
    if (call.status == 0) {
        *shareableHandle = key;
    }
    return acl_end(&call);
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle)
{
    Call call = us_call_begin("aclrtMemImportFromShareableHandle");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    require_imported(&call, device, shareableHandle, handle);
    return acl_end(&call);
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum)
{
    Call call = us_call_begin("aclrtMemSetPidToShareableHandle");
    acl_require_processes(&call, pid, "pidNum", pidNum);
    acl_require_platform(&call);
    require_admitted(&call, shareableHandle, pid, pidNum);
    return acl_end(&call);
}

/* ---- second version: the number lies in memory of the program ---- */

static void require_number(Call *call, aclrtMemSharedHandleType type, const void *shareableHandle)
{
    us_require(call, shareableHandle != NULL, "shareableHandle", "null", ACL_ERROR_INVALID_PARAM,
               "shareableHandle is NULL");
    us_require(call, type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, "shareType",
               "range", ACL_ERROR_RT_PARAM_INVALID, "shareType is %d; it must be 1 or 2", (int)type);
    us_require(call, type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || ascend_product()->product == PRODUCT_A3, "shareType",
               "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s have no handles of type FABRIC",
               ascend_product()->series);
}

/* Both types begin with the key. */
static uint64_t key_at(const void *shareableHandle)
{
    uint64_t key = 0;
    memcpy(&key, shareableHandle, sizeof key);
    return key;
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType shareType,
                                           void *shareableHandle)
{
    Call call = us_call_begin("aclrtMemExportToShareableHandleV2");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    require_flags(&call, flags);
    require_number(&call, shareType, shareableHandle);
    Platform *platform = acl_require_platform(&call);
    us_require(&call, !us_physical_is_shared(platform, handle), "handle", "exported", ACL_ERROR_RT_PARAM_INVALID,
               "the memory of handle %p has been exported already", handle);
    uint64_t key = require_shared(&call, platform, handle, flags);
    if (call.status == 0) {
        if (shareType == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
            memset(shareableHandle, 0, sizeof(aclrtMemFabricHandle));
        }
        memcpy(shareableHandle, &key, sizeof key);
    }
    return acl_end(&call);
}

aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle *handle)
{
    Call call = us_call_begin("aclrtMemImportFromShareableHandleV2");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    require_number(&call, shareType, shareableHandle);
    us_require(&call, flags == 0, "flags", "range", ACL_ERROR_RT_PARAM_INVALID, "flags is %llu; it must be 0",
               (unsigned long long)flags);
    const Context *context = acl_require_context(&call, "context", "none");
    uint64_t key = call.status == 0 ? key_at(shareableHandle) : 0;
    us_require(&call, !us_ipc_is_own(key), "shareableHandle", "own", ACL_ERROR_RT_PARAM_INVALID,
               "this process exported %llu itself; only other processes can import it", (unsigned long long)key);
    require_imported(&call, context != NULL ? context->device : NULL, key, handle);
    return acl_end(&call);
}

aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle, aclrtMemSharedHandleType shareType, int32_t *pid,
                                           size_t pidNum)
{
    Call call = us_call_begin("aclrtMemSetPidToShareableHandleV2");
    require_number(&call, shareType, shareableHandle);
    acl_require_processes(&call, pid, "pidNum", pidNum);
    acl_require_platform(&call);
    require_admitted(&call, call.status == 0 ? key_at(shareableHandle) : 0, pid, pidNum);
    return acl_end(&call);
}
