/* Threads of our own. Signals are left to the program's threads, except those a fault raises in the thread itself, and those
 * that ask the process to end: where no thread of the program is left to take them, ours do. */
#ifndef UNDERSTUDY_THREAD_H
#define UNDERSTUDY_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* False: the system gives no further thread. */
bool us_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* Whether the calling thread's stack has room for a kernel: a program's thread may have been given a small one. */
bool us_thread_has_room(void);

#endif
