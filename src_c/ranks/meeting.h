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

bool us_meeting_ask(const char *name, uint64_t *key); /* false: nobody tells */

#endif
