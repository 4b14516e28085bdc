#include "ranks/room.h"

#include "ranks/names.h"
#include "ranks/room_order.h"
#include "report/descriptor.h"
#include "report/trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ANNOUNCEMENTS = 64, RESERVED = 1 };
enum { ABSENT, PRESENT, LEFT }; /* SignalWords.flag of a member; `recorder` is its process */
static const int64_t LOOK_AGAIN = 100000000; /* nanoseconds until somebody who waits looks whether the others live */

typedef struct Announcement {
    _Atomic uint64_t name; /* 0: free, RESERVED: being written */
    _Atomic uint64_t key;
} Announcement;

typedef struct SharedRoom {
    _Atomic int32_t ranks;  /* of the communicator; 0: nobody has joined */
    _Atomic int32_t joined;
    _Atomic bool closed;
    _Atomic int32_t failed; /* rank + 1 of the first one that failed */
    char reason[sizeof(Explanation)];
    _Atomic bool explained; /* `reason` is there */
    Announcement announcements[ANNOUNCEMENTS];
    _Alignas(64) struct {
        _Alignas(64) SignalWords words;
    } members[RANK_LIMIT];
    _Alignas(64) Channel channels[]; /* by kind, sender, receiver */
} SharedRoom;

static size_t size_of(int32_t ranks)
{
    return sizeof(SharedRoom) + (size_t)CHANNEL_KINDS * (size_t)ranks * (size_t)ranks * sizeof(Channel);
}

IpcStatus us_room_open(int32_t platform, uint64_t *key)
{
    const IpcNote note = {.kind = IPC_ROOM, .platform = platform};
    const int file = us_descriptor(memfd_create("understudy-ranks", MFD_CLOEXEC));
    if (file >= 0 && ftruncate(file, sizeof(SharedRoom)) == 0) {
        return us_ipc_give(file, &note, key);
    }
    if (file >= 0) {
        close(file);
    }
    return IPC_EXHAUSTED;
}

/* ---- join and leave ---- */

static SharedRoom *map(int file, int32_t ranks)
{
    const off_t size = (off_t)size_of(ranks);
    const bool grown = lseek(file, 0, SEEK_END) >= size || ftruncate(file, size) == 0; /* pages are there once used */
    void *mapped = grown ? mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    return mapped != MAP_FAILED ? mapped : NULL;
}

/* Agrees with the other ranks on their number and takes the place. */
static bool take_place(SharedRoom *shared, int32_t ranks, int32_t rank, Explanation *why)
{
    int32_t expected = 0;
    if (!atomic_compare_exchange_strong(&shared->ranks, &expected, ranks) && expected != ranks) {
        us_explain(why, "this rank says that there are %d ranks, another one %d", (int)ranks, (int)expected);
        return false;
    }
    SignalWords *words = &shared->members[rank].words;
    uint32_t absent = ABSENT;
    if (!atomic_compare_exchange_strong(&words->flag, &absent, PRESENT)) {
        us_explain(why, "rank %d has joined already", (int)rank);
        return false;
    }
    atomic_store(&words->recorder, (int32_t)getpid());
    atomic_fetch_add(&shared->joined, 1);
    return true;
}

static SharedRoom *enter(int32_t platform, uint64_t key, int32_t ranks, int32_t rank, bool *exhausted, Explanation *why)
{
    IpcNote note;
    int file = -1;
    const IpcStatus status = us_ipc_fetch(key, IPC_ROOM, platform, &note, &file, why);
    *exhausted = status == IPC_EXHAUSTED;
    if (status != IPC_OK) {
        return NULL;
    }
    SharedRoom *head = mmap(NULL, sizeof *head, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    bool agreed = head != MAP_FAILED && take_place(head, ranks, rank, why);
    SharedRoom *shared = agreed ? map(file, ranks) : NULL;
    *exhausted = head == MAP_FAILED || (agreed && shared == NULL);
    us_explain(*exhausted ? why : NULL, "no memory is left for the channels of %d ranks", (int)ranks);
    if (head != MAP_FAILED) {
        munmap(head, sizeof *head);
    }
    close(file);
    return shared;
}

Room *us_room_join(int32_t platform, uint64_t key, int32_t ranks, int32_t rank, bool *exhausted, Explanation *why)
{
    Room *room = calloc(1, sizeof *room);
    SharedRoom *shared = room != NULL ? enter(platform, key, ranks, rank, exhausted, why) : NULL;
    if (room == NULL) {
        *exhausted = true;
        us_explain(why, "no host memory is left for a communicator");
    }
    if (shared == NULL) {
        free(room);
        return NULL;
    }
    *room = (Room){.shared = shared, .bytes = size_of(ranks), .ranks = ranks, .rank = rank, .key = key, .patience = -1,
                   .references = 1};
    pthread_mutex_init(&room->lock, NULL);
    us_room_ring_all(room);
    return room;
}

static bool is_complete(const Room *room)
{
    return atomic_load(&room->shared->joined) >= room->ranks && (!room->found || atomic_load(&room->shared->closed));
}

static bool has_lost_any(const Room *room, Explanation *why)
{
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        const bool here = atomic_load(&us_room_bell(room, rank)->flag) != ABSENT;
        if (here && us_room_has_lost(room, rank, true, why)) {
            return true;
        }
    }
    return false;
}

static void explain_lateness(const Room *room, int64_t seconds, Explanation *why)
{
    const int32_t joined = atomic_load(&room->shared->joined);
    if (joined < room->ranks) {
        us_explain(why, "%d of %d ranks have joined within %lld s", (int)joined, (int)room->ranks, (long long)seconds);
    } else {
        us_explain(why, "the rank that the others have found has not gone on within %lld s", (long long)seconds);
    }
}

bool us_room_gather(Room *room, int64_t nanoseconds, bool *late, Explanation *why)
{
    const uint64_t start = us_now();
    SignalWords *bell = us_room_bell(room, room->rank);
    *late = false;
    for (;;) {
        const uint32_t changes = atomic_load(&bell->changes);
        if (is_complete(room)) {
            break;
        }
        if (has_lost_any(room, why) && !is_complete(room)) { /* a rank that went on meanwhile may have left at once */
            return false;
        }
        if ((int64_t)(us_now() - start) >= nanoseconds) {
            explain_lateness(room, nanoseconds / 1000000000, why);
            *late = true;
            return false;
        }
        us_signal_wait(bell, changes, LOOK_AGAIN);
    }
    if (us_ipc_is_own(room->key)) {
        us_ipc_withdraw(room->key);
    }
    return true;
}

void us_room_close(Room *room)
{
    atomic_store(&room->shared->closed, true);
    us_room_ring_all(room);
}

void us_room_leave(Room *room)
{
    us_room_forget_name(room);
    atomic_store(&us_room_bell(room, room->rank)->flag, LEFT);
    us_room_ring_all(room);
}

void us_room_hold(Room *room)
{
    atomic_fetch_add(&room->references, 1);
}

void us_room_let_go(Room *room)
{
    if (atomic_fetch_sub(&room->references, 1) == 1) {
        munmap(room->shared, room->bytes);
        us_room_end_order(room);
        pthread_mutex_destroy(&room->lock);
        free(room);
    }
}

/* ---- other rooms ---- */

static Announcement *find(const Room *room, uint64_t name)
{
    Announcement *all = room->shared->announcements;
    for (int i = 0; i < ANNOUNCEMENTS; i++) {
        if (atomic_load(&all[i].name) == name) {
            return &all[i];
        }
    }
    return NULL;
}

bool us_room_announce(Room *room, uint64_t name, uint64_t key)
{
    Announcement *all = room->shared->announcements;
    for (int i = 0; i < ANNOUNCEMENTS; i++) {
        uint64_t unused = 0;
        if (atomic_compare_exchange_strong(&all[i].name, &unused, RESERVED)) {
            atomic_store(&all[i].key, key);
            atomic_store(&all[i].name, name);
            us_room_ring_all(room);
            return true;
        }
    }
    return false;
}

bool us_room_look_up(Room *room, uint64_t name, int32_t maker, int64_t nanoseconds, uint64_t *key, bool *late, Explanation *why)
{
    const uint64_t start = us_now();
    SignalWords *bell = us_room_bell(room, room->rank);
    for (*late = false; !*late;) {
        const uint32_t changes = atomic_load(&bell->changes);
        const bool lost = us_room_has_lost(room, maker, true, why); /* what it has announced before counts */
        const Announcement *found = find(room, name);
        if (found != NULL) {
            *key = atomic_load(&found->key);
            return true;
        }
        if (lost || us_room_has_failed(room, why)) {
            return false;
        }
        *late = (int64_t)(us_now() - start) >= nanoseconds;
        if (!*late) {
            us_signal_wait(bell, changes, LOOK_AGAIN);
        }
    }
    us_explain(why, "rank %d has not made it", (int)maker);
    return false;
}

void us_room_withdraw(Room *room, uint64_t name)
{
    Announcement *found = find(room, name);
    if (found != NULL) {
        atomic_store(&found->name, 0);
    }
}

/* ---- what operations use ---- */

Channel *us_room_channel(const Room *room, ChannelKind kind, int32_t from, int32_t to)
{
    const size_t ranks = (size_t)room->ranks;
    return &room->shared->channels[((size_t)kind * ranks + (size_t)from) * ranks + (size_t)to];
}

SignalWords *us_room_bell(const Room *room, int32_t rank)
{
    return &room->shared->members[rank].words;
}

void us_room_ring_all(const Room *room)
{
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        us_signal_tell(us_room_bell(room, rank));
    }
}

bool us_room_is_of_process(const Room *room)
{
    const int32_t process = (int32_t)getpid();
    int32_t own = 0;
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        own += atomic_load(&us_room_bell(room, rank)->recorder) == process;
    }
    return own == room->ranks;
}

bool us_room_has_lost(const Room *room, int32_t rank, bool asks_system, Explanation *why)
{
    const SignalWords *words = us_room_bell(room, rank);
    if (atomic_load(&words->flag) == LEFT) {
        us_explain(why, "rank %d has destroyed its communicator", (int)rank);
        return true;
    }
    if (asks_system && us_signal_is_orphan(words)) {
        us_explain(why, "rank %d, process %d, has ended", (int)rank, (int)atomic_load(&words->recorder));
        return true;
    }
    return false;
}

void us_room_fail(Room *room, const char *reason)
{
    SharedRoom *shared = room->shared;
    int32_t nobody = 0;
    pthread_mutex_lock(&room->lock);
    if (room->failure.text[0] == '\0') {
        us_explain(&room->failure, "%s", reason);
    }
    pthread_mutex_unlock(&room->lock);
    if (atomic_compare_exchange_strong(&shared->failed, &nobody, room->rank + 1)) {
        memcpy(shared->reason, room->failure.text, sizeof shared->reason);
        atomic_store(&shared->explained, true);
    }
    us_room_ring_all(room);
}

bool us_room_has_failed_here(Room *room, Explanation *why)
{
    pthread_mutex_lock(&room->lock);
    const bool here = room->failure.text[0] != '\0';
    us_explain(here ? why : NULL, "%s", room->failure.text);
    pthread_mutex_unlock(&room->lock);
    return here;
}

bool us_room_has_failed(Room *room, Explanation *why)
{
    const bool here = us_room_has_failed_here(room, why);
    const int32_t failed = atomic_load(&room->shared->failed);
    if (!here && failed != 0) {
        us_explain(why, "rank %d has given up: %.*s", (int)failed - 1, (int)sizeof room->shared->reason - 1,
                   atomic_load(&room->shared->explained) ? room->shared->reason : "");
    }
    return here || failed != 0;
}

void **us_rank_group_of_thread(void)
{
    static _Thread_local void *group;
    return &group;
}
