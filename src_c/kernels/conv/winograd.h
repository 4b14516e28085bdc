/* Winograd's minimal filtering of 3 x 3 taps with steps of 1: a tile of results is a linear map of the products, place
 * by place, of a mapped patch of the input and the mapped filter. Tiles of 2 x 2 need 16 products instead of 36, tiles
 * of 4 x 4 need 36 instead of 144. Over all channels, the products of a place are one matrix product.
 *
 *   results = R ((F w F^T) * (P x P^T)) R^T
 *
 * The slopes of the filter are the transpose of that: F^T ((R^T dy R) * (P x P^T)) F. With unit roundoff u, the error
 * of a sum of n products of maps is below (n + 16) u times the same expression with the magnitudes of all factors. */
#ifndef UNDERSTUDY_WINOGRAD_H
#define UNDERSTUDY_WINOGRAD_H

#include "kernels/conv/gather.h"
#include "kernels/sizes.h"

#include <stdatomic.h>

/* Taps of a side of the filter; lanes of a vector; lines that are mapped together; floats of blocks that threads share;
 * least tiles of a block. */
enum { TAPS = 3, LANES = 16, LINES = 8, CHUNK_ELEMENTS = 4 * 1024 * 1024, LEAST = 80 };

static inline int64_t whole_vectors(int64_t count)
{
    return ceiling(count, LANES) * LANES;
}

/* The linear maps of squares, and their transposes for slopes. */
typedef enum Mapping { OF_PATCHES, OF_FILTERS, TO_RESULTS, OF_SLOPES, TO_FILTER_SLOPES } Mapping;

/* Maps squares in every lane; element (i, j) of a lane is i * side + j steps from the first one. Vectors are whole: up
 * to LANES - 1 lanes behind `count` are read and written. */
void us_winograd_map(Mapping mapping, int tile, const float *from, int64_t from_step, float *to, int64_t to_step,
                     int64_t count);

/* The side of tiles of results that fits a gather and the type of what it makes: 2 or 4. */
int us_winograd_tile(const Gather *gather, DType result);

/* Tiles of results as positions of a gather, whose taps are the elements of a square that begins at the tile. */
Gather us_winograd_squares(const Gather *gather, int tile, int edge);

/* Squares of some tiles, mapped: [place][line][lane]. Lines are channels and lanes tiles, or, with channels last, the
 * other way round. */
typedef struct Mapped {
    const Gather *squares;
    Mapping mapping;
    int tile, squared, places; /* elements of a square; places of the mapped one */
    int64_t group, begin, count; /* tiles */
    int64_t lines, lanes, pitch;
    float *values;
} Mapped;

Mapped us_winograd_mapped(const Gather *squares, Mapping mapping, int tile, int64_t begin, int64_t count);
size_t us_winograd_mapped_bytes(const Mapped *mapped);

/* LINES lines from a multiple of it on. */
void us_winograd_map_lines(const Mapped *mapped, int64_t first, atomic_bool *no_memory);

#endif
