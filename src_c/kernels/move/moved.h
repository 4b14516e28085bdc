/* What a copy between views moves: its axes, and a place on them. */
#ifndef UNDERSTUDY_MOVED_H
#define UNDERSTUDY_MOVED_H

#include "kernels/sizes.h"
#include "tensor/view.h"

enum { PIECE_BYTES = 128 * 1024 };

typedef struct Axis {
    int64_t size, to, from; /* distances in bytes */
} Axis;

/* The axes, outermost of `to` first; at least one. Elements may be several of the views', which both have as neighbours. */
typedef struct Move {
    char *to;
    const char *from;
    int64_t element; /* bytes */
    int rank;
    Axis axes[VIEW_RANK_LIMIT];
    int64_t count, piece; /* elements */
    const int64_t *table; /* NULL, or where in `from` the elements of the last axis are */
    /* Where the elements lie across: the last axis, which is the nearest of `to`, and the nearest of `from`, in tiles. Where
     * the last axis is short, tiles take several places of the axis before it, packed in `to`: groups. */
    Axis along_to, along_from, along_groups;
    int64_t side_to, side_from, side_groups; /* elements, and groups, of a tile */
    int64_t tiles_to, tiles_from, tiles_groups, tiles, tiles_of_piece;
    bool past;   /* tiles go past the caches */
    bool direct; /* tiles are not held on their way */
} Move;

/* Where a piece has come to on all axes but the last. */
typedef struct Place {
    int64_t index[VIEW_RANK_LIMIT], to, from;
} Place;

static inline Place place_of(const Move *move, int64_t run)
{
    Place place = {.to = 0};
    for (int d = move->rank - 2; d >= 0; d--) {
        place.index[d] = run % move->axes[d].size;
        run /= move->axes[d].size;
        place.to += place.index[d] * move->axes[d].to;
        place.from += place.index[d] * move->axes[d].from;
    }
    return place;
}

/* `by` steps along axis d, at most to its end. */
static inline void advance(const Move *move, Place *place, int d, int64_t by)
{
    for (; d >= 0; d--, by = 1) {
        const Axis *axis = &move->axes[d];
        place->to += by * axis->to;
        place->from += by * axis->from;
        place->index[d] += by;
        if (place->index[d] < axis->size) {
            break;
        }
        place->index[d] = 0;
        place->to -= axis->size * axis->to;
        place->from -= axis->size * axis->from;
    }
}

#endif
