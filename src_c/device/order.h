/* What happens before what, as the program has arranged it and not as it happens to run: for the checks sync, race and
 * memory. Nothing here does anything when none of them is on.
 *
 * A moment says of each stream up to which of its tasks everything is over then. Work of a stream happens after what
 * was queued there before, after what the stream was made to wait for (events, notifies, other streams), and after what
 * the host had waited for when it queued the work. The host is one: what one of its threads has waited for, all know,
 * since nobody sees how threads wait for each other. What bytes tasks use is kept until the host knows that they are
 * over.
 *
 * A stream that waits for something that nobody has queued yet, or for a number in memory, is not watched until the
 * host has waited for it. */
#ifndef UNDERSTUDY_ORDER_H
#define UNDERSTUDY_ORDER_H

#include "device/moment.h"
#include "device/stream_internal.h"

/* A task is being queued: what it uses is compared with what unordered work uses. With the stream's lock held, so that
 * tasks come in order; the comparison's result is told afterwards, without it. */
typedef struct Conflict {
    bool found;
    Use earlier, later;
    const char *earlier_name, *later_name;
    const void *earlier_caller;
    int32_t earlier_stream, later_stream;
} Conflict;
void us_order_queue(StreamState *stream, Task *task, Conflict *conflict);
void us_order_tell(const StreamState *stream, const Conflict *conflict);
/* The same of two branches of a graph. */
void us_order_tell_branches(const Task *first, const Use *of_first, const Task *second, const Use *of_second);

/* When the stream will have done all that is queued by now, up to the task `ticket`; NULL: nothing is watched. Ended by
 * us_order_let_go. Of one task, us_stream_queue tells it (Task.over). */
Moment *us_order_moment(StreamState *stream, uint64_t *ticket);
/* A moment that is not known; NULL: nothing is watched. */
Moment *us_order_unknown(void);
Moment *us_order_hold(Moment *moment);
void us_order_let_go(Moment *moment);
/* Of two moments the later in every respect; lets go of both. */
Moment *us_order_join(Moment *first, Moment *second);

/* The host has waited for it; lets go of it. NULL is allowed. `stream`: which it waited for; NULL: for an event. */
void us_order_seen(StreamState *stream, Moment *moment);
/* All the stream's work is over. */
void us_order_end(StreamState *stream);

/* The calling thread begins (ends) running the program's own code as a task. */
void us_order_host_function(StreamState *stream, const Task *task);
void us_order_host_function_over(const Task *task);

/* A task that may use some of the bytes now, as far as the program has arranged; with `writes` also one that reads. */
typedef struct User {
    const char *name;
    const void *caller;
    bool writes;
} User;
bool us_order_find_user(uintptr_t address, size_t size, bool writes, User *user);
/* The bytes are nobody's any more. */
void us_order_forget(uintptr_t address, size_t size);

/* The host touched memory that is closed to it because tasks use it: opens it. False: it is not closed. `user` is the
 * task that must be waited for first; its name is NULL when the bytes next to it were meant. */
bool us_order_host_touch(uintptr_t address, User *user);

#endif
