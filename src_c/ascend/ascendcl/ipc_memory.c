/* Memory between processes, by keys (cann-runtime-3 3, doc 11-07). */
#include "ascend/ascendcl/ipc.h"

static const char MEMORY[] = "memory";

static uint64_t require_key(Call *call, const char *key)
{
    us_require(call, key != NULL, "key", "null", ACL_ERROR_INVALID_PARAM, "key is NULL");
    return call->status == 0 ? acl_read_key(key, MEMORY) : 0;
}

static void require_flags(Call *call, uint64_t flags)
{
    us_require(call, flags <= 1, "flags", "range", ACL_ERROR_RT_PARAM_INVALID, "flags is %llu; it must be 0 or 1",
               (unsigned long long)flags);
}

/* Huge pages for blocks from 2 MiB on, normal ones for others. */
static void require_pages(Call *call, Platform *platform, const void *address, size_t size)
{
    static const size_t HUGE_PAGE = (size_t)2 << 20;
    Allocation block;
    bool known = call->status == 0 && us_memory_find(platform, address, &block);
    size_t page = known && block.size >= HUGE_PAGE ? HUGE_PAGE : acl_normal_page();
    us_require(call, (uintptr_t)address % page == 0 && size % page == 0, "size", "pages", ACL_ERROR_RT_PARAM_INVALID,
               "the %zu bytes from %p are not whole pages, which are of %zu bytes there", size, address, page);
}

aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags)
{
    Call call = us_call_begin("aclrtIpcMemGetExportKey");
    us_require(&call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(&call, key != NULL, "key", "null", ACL_ERROR_INVALID_PARAM, "key is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, len >= IPC_TEXT_BYTES, "len", "range", ACL_ERROR_RT_PARAM_INVALID,
               "len is %zu; a key needs 65 bytes", len);
    require_flags(&call, flags);
    Platform *platform = acl_require_platform(&call);
    require_pages(&call, platform, devPtr, size);
    if (call.status == 0) {
        Explanation why = {""};
        uint64_t number = 0;
        IpcStatus status = us_memory_share(platform, devPtr, size,
                                           flags == ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &number, &why);
        us_require(&call, status != IPC_UNKNOWN, "devPtr", "unknown", ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
        acl_require_ipc(&call, "devPtr", status, &why);
        if (call.status == 0) {
            acl_write_key(key, MEMORY, number);
        }
    }
    return acl_end(&call);
}

aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num)
{
    Call call = us_call_begin("aclrtIpcMemSetImportPid");
    uint64_t number = require_key(&call, key);
    acl_require_processes(&call, pid, "num", num);
    acl_require_platform(&call);
    if (call.status == 0) {
        Explanation why;
        us_explain(&why, "this process does not share memory under the key, or no host memory is left");
        acl_require_ipc(&call, "key", us_ipc_admit(number, pid, num), &why);
    }
    return acl_end(&call);
}

aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
    Call call = us_call_begin("aclrtIpcMemImportByKey");
    us_require(&call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    uint64_t number = require_key(&call, key);
    require_flags(&call, flags);
    const Context *context = acl_require_context(&call, "context", "none");
    if (call.status == 0) {
        Explanation why = {""};
        bool everywhere = flags == ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS;
        IpcStatus status = us_memory_import(context->device, number, everywhere, devPtr, &why);
        acl_require_ipc(&call, "key", status, &why);
    }
    return acl_end(&call);
}

aclError aclrtIpcMemClose(const char *key)
{
    Call call = us_call_begin("aclrtIpcMemClose");
    uint64_t number = require_key(&call, key);
    Platform *platform = acl_require_platform(&call);
    us_require(&call, us_memory_import_close(platform, number) || us_ipc_withdraw(number), "key", "unknown",
               ACL_ERROR_RT_DRV_INTERNAL_ERROR, "this process neither shares memory under the key nor has it from another");
    return acl_end(&call);
}
