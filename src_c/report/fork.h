/* Processes that fork while other threads work. A child has only the thread that forked it: a lock that another one held just
 * then would never be free again there, and what it guards would be half changed. */
#ifndef UNDERSTUDY_FORK_H
#define UNDERSTUDY_FORK_H

#include <pthread.h>

/* Forks wait for the lock, which is free in the child, too. From a constructor. Who holds one of these locks takes no other of
 * them. */
void us_fork_waits_for(pthread_mutex_t *lock);

#endif
