/* Positions of one line, of a call with one index tensor: a single pass over indices as they lie in memory. */
#ifndef UNDERSTUDY_INDEX_LINES_H
#define UNDERSTUDY_INDEX_LINES_H

#include "kernels/index/places.h"

typedef enum LineAction {
    LINE_READ, /* other = tensor */
    LINE_PUT,  /* tensor = other */
    LINE_ADD,  /* tensor += other: float64 */
    LINE_MULTIPLY,
    LINE_ADD_INTEGERS, /* uint64 */
    LINE_MULTIPLY_INTEGERS
} LineAction;

typedef struct PlaceLine {
    char *tensor, *other;
    const void *indices; /* neighbours, of int64 or int32 */
    bool narrow;         /* of int32 */
    bool far;            /* the places are not all in the first-level cache */
    int64_t tensor_step, other_step, count;
    int64_t ahead_index, ahead_other, ahead_tensor; /* bytes: where to ask for what is used soon */
    IndexedAxis axis;
    int64_t lines; /* whole ones that follow along the axis before, next_* bytes apart; 0 but at the begin of a line */
    int64_t next_tensor, next_other, next_index;
} PlaceLine;

/* Elements of `size` bytes. Ends before the first index that is not 0 … axis.size-1: how many positions are done. */
int64_t us_place_line(const PlaceLine *line, LineAction action, size_t size);

/* Asks for the other operand, of `size` bytes, of a line that comes soon. */
void us_place_line_ask(const PlaceLine *line, size_t size);

/* Whether a call's positions are such lines. */
bool us_places_have_lines(const Places *places, const Axes *outer);
/* The line, or the rest of it, that begins at a position. `data` and `index_data` as in PlacePiece. */
PlaceLine us_place_line_at(const Places *places, const Axes *outer, char *const *data, const void *index_data, int64_t begin);

/* After `done` positions of a line: the one that follows, where they were all, and one is known to follow. */
static inline bool us_place_line_next(PlaceLine *line, int64_t done)
{
    if (done != line->count || line->lines == 0) {
        return false;
    }
    line->tensor += line->next_tensor;
    line->other += line->next_other;
    line->indices = (const char *)line->indices + line->next_index;
    line->lines--;
    return true;
}

#endif
