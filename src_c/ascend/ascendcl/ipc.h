/* What the functions share that hand things to other processes (cann-runtime-3 2 to 5). */
#ifndef ASCENDCL_IPC_H
#define ASCENDCL_IPC_H

#include "ascend/ascendcl/runtime.h"
#include "device/ipc.h"

enum { IPC_TEXT_BYTES = 65 }; /* what programs have room for, with the NUL */

/* The text that programs pass on for a key, at most 64 printable characters, and back. `what` is a short word. 0: no such
 * text. */
void acl_write_key(char *text, const char *what, uint64_t key);
uint64_t acl_read_key(const char *text, const char *what);

/* Refuses with the reason why something could not be shared or had: rules unknown, forbidden, resources. */
void acl_require_ipc(Call *call, const char *parameter, IpcStatus status, const Explanation *why);

/* Adds the processes of a program's list to those that may have what `key` names: rules pid/null, <count>/zero. */
void acl_require_processes(Call *call, const int32_t *pid, const char *count_name, size_t count);

/* The notify behind a handle, or a refusal: rules notify/null, notify/dead. */
Notify *acl_require_notify(Call *call, aclrtNotify handle);
/* An imported one: it takes a place on its device too. */
void acl_count_notify(const Notify *notify);

#endif
