/* Winograd's minimal filtering of 3 x 3 taps with steps of 1: a tile of results is a linear map of the products, place
 * by place, of a mapped patch of the input and the mapped filter. Tiles of 2 x 2 need 16 products instead of 36, tiles
 * of 4 x 4 need 36 instead of 144. Over all channels, the products of a place are one matrix product.
 *
 *   results = R ((F w F^T) * (P x P^T)) R^T
 *
 * The slopes of the filter are the transpose of that: F^T ((R^T dy R) * (P x P^T)) F. With unit roundoff u, the error
 * of a sum of n products of maps is below (n + 16) u times the same expression with the magnitudes of all factors. */
#include "kernels/conv/gather.h"
#include "kernels/matmul/matmul.h"
#include "kernels/scratch.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Lines that are mapped together; floats of the patches and products of a block, which stay in a core's second cache,
 * and of blocks that threads share; most floats of a mapped filter; tiles of a block; blocks there should be. */
enum { TAPS = 3, MOST_EDGE = 6, LANES = 16, LINES = 8, BLOCK_ELEMENTS = 512 * 1024, CHUNK_ELEMENTS = 4 * 1024 * 1024,
       FILTER_ELEMENTS = 32 * 1024 * 1024, LEAST = 80, MOST = 256, FEW = 4 };

typedef float Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* ---- the maps ---- */

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

typedef enum Mapping { OF_PATCHES, OF_FILTERS, TO_RESULTS, OF_SLOPES, TO_FILTER_SLOPES } Mapping;

KERNEL_CLONES static void map_squares(Mapping mapping, int tile, const float *from, int64_t from_step, float *to,
                                      int64_t to_step, int64_t count)
{
    switch (mapping) {
    case OF_PATCHES: map_by_tile(tile, &patch_2, &patch_4, false, from, from_step, to, to_step, count); break;
    case OF_FILTERS: map_by_tile(tile, &filter_2, &filter_4, false, from, from_step, to, to_step, count); break;
    case TO_RESULTS: map_by_tile(tile, &result_2, &result_4, false, from, from_step, to, to_step, count); break;
    case OF_SLOPES: map_by_tile(tile, &result_2, &result_4, true, from, from_step, to, to_step, count); break;
    case TO_FILTER_SLOPES: map_by_tile(tile, &filter_2, &filter_4, true, from, from_step, to, to_step, count); break;
    }
}

/* ---- mapped patches ---- */

static int64_t ceiling(int64_t size, int64_t of)
{
    return (size + of - 1) / of;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t bounded(int64_t value, int64_t lowest, int64_t highest)
{
    return value < lowest ? lowest : smaller(value, highest);
}

static int64_t whole_vectors(int64_t count)
{
    return ceiling(count, LANES) * LANES;
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
static int tile_for(const Gather *gather, DType result)
{
    enum { LEAST_TILES = 64 };
    const int64_t tiles = gather->images * gather->out_size[0] * ceiling(gather->out_size[1], 4) *
                          ceiling(gather->out_size[2], 4);
    const bool fits = tiles >= LEAST_TILES && filter_elements(gather, 4) <= FILTER_ELEMENTS;
    return fits && (result == DTYPE_FLOAT16 || result == DTYPE_BFLOAT16) ? 4 : 2;
}

/* Tiles of results as positions of a gather, whose taps are the elements of a square that begins at the tile. */
static Gather squares_of(const Gather *gather, int tile, int edge)
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

static Mapped mapped_of(const Gather *squares, Mapping mapping, int tile, int64_t begin, int64_t count)
{
    Mapped mapped = {.squares = squares, .mapping = mapping, .tile = tile, .squared = (int)gather_taps(squares),
                     .places = (tile + TAPS - 1) * (tile + TAPS - 1), .begin = begin, .count = count};
    mapped.lines = squares->channels_last ? count : squares->channels;
    mapped.lanes = squares->channels_last ? squares->channels : count;
    mapped.pitch = whole_vectors(mapped.lanes);
    return mapped;
}

static size_t mapped_bytes(const Mapped *mapped)
{
    return us_scratch_round((size_t)(mapped->places * mapped->lines * mapped->pitch) * sizeof(float));
}

static size_t squares_bytes(const Mapped *mapped)
{
    return us_scratch_round((size_t)(LINES * mapped->squared * mapped->lanes + LANES) * sizeof(float));
}

/* LINES lines from a multiple of it on. */
static void map_some_lines(const Mapped *mapped, int64_t first, atomic_bool *no_memory)
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
        map_squares(mapped->mapping, mapped->tile, squares + line * size, mapped->lanes,
                    mapped->values + (first + line) * mapped->pitch, mapped->lines * mapped->pitch, mapped->lanes);
    }
    us_scratch_give_back(squares);
}

/* ---- the mapped filter ---- */

/* [group][place][row][column]: the filter's axis with the greater stride makes the rows. */
typedef struct Filters {
    const Gather *gather;
    int tile, places;
    int row_axis, column_axis;
    int64_t rows, columns, pitch;
    float *values;
    atomic_bool *no_memory;
} Filters;

static size_t filters_bytes(const Filters *filters)
{
    return (size_t)(filters->gather->groups * filters->places * filters->rows * filters->pitch) * sizeof(float);
}

static Filters filters_of(const Gather *gather, int tile)
{
    const int64_t *strides = gather->filter.strides, *sizes = gather->filter.shape;
    const int rows = llabs(strides[1]) >= llabs(strides[2]) ? 1 : 2, columns = 3 - rows;
    return (Filters){.gather = gather, .tile = tile, .places = (tile + TAPS - 1) * (tile + TAPS - 1),
                     .row_axis = rows, .column_axis = columns, .rows = sizes[rows], .columns = sizes[columns],
                     .pitch = whole_vectors(sizes[columns])};
}

static void filters_row(void *context, int64_t piece)
{
    Filters *filters = context;
    const View *filter = &filters->gather->filter;
    const int64_t group = piece / filters->rows, row = piece % filters->rows;
    const int64_t column_step = filter->strides[filters->column_axis];
    const float *from = (const float *)filter->data + group * filter->strides[0] +
                        row * filter->strides[filters->row_axis];
    float *memory = us_scratch_take((size_t)(TAPS * TAPS * filters->pitch) * sizeof *memory);
    if (memory == NULL) {
        atomic_store(filters->no_memory, true);
        return;
    }
    for (int tap = 0; tap < TAPS * TAPS; tap++) {
        const bool down = filters->gather->taps[1].offset_step < 0, across = filters->gather->taps[2].offset_step < 0;
        const int t1 = down ? TAPS - 1 - tap / TAPS : tap / TAPS, t2 = across ? TAPS - 1 - tap % TAPS : tap % TAPS;
        const float *tap_from = from + t1 * filter->strides[4] + t2 * filter->strides[5];
        float *to = memory + tap * filters->pitch;
        for (int64_t i = 0; i < filters->columns; i++) {
            to[i] = tap_from[i * column_step];
        }
        memset(to + filters->columns, 0, (size_t)(filters->pitch - filters->columns) * sizeof *to);
    }
    float *to = filters->values + (group * filters->places * filters->rows + row) * filters->pitch;
    map_squares(OF_FILTERS, filters->tile, memory, filters->pitch, to, filters->rows * filters->pitch,
                filters->columns);
    us_scratch_give_back(memory);
}

/* results x channels */
static Matrix filters_matrix(const Filters *filters, int64_t group, int64_t place)
{
    const float *data = filters->values + (group * filters->places + place) * filters->rows * filters->pitch;
    return filters->row_axis == 1 ? matrix_of_rows(data, DTYPE_FLOAT32, filters->pitch)
                                  : matrix_transposed(data, DTYPE_FLOAT32, filters->pitch);
}

/* ---- sums of a gather -------------------------------------------------------------------------------------------- */

typedef struct Run {
    const Gather *gather;
    const Finish *finish;
    Gather squares;
    Filters filters;
    int tile;
    int64_t rows, rows_per_block, blocks; /* rows of tiles, of all images */
    atomic_bool no_memory;
} Run;

/* Some rows of tiles. */
typedef struct Block {
    Run *run;
    Mapped patches;
    int64_t first_row, rows;
    int64_t lines, lanes, pitch;
    float *products; /* [place][line][lane] like the patches, lines or lanes being results */
} Block;

static void patches_piece(void *context, int64_t piece)
{
    const Block *block = context;
    map_some_lines(&block->patches, piece * LINES, &block->run->no_memory);
}

static void place_piece(void *context, int64_t place)
{
    const Block *block = context;
    const Mapped *patches = &block->patches;
    const Gather *gather = block->run->gather;
    const Matrix filter = filters_matrix(&block->run->filters, patches->group, place);
    const Matrix values = matrix_of_rows(patches->values + place * patches->lines * patches->pitch, DTYPE_FLOAT32,
                                         patches->pitch);
    const float *products = block->products + place * block->lines * block->pitch;
    Matmul product = {.m = gather->results, .n = patches->count, .k = gather->channels, .a = filter, .b = values,
                      .c = matrix_of_rows(products, DTYPE_FLOAT32, block->pitch), .compute = DTYPE_FLOAT32,
                      .alpha = {1}, .undivided = true};
    if (gather->channels_last) {
        product.m = patches->count, product.n = gather->results;
        product.a = values;
        product.b = filter;
        product.b.row = filter.column, product.b.column = filter.row;
    }
    if (us_matmul(&product) != KERNEL_OK) {
        atomic_store(&block->run->no_memory, true);
    }
}

/* The result positions that belong to the first `rows` rows of tiles. */
static int64_t positions_before(const Run *run, int64_t rows)
{
    const int64_t *size = run->gather->out_size, per_plane = run->squares.out_size[1];
    return (rows / per_plane * size[1] + rows % per_plane * run->tile) * size[2];
}

/* Tiles of one result, [row of the tile][column][tile], as rows of an image. */
KERNEL_CLONES static void join_tiles(int tile, const float *tiles, int64_t pitch, int64_t rows, int64_t per_row,
                                     int64_t width, float *to)
{
    for (int64_t i = 0; i < rows; i++, to += width) {
        for (int j = 0; j < tile; j++) {
            const float *from = tiles + (i * tile + j) * pitch;
            const int64_t count = (width - j + tile - 1) / tile;
            for (int64_t k = 0; k < count && k < per_row; k++) {
                to[k * tile + j] = from[k];
            }
        }
    }
}

static void finish_line(const Block *block, int64_t result, const float *tiles, float *line)
{
    const Run *run = block->run;
    const Gather *gather = run->gather;
    const int64_t per_row = run->squares.out_size[2], per_plane = run->squares.out_size[1];
    const int64_t begin = positions_before(run, block->first_row);
    const int64_t end = positions_before(run, block->first_row + block->rows);
    float *to = line;
    for (int64_t row = 0; row < block->rows; row++) {
        const int64_t left = gather->out_size[1] - (block->first_row + row) % per_plane * run->tile;
        const int64_t lines = smaller(left, run->tile);
        join_tiles(run->tile, tiles + row * per_row, block->pitch, lines, per_row, gather->out_size[2], to);
        to += lines * gather->out_size[2];
    }
    us_finish_positions(run->finish, DTYPE_FLOAT32, block->patches.group * gather->results + result, begin,
                        end - begin, line);
}

/* With channels last: the results of one tile, [row of the tile][column][result]. */
static void finish_tile(const Block *block, int64_t tile, float *results)
{
    const Run *run = block->run;
    const Gather *gather = run->gather;
    const int64_t per_row = run->squares.out_size[2], column = tile % per_row * run->tile;
    const int64_t row = tile / per_row % run->squares.out_size[1] * run->tile;
    const int64_t begin = positions_before(run, tile / per_row) + column;
    for (int64_t i = 0; i < run->tile && row + i < gather->out_size[1]; i++) {
        for (int64_t j = 0; j < run->tile && column + j < gather->out_size[2]; j++) {
            us_finish_channels(run->finish, DTYPE_FLOAT32, begin + i * gather->out_size[2] + j,
                               block->patches.group * gather->results, gather->results,
                               results + (i * run->tile + j) * block->pitch);
        }
    }
}

static void results_piece(void *context, int64_t piece)
{
    const Block *block = context;
    Run *run = block->run;
    const int64_t last = smaller((piece + 1) * LINES, block->lines);
    const size_t tile_bytes = us_scratch_round((size_t)(run->tile * run->tile * block->pitch) * sizeof(float));
    const size_t line_bytes = (size_t)(block->rows * run->tile * run->gather->out_size[2]) * sizeof(float);
    char *memory = us_scratch_take(tile_bytes + line_bytes);
    if (memory == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    float *tiles = (float *)memory, *line = (float *)(memory + tile_bytes);
    for (int64_t i = piece * LINES; i < last; i++) {
        map_squares(TO_RESULTS, run->tile, block->products + i * block->pitch, block->lines * block->pitch, tiles,
                    block->pitch, block->lanes);
        if (run->gather->channels_last) {
            finish_tile(block, block->patches.begin + i, tiles);
        } else {
            finish_line(block, i, tiles, line);
        }
    }
    us_scratch_give_back(memory);
}

static void block_piece(void *context, int64_t piece)
{
    Run *run = context;
    const Gather *gather = run->gather;
    const int64_t first_row = piece % run->blocks * run->rows_per_block, per_row = run->squares.out_size[2];
    const int64_t rows = smaller(run->rows_per_block, run->rows - first_row);
    Block block = {.run = run, .first_row = first_row, .rows = rows,
                   .patches = mapped_of(&run->squares, OF_PATCHES, run->tile, first_row * per_row, rows * per_row)};
    block.patches.group = piece / run->blocks;
    block.lines = gather->channels_last ? block.patches.count : gather->results;
    block.lanes = gather->channels_last ? gather->results : block.patches.count;
    block.pitch = whole_vectors(block.lanes);
    const size_t patch_bytes = mapped_bytes(&block.patches);
    char *memory = us_scratch_take(patch_bytes +
                                   (size_t)(block.patches.places * block.lines * block.pitch) * sizeof(float));
    if (memory == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    block.patches.values = (float *)memory;
    block.products = (float *)(memory + patch_bytes);
    us_parallel(ceiling(block.patches.lines, LINES), patches_piece, &block);
    us_parallel(block.patches.places, place_piece, &block);
    us_parallel(ceiling(block.lines, LINES), results_piece, &block);
    us_scratch_give_back(memory);
}

/* Blocks that fit into the second cache are divided among the threads. Where the filter is too large for that, it
 * should be read for many positions: threads share large blocks. True: blocks are shared. */
static bool cut_rows(Run *run)
{
    const Gather *gather = run->gather;
    const int64_t per_row = run->squares.out_size[2];
    const int64_t each = run->filters.places * (gather->channels + gather->results);
    const bool shares = BLOCK_ELEMENTS / each < LEAST;
    const int64_t positions = shares ? bounded(CHUNK_ELEMENTS / each, LEAST, INT64_MAX)
                                     : bounded(BLOCK_ELEMENTS / each, LEAST, MOST);
    int64_t rows = bounded(positions / per_row, 1, run->rows);
    rows = shares ? rows : smaller(rows, ceiling(run->rows * gather->groups, FEW));
    run->rows_per_block = ceiling(run->rows, ceiling(run->rows, rows));
    run->blocks = ceiling(run->rows, run->rows_per_block);
    return shares;
}

KernelStatus us_gather_by_winograd(const Gather *gather, const Finish *finish)
{
    const int tile = tile_for(gather, finish->out.dtype);
    Run run = {.gather = gather, .finish = finish, .tile = tile, .filters = filters_of(gather, tile),
               .squares = squares_of(gather, tile, tile + TAPS - 1)};
    run.rows = gather->images * run.squares.out_size[0] * run.squares.out_size[1];
    const bool shares = cut_rows(&run);
    atomic_init(&run.no_memory, false);
    run.filters.no_memory = &run.no_memory;
    run.filters.values = us_scratch_take(filters_bytes(&run.filters));
    if (run.filters.values == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_parallel(gather->groups * run.filters.rows, filters_row, &run.filters);
    if (!shares) {
        us_parallel(gather->groups * run.blocks, block_piece, &run);
    }
    for (int64_t piece = 0; shares && piece < gather->groups * run.blocks; piece++) {
        block_piece(&run, piece);
    }
    us_scratch_give_back(run.filters.values);
    return atomic_load(&run.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- slopes ------------------------------------------------------------------------------------------------------ */

typedef struct Slopes {
    const Gather *gather;
    Mapped patches, slopes;
    float *products; /* [place][result][channel] */
    int64_t pitch;   /* of their rows */
    void *sums;
    bool adds;
    atomic_bool no_memory;
} Slopes;

static void map_piece(void *context, int64_t piece)
{
    Slopes *slopes = context;
    const int64_t pieces = ceiling(slopes->patches.lines, LINES);
    const bool of_x = piece < pieces;
    map_some_lines(of_x ? &slopes->patches : &slopes->slopes, (of_x ? piece : piece - pieces) * LINES,
                   &slopes->no_memory);
}

static void product_piece(void *context, int64_t place)
{
    Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const Mapped *x = &slopes->patches, *dy = &slopes->slopes;
    const float *a = dy->values + place * dy->lines * dy->pitch, *b = x->values + place * x->lines * x->pitch;
    float *c = slopes->products + place * gather->results * slopes->pitch;
    const bool last = gather->channels_last;
    Matmul product = {.m = gather->results, .n = gather->channels, .k = x->count,
                      .a = last ? matrix_transposed(a, DTYPE_FLOAT32, dy->pitch)
                                : matrix_of_rows(a, DTYPE_FLOAT32, dy->pitch),
                      .b = last ? matrix_of_rows(b, DTYPE_FLOAT32, x->pitch)
                                : matrix_transposed(b, DTYPE_FLOAT32, x->pitch),
                      .c = matrix_of_rows(c, DTYPE_FLOAT32, slopes->pitch), .compute = DTYPE_FLOAT32, .alpha = {1},
                      .beta = {slopes->adds ? 1 : 0}, .undivided = true};
    product.addend = product.c;
    if (us_matmul(&product) != KERNEL_OK) {
        atomic_store(&slopes->no_memory, true);
    }
}

/* The slopes of one result of a group, in the order of a packed filter. */
static void unmap_piece(void *context, int64_t result)
{
    Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const int64_t channels = gather->channels, pitch = slopes->pitch;
    float *memory = us_scratch_take((size_t)(TAPS * TAPS * pitch) * sizeof *memory);
    if (memory == NULL) {
        atomic_store(&slopes->no_memory, true);
        return;
    }
    map_squares(TO_FILTER_SLOPES, slopes->patches.tile, slopes->products + result * pitch, gather->results * pitch,
                memory, pitch, channels);
    float *to = (float *)slopes->sums + (slopes->patches.group * gather->results + result) * channels * TAPS * TAPS;
    for (int64_t tap = 0; tap < TAPS * TAPS; tap++) {
        for (int64_t c = 0; c < channels; c++) {
            to[gather->channels_last ? tap * channels + c : c * TAPS * TAPS + tap] = memory[tap * pitch + c];
        }
    }
    us_scratch_give_back(memory);
}

static void add_chunk(Slopes *slopes, int64_t group, int64_t begin)
{
    slopes->patches.group = slopes->slopes.group = group;
    slopes->patches.begin = slopes->slopes.begin = begin;
    slopes->adds = begin > 0;
    us_parallel(ceiling(slopes->patches.lines, LINES) + ceiling(slopes->slopes.lines, LINES), map_piece, slopes);
    us_parallel(slopes->patches.places, product_piece, slopes);
}

KernelStatus us_gather_slopes_by_winograd(const Gather *gather, const void *dy, DType target, void *sums)
{
    const int tile = tile_for(gather, target);
    const Gather squares = squares_of(gather, tile, tile + TAPS - 1);
    Gather tiles = squares_of(gather, tile, tile);
    tiles.in = dy;
    tiles.channels = gather->results;
    tiles.taps[0] = (TapAxis){1, 0, 0};
    tiles.step[0] = 1;
    for (int axis = 0; axis < CONV_AXES; axis++) {
        tiles.in_size[axis] = gather->out_size[axis];
        tiles.taps[axis].offset = 0;
    }
    const int64_t places = (tile + TAPS - 1) * (tile + TAPS - 1), all = gather_positions(&squares);
    const int64_t fitting = CHUNK_ELEMENTS / (places * (gather->channels + gather->results)) / LANES * LANES;
    const int64_t chunk = smaller(all, bounded(fitting, LEAST, INT64_MAX));
    Slopes slopes = {.gather = gather, .sums = sums, .pitch = whole_vectors(gather->channels),
                     .patches = mapped_of(&squares, OF_PATCHES, tile, 0, chunk),
                     .slopes = mapped_of(&tiles, OF_SLOPES, tile, 0, chunk)};
    atomic_init(&slopes.no_memory, false);
    const size_t product_bytes = (size_t)(places * gather->results * slopes.pitch) * sizeof(float);
    char *memory = us_scratch_take(mapped_bytes(&slopes.patches) + mapped_bytes(&slopes.slopes) + product_bytes);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    slopes.patches.values = (float *)memory;
    slopes.slopes.values = (float *)(memory + mapped_bytes(&slopes.patches));
    slopes.products = (float *)(memory + mapped_bytes(&slopes.patches) + mapped_bytes(&slopes.slopes));
    for (int64_t group = 0; group < gather->groups; group++) {
        for (int64_t begin = 0; begin < all; begin += chunk) {
            const int64_t count = smaller(chunk, all - begin);
            float *patches = slopes.patches.values, *mapped_slopes = slopes.slopes.values;
            slopes.patches = mapped_of(&squares, OF_PATCHES, tile, begin, count);
            slopes.slopes = mapped_of(&tiles, OF_SLOPES, tile, begin, count);
            slopes.patches.values = patches;
            slopes.slopes.values = mapped_slopes;
            add_chunk(&slopes, group, begin);
        }
        us_parallel(gather->results, unmap_piece, &slopes);
    }
    us_scratch_give_back(memory);
    return atomic_load(&slopes.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
