/* Extra checks, off unless UNDERSTUDY_CHECK names them (a list with commas):
 *   memory  fresh memory is filled with NaN patterns, the room behind what was asked for is watched and nothing may use
 *           it, and freeing what queued work still uses is reported;
 *   init    operator inputs that were never written are reported, and copies of such bytes to the host;
 *   sync    the host reading what work that it has not waited for writes is reported, or writing what that uses; also
 *           page-locked and managed memory that the program's own code touches;
 *   race    work of two streams that uses the same bytes without anything that orders the two;
 *   leak    what is alive when the program resets a device, finalises, or ends, is listed;
 *   refusals  every refusal of a call counts among the findings;
 *   workspace  operators ask for a workspace, which must be memory of the device until they have run.
 * Findings go to the log at `error`; calls and results stay as they are, except that `memory` refuses accesses to what was
 * not asked for, which the card's whole pages let through. */
#ifndef UNDERSTUDY_CHECK_H
#define UNDERSTUDY_CHECK_H

#include "device/device.h"

typedef enum Check { CHECK_MEMORY = 1, CHECK_INIT = 2, CHECK_SYNC = 4, CHECK_LEAK = 8, CHECK_REFUSALS = 16,
               CHECK_RACE = 32, CHECK_WORKSPACE = 64 } Check;

/* The checks that are on, as bits. */
unsigned us_checks(void);

/* Called by the registry with its lock held. */
void us_check_allocated(Allocation *block);
void us_check_freed(Allocation *block);
/* memory: the present call or task uses bytes of a block that were not asked for, though the card has them. */
void us_check_beyond(const Allocation *block, size_t offset, size_t size);

/* init: bytes have been written; whether they have (otherwise *unwritten is the first that has not, counted from
 * `address`). Memory that the host writes without our knowledge counts as written. */
void us_check_mark_written(Platform *platform, const void *address, size_t size);
/* The same for what a copy has written, and whether the host gets bytes that nobody has written. */
void us_check_copied(Platform *platform, const void *destination, const void *source, size_t size);
bool us_check_is_written(Platform *platform, const void *address, size_t size, size_t *unwritten);

/* sync: the host itself copies from or to these bytes now. */
void us_check_host_copy(const void *address, size_t size, bool writes);
/* sync: the program's code, at an instruction, touched an address that is closed to it because queued work uses the
 * bytes there. False: it is not closed. */
bool us_check_host_touch(const void *address, const void *instruction);

/* sync, race, memory: no task that the host has not waited for writes to these bytes. */
bool us_check_is_settled(const void *address, size_t size);

/* leak: lists live memory, streams, events and the profile's kinds of objects, once per platform. Called by the vendor's
 * finalise function and at the end of the process. */
void us_check_leaks(Platform *platform);
/* leak: the same of a device that is about to be reset: memory and streams. */
void us_check_leaks_of_device(const Device *device);

/* workspace: what an operator asks for, and whether what it is given is that much memory of the device. */
enum { CHECKED_WORKSPACE = 1 << 16 };
bool us_check_workspace(const Device *device, const char *function, const void *workspace, size_t size, size_t wanted);

void us_finding(const char *check, const char *format, ...) US_PRINTF(2, 3);

#endif
