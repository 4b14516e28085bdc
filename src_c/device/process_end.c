#include "device/process_end.h"

#include "report/descriptor.h"
#include "report/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open /* headers of kernels before 5.3; one number for all processors */
#define SYS_pidfd_open 434
#endif

struct ProcessWatch {
    ProcessWatch *next;
    uint64_t serial;
    int process; /* descriptor: readable when the process has ended */
    void (*wake)(void *argument);
    void *argument;
};

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* everything here */
static ProcessWatch *watches;
static uint64_t next_serial;
static int watched = -1; /* set of descriptors that the thread sleeps on; -1: there is no thread yet */

bool us_process_has_ended(int32_t process)
{
    int descriptor = us_descriptor((int)syscall(SYS_pidfd_open, process, 0));
    if (descriptor < 0) {
        return kill(process, 0) != 0 && errno == ESRCH;
    }
    struct pollfd ended = {.fd = descriptor, .events = POLLIN};
    bool has_ended = poll(&ended, 1, 0) > 0;
    close(descriptor);
    return has_ended;
}

/* With the lock held. */
static void tell(uint64_t serial)
{
    for (const ProcessWatch *watch = watches; watch != NULL; watch = watch->next) {
        if (watch->serial == serial) {
            watch->wake(watch->argument);
        }
    }
}

static void *watch_all(void *argument)
{
    enum { TOGETHER = 16 };
    const int set = (int)(intptr_t)argument;
    while (true) {
        struct epoll_event ended[TOGETHER];
        int count = epoll_wait(set, ended, TOGETHER, -1);
        pthread_mutex_lock(&watch_lock);
        for (int i = 0; i < count; i++) {
            tell(ended[i].data.u64);
        }
        pthread_mutex_unlock(&watch_lock);
    }
    return NULL;
}

/* With the lock held. */
static bool start_watching(void)
{
    if (watched >= 0) {
        return true;
    }
    int set = us_descriptor(epoll_create1(EPOLL_CLOEXEC));
    pthread_t thread;
    if (set >= 0 && us_thread_start(&thread, watch_all, (void *)(intptr_t)set)) {
        pthread_detach(thread);
        watched = set;
    } else if (set >= 0) {
        close(set);
    }
    return watched >= 0;
}

/* With the lock held; the descriptor is taken over when this works. */
static ProcessWatch *add_watch(int descriptor, void (*wake)(void *argument), void *argument)
{
    ProcessWatch *watch = start_watching() ? malloc(sizeof *watch) : NULL;
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = next_serial};
    if (watch == NULL || epoll_ctl(watched, EPOLL_CTL_ADD, descriptor, &wanted) != 0) {
        free(watch);
        return NULL;
    }
    *watch = (ProcessWatch){watches, next_serial++, descriptor, wake, argument};
    watches = watch;
    return watch;
}

ProcessWatch *us_process_watch(int32_t process, void (*wake)(void *argument), void *argument)
{
    int descriptor = us_descriptor((int)syscall(SYS_pidfd_open, process, 0));
    if (descriptor < 0) {
        return NULL;
    }
    pthread_mutex_lock(&watch_lock);
    ProcessWatch *watch = add_watch(descriptor, wake, argument);
    pthread_mutex_unlock(&watch_lock);
    if (watch == NULL) {
        close(descriptor);
    }
    return watch;
}

void us_process_unwatch(ProcessWatch *watch)
{
    if (watch == NULL) {
        return;
    }
    pthread_mutex_lock(&watch_lock);
    ProcessWatch **link = &watches;
    while (*link != watch) {
        link = &(*link)->next;
    }
    *link = watch->next;
    pthread_mutex_unlock(&watch_lock);
    close(watch->process); /* leaves the set, too */
    free(watch);
}
