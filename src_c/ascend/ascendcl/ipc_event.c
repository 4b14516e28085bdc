/* Events and notifies between processes (cann-runtime-3 4 and 5, doc 07 and 08). */
#include "ascend/ascendcl/ipc.h"

#include <string.h>

_Static_assert(IPC_TEXT_BYTES - 1 <= ACL_IPC_EVENT_HANDLE_SIZE, "a key fits into a handle");
static const char EVENT[] = "event";
static const char NOTIFY[] = "notify";

static void require_product(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s share no events with other processes",
               ascend_product()->series);
}

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle)
{
    Call call = us_call_begin("aclrtIpcGetEventHandle");
    us_require(&call, event != NULL, "event", "null", ACL_ERROR_INVALID_PARAM, "event is NULL");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    require_product(&call);
    Event *found = acl_require_event(&call, "event", "dead", event);
    if (call.status == 0) {
        uint64_t key = 0;
        IpcStatus status = us_event_share(found, &key);
        us_require(&call, status != IPC_UNKNOWN, "event", "kind", ACL_ERROR_RT_PARAM_INVALID,
                   "event %d was not made by aclrtCreateEventExWithFlag with ACL_EVENT_IPC alone", (int)found->id);
        us_require(&call, status == IPC_OK, "event", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
                   "no host memory, thread or file descriptor is left to share event %d", (int)found->id);
        if (call.status == 0) {
            char text[IPC_TEXT_BYTES] = "";
            acl_write_key(text, EVENT, key);
            memset(handle, 0, sizeof *handle);
            memcpy(handle->reserved, text, strlen(text));
        }
    }
    return acl_end(&call);
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event)
{
    Call call = us_call_begin("aclrtIpcOpenEventHandle");
    us_require(&call, event != NULL, "event", "null", ACL_ERROR_INVALID_PARAM, "event is NULL");
    require_product(&call);
    Context *context = acl_require_context(&call, "context", "none");
    if (call.status == 0) {
        char text[IPC_TEXT_BYTES] = "";
        memcpy(text, handle.reserved, IPC_TEXT_BYTES - 1);
        Event *made = NULL;
        Explanation why = {""};
        acl_require_ipc(&call, "handle", us_event_import(context, acl_read_key(text, EVENT), &made, &why), &why);
        if (call.status == 0) {
            made->vendor_flags = ACL_EVENT_IPC;
            made->vendor_state[EVENT_FORM] = EVENT_EX;
            made->vendor_state[EVENT_OWNER] = ASCEND_EVENT;
            *event = made->handle;
        }
    }
    return acl_end(&call);
}

/* ---- notifies ---- */

static void require_flags(Call *call, uint64_t flags)
{
    us_require(call, flags == 0 || flags == ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION, "flags", "range",
               ACL_ERROR_RT_PARAM_INVALID, "flags is %llu; it must be 0 or 2", (unsigned long long)flags);
}

aclError aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len, uint64_t flags)
{
    Call call = us_call_begin("aclrtNotifyGetExportKey");
    us_require(&call, key != NULL, "key", "null", ACL_ERROR_INVALID_PARAM, "key is NULL");
    us_require(&call, len >= IPC_TEXT_BYTES, "len", "range", ACL_ERROR_RT_PARAM_INVALID,
               "len is %zu; a key needs 65 bytes", len);
    require_flags(&call, flags);
    Notify *found = acl_require_notify(&call, notify);
    us_require(&call, !found->imported, "notify", "imported", ACL_ERROR_RT_PARAM_INVALID,
               "notify %u is another process's, which alone can share it", (unsigned)found->id);
    if (call.status == 0) {
        uint64_t number = 0;
        us_require(&call, us_notify_share(found, flags != 0, &number) == IPC_OK, "notify", "resources",
                   ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory, thread or file descriptor is left to share notify %u",
                   (unsigned)found->id);
        if (call.status == 0) {
            acl_write_key(key, NOTIFY, number);
        }
    }
    return acl_end(&call);
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num)
{
    Call call = us_call_begin("aclrtNotifySetImportPid");
    acl_require_processes(&call, pid, "num", num);
    Notify *found = acl_require_notify(&call, notify);
    if (call.status == 0) {
        IpcStatus status = us_ipc_admit(us_notify_key(found), pid, num);
        us_require(&call, status != IPC_UNKNOWN, "notify", "private", ACL_ERROR_RT_PARAM_INVALID,
                   "notify %u has not been exported by this process", (unsigned)found->id);
        us_require(&call, status == IPC_OK, "notify", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
                   "no host memory is left for %zu process numbers", num);
    }
    return acl_end(&call);
}

aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags)
{
    Call call = us_call_begin("aclrtNotifyImportByKey");
    us_require(&call, notify != NULL, "notify", "null", ACL_ERROR_INVALID_PARAM, "notify is NULL");
    us_require(&call, key != NULL, "key", "null", ACL_ERROR_INVALID_PARAM, "key is NULL");
    require_flags(&call, flags);
    const Context *context = acl_require_context(&call, "context", "none");
    if (call.status == 0) {
        Notify *made = NULL;
        Explanation why = {""};
        acl_require_ipc(&call, "key", us_notify_import(context->device, acl_read_key(key, NOTIFY), &made, &why), &why);
        if (call.status == 0) {
            acl_count_notify(made);
            *notify = made->handle;
        }
    }
    return acl_end(&call);
}
