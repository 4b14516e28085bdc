/* The slopes of a gather of 16-bit numbers without columns: rows of neighbouring cells (kernels/conv/grid.h), 16 channels of
 * them, are an operand as they lie, and that of the next tap begins some cells further. What meets them is dy in tiles of
 * 32 cells, with zeros at cells that are no result's. */
#include "kernels/conv/grid.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <stdatomic.h>

/* Tiles of the depth whose operands stay in the first cache; sums that stay in the second, and work for a few threads; sums
 * that are stored together. */
enum { SLAB = 8, SUMS = 128 * 1024, PIECES = 8, PLACES = 128 };

typedef struct Slopes {
    const Gather *gather;
    const uint16_t *dy;
    int64_t taps, deep;       /* blocks of results of a group */
    int64_t blocks, channels; /* blocks of channels, and their size: a piece has one of them */
    int64_t parts, parts_each; /* parts of the positions have their own sums; parts of the cut in each */
    GridCut cut;
    float *sums; /* [group][block][part][32 channels][32 results][tap], each one of them 32 x 32 */
    float *target;
    atomic_bool no_memory;
} Slopes;

/* A block of channels of a group at a part of the positions. */
typedef struct Piece {
    const Slopes *slopes;
    GridPart part;
    Grid grid;
    int64_t group, first, channels;
    int64_t pitch, runs; /* cells of a channel, with some behind the last; tiles of the depth */
    int32_t *starts, *slots;
    int64_t *of_cells, *of_dy;            /* offsets of the tiles of the depth */
    uint16_t *cells, *staged, *tiles;     /* [part][channel][cell]; dy at the cells of the runs, and as operands */
    float *sums;
} Piece;

static int64_t sums_of_piece(const Slopes *slopes)
{
    return us_bf16_count(slopes->channels, BF16_BLOCK) * slopes->deep * slopes->taps * BF16_BLOCK * BF16_BLOCK;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static int64_t plane_of(const Piece *piece)
{
    return us_bf16_count(piece->channels, BF16_SIDE) * BF16_SIDE * piece->pitch;
}

static void pack_line(void *context, const GridLine *line)
{
    const Piece *piece = context;
    const Gather *gather = &piece->part.gather;
    const int64_t first = piece->group * gather->channels + piece->first;
    const Bf16Operand cells = us_grid_operand(gather, line, first, piece->channels);
    const Bf16Operand operand = {
        .data = cells.data, .dtype = cells.dtype, .lines = cells.depth, .depth = cells.lines,
        .line_step = cells.depth_step, .depth_step = cells.line_step, .fill = BF16_FILL_NOTHING,
        .tiles = piece->cells + line->cell + line->before,
        .layout = {.strip = BF16_SIDE * piece->pitch, .tile = BF16_DEEP, .row = piece->pitch, .part = plane_of(piece)},
    };
    us_bf16_pack(&operand, NULL);
}

/* dy at the slots: [result][slot], or for channels last [slot][result]. */
static void stage(const Piece *piece)
{
    const Gather *gather = &piece->part.gather;
    const int64_t results = gather->results, all = gather->groups * results, depth = piece->runs * BF16_DEEP;
    const int64_t image = conv_product3(piece->slopes->gather->out_size), first = piece->group * results;
    const uint16_t *dy = piece->slopes->dy;
    memset(piece->staged, 0, (size_t)(results * depth) * sizeof *piece->staged);
    for (int64_t i = 0, run; i < piece->part.count; i += run) {
        const int64_t position = piece->part.begin + i, slot = piece->slots[i], left = image - position % image;
        run = 1;
        if (gather->channels_last) {
            memcpy(piece->staged + slot * results, dy + position * all + first, (size_t)results * sizeof *dy);
            continue;
        }
        while (i + run < piece->part.count && run < left && piece->slots[i + run] == slot + run) {
            run++;
        }
        const uint16_t *from = dy + (position / image * all + first) * image + position % image;
        for (int64_t k = 0; k < results; k++) {
            copy_run(piece->staged + k * depth + slot, from + k * image, run * (int64_t)sizeof *dy);
        }
    }
}

static void pack_dy(const Piece *piece)
{
    const Gather *gather = &piece->part.gather;
    const int64_t results = gather->results, depth = piece->runs * BF16_DEEP;
    const int64_t tile = us_bf16_parts(gather->column_type) * BF16_TILE;
    const Bf16Operand operand = {
        .data = piece->staged, .dtype = gather->column_type, .lines = results, .depth = depth,
        .line_step = gather->channels_last ? 1 : depth, .depth_step = gather->channels_last ? results : 1, .below = true,
        .tiles = piece->tiles, .layout = {.strip = piece->runs * tile, .tile = tile, .row = BF16_DEEP, .part = BF16_TILE},
    };
    us_bf16_pack(&operand, NULL);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The products of a slab of the depth with all channels and results. */
static void add_slab(const Piece *piece, Bf16Meeting *meeting, const int64_t *shifts, bool adds)
{
    const Slopes *slopes = piece->slopes;
    const int64_t results = slopes->gather->results, strip = piece->runs * meeting->parts * BF16_TILE;
    float *sums = piece->sums;
    for (int64_t channel = 0; channel < piece->channels; channel += BF16_BLOCK) {
        for (int64_t result = 0; result < results; result += BF16_BLOCK) {
            const bool one_a = channel + BF16_SIDE >= piece->channels, one_b = result + BF16_SIDE >= results;
            meeting->b[0] = piece->tiles + result / BF16_SIDE * strip;
            meeting->b[1] = meeting->b[0] + (one_b ? 0 : strip);
            for (int64_t tap = 0; tap < slopes->taps; tap++, sums += BF16_BLOCK * BF16_BLOCK) {
                meeting->a[0] = piece->cells + channel * piece->pitch + shifts[tap];
                meeting->a[1] = meeting->a[0] + (one_a ? 0 : BF16_SIDE * piece->pitch);
                us_bf16_multiply_block(meeting, sums, BF16_BLOCK, adds);
            }
        }
    }
}

static void add_products(const Piece *piece, bool adds)
{
    const Slopes *slopes = piece->slopes;
    const int parts = us_bf16_parts(slopes->gather->column_type);
    Bf16Meeting meeting = {.a_row = piece->pitch, .b_row = BF16_DEEP, .a_part = plane_of(piece), .b_part = BF16_TILE,
                           .parts = parts};
    int64_t shifts[GRID_MOST_TAPS];
    for (int64_t tap = 0; tap < slopes->taps; tap++) {
        shifts[tap] = us_grid_shift(&piece->grid, tap);
    }
    for (int64_t run = 0; run < piece->runs; run++) {
        piece->of_cells[run] = piece->starts[run];
        piece->of_dy[run] = run * parts * BF16_TILE;
    }
    us_bf16_begin();
    const int64_t slab = SLAB / parts;
    for (int64_t run = 0; run < piece->runs; run += slab) {
        meeting.tiles = piece->runs - run < slab ? piece->runs - run : slab;
        meeting.a_tiles = piece->of_cells + run;
        meeting.b_tiles = piece->of_dy + run;
        add_slab(piece, &meeting, shifts, adds || run > 0);
    }
    us_bf16_end();
}

/* The other memory of the piece, which the caller gives back; NULL: there is none. */
static void *take_memory(Piece *piece)
{
    const Gather *gather = &piece->part.gather;
    const int64_t runs = piece->runs, strips = us_bf16_count(gather->results, BF16_SIDE);
    const size_t numbers = (size_t)us_bf16_parts(gather->column_type);
    const size_t parts[] = {us_scratch_bytes(runs, sizeof *piece->of_cells), us_scratch_bytes(runs, sizeof *piece->of_dy),
                            us_scratch_bytes(plane_of(piece), numbers * sizeof *piece->cells),
                            us_scratch_bytes(us_scratch_count(runs, gather->results), BF16_DEEP * sizeof *piece->staged),
                            us_scratch_bytes(us_scratch_count(runs, strips), numbers * BF16_TILE * sizeof *piece->tiles)};
    char *memory = us_scratch_take(us_scratch_sum(parts, sizeof parts / sizeof *parts)), *cursor = memory;
    if (memory != NULL) {
        piece->of_cells = us_scratch_part(&cursor, parts[0]);
        piece->of_dy = us_scratch_part(&cursor, parts[1]);
        piece->cells = us_scratch_part(&cursor, parts[2]);
        piece->staged = us_scratch_part(&cursor, parts[3]);
        piece->tiles = us_scratch_part(&cursor, parts[4]);
        memset(piece->cells, 0, parts[2]);
    }
    return memory;
}

/* Adds what a part of the positions gives; false: no memory. */
static bool add_part(Piece *piece, bool adds)
{
    void *covered = us_grid_cover(&piece->grid, BF16_DEEP, &piece->starts, &piece->slots, &piece->runs);
    piece->pitch = us_bf16_count(piece->grid.all, BF16_DEEP) * BF16_DEEP + BF16_DEEP;
    void *memory = covered == NULL ? NULL : take_memory(piece);
    if (memory != NULL) {
        us_grid_lines(&piece->grid, pack_line, piece);
        stage(piece);
        pack_dy(piece);
        add_products(piece, adds);
    }
    us_scratch_give_back(memory);
    us_scratch_give_back(covered);
    return memory != NULL;
}

static void run_piece(void *context, int64_t number)
{
    Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const int64_t part = number % slopes->parts, block = number / slopes->parts % slopes->blocks;
    Piece piece = {.slopes = slopes, .group = number / slopes->parts / slopes->blocks, .first = block * slopes->channels,
                   .sums = slopes->sums + number * sums_of_piece(slopes)};
    const int64_t left = gather->channels - piece.first, first = part * slopes->parts_each;
    piece.channels = left < slopes->channels ? left : slopes->channels;
    for (int64_t of = first; of < first + slopes->parts_each && of < slopes->cut.count; of++) {
        piece.part = us_grid_part(gather, &slopes->cut, of);
        piece.grid = us_grid_of(&piece.part.gather);
        if (!add_part(&piece, of > first)) {
            atomic_store(&slopes->no_memory, true);
        }
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* The sums of 32 results at a place of a packed filter. */
static void add_parts(const Slopes *slopes, int64_t group, int64_t deep, int64_t place, float *sums)
{
    const Gather *gather = slopes->gather;
    const int64_t channel = gather->channels_last ? place % gather->channels : place / slopes->taps;
    const int64_t tap = gather->channels_last ? place / gather->channels : place % slopes->taps;
    const int64_t block = channel / slopes->channels, within = channel % slopes->channels, size = sums_of_piece(slopes);
    const int64_t tile = (within / BF16_BLOCK * slopes->deep + deep) * slopes->taps + tap;
    const float *from = slopes->sums + (group * slopes->blocks + block) * slopes->parts * size +
                        (tile * BF16_BLOCK + within % BF16_BLOCK) * BF16_BLOCK;
    memcpy(sums, from, BF16_BLOCK * sizeof *sums);
    for (int64_t part = 1; part < slopes->parts; part++) {
        for (int i = 0; i < BF16_BLOCK; i++) {
            sums[i] += from[part * size + i];
        }
    }
}

/* Some places of 32 results of a group. */
static void store_piece(void *context, int64_t piece)
{
    const Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const int64_t depth = gather->channels * slopes->taps, runs = us_bf16_count(depth, PLACES);
    const int64_t place = piece % runs * PLACES, count = depth - place < PLACES ? depth - place : PLACES;
    const int64_t deep = piece / runs % slopes->deep, group = piece / runs / slopes->deep;
    const int64_t first = deep * BF16_BLOCK, left = gather->results - first;
    float sums[PLACES * BF16_BLOCK], turned[BF16_SIDE * PLACES];
    int32_t rows[PLACES];
    for (int64_t i = 0; i < count; i++) {
        rows[i] = (int32_t)i;
        add_parts(slopes, group, deep, place + i, sums + i * BF16_BLOCK);
    }
    for (int64_t k = 0; k < BF16_BLOCK && k < left; k++) {
        if (k % BF16_SIDE == 0) {
            us_bf16_columns(sums + k, BF16_BLOCK, rows, count, turned);
        }
        memcpy(slopes->target + (group * gather->results + first + k) * depth + place, turned + k % BF16_SIDE * count,
               (size_t)count * sizeof *turned);
    }
}

static void divide(Slopes *slopes)
{
    const Gather *gather = slopes->gather;
    const int64_t wanted = us_bf16_count(PIECES, gather->groups), most = us_bf16_count(gather->channels, BF16_BLOCK);
    const int64_t elements = gather->results * gather->channels * slopes->taps;
    slopes->blocks = bounded(us_bf16_count(elements, SUMS), 1, wanted < most ? wanted : most);
    slopes->channels = us_bf16_count(most, slopes->blocks) * BF16_BLOCK;
    slopes->blocks = us_bf16_count(gather->channels, slopes->channels);
    slopes->cut = us_grid_cut(gather, slopes->channels, us_bf16_count(wanted, slopes->blocks));
    slopes->parts = bounded(PIECES / (gather->groups * slopes->blocks), 1, slopes->cut.count);
    slopes->parts_each = us_bf16_count(slopes->cut.count, slopes->parts);
    slopes->parts = us_bf16_count(slopes->cut.count, slopes->parts_each);
}

/* Zeros of dy meet cells that belong to other taps: these must be finite. */
static bool is_exact(const Gather *gather, const void *dy)
{
    enum { INFINITE = 0x7f80 };
    const int64_t count = gather_positions(gather) * gather->groups * gather->results;
    const Bf16Range range = us_grid_range(gather->in, us_grid_elements(gather));
    return range.most < INFINITE && us_bf16_is_exact(gather->column_type, range, us_grid_range(dy, count));
}

KernelStatus us_gather_slopes_by_shifts(const Gather *gather, const void *dy, DType dy_type, void *sums, bool *taken)
{
    *taken = dy_type == gather->column_type && us_grid_takes(gather) && is_exact(gather, dy);
    if (!*taken) {
        return KERNEL_OK;
    }
    Slopes slopes = {.gather = gather, .dy = dy, .taps = gather_taps(gather),
                     .deep = us_bf16_count(gather->results, BF16_BLOCK), .target = sums};
    divide(&slopes);
    atomic_init(&slopes.no_memory, false);
    const int64_t pieces = gather->groups * slopes.blocks * slopes.parts;
    slopes.sums = us_scratch_array(us_scratch_count(pieces, sums_of_piece(&slopes)), sizeof *slopes.sums);
    if (slopes.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_parallel(pieces, run_piece, &slopes);
    us_parallel(gather->groups * slopes.deep * us_bf16_count(gather->channels * slopes.taps, PLACES), store_piece, &slopes);
    us_scratch_give_back(slopes.sums);
    return atomic_load(&slopes.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
