/* A part of the places: for the files of this folder. */
#ifndef UNDERSTUDY_ROUTING_PART_H
#define UNDERSTUDY_ROUTING_PART_H

#include "kernels/routing/routing.h"

/* Places become the tokens that they stand for, those outside the part INT64_MAX, which no tokens have. */
static inline void us_take_part(const PlacePart *part, int64_t *places, int64_t count)
{
    for (int64_t i = 0; i < count && part->given; i++) {
        places[i] = places[i] >= part->first && places[i] < part->end ? places[i] - part->first : INT64_MAX;
    }
}

#endif
