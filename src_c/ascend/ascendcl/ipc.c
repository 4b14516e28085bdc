#include "ascend/ascendcl/ipc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void acl_write_key(char *text, const char *what, uint64_t key)
{
    snprintf(text, IPC_TEXT_BYTES, "understudy-%s-%016llx", what, (unsigned long long)key);
}

uint64_t acl_read_key(const char *text, const char *what)
{
    char whole[IPC_TEXT_BYTES] = "";
    enum { DIGITS = 16 };
    size_t length = strnlen(text, IPC_TEXT_BYTES);
    uint64_t key = length > DIGITS ? strtoull(text + length - DIGITS, NULL, 16) : 0;
    acl_write_key(whole, what, key);
    return length < IPC_TEXT_BYTES && strcmp(whole, text) == 0 ? key : 0;
}

void acl_require_ipc(Call *call, const char *parameter, IpcStatus status, const Explanation *why)
{
    us_require(call, status != IPC_UNKNOWN, parameter, "unknown", ACL_ERROR_RT_DRV_INTERNAL_ERROR, "%s", why->text);
    us_require(call, status != IPC_FORBIDDEN, parameter, "forbidden", ACL_ERROR_RT_DRV_INTERNAL_ERROR, "%s", why->text);
    us_require(call, status == IPC_OK, parameter, "resources", ACL_ERROR_RT_MEMORY_ALLOCATION, "%s", why->text);
}

void acl_require_processes(Call *call, const int32_t *pid, const char *count_name, size_t count)
{
    us_require(call, pid != NULL, "pid", "null", ACL_ERROR_INVALID_PARAM, "pid is NULL");
    us_require(call, count > 0, count_name, "zero", ACL_ERROR_INVALID_PARAM, "%s is 0; it must be at least 1",
               count_name);
}
