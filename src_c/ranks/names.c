#include "ranks/names.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Room *rooms;

void us_room_name(Room *room, const char *name, const void *owner)
{
    snprintf(room->name, sizeof room->name, "%s", name);
    room->owner = owner;
    pthread_mutex_lock(&lock);
    room->next = rooms;
    rooms = room;
    pthread_mutex_unlock(&lock);
}

void us_room_forget_name(const Room *room)
{
    pthread_mutex_lock(&lock);
    for (Room **link = &rooms; *link != NULL; link = &(*link)->next) {
        if (*link == room) {
            *link = room->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

Room *us_room_named(const char *name, const void *owner, bool *several)
{
    Room *found = NULL;
    *several = false;
    pthread_mutex_lock(&lock);
    for (Room *room = rooms; room != NULL; room = room->next) {
        if (room->owner == owner && strcmp(room->name, name) == 0) {
            *several |= found != NULL;
            found = room;
        }
    }
    found = *several ? NULL : found;
    if (found != NULL) {
        us_room_hold(found);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void us_rooms_visit(const Room *room, void (*visit)(Room *place, void *argument), void *argument)
{
    pthread_mutex_lock(&lock);
    for (Room *place = rooms; place != NULL; place = place->next) {
        if (place->key == room->key) {
            visit(place, argument);
        }
    }
    pthread_mutex_unlock(&lock);
}
