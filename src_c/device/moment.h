/* A moment of a program that uses streams: up to which task of each stream everything is over (order.h). The callers of these
 * functions hold the lock of order.c. */
#ifndef UNDERSTUDY_MOMENT_H
#define UNDERSTUDY_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Streams take turns in the places of a moment: the tickets of a place go on where its last stream ended. */
typedef struct Moment {
    int references;
    bool unknown; /* and of something that nobody has queued yet */
    size_t count;
    uint64_t reached[];
} Moment;

/* The last ticket of the place that is over; of no moment (NULL) none is. */
uint64_t us_moment_reached(const Moment *moment, size_t place);
Moment *us_moment_hold(Moment *moment);
void us_moment_let_go(Moment *moment);
/* Whether all that is over at the earlier one is over at the later one. */
bool us_moment_includes(const Moment *later, const Moment *earlier);
/* A new moment of two, with room for `count` places; NULL: no memory. */
Moment *us_moment_combine(const Moment *first, const Moment *second, size_t count);
/* Makes *moment the later of it and the other. */
void us_moment_advance(Moment **moment, const Moment *other);

#endif
