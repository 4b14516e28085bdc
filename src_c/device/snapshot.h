/* Copies of all memory of a platform's devices in the host's. */
#ifndef UNDERSTUDY_SNAPSHOT_H
#define UNDERSTUDY_SNAPSHOT_H

#include "device/device.h"

typedef struct Snapshot Snapshot;

/* What blocks and physical memory hold now. Memory of other processes is theirs. NULL: the host has not so much memory. */
Snapshot *us_snapshot_take(Platform *platform);
/* Puts it back where that memory is still there. False: some of it could not be reached. */
bool us_snapshot_put_back(Platform *platform, const Snapshot *snapshot);
void us_snapshot_end(Snapshot *snapshot); /* NULL is allowed */

/* The calling thread runs a queued task. */
bool us_thread_runs_task(void);

#endif
