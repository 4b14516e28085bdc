/* Where the ranks of a communicator meet: memory that all of them have, whether they are threads of one process or of
 * several. Knows no vendor.
 *
 * Who opens a room offers it under a key (device/ipc.h); ranks that have the key join. A rank is told of the others only
 * through this memory: there are no locks in it, since a process may end at any instruction. */
#ifndef UNDERSTUDY_RANKS_ROOM_H
#define UNDERSTUDY_RANKS_ROOM_H

#include "device/ipc.h"
#include "device/signal.h"

#include <pthread.h>

enum { RANK_LIMIT = 256, CHANNEL_BYTES = 128 * 1024 };

/* Bytes from one rank to another. Those of collective operations and those of single sends go different ways, so that
 * neither waits for the other. */
typedef enum ChannelKind { CHANNEL_COLLECTIVE, CHANNEL_DIRECT, CHANNEL_KINDS } ChannelKind;
typedef struct Channel {
    _Alignas(64) _Atomic uint64_t written; /* bytes so far: the sender's */
    _Alignas(64) _Atomic uint64_t read;    /* the receiver's */
    _Alignas(64) char bytes[CHANNEL_BYTES];
} Channel;

/* Who may use something next: numbers are drawn in the order of the calls. Who has none may whenever nobody does. */
typedef struct Turns {
    _Atomic uint64_t drawn, served;
    _Atomic bool taken; /* somebody uses it */
} Turns;

struct SharedRoom;
struct Moment;

/* For the checks (room_order.h): when this rank's part of an operation begins. */
enum { ROOM_PARTS = 8 };
typedef struct RoomPart {
    uint64_t turn;
    struct Moment *begin; /* held; NULL: none */
} RoomPart;

/* A rank's place in a room. */
typedef struct Room {
    struct SharedRoom *shared;
    size_t bytes; /* that are mapped */
    int32_t ranks, rank;
    uint64_t key;
    bool found;       /* by a name, which another rank takes back: us_room_close */
    int64_t patience; /* nanoseconds that an operation waits for other ranks; negative: without limit */
    _Atomic int32_t busy; /* tasks that are queued or run; an operation may be two */
    _Atomic int32_t references;
    Turns collective;
    Turns direct[RANK_LIMIT][2]; /* by the other rank; received, sent */
    pthread_mutex_t lock;        /* of the next */
    Explanation failure;         /* why no operation can run any more; empty: none */
    char name[128];              /* ranks/names.h, as what follows */
    const void *owner;
    RoomPart parts[ROOM_PARTS];  /* the latest ones; room_order.h, as the next */
    struct Moment *last;         /* when all operations so far are over */
    struct Room *next;
} Room;

/* Opens a room and offers it. EXHAUSTED: no memory, thread or file descriptor. */
IpcStatus us_room_open(int32_t platform, uint64_t *key);

/* A place in the room. NULL: `why` says what is wrong; `*exhausted` tells whether a resource is missing. */
Room *us_room_join(int32_t platform, uint64_t key, int32_t ranks, int32_t rank, bool *exhausted, Explanation *why);
/* Waits until all ranks have joined and, where this one has found the room by a name, until it is closed. False: it took longer
 * (`*late`), or one of them has ended. */
bool us_room_gather(Room *room, int64_t nanoseconds, bool *late, Explanation *why);
/* Nobody can find the room by its name any more. No rank that has found it goes on before: it might look for another room of the
 * same name, and find this one again. */
void us_room_close(Room *room);
/* Tells the others that this rank leaves. The room stays as long as somebody holds it. */
void us_room_leave(Room *room);
void us_room_hold(Room *room);
void us_room_let_go(Room *room);

/* Lets the ranks of this room find another one: the first of them, `maker`, puts its key under a name, the others wait for it.
 * Not found: it took longer (`*late`), or the maker has ended. */
bool us_room_announce(Room *room, uint64_t name, uint64_t key); /* false: too many wait at once */
bool us_room_look_up(Room *room, uint64_t name, int32_t maker, int64_t nanoseconds, uint64_t *key, bool *late, Explanation *why);
void us_room_withdraw(Room *room, uint64_t name);

/* What an operation of this rank waits for. A bell rings when another rank has moved bytes, left or failed. */
Channel *us_room_channel(const Room *room, ChannelKind kind, int32_t from, int32_t to);
SignalWords *us_room_bell(const Room *room, int32_t rank);
void us_room_ring_all(const Room *room);
/* Whether all ranks are of this process. */
bool us_room_is_of_process(const Room *room);
/* Whether a rank will do nothing any more: it has left, or its process has ended, which takes longer to find out. */
bool us_room_has_lost(const Room *room, int32_t rank, bool asks_system, Explanation *why);
/* Keeps the first reason, tells the other ranks, and gives what is kept. */
void us_room_fail(Room *room, const char *reason);
/* Whether this rank or another one has failed; whether this rank has. */
bool us_room_has_failed(Room *room, Explanation *why);
bool us_room_has_failed_here(Room *room, Explanation *why);

/* Where a vendor's library, which may be linked under two names, keeps what the calling thread has begun and not ended. */
void **us_rank_group_of_thread(void);

#endif
