/* The maps of Winograd's method, and what is mapped. */
#include "kernels/conv/winograd.h"

#include "kernels/scratch.h"

#include <stdlib.h>

/* Most floats of a mapped filter. */
enum { MOST_EDGE = 6, FILTER_ELEMENTS = 32 * 1024 * 1024 };

typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

typedef struct Map {
    int rows, columns;
    float factors[MOST_EDGE][MOST_EDGE];
} Map;

static const Map patch_2 = {4, 4, {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
static const Map filter_2 = {4, 3, {{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}}};
static const Map result_2 = {2, 4, {{1, 1, 1, 0}, {0, 1, -1, -1}}};
static const Map patch_4 = {6, 6, {{4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                   {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}}};
static const Map filter_4 = {6, 3, {{1.f / 4, 0, 0}, {-1.f / 6, -1.f / 6, -1.f / 6}, {-1.f / 6, 1.f / 6, -1.f / 6},
                                    {1.f / 24, 1.f / 12, 1.f / 6}, {1.f / 24, -1.f / 12, 1.f / 6}, {0, 0, 1}}};
static const Map result_4 = {4, 6, {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0},
                                    {0, 1, -1, 8, -8, 1}}};

/* Sums of the terms whose factors are not 0, in order. */
US_ALWAYS_INLINE void map_line(const Map *map, bool transposed, const Vector *in, int in_step, Vector *out,
                               int out_step)
{
    const int rows = transposed ? map->columns : map->rows, columns = transposed ? map->rows : map->columns;
#pragma GCC unroll 6
    for (int row = 0; row < rows; row++) {
        Vector sum = {0};
        bool empty = true;
#pragma GCC unroll 6
        for (int column = 0; column < columns; column++) {
            const float factor = transposed ? map->factors[column][row] : map->factors[row][column];
            if (factor != 0) {
                sum = empty ? factor * in[column * in_step] : sum + factor * in[column * in_step];
                empty = false;
            }
        }
        out[row * out_step] = sum;
    }
}

/* to = M from M^T in every lane; element (i, j) of a lane is i * columns + j steps from the first one. Vectors are
 * whole: up to LANES - 1 lanes behind `count` are read and written. */
US_ALWAYS_INLINE void map_lanes(const Map *map, bool transposed, const float *from, int64_t from_step, float *to,
                                int64_t to_step, int64_t count)
{
    const int rows = transposed ? map->columns : map->rows, columns = transposed ? map->rows : map->columns;
    for (int64_t lane = 0; lane < count; lane += LANES) {
        Vector in[MOST_EDGE * MOST_EDGE], half[MOST_EDGE * MOST_EDGE], out[MOST_EDGE * MOST_EDGE];
#pragma GCC unroll 36
        for (int i = 0; i < columns * columns; i++) {
            in[i] = *(const Vector *)(from + i * from_step + lane);
        }
#pragma GCC unroll 6
        for (int column = 0; column < columns; column++) {
            map_line(map, transposed, in + column, columns, half + column, columns);
        }
#pragma GCC unroll 6
        for (int row = 0; row < rows; row++) {
            map_line(map, transposed, half + row * columns, 1, out + row * rows, 1);
        }
#pragma GCC unroll 36
        for (int i = 0; i < rows * rows; i++) {
            *(Vector *)(to + i * to_step + lane) = out[i];
        }
    }
}

US_ALWAYS_INLINE void map_by_tile(int tile, const Map *of_2, const Map *of_4, bool transposed, const float *from,
                                  int64_t from_step, float *to, int64_t to_step, int64_t count)
{
    if (tile == 2) {
        map_lanes(of_2, transposed, from, from_step, to, to_step, count);
    } else {
        map_lanes(of_4, transposed, from, from_step, to, to_step, count);
    }
}

void us_winograd_map(Mapping mapping, int tile, const float *from, int64_t from_step, float *to, int64_t to_step, int64_t count)
{
    switch (mapping) {
    case OF_PATCHES: map_by_tile(tile, &patch_2, &patch_4, false, from, from_step, to, to_step, count); break;
    case OF_FILTERS: map_by_tile(tile, &filter_2, &filter_4, false, from, from_step, to, to_step, count); break;
    case TO_RESULTS: map_by_tile(tile, &result_2, &result_4, false, from, from_step, to, to_step, count); break;
    case OF_SLOPES: map_by_tile(tile, &result_2, &result_4, true, from, from_step, to, to_step, count); break;
    case TO_FILTER_SLOPES: map_by_tile(tile, &filter_2, &filter_4, true, from, from_step, to, to_step, count); break;
    }
}

static int64_t filter_elements(const Gather *gather, int tile)
{
    return gather->groups * (tile + TAPS - 1) * (tile + TAPS - 1) * gather->results * gather->channels;
}

bool us_winograd_takes(const Gather *gather)
{
    const int64_t row = ceiling(gather->out_size[2], 2) * 16 * (gather->channels + gather->results);
    bool fits = gather->compute == DTYPE_FLOAT32 && gather->taps[0].count == 1 && row <= CHUNK_ELEMENTS &&
                filter_elements(gather, 2) <= FILTER_ELEMENTS;
    for (int axis = 1; axis < CONV_AXES; axis++) {
        const TapAxis *taps = &gather->taps[axis];
        fits = fits && taps->count == TAPS && llabs(taps->offset_step) == 1 && gather->step[axis] == 1;
    }
    return fits;
}

/* Larger tiles lose more, what rounding to 16 bits hides, and need larger mapped filters, which must be worth it. */
int us_winograd_tile(const Gather *gather, DType result)
{
    enum { LEAST_TILES = 64 };
    const int64_t tiles = gather->images * gather->out_size[0] * ceiling(gather->out_size[1], 4) *
                          ceiling(gather->out_size[2], 4);
    const bool fits = tiles >= LEAST_TILES && filter_elements(gather, 4) <= FILTER_ELEMENTS;
    return fits && (result == DTYPE_FLOAT16 || result == DTYPE_BFLOAT16) ? 4 : 2;
}

Gather us_winograd_squares(const Gather *gather, int tile, int edge)
{
    Gather squares = *gather;
    for (int axis = 1; axis < CONV_AXES; axis++) {
        const TapAxis *taps = &gather->taps[axis];
        const int64_t last = taps->offset + (TAPS - 1) * taps->offset_step;
        squares.taps[axis] = (TapAxis){edge, smaller(taps->offset, last), 1};
        squares.step[axis] = tile;
        squares.out_size[axis] = ceiling(gather->out_size[axis], tile);
    }
    return squares;
}

Mapped us_winograd_mapped(const Gather *squares, Mapping mapping, int tile, int64_t begin, int64_t count)
{
    Mapped mapped = {.squares = squares, .mapping = mapping, .tile = tile, .squared = (int)gather_taps(squares),
                     .places = (tile + TAPS - 1) * (tile + TAPS - 1), .begin = begin, .count = count};
    mapped.lines = squares->channels_last ? count : squares->channels;
    mapped.lanes = squares->channels_last ? squares->channels : count;
    mapped.pitch = whole_vectors(mapped.lanes);
    return mapped;
}

size_t us_winograd_mapped_bytes(const Mapped *mapped)
{
    return us_scratch_bytes(us_scratch_count(mapped->places * mapped->lines, mapped->pitch), sizeof(float));
}

static size_t squares_bytes(const Mapped *mapped)
{
    return us_scratch_bytes(mapped->lanes, (size_t)(LINES * mapped->squared) * sizeof(float)) + LANES * sizeof(float);
}

void us_winograd_map_lines(const Mapped *mapped, int64_t first, atomic_bool *no_memory)
{
    float *squares = us_scratch_take(squares_bytes(mapped));
    if (squares == NULL) {
        atomic_store(no_memory, true);
        return;
    }
    const int64_t lines = smaller(LINES, mapped->lines - first), size = mapped->squared * mapped->lanes;
    const bool last = mapped->squares->channels_last;
    us_gather_columns(mapped->squares, mapped->group, last ? 0 : first, last ? mapped->lanes : lines,
                      mapped->begin + (last ? first : 0), last ? lines : mapped->lanes, squares);
    for (int64_t line = 0; line < lines; line++) {
        us_winograd_map(mapped->mapping, mapped->tile, squares + line * size, mapped->lanes,
                    mapped->values + (first + line) * mapped->pitch, mapped->lines * mapped->pitch, mapped->lanes);
    }
    us_scratch_give_back(squares);
}
