#include "ranks/room_order.h"

#include "ranks/names.h"

typedef struct Arrival {
    Room *room;
    uint64_t turn;
    Moment *begin, *after;
} Arrival;

static void keep_part(Room *room, const Arrival *arrival)
{
    RoomPart *part = &room->parts[arrival->turn % ROOM_PARTS];
    if (arrival->turn != UINT64_MAX) {
        us_order_let_go(part->begin);
        *part = (RoomPart){arrival->turn, us_order_hold(arrival->begin)};
    }
}

static void arrive(Room *place, void *argument)
{
    Arrival *arrival = argument;
    const RoomPart *part = &place->parts[arrival->turn % ROOM_PARTS];
    if (place == arrival->room) {
        keep_part(place, arrival);
    } else if (part->begin != NULL && part->turn == arrival->turn) {
        arrival->after = us_order_join(arrival->after, us_order_hold(part->begin));
    } else {
        arrival->after = us_order_join(arrival->after, us_order_unknown());
    }
}

static Moment *last_of(Room *room)
{
    pthread_mutex_lock(&room->lock);
    Moment *last = us_order_hold(room->last);
    pthread_mutex_unlock(&room->lock);
    return last;
}

Moment *us_room_order(Room *room, uint64_t turn, Stream *stream)
{
    uint64_t ticket = 0;
    Arrival arrival = {.room = room, .turn = turn, .begin = us_order_moment(stream_state(stream), &ticket)};
    if (arrival.begin == NULL) {
        return NULL;
    }
    if (turn != UINT64_MAX) {
        arrival.after = last_of(room);
        arrival.begin = us_order_join(arrival.begin, us_order_hold(arrival.after));
    }
    us_rooms_visit(room, arrive, &arrival);
    us_order_let_go(arrival.begin);
    return arrival.after;
}

void us_room_note_last(Room *room, bool keeps_waiting, Moment *over)
{
    if (!keeps_waiting) {
        us_order_let_go(over);
        return;
    }
    pthread_mutex_lock(&room->lock);
    room->last = us_order_join(room->last, over);
    pthread_mutex_unlock(&room->lock);
}

void us_room_end_order(Room *room)
{
    for (int i = 0; i < ROOM_PARTS; i++) {
        us_order_let_go(room->parts[i].begin);
    }
    us_order_let_go(room->last);
}
