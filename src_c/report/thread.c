#include "report/thread.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes: what the deepest kernel uses is below the first; our own threads have no less than the second, whatever the
 * process's limit says. */
enum { ROOM_FOR_KERNELS = 512 * 1024, OWN_STACK = 2 * 1024 * 1024 };

static bool create(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    size_t size = 0;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    if (pthread_attr_getstacksize(&attributes, &size) == 0 && size < OWN_STACK) {
        pthread_attr_setstacksize(&attributes, OWN_STACK);
    }
    bool created = pthread_create(thread, &attributes, run, argument) == 0;
    pthread_attr_destroy(&attributes);
    return created;
}

bool us_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    sigset_t blocked;
    sigset_t previous;
    pthread_sigmask(SIG_SETMASK, NULL, &previous);
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(&blocked, own[i]);
    }
    /* A program that blocks these (to wait for them) has them blocked here too. */
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (sigismember(&previous, ends[i]) == 0) {
            sigdelset(&blocked, ends[i]);
        }
    }
    pthread_sigmask(SIG_SETMASK, &blocked, NULL); /* a thread begins with the mask of the one that starts it */
    bool started = create(thread, run, argument);
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    return started;
}

/* The lowest and the highest address of the calling thread's stack; both 0 when the system does not tell. */
static void find_stack(uintptr_t *lowest, uintptr_t *highest)
{
    pthread_attr_t attributes;
    void *address = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return;
    }
    if (pthread_attr_getstack(&attributes, &address, &size) == 0) {
        *lowest = (uintptr_t)address;
        *highest = *lowest + size;
    }
    pthread_attr_destroy(&attributes);
}

bool us_thread_has_room(void)
{
    static _Thread_local bool known;
    static _Thread_local uintptr_t lowest, highest;
    if (!known) {
        find_stack(&lowest, &highest);
        known = true;
    }
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return here >= lowest && here < highest && here - lowest >= ROOM_FOR_KERNELS; /* coroutines have other stacks */
}
