/* The sums of a gather of 16-bit numbers without columns: a tile of 16 neighbouring cells (kernels/conv/grid.h) and 32
 * channels is an operand as it lies, and that of the next tap begins some cells further. */
#include "kernels/conv/grid.h"
#include "kernels/scratch.h"
#include "tensor/parallel.h"

#include <stdatomic.h>

/* Tiles of the depth whose operands stay in the first cache; results that are summed and stored together. */
enum { SLAB = 18, WIDE = 128, FEW = 4 };

/* ---- the filter -------------------------------------------------------------------------------------------------- */

/* Strips of results, whose tiles are in the order [tile of channels][tap]. They are packed from a copy in which results or
 * channels lie side by side: a block of the others at a time. */
typedef struct Filter {
    const Gather *gather;
    int64_t taps, strips, deep; /* strips of a group; tiles of channels */
    int64_t outer, inner;       /* the filter's axes of results and channels, the one with the lesser steps inside */
    int64_t blocks;             /* of the outer axis, in a group */
    int parts;
    uint16_t *tiles; /* [group][strip] */
    Bf16Range *ranges;
    atomic_bool no_memory;
} Filter;

static int64_t strip_elements(const Filter *filter)
{
    return filter->deep * filter->taps * filter->parts * BF16_TILE;
}

/* [tap][inner] */
static void copy_filter(const Filter *filter, const uint16_t *from, uint16_t *to)
{
    const Gather *gather = filter->gather;
    const View *view = &gather->filter;
    const int64_t inner = view->shape[filter->inner], step = view->strides[filter->inner];
    for (int64_t tap = 0; tap < filter->taps; tap++, to += inner) {
        const int64_t t2 = tap % gather->taps[2].count, rest = tap / gather->taps[2].count;
        const int64_t t1 = rest % gather->taps[1].count, t0 = rest / gather->taps[1].count;
        const uint16_t *start = from + t0 * view->strides[3] + t1 * view->strides[4] + t2 * view->strides[5];
#pragma GCC unroll 8
        for (int64_t i = 0; i < inner; i++) {
            to[i] = start[i * step];
        }
    }
}

static Bf16Range pack_copy(const Filter *filter, int64_t group, int64_t first, int64_t count, const uint16_t *copy)
{
    const Gather *gather = filter->gather;
    const bool lines_inside = filter->inner == 1;
    const int64_t inner = gather->filter.shape[filter->inner], row = filter->taps * inner;
    const int64_t strip = group * filter->strips + (lines_inside ? 0 : first / BF16_SIDE);
    const int64_t tile = lines_inside ? first / BF16_DEEP * filter->taps : 0, size = filter->parts * BF16_TILE;
    Bf16Range range = us_bf16_no_range();
    for (int64_t tap = 0; tap < filter->taps; tap++) {
        const Bf16Operand operand = {
            .data = copy + tap * inner, .dtype = gather->column_type, .lines = lines_inside ? inner : count,
            .depth = lines_inside ? count : inner, .line_step = lines_inside ? 1 : row, .depth_step = lines_inside ? row : 1,
            .below = true, .tiles = filter->tiles + strip * strip_elements(filter) + (tile + tap) * size,
            .layout = {.strip = strip_elements(filter), .tile = filter->taps * size, .row = BF16_DEEP, .part = BF16_TILE},
        };
        us_bf16_pack(&operand, &range);
    }
    return range;
}

static void pack_block(void *context, int64_t piece)
{
    Filter *filter = context;
    const View *view = &filter->gather->filter;
    const int64_t group = piece / filter->blocks, first = piece % filter->blocks * BF16_DEEP;
    const int64_t left = view->shape[filter->outer] - first, count = left < BF16_DEEP ? left : BF16_DEEP;
    const int64_t row = filter->taps * view->shape[filter->inner];
    uint16_t *copy = us_scratch_array(us_scratch_count(count, row), sizeof *copy);
    if (copy == NULL) {
        atomic_store(&filter->no_memory, true);
        return;
    }
    const uint16_t *from = (const uint16_t *)view->data + group * view->strides[0] + first * view->strides[filter->outer];
    for (int64_t i = 0; i < count; i++) {
        copy_filter(filter, from + i * view->strides[filter->outer], copy + i * row);
    }
    filter->ranges[piece] = pack_copy(filter, group, first, count, copy);
    us_scratch_give_back(copy);
}

static int64_t size_of_step(int64_t step)
{
    return step < 0 ? -step : step;
}

static Filter filter_of(const Gather *gather)
{
    const bool lines_inside = size_of_step(gather->filter.strides[1]) < size_of_step(gather->filter.strides[2]);
    return (Filter){.gather = gather, .taps = gather_taps(gather), .strips = us_bf16_count(gather->results, BF16_SIDE),
                    .deep = us_bf16_count(gather->channels, BF16_DEEP), .outer = lines_inside ? 2 : 1,
                    .inner = lines_inside ? 1 : 2, .parts = us_bf16_parts(gather->column_type),
                    .blocks = us_bf16_count(lines_inside ? gather->channels : gather->results, BF16_DEEP)};
}

/* Into memory that the caller gives back; NULL: there is none. */
static void *pack_filter(Filter *filter, Bf16Range *range)
{
    const int64_t groups = filter->gather->groups, blocks = groups * filter->blocks;
    const int64_t elements = us_scratch_count(groups * filter->strips, strip_elements(filter));
    const size_t tiles = us_scratch_bytes(elements, sizeof *filter->tiles);
    char *memory = us_scratch_take(tiles + us_scratch_bytes(blocks, sizeof *range));
    if (memory == NULL) {
        return NULL;
    }
    filter->tiles = (uint16_t *)memory;
    filter->ranges = (Bf16Range *)(memory + tiles);
    atomic_init(&filter->no_memory, false);
    us_parallel(blocks, pack_block, filter);
    *range = us_bf16_no_range();
    for (int64_t block = 0; block < blocks; block++) {
        *range = us_bf16_both(*range, filter->ranges[block]);
    }
    return memory;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

typedef struct Shifts {
    const Gather *gather;
    const Finish *finish;
    Filter filter;
    GridCut cut;
    int64_t blocks, results; /* blocks of results, and their size */
    atomic_bool no_memory;
} Shifts;

/* A part of the results of a group. */
typedef struct Piece {
    const Shifts *shifts;
    GridPart part;
    Grid grid;
    int64_t group, cells; /* of a tile of channels, with some behind the last */
    int64_t runs;
    int32_t *starts, *slots;
    uint16_t *tiles; /* of the input: [part][tile of channels][cell] */
    int64_t *of_cells, *of_filter; /* offsets of the tiles of the depth */
    float *sums, *turned;
} Piece;

/* The other memory of the piece, which the caller gives back; NULL: there is none. */
static void *take_memory(Piece *piece)
{
    const Filter *filter = &piece->shifts->filter;
    const int64_t tiles = us_scratch_count(filter->deep, filter->taps), deep = us_scratch_count(filter->deep, piece->cells);
    const int64_t turned = us_conv_has_channels_last(&piece->shifts->finish->out) ? 0 : piece->part.count;
    const size_t parts[] = {us_scratch_bytes(tiles, sizeof *piece->of_cells),
                            us_scratch_bytes(tiles, sizeof *piece->of_filter),
                            us_scratch_bytes(deep, (size_t)filter->parts * BF16_DEEP * sizeof *piece->tiles),
                            us_scratch_bytes(turned, BF16_SIDE * sizeof *piece->turned),
                            us_scratch_bytes(piece->runs + 1, BF16_SIDE * WIDE * sizeof *piece->sums)};
    char *memory = us_scratch_take(us_scratch_sum(parts, sizeof parts / sizeof *parts)), *cursor = memory;
    if (memory != NULL) {
        piece->of_cells = us_scratch_part(&cursor, parts[0]);
        piece->of_filter = us_scratch_part(&cursor, parts[1]);
        piece->tiles = us_scratch_part(&cursor, parts[2]);
        piece->turned = us_scratch_part(&cursor, parts[3]);
        piece->sums = us_scratch_part(&cursor, parts[4]);
    }
    return memory;
}

static void clear_cells(const Piece *piece, int64_t first, int64_t count)
{
    const Filter *filter = &piece->shifts->filter;
    for (int64_t plane = 0; count > 0 && plane < filter->parts * filter->deep; plane++) {
        memset(piece->tiles + (plane * piece->cells + first) * BF16_DEEP, 0, (size_t)(count * BF16_DEEP) * sizeof(uint16_t));
    }
}

static void pack_line(void *context, const GridLine *line)
{
    const Piece *piece = context;
    const Gather *gather = &piece->part.gather;
    const int64_t cell = line->cell + line->before;
    clear_cells(piece, line->cell, line->before);
    clear_cells(piece, cell + line->count, line->behind);
    Bf16Operand operand = us_grid_operand(gather, line, piece->group * gather->channels, gather->channels);
    operand.fill = BF16_FILL_LINES;
    operand.tiles = piece->tiles + cell * BF16_DEEP;
    operand.layout = (Bf16Layout){.strip = BF16_TILE, .tile = piece->cells * BF16_DEEP, .row = BF16_DEEP,
                                  .part = piece->shifts->filter.deep * piece->cells * BF16_DEEP};
    us_bf16_pack(&operand, NULL);
}

static void pack_cells(Piece *piece)
{
    us_grid_lines(&piece->grid, pack_line, piece);
    clear_cells(piece, piece->grid.all, piece->cells - piece->grid.all);
}

static void find_tiles(const Piece *piece)
{
    const Filter *filter = &piece->shifts->filter;
    for (int64_t tile = 0; tile < filter->deep * filter->taps; tile++) {
        const int64_t shift = us_grid_shift(&piece->grid, tile % filter->taps);
        piece->of_cells[tile] = (tile / filter->taps * piece->cells + shift) * BF16_DEEP;
        piece->of_filter[tile] = tile * filter->parts * BF16_TILE;
    }
}

/* The sums of some results from `strip` on, a slab of the depth after the other. */
static void add_products(const Piece *piece, int64_t strip, int64_t results)
{
    const Filter *filter = &piece->shifts->filter;
    const int64_t tiles = filter->deep * filter->taps, last = filter->strips - 1;
    Bf16Meeting meeting = {.a_row = BF16_DEEP, .b_row = BF16_DEEP, .a_part = filter->deep * piece->cells * BF16_DEEP,
                           .b_part = BF16_TILE, .parts = filter->parts};
    for (int64_t tile = 0; tile < tiles; tile += SLAB) {
        meeting.tiles = tiles - tile < SLAB ? tiles - tile : SLAB;
        meeting.a_tiles = piece->of_cells + tile;
        meeting.b_tiles = piece->of_filter + tile;
        for (int64_t column = 0; column < results; column += BF16_BLOCK) {
            for (int64_t i = 0; i < 2; i++) {
                const int64_t number = strip + column / BF16_SIDE + i;
                meeting.b[i] = filter->tiles + (piece->group * filter->strips + (number < last ? number : last)) *
                                                   strip_elements(filter);
            }
            for (int64_t run = 0; run < piece->runs; run += 2) {
                meeting.a[0] = piece->tiles + piece->starts[run] * BF16_DEEP;
                meeting.a[1] = piece->tiles + piece->starts[run + 1] * BF16_DEEP;
                us_bf16_multiply_block(&meeting, piece->sums + run * BF16_SIDE * WIDE + column, WIDE, tile > 0);
            }
        }
    }
}

static void store_sums(const Piece *piece, int64_t first, int64_t results)
{
    const Gather *gather = &piece->part.gather;
    const Finish *finish = piece->shifts->finish;
    const int64_t channel = piece->group * gather->results + first, begin = piece->part.begin, count = piece->part.count;
    const bool by_channels = us_conv_has_channels_last(&finish->out);
    for (int64_t i = 0; by_channels && i < count; i++) {
        us_finish_channels(finish, gather->compute, begin + i, channel, results, piece->sums + piece->slots[i] * WIDE);
    }
    for (int64_t k = 0; !by_channels && k < results; k++) {
        if (k % BF16_SIDE == 0) {
            us_bf16_columns(piece->sums + k, WIDE, piece->slots, count, piece->turned);
        }
        us_finish_positions(finish, gather->compute, channel + k, begin, count, piece->turned + k % BF16_SIDE * count);
    }
}

static void make_results(Piece *piece, int64_t first, int64_t results)
{
    pack_cells(piece);
    find_tiles(piece);
    us_bf16_begin();
    for (int64_t done = 0; done < results; done += WIDE) {
        const int64_t part = results - done < WIDE ? results - done : WIDE;
        add_products(piece, (first + done) / BF16_SIDE, part);
        store_sums(piece, first + done, part);
    }
    us_bf16_end();
}

static void run_piece(void *context, int64_t number)
{
    Shifts *shifts = context;
    const Gather *gather = shifts->gather;
    const int64_t block = number % shifts->blocks, rest = number / shifts->blocks;
    Piece piece = {.shifts = shifts, .group = rest / shifts->cut.count};
    piece.part = us_grid_part(gather, &shifts->cut, rest % shifts->cut.count);
    piece.grid = us_grid_of(&piece.part.gather);
    piece.cells = us_bf16_count(piece.grid.all, BF16_SIDE) * BF16_SIDE + BF16_SIDE;
    void *covered = us_grid_cover(&piece.grid, BF16_SIDE, &piece.starts, &piece.slots, &piece.runs);
    void *memory = covered == NULL ? NULL : take_memory(&piece);
    if (memory != NULL) {
        const int64_t first = block * shifts->results, left = gather->results - first;
        make_results(&piece, first, left < shifts->results ? left : shifts->results);
    } else {
        atomic_store(&shifts->no_memory, true);
    }
    us_scratch_give_back(memory);
    us_scratch_give_back(covered);
}

/* Filters that are larger than what meets them are divided first. */
static void divide(Shifts *shifts)
{
    const Gather *gather = shifts->gather;
    const int64_t weights = gather->results * gather_taps(gather), elements = conv_product3(gather->in_size);
    int64_t most = us_bf16_count(gather->results, BF16_BLOCK), blocks = 1;
    while (weights / blocks > elements && gather->groups * blocks < FEW && 2 * blocks <= most) {
        blocks *= 2;
    }
    shifts->cut = us_grid_cut(gather, gather->channels, us_bf16_count(FEW, gather->groups * blocks));
    while (gather->groups * blocks * shifts->cut.count < FEW && 2 * blocks <= most) {
        blocks *= 2;
    }
    shifts->results = us_bf16_count(most, blocks) * BF16_BLOCK;
    shifts->blocks = us_bf16_count(gather->results, shifts->results);
}

KernelStatus us_gather_by_shifts(const Gather *gather, const Finish *finish, bool *taken)
{
    Shifts shifts = {.gather = gather, .finish = finish, .filter = filter_of(gather)};
    Bf16Range range;
    atomic_init(&shifts.no_memory, false);
    *taken = us_grid_takes(gather);
    if (!*taken) {
        return KERNEL_OK;
    }
    void *memory = pack_filter(&shifts.filter, &range);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    *taken = !atomic_load(&shifts.filter.no_memory) &&
             us_bf16_is_exact(gather->column_type, us_grid_range(gather->in, us_grid_elements(gather)), range);
    if (*taken) {
        divide(&shifts);
        us_parallel(gather->groups * shifts.cut.count * shifts.blocks, run_piece, &shifts);
    }
    us_scratch_give_back(memory);
    return atomic_load(&shifts.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
