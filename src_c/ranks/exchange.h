/* Bytes between the ranks of a room, as tasks of a stream: what every operation of a communicator is made of. */
#ifndef UNDERSTUDY_RANKS_EXCHANGE_H
#define UNDERSTUDY_RANKS_EXCHANGE_H

#include "kernels/kernels.h"
#include "launch/launch.h"
#include "ranks/room.h"

/* Goes before the bytes. Both sides must mean the same: a program whose ranks call different operations is told so. */
enum { CAPTION_BYTES = 48 };
typedef struct Letterhead {
    char caption[CAPTION_BYTES]; /* the operation and what its ranks must have in common */
    uint64_t bytes, whole;       /* that follow; of all messages of the operation together */
} Letterhead;

/* One message to or from another rank. */
typedef struct Transfer {
    int32_t peer;
    bool sends;
    char *data;
    Letterhead head; /* as this side expects it */
    Letterhead got;  /* as the sender wrote it */
    uint64_t moved;  /* bytes, with those of the head */
    bool begun, over;
    uint64_t turn;   /* of direct messages */
} Transfer;

/* Until all messages have been moved, in any order. Gives up where the room has failed or takes longer than its patience,
 * a rank is lost, or a sender means something else; then the room has failed. */
KernelStatus us_exchange(Room *room, ChannelKind kind, Transfer *transfers, int32_t count);

/* ---- tasks of a stream ---- */

/* What begins the attributes of every task here. Operations of one room take turns, in the order in which they were queued;
 * those that a graph has recorded, in which the graph was launched. Where a graph decides by itself which of its tasks it runs,
 * they run between others, as soon as none does: what the program has put before them is over then, and what it has put behind
 * them has not begun. */
typedef struct RankTask {
    Room *room;
    ChannelKind kind; /* DIRECT: of an Exchange, whose items have turns of their own */
    bool recorded;    /* a graph runs it */
    uint64_t turn;    /* of collective operations; NO_TURN: it runs between others */
    char caption[CAPTION_BYTES];
} RankTask;
#define NO_TURN UINT64_MAX

extern const LaunchMeeting us_rank_meeting;

/* Its parts. A task that draws its turn is counted; what it comes after is known of the ranks of this process, as far as they
 * have queued their part. */
void us_rank_task_take(void *attributes, bool recorded);
void us_rank_task_draw(void *attributes);
void us_rank_task_inherit(void *attributes, void *from); /* not of messages between others */
void us_rank_task_release(void *attributes, bool ran);
bool us_rank_task_is_ready(const void *attributes);
bool us_rank_task_is_awaited(const void *attributes);
struct Moment *us_rank_task_after(const void *attributes, Stream *stream);
void us_rank_task_over(const void *attributes, struct Moment *moment);
/* A task that never runs leaves the other ranks waiting, so they are told. */
void us_rank_task_drop(const RankTask *task);

/* Around a collective operation: waits for those before it on this rank. The others are told where it has failed. */
KernelStatus us_collective_begin(const RankTask *task);
KernelStatus us_collective_end(const RankTask *task, KernelStatus status);

/* A message of a task to be moved as a whole. */
Transfer us_transfer(const RankTask *task, int32_t peer, bool sends, char *data, uint64_t bytes);
/* Inside of a collective operation: what each rank gets, and what it sends, one after another. Its own is copied. */
KernelStatus us_exchange_bytes(const RankTask *task, char *sent, const int64_t *sent_sizes, char *received,
                               const int64_t *received_sizes);

/* An item of us_exchange_views; its view is the bytes, absent for none. A rank's message to itself is copied. */
typedef struct ExchangeItem {
    int32_t peer;
    bool sends;
    uint64_t turn; /* of direct messages */
} ExchangeItem;

typedef struct Exchange {
    RankTask task;
    int32_t count;
    ExchangeItem items[];
} Exchange;
Kernel us_exchange_views; /* views: one for each item; attributes: Exchange */

/* Every rank has a part for each other one, and gets the reduction of all ranks' parts for it, in the order of the ranks. */
typedef struct RankReduction {
    RankTask task;
    const struct Reduction *reduction;
    DType dtype;
} RankReduction;
Kernel us_reduce_ranks; /* views: a part for each rank (absent or empty: none), result (absent: none for this rank) */

#endif
