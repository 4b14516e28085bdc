/* The sums of a gather, and its slopes, without columns: the input of some channels lies on a grid of cells among zeros
 * (kernels/conv/grid.h), so that what a tap sees of a run of neighbouring results is a run of cells. Sums do not leave the
 * registers before the last channel, or the last run. For filters whose matrix products would be small. */
#include "kernels/conv/grid.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* Results whose weights meet RUNS runs, of a register each, at a time, and few of them, whose sums would wait for each other,
 * RUNS_OF_FEW; places of the filter whose slopes are summed together, of several results and of one, and of what is left;
 * bytes of a run of slopes, the same on every level, as is the order of their sums; elements of cells that stay in the second
 * cache; work for a few threads. */
enum { RESULTS = 4, RUNS = REGISTER_BYTES == 64 ? 4 : 2, FEW_RESULTS = 2, RUNS_OF_FEW = 2 * RUNS,
       TAPS = REGISTER_BYTES == 64 ? 5 : 2, TAPS_OF_ONE = REGISTER_BYTES == 64 ? 9 : 3, FEW_TAPS = 3,
       RUN_BYTES = 64, TOGETHER = 64 * 1024, FEW = 8 };

/* Blocks of groups, and groups of a block: a piece has one of them. */
typedef struct Blocks {
    GridCut cut;
    int64_t count, groups;
} Blocks;

static Blocks divide(const Gather *gather)
{
    Blocks blocks = {.cut = us_grid_cut(gather, gather->channels, ceiling(FEW, gather->groups))};
    blocks.groups = ceiling(gather->groups, bounded(FEW / blocks.cut.count, 1, gather->groups));
    blocks.count = ceiling(gather->groups, blocks.groups);
    return blocks;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* A part of the positions, and the cells that it sees of some channels. */
typedef struct Patch {
    const Gather *whole;
    GridPart part;
    Grid grid;
    int64_t groups, channel, channels; /* together in memory: groups at most, and channels counted over all groups */
    int64_t pitch;                     /* from channel to channel */
    int64_t runs, width;               /* results of a run */
    int32_t *starts, *slots;
    int64_t shifts[GRID_MOST_TAPS];
    void *cells; /* [channel][cell] */
} Patch;

/* Returns memory of the patch, which the caller gives back; NULL: there is none. */
static void *begin_patch(Patch *patch, const Gather *gather, const Blocks *blocks, int64_t number, int64_t width)
{
    patch->whole = gather;
    patch->width = width;
    patch->part = us_grid_part(gather, &blocks->cut, number);
    patch->grid = us_grid_of(&patch->part.gather);
    patch->pitch = ceiling(patch->grid.all, width) * width + width; /* with cells that the last runs see behind them */
    patch->groups = bounded(TOGETHER / (patch->pitch * gather->channels), 1, blocks->groups);
    for (int64_t tap = 0; tap < gather_taps(gather); tap++) {
        patch->shifts[tap] = us_grid_shift(&patch->grid, tap);
    }
    return us_grid_cover(&patch->grid, width, &patch->starts, &patch->slots, &patch->runs);
}

static size_t cell_bytes(const Patch *patch)
{
    const int64_t elements = us_scratch_count(patch->groups * patch->whole->channels, patch->pitch);
    return us_scratch_bytes(elements, us_dtype_size(patch->whole->compute));
}

/* ---- sums of a gather -------------------------------------------------------------------------------------------- */

typedef struct Cells {
    const Gather *gather;
    const Finish *finish;
    const void *weights; /* of a group: [up to RESULTS results][channel][tap][result] */
    Blocks blocks;
    atomic_bool no_memory;
} Cells;

typedef struct Piece {
    const Finish *finish;
    const void *weights;
    Patch patch;
    void *sums, *ordered; /* [result][slot]; [result][position] */
} Piece;

static int64_t slots_of(const Patch *patch)
{
    return ceiling(patch->runs, RUNS_OF_FEW) * RUNS_OF_FEW * patch->width;
}

/* ---- slopes ------------------------------------------------------------------------------------------------------ */

typedef struct Slopes {
    const Gather *gather;
    const void *dy;
    DType dy_type;
    double *sums; /* [part][group][result][channel][tap] */
    Blocks blocks;
    int64_t parts, parts_each; /* parts of the positions have their own sums; parts of the cut in each */
    atomic_bool no_memory;
} Slopes;

typedef struct SlopePiece {
    const Slopes *slopes;
    Patch patch;
    void *staged; /* dy of a group, and zeros where a run has no result: [result][slot] */
    double *sums;
} SlopePiece;

#define LOOPS "kernels/conv/cells.inc"
#include "kernels/registers.inc"

/* ---- pieces of the sums ------------------------------------------------------------------------------------------ */

/* The other memory of the piece, which the caller gives back; NULL: there is none. */
static void *take_memory(Piece *piece)
{
    Patch *patch = &piece->patch;
    const size_t size = us_dtype_size(patch->whole->compute);
    const size_t parts[] = {cell_bytes(patch), us_scratch_bytes(us_scratch_count(RESULTS, slots_of(patch)), size),
                            us_scratch_bytes(us_scratch_count(RESULTS, patch->part.count), size)};
    char *memory = us_scratch_take(us_scratch_sum(parts, sizeof parts / sizeof *parts)), *cursor = memory;
    if (memory != NULL) {
        patch->cells = us_scratch_part(&cursor, parts[0]);
        piece->sums = us_scratch_part(&cursor, parts[1]);
        piece->ordered = us_scratch_part(&cursor, parts[2]);
    }
    return memory;
}

static void run_piece(void *context, int64_t number)
{
    Cells *work = context;
    const Gather *gather = work->gather;
    const Blocks *blocks = &work->blocks;
    const bool wide = gather->compute == DTYPE_FLOAT64;
    const int64_t first = number % blocks->count * blocks->groups, end = smaller(first + blocks->groups, gather->groups);
    Piece piece = {.finish = work->finish, .weights = work->weights};
    Patch *patch = &piece.patch;
    const int64_t width = REGISTER_BYTES / (int64_t)us_dtype_size(gather->compute);
    void *covered = begin_patch(patch, gather, blocks, number / blocks->count, width);
    void *memory = covered == NULL ? NULL : take_memory(&piece);
    for (int64_t group = first; memory != NULL && group < end; group++) {
        if ((group - first) % patch->groups == 0) {
            (wide ? pack_cells_double : pack_cells_float)(patch, group, end);
        }
        (wide ? make_group_double : make_group_float)(&piece, group);
    }
    if (memory == NULL) {
        atomic_store(&work->no_memory, true);
    }
    us_scratch_give_back(memory);
    us_scratch_give_back(covered);
}

bool us_cells_take(const Gather *gather)
{
    return !gather->channels_last && us_grid_fits(gather, gather->channels);
}

KernelStatus us_gather_by_cells(const Gather *gather, const void *filter, const Finish *finish)
{
    Cells work = {.gather = gather, .finish = finish, .blocks = divide(gather)};
    const size_t size = us_dtype_size(gather->compute);
    void *weights = us_scratch_array(gather->groups * gather->results * gather->channels * gather_taps(gather), size);
    if (weights == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.weights = weights;
    (gather->compute == DTYPE_FLOAT64 ? order_weights_double : order_weights_float)(gather, filter, weights);
    atomic_init(&work.no_memory, false);
    us_parallel(work.blocks.cut.count * work.blocks.count, run_piece, &work);
    us_scratch_give_back(weights);
    return atomic_load(&work.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- pieces of the slopes ---------------------------------------------------------------------------------------- */

/* Adds what a part of the positions gives some groups; false: no memory. */
static bool add_part(SlopePiece *piece, int64_t number, int64_t first, int64_t end)
{
    const Gather *gather = piece->slopes->gather;
    const bool wide = gather->compute == DTYPE_FLOAT64;
    const size_t size = us_dtype_size(gather->compute);
    Patch *patch = &piece->patch;
    void *covered = begin_patch(patch, gather, &piece->slopes->blocks, number, RUN_BYTES / (int64_t)size);
    const size_t cells = cell_bytes(patch);
    const int64_t slots = covered == NULL ? 0 : us_scratch_count(gather->results, patch->runs * patch->width);
    char *memory = covered == NULL ? NULL : us_scratch_take(cells + us_scratch_bytes(slots, size));
    if (memory != NULL) {
        patch->cells = memory;
        piece->staged = memory + cells;
        memset(piece->staged, 0, (size_t)slots * size);
    }
    for (int64_t group = first; memory != NULL && group < end; group++) {
        if ((group - first) % patch->groups == 0) {
            (wide ? pack_cells_double : pack_cells_float)(patch, group, end);
        }
        (wide ? add_group_double : add_group_float)(piece, group);
    }
    us_scratch_give_back(memory);
    us_scratch_give_back(covered);
    return memory != NULL;
}

static int64_t weights_of(const Gather *gather)
{
    return gather->groups * gather->results * gather->channels * gather_taps(gather);
}

static void run_slopes(void *context, int64_t number)
{
    Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const Blocks *blocks = &slopes->blocks;
    const int64_t part = number % slopes->parts, first = number / slopes->parts * blocks->groups;
    const int64_t end = smaller(first + blocks->groups, gather->groups), begin = part * slopes->parts_each;
    const int64_t each = weights_of(gather) / gather->groups;
    SlopePiece piece = {.slopes = slopes, .sums = slopes->sums + part * weights_of(gather)};
    memset(piece.sums + first * each, 0, (size_t)((end - first) * each) * sizeof *piece.sums);
    for (int64_t of = begin; of < begin + slopes->parts_each && of < blocks->cut.count; of++) {
        if (!add_part(&piece, of, first, end)) {
            atomic_store(&slopes->no_memory, true);
        }
    }
}

KernelStatus us_gather_slopes_by_cells(const Gather *gather, const void *dy, DType dy_type, void *sums)
{
    Slopes slopes = {.gather = gather, .dy = dy, .dy_type = dy_type, .blocks = divide(gather)};
    const int64_t count = weights_of(gather);
    slopes.blocks.groups = ceiling(gather->groups, smaller(FEW, gather->groups));
    slopes.blocks.count = ceiling(gather->groups, slopes.blocks.groups);
    slopes.parts_each = ceiling(slopes.blocks.cut.count, bounded(FEW / slopes.blocks.count, 1, slopes.blocks.cut.count));
    slopes.parts = ceiling(slopes.blocks.cut.count, slopes.parts_each);
    slopes.sums = us_scratch_array(us_scratch_count(slopes.parts, count), sizeof *slopes.sums);
    if (slopes.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    atomic_init(&slopes.no_memory, false);
    us_parallel(slopes.blocks.count * slopes.parts, run_slopes, &slopes);
    for (int64_t part = 1; part < slopes.parts; part++) {
        for (int64_t i = 0; i < count; i++) {
            slopes.sums[i] += slopes.sums[part * count + i];
        }
    }
    for (int64_t i = 0; i < count; i++) {
        if (gather->compute == DTYPE_FLOAT64) {
            ((double *)sums)[i] = slopes.sums[i];
        } else {
            ((float *)sums)[i] = (float)slopes.sums[i];
        }
    }
    us_scratch_give_back(slopes.sums);
    return atomic_load(&slopes.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
