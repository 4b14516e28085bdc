#include "ranks/meeting.h"

#include "report/descriptor.h"
#include "report/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct Meeting {
    int listener;
    uint64_t key;
    pthread_t thread;
};

static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    /* The first byte 0: a name that is not in the file system. */
    const int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "understudy-%u-%s", (unsigned)geteuid(),
                                name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Until the listener is shut down. */
static void *tell(void *argument)
{
    const Meeting *meeting = argument;
    for (;;) {
        const int connection = us_descriptor(accept4(meeting->listener, NULL, NULL, SOCK_CLOEXEC));
        if (connection >= 0) {
            (void)!send(connection, &meeting->key, sizeof meeting->key, MSG_NOSIGNAL); /* who has gone asks again */
            close(connection);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL); /* until somebody closes a file */
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return NULL;
        }
    }
}

Meeting *us_meeting_open(const char *name, uint64_t key, bool *taken)
{
    struct sockaddr_un address;
    const socklen_t length = address_of(name, &address);
    Meeting *meeting = malloc(sizeof *meeting);
    const int listener = us_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool bound = listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0;
    *taken = listener >= 0 && !bound && errno == EADDRINUSE;
    if (meeting != NULL && bound && listen(listener, SOMAXCONN) == 0) {
        *meeting = (Meeting){.listener = listener, .key = key};
        if (us_thread_start(&meeting->thread, tell, meeting)) {
            return meeting;
        }
    }
    if (listener >= 0) {
        close(listener);
    }
    free(meeting);
    return NULL;
}

void us_meeting_close(Meeting *meeting)
{
    if (meeting != NULL) {
        shutdown(meeting->listener, SHUT_RDWR); /* wakes the thread */
        pthread_join(meeting->thread, NULL);
        close(meeting->listener);
        free(meeting);
    }
}

bool us_meeting_ask(const char *name, uint64_t *key)
{
    struct sockaddr_un address;
    const struct timeval patience = {.tv_sec = 1};
    const socklen_t length = address_of(name, &address);
    const int connection = us_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    bool told = false;
    if (connection >= 0) {
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        told = connect(connection, (struct sockaddr *)&address, length) == 0 &&
               recv(connection, key, sizeof *key, MSG_WAITALL) == (ssize_t)sizeof *key;
        close(connection);
    }
    return told;
}
