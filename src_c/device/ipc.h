/* What a process offers to other processes: files (memory), each under a number, with a note that says what is in it.
 *
 * Who offers something has a thread that answers on a Unix socket whose name is the process's; the kernel tells it who
 * asks. Nothing has a place in the file system: an offer ends with its process, and the memory with the last process that
 * has it, however they end. */
#ifndef UNDERSTUDY_IPC_H
#define UNDERSTUDY_IPC_H

#include "report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum IpcKind { IPC_MEMORY = 1, IPC_PHYSICAL_MEMORY, IPC_EVENT, IPC_NOTIFY, IPC_ROOM } IpcKind;

/* Goes with the file. */
typedef struct IpcNote {
    uint32_t kind;
    int32_t platform; /* Platform.id */
    int32_t device;   /* its physical number */
    uint32_t number;  /* the owner's name for it, where there is one */
    uint64_t offset, size; /* the part of the file, in bytes */
} IpcNote;

typedef enum IpcStatus {
    IPC_OK,
    IPC_UNKNOWN,   /* nobody offers that, or not that kind of thing; perhaps its owner has ended */
    IPC_FORBIDDEN, /* the owner has not admitted this process */
    IPC_EXHAUSTED, /* no memory, no thread, or no file descriptor is left */
} IpcStatus;

/* Offers a file, of which the offer keeps a descriptor of its own. The caller withdraws it before the file is closed, whose number
 * another may get. Not `anyone`: only processes that us_ipc_admit names get it. `*key` is never 0, and no other process's. */
IpcStatus us_ipc_offer(int file, const IpcNote *note, bool anyone, uint64_t *key);

/* The same, to anyone, of a file that is the offer's own from now on; it is closed when that fails. Only the newest of these
 * offers stay, so that those which nobody withdraws do not use up the file descriptors. */
enum { IPC_GIVEN_LIMIT = 256 };
IpcStatus us_ipc_give(int file, const IpcNote *note, uint64_t *key);

/* Adds processes to those that get the file. UNKNOWN: this process does not offer it. */
IpcStatus us_ipc_admit(uint64_t key, const int32_t *processes, size_t count);

/* Ends an offer; those who have the file keep it. False: this process does not offer it. */
bool us_ipc_withdraw(uint64_t key);
void us_ipc_withdraw_file(int file); /* all offers that were made of this descriptor */

/* The key of an offer to anyone that was made of this descriptor. False: there is none. */
bool us_ipc_offered(int file, uint64_t *key);

bool us_ipc_is_own(uint64_t key); /* this process offers it */

/* The file that another process (or this one) offers; the caller closes it. `why` says what kept it from coming. */
IpcStatus us_ipc_fetch(uint64_t key, IpcKind kind, int32_t platform, IpcNote *note, int *file, Explanation *why);

#endif
