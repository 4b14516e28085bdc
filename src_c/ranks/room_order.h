/* What the operations of a room order, for the checks sync, race and memory (device/order.h): those of one rank run one after
 * another, and what comes after an operation on one rank comes after what was queued before it on the others. Of those in other
 * processes nothing is watched. */
#ifndef UNDERSTUDY_RANKS_ROOM_ORDER_H
#define UNDERSTUDY_RANKS_ROOM_ORDER_H

#include "device/order.h"
#include "ranks/room.h"

/* This rank's part of the operation `turn` is about to be queued: what it comes after, for the caller to let go of. Where
 * another rank of this process has not queued its part, that is unknown, as it is of messages between such ranks, which have no
 * turn (UINT64_MAX). NULL: nothing is watched, or it comes after nothing. */
Moment *us_room_order(Room *room, uint64_t turn, Stream *stream);
/* When it will be over; lets go of it. Messages do not keep later operations waiting. */
void us_room_note_last(Room *room, bool keeps_waiting, Moment *over);
void us_room_end_order(Room *room);

#endif
