/* Rooms of this process by name: for libraries that get nothing but the name of a communicator. */
#ifndef UNDERSTUDY_RANKS_NAMES_H
#define UNDERSTUDY_RANKS_NAMES_H

#include "ranks/room.h"

/* The room has the name until it is left. `owner` is whose rank this is: a device. */
void us_room_name(Room *room, const char *name, const void *owner);
void us_room_forget_name(const Room *room);

/* What is found is held. NULL: the owner has none of this name, or `*several`. */
Room *us_room_named(const char *name, const void *owner, bool *several);

/* All that this process has of the room. They do not end meanwhile, and no other thread visits them. */
void us_rooms_visit(const Room *room, void (*visit)(Room *place, void *argument), void *argument);

#endif
