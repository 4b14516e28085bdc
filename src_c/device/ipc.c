#include "device/ipc.h"

#include "report/descriptor.h"
#include "report/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A key: 22 bits process (Linux has no more), 42 random bits, so that a later process of the same number is not taken for
 * the owner. */
enum { SECRET_BITS = 42 };
static const uint64_t SECRET = ((uint64_t)1 << SECRET_BITS) - 1;

typedef struct Offer {
    struct Offer *next;
    uint64_t key;
    IpcNote note;
    int source; /* the descriptor it was made of, which is open as long; or -1 */
    int file;   /* its own */
    bool anyone;
    int32_t *admitted;
    size_t admitted_count;
} Offer;

/* What goes over the socket. */
typedef struct Answer {
    uint32_t status;
    IpcNote note;
} Answer;

static pthread_mutex_t offers_lock = PTHREAD_MUTEX_INITIALIZER;
static Offer *offers;
static int listener = -1; /* -1: nothing has been offered yet */

/* ---- the socket ---- */

static socklen_t name_of_process(uint64_t process, struct sockaddr_un *name)
{
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    /* The first byte 0: a name that is not in the file system. */
    int length = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "understudy-%u-%llu", (unsigned)geteuid(),
                          (unsigned long long)process);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Nobody waits for ever for a process that says nothing. */
static void limit_patience(int connection, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static bool find_peer(int connection, struct ucred *peer)
{
    socklen_t size = sizeof *peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, peer, &size) == 0;
}

/* One message, with a file if that is not negative. */
static bool send_answer(int connection, const Answer *answer, int file)
{
    struct iovec part = {(void *)answer, sizeof *answer};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof file)];
    } space;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        memset(&space, 0, sizeof space);
        message.msg_control = space.bytes;
        message.msg_controllen = sizeof space.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    return sendmsg(connection, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *answer;
}

/* `*file` is -1 when none came. */
static bool receive_answer(int connection, Answer *answer, int *file)
{
    struct iovec part = {answer, sizeof *answer};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof *file)];
    } space;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space.bytes,
                             .msg_controllen = sizeof space.bytes};
    ssize_t received = 0;
    do {
        received = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    *file = -1;
    const struct cmsghdr *header = received >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        memcpy(file, CMSG_DATA(header), sizeof *file);
        *file = us_descriptor(*file);
    }
    return received == (ssize_t)sizeof *answer;
}

/* ---- offers; with the lock held ---- */

static Offer **find_offer(uint64_t key)
{
    Offer **link = &offers;
    while (*link != NULL && (*link)->key != key) {
        link = &(*link)->next;
    }
    return link;
}

static void remove_offer(Offer **link)
{
    Offer *offer = *link;
    *link = offer->next;
    close(offer->file);
    free(offer->admitted);
    free(offer);
}

static bool admits(const Offer *offer, pid_t process)
{
    bool admitted = offer->anyone || process == getpid();
    for (size_t i = 0; i < offer->admitted_count && !admitted; i++) {
        admitted = offer->admitted[i] == process;
    }
    return admitted;
}

/* A descriptor for somebody to close, or -1. */
static int file_for(uint64_t key, pid_t process, Answer *answer)
{
    const Offer *offer = *find_offer(key);
    *answer = (Answer){.status = IPC_UNKNOWN};
    if (offer != NULL) {
        answer->status = admits(offer, process) ? IPC_OK : IPC_FORBIDDEN;
        answer->note = offer->note;
    }
    int file = answer->status == IPC_OK ? us_descriptor_copy(offer->file) : -1;
    if (answer->status == IPC_OK && file < 0) {
        answer->status = IPC_EXHAUSTED;
    }
    return file;
}

/* ---- the thread that answers ---- */

static void serve(int connection)
{
    struct ucred peer;
    uint64_t key = 0;
    limit_patience(connection, 1);
    if (!find_peer(connection, &peer) || recv(connection, &key, sizeof key, 0) != (ssize_t)sizeof key) {
        return;
    }
    Answer answer;
    pthread_mutex_lock(&offers_lock);
    int file = file_for(key, peer.pid, &answer);
    pthread_mutex_unlock(&offers_lock);
    send_answer(connection, &answer, file);
    if (file >= 0) {
        close(file);
    }
}

static void *serve_all(void *argument)
{
    int socket_file = (int)(intptr_t)argument;
    while (true) {
        int connection = us_descriptor(accept4(socket_file, NULL, NULL, SOCK_CLOEXEC));
        if (connection >= 0) {
            serve(connection);
            close(connection);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL); /* until somebody closes a file */
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return NULL;
        }
    }
}

/* The child has no such thread, and must not keep the name of its parent. */
static void close_in_child(void)
{
    if (listener >= 0) {
        close(listener);
        listener = -1;
    }
}

/* With the lock held. */
static bool start_serving(void)
{
    enum { WAITING_CONNECTIONS = 64 };
    if (listener >= 0) {
        return true;
    }
    struct sockaddr_un name;
    socklen_t length = name_of_process((uint64_t)getpid(), &name);
    int made = us_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    pthread_t thread;
    if (made >= 0 && bind(made, (struct sockaddr *)&name, length) == 0 && listen(made, WAITING_CONNECTIONS) == 0 &&
        us_thread_start(&thread, serve_all, (void *)(intptr_t)made)) {
        pthread_detach(thread);
        pthread_atfork(NULL, NULL, close_in_child);
        listener = made;
        return true;
    }
    if (made >= 0) {
        close(made);
    }
    return false;
}

/* ---- offering ---- */

static bool choose_key(uint64_t *key)
{
    uint64_t random = 0;
    do {
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
            return false;
        }
        *key = (uint64_t)getpid() << SECRET_BITS | (random & SECRET);
    } while (*find_offer(*key) != NULL);
    return true;
}

/* Nobody says that what was given is not wanted any more. */
static void end_oldest_given(void)
{
    int given = 0;
    for (Offer **link = &offers; *link != NULL;) {
        given += (*link)->source < 0;
        if ((*link)->source < 0 && given > IPC_GIVEN_LIMIT) {
            remove_offer(link);
        } else {
            link = &(*link)->next;
        }
    }
}

static IpcStatus add_offer(int source, int own, const IpcNote *note, bool anyone, uint64_t *key)
{
    Offer *offer = calloc(1, sizeof *offer);
    pthread_mutex_lock(&offers_lock);
    bool done = offer != NULL && own >= 0 && start_serving() && choose_key(key);
    if (done) {
        *offer = (Offer){.next = offers, .key = *key, .note = *note, .source = source, .file = own, .anyone = anyone};
        offers = offer;
        end_oldest_given();
    }
    pthread_mutex_unlock(&offers_lock);
    if (!done) {
        if (own >= 0) {
            close(own);
        }
        free(offer);
    }
    return done ? IPC_OK : IPC_EXHAUSTED;
}

IpcStatus us_ipc_offer(int file, const IpcNote *note, bool anyone, uint64_t *key)
{
    return add_offer(file, us_descriptor_copy(file), note, anyone, key);
}

IpcStatus us_ipc_give(int file, const IpcNote *note, uint64_t *key)
{
    return add_offer(-1, file, note, true, key);
}

bool us_ipc_offered(int file, uint64_t *key)
{
    pthread_mutex_lock(&offers_lock);
    const Offer *offer = offers;
    while (offer != NULL && !(offer->source == file && offer->anyone)) {
        offer = offer->next;
    }
    if (offer != NULL) {
        *key = offer->key;
    }
    pthread_mutex_unlock(&offers_lock);
    return offer != NULL;
}

IpcStatus us_ipc_admit(uint64_t key, const int32_t *processes, size_t count)
{
    pthread_mutex_lock(&offers_lock);
    Offer *offer = *find_offer(key);
    size_t bytes = 0;
    int32_t *grown = NULL;
    if (offer != NULL && !__builtin_mul_overflow(offer->admitted_count + count, sizeof *grown, &bytes)) {
        grown = realloc(offer->admitted, bytes);
    }
    if (grown != NULL) {
        memcpy(grown + offer->admitted_count, processes, count * sizeof *grown);
        offer->admitted = grown;
        offer->admitted_count += count;
    }
    pthread_mutex_unlock(&offers_lock);
    return grown != NULL ? IPC_OK : offer == NULL ? IPC_UNKNOWN : IPC_EXHAUSTED;
}

bool us_ipc_withdraw(uint64_t key)
{
    pthread_mutex_lock(&offers_lock);
    Offer **link = find_offer(key);
    bool known = *link != NULL;
    if (known) {
        remove_offer(link);
    }
    pthread_mutex_unlock(&offers_lock);
    return known;
}

void us_ipc_withdraw_file(int file)
{
    pthread_mutex_lock(&offers_lock);
    for (Offer **link = &offers; *link != NULL;) {
        if ((*link)->source == file) {
            remove_offer(link);
        } else {
            link = &(*link)->next;
        }
    }
    pthread_mutex_unlock(&offers_lock);
}

bool us_ipc_is_own(uint64_t key)
{
    pthread_mutex_lock(&offers_lock);
    bool own = *find_offer(key) != NULL;
    pthread_mutex_unlock(&offers_lock);
    return own;
}

/* ---- fetching ---- */

/* The name belongs to whoever took it first: the kernel says whose it is. */
static bool is_trusted(int connection)
{
    struct ucred peer;
    return find_peer(connection, &peer) && (peer.uid == geteuid() || peer.uid == 0);
}

/* False: nobody answers. */
static bool ask(uint64_t key, Answer *answer, int *file)
{
    enum { PATIENCE_SECONDS = 10 };
    struct sockaddr_un name;
    socklen_t length = name_of_process(key >> SECRET_BITS, &name);
    int connection = us_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (connection < 0) {
        *answer = (Answer){.status = IPC_EXHAUSTED};
        return true;
    }
    limit_patience(connection, PATIENCE_SECONDS);
    bool answered = connect(connection, (struct sockaddr *)&name, length) == 0 && is_trusted(connection) &&
                    send(connection, &key, sizeof key, MSG_NOSIGNAL) == (ssize_t)sizeof key &&
                    receive_answer(connection, answer, file);
    close(connection);
    return answered;
}

IpcStatus us_ipc_fetch(uint64_t key, IpcKind kind, int32_t platform, IpcNote *note, int *file, Explanation *why)
{
    Answer answer = {.status = IPC_UNKNOWN};
    int received = -1;
    bool answered = ask(key, &answer, &received);
    bool fits = answered && answer.status == IPC_OK && received >= 0 && answer.note.kind == (uint32_t)kind &&
                answer.note.platform == platform;
    if (fits) {
        *note = answer.note;
        *file = received;
        return IPC_OK;
    }
    if (received >= 0) {
        close(received);
    }
    int owner = (int)(key >> SECRET_BITS);
    if (answered && answer.status == IPC_FORBIDDEN) {
        us_explain(why, "process %d has not admitted this process, %d", owner, (int)getpid());
        return IPC_FORBIDDEN;
    }
    if (answered && (answer.status == IPC_EXHAUSTED || (answer.status == IPC_OK && received < 0))) {
        us_explain(why, "no file descriptor is left, here or in process %d", owner);
        return IPC_EXHAUSTED;
    }
    if (owner == 0) {
        us_explain(why, "these bytes are no key that a process has given");
    } else {
        us_explain(why, "process %d does not share it: it has taken it back, was never asked to, or has ended", owner);
    }
    return IPC_UNKNOWN;
}
