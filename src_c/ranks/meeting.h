/* How ranks find a room that they know nothing of but a name: on one machine, among processes of one user. Nothing has a place
 * in the file system. */
#ifndef UNDERSTUDY_RANKS_MEETING_H
#define UNDERSTUDY_RANKS_MEETING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Meeting Meeting;

/* Tells a room's key to all who ask for the name. NULL: `*taken`, somebody does already; or no thread, descriptor or memory. */
Meeting *us_meeting_open(const char *name, uint64_t key, bool *taken);
void us_meeting_close(Meeting *meeting); /* NULL is allowed */

/* Asks until somebody tells, or so long. */
bool us_meeting_find(const char *name, int64_t nanoseconds, uint64_t *key);

#endif
