/* The end of objects that other threads may just have found by their handles.
 *
 * A public call begins by looking handles up and then uses what they name; another thread may end one of them
 * meanwhile. So memory that handles lead to is not freed at once but buried: freed when every call is over that had
 * begun before. */
#ifndef UNDERSTUDY_GRACE_H
#define UNDERSTUDY_GRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Around each public call; may nest (a callback that calls). us_call_begin and us_call_end do it. */
void us_grace_enter(void);
void us_grace_leave(void);
bool us_grace_is_nested(void); /* the call that has just begun is one within another */

/* Waits until no other thread is in a call, at most so long. For who keeps new calls from beginning. */
void us_grace_wait_for_others(uint64_t nanoseconds);

/* Calls end(object) later. The object's handle has been ended before. */
void us_grace_bury(void (*end)(void *object), void *object);

#endif
