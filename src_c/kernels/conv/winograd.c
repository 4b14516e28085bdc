#include "kernels/conv/winograd.h"

#include "kernels/matmul/matmul.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Floats of the patches and products of a block, which stay in a core's second cache; most tiles of a block; blocks
 * there should be. */
enum { BLOCK_ELEMENTS = 512 * 1024, MOST = 256, FEW = 4 };

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
    const int64_t rows = filters->gather->groups * filters->places * filters->rows;
    return us_scratch_bytes(us_scratch_count(rows, filters->pitch), sizeof(float));
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
    float *memory = us_scratch_array(filters->pitch, TAPS * TAPS * sizeof *memory);
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
    us_winograd_map(OF_FILTERS, filters->tile, memory, filters->pitch, to, filters->rows * filters->pitch,
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
    us_winograd_map_lines(&block->patches, piece * LINES, &block->run->no_memory);
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
static void join_tiles(int tile, const float *tiles, int64_t pitch, int64_t rows, int64_t per_row, int64_t width, float *to)
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
    const size_t tile_bytes = us_scratch_bytes(us_scratch_count(run->tile * run->tile, block->pitch), sizeof(float));
    const int64_t width = run->gather->out_size[2];
    const size_t line_bytes = us_scratch_bytes(us_scratch_count(block->rows * run->tile, width), sizeof(float));
    char *memory = us_scratch_take(tile_bytes + line_bytes);
    if (memory == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    float *tiles = (float *)memory, *line = (float *)(memory + tile_bytes);
    for (int64_t i = piece * LINES; i < last; i++) {
        us_winograd_map(TO_RESULTS, run->tile, block->products + i * block->pitch, block->lines * block->pitch, tiles,
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
                   .patches = us_winograd_mapped(&run->squares, OF_PATCHES, run->tile, first_row * per_row,
                                                 rows * per_row)};
    block.patches.group = piece / run->blocks;
    block.lines = gather->channels_last ? block.patches.count : gather->results;
    block.lanes = gather->channels_last ? gather->results : block.patches.count;
    block.pitch = whole_vectors(block.lanes);
    const size_t patch_bytes = us_winograd_mapped_bytes(&block.patches);
    const int64_t products = us_scratch_count(block.patches.places * block.lines, block.pitch);
    char *memory = us_scratch_take(patch_bytes + us_scratch_bytes(products, sizeof(float)));
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
    const int tile = us_winograd_tile(gather, finish->out.dtype);
    Run run = {.gather = gather, .finish = finish, .tile = tile, .filters = filters_of(gather, tile),
               .squares = us_winograd_squares(gather, tile, tile + TAPS - 1)};
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
