/* What is said about an address that a program touched and may not, before the ordinary SIGSEGV. */
#ifndef UNDERSTUDY_HOST_ACCESS_H
#define UNDERSTUDY_HOST_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a sentence about the address to `text` and returns true, or returns false when it knows nothing of it. Runs in
 * a signal handler. */
typedef bool AccessTeller(const void *address, char *text, size_t size);

/* From now on accesses that fail are told, by the platforms' memory and by `teller` (may be NULL; one per process). */
void us_host_access_watch(AccessTeller *teller);

/* Where accesses must be seen: if the program has set a handler since, this one comes first again and passes on to it what is
 * nothing of ours. Not by two threads at a time. */
void us_host_access_take_back(void);

/* While bytes of blocks are moved to other pages: a thread that writes to them waits until the move is over. Moves of
 * several threads may overlap. */
void us_host_access_begin_move(void);
void us_host_access_end_move(void);

#endif
