/* Where positions lie: tiles of offsets into the tensor and the other operand (indexing.h). */
#ifndef UNDERSTUDY_PLACES_H
#define UNDERSTUDY_PLACES_H

#include "kernels/index/indexing.h"
#include "kernels/outside.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"

enum { PLACE_TILE = 1024, PLACE_TENSOR = 0, PLACE_OTHER = 1, PLACE_INDEX = 2 };
/* Positions on the last axis from which on they are taken line by line: of places in the first-level cache, and of others,
 * which are asked for within a line only. */
enum { LEAST_LINE = 16, LEAST_FAR_LINE = 64 };

/* Positions in two parts: those that indices vary over, and slices that follow them, along which no index varies and the
 * tensor steps. */
typedef struct PlaceAxes {
    Axes outer; /* operands: tensor, other, indices */
    Axes inner; /* operands: tensor, other */
    int64_t outer_count, inner_count;
} PlaceAxes;
PlaceAxes us_place_axes(const Places *places);

/* The positions are cut along one axis. Positions that differ along an axis on which the tensor steps name different
 * elements, so pieces of such an axis may be written at once: `ordered` cuts only those; others are one piece. `positions`: about
 * how many a piece should have. */
typedef struct PlaceCut {
    bool inner;
    int32_t axis; /* -1: none */
    int64_t pieces, size;
} PlaceCut;
PlaceCut us_place_cut(const PlaceAxes *axes, bool ordered, int64_t positions);

/* The axes of one piece, and where its first position is. */
typedef struct PlacePiece {
    PlaceAxes axes;
    char *data[2]; /* PLACE_TENSOR, PLACE_OTHER */
    const void *index_data[INDEX_LIMIT];
} PlacePiece;
PlacePiece us_place_piece(const Places *places, const PlaceAxes *axes, const PlaceCut *cut, int64_t piece);

/* Copies `before`, if there is one: true: each piece is to copy its part of it, which it then has at hand, else all is
 * copied now. */
bool us_place_copies_parts(const Places *places, const PlaceAxes *axes, const PlaceCut *cut);
void us_place_copy_part(const Places *places, const PlacePiece *part, const PlaceCut *cut);
/* The part of `before`, and how many elements it has. */
const char *us_place_part(const Places *places, const PlacePiece *part, const PlaceCut *cut, int64_t *count);

/* Elements from the tensor's and the other's data to `count` (up to PLACE_TILE) outer positions, from position `begin`;
 * `index_data` are the data of the index views; `other` may be NULL. False: an index is outside; then *outside knows it. */
bool us_place_tile(const Places *places, const Axes *outer, const void *const *index_data, int64_t begin, int64_t count,
                   int64_t *tensor, int64_t *other, int64_t piece, OutsideIndex *outside);

/* Elements of `size` bytes, a power of two up to 16, that are `offsets` away from `from`, to neighbours: one by one,
 * as the instruction for it was measured to be slower (AVX-512, Ice Lake, in a virtual machine). */
void us_place_gather(void *to, const void *from, const int64_t *offsets, int64_t count, size_t size);

#endif
