/* Sums of a gather by vectors of results. */
#include "kernels/conv/lanes.h"
#include "kernels/conv/way.h"
#include "kernels/move/transpose.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Neighbours in a row, and rows, whose sums are formed together. */
enum { ACROSS = 12, DOWN = 4 };

/* Vectors of sums that stay in registers: in 32, or in 16, where two vectors of results need room for more weights. */
US_ALWAYS_INLINE int most_sums(int vectors)
{
    enum { OF_MANY_REGISTERS = 24, OF_ONE = 12, OF_TWO = 8 };
    return REGISTER_BYTES == 64 ? OF_MANY_REGISTERS : vectors == 1 ? OF_ONE : OF_TWO;
}

/* A gather of some of the results; its weights: [unit][block][channel][tap][lane]. */
typedef struct Phase {
    Gather gather;
    Among among;
    const float *filter; /* packed */
    float *weights;
} Phase;

typedef struct Work {
    Plan plan;
    const Finish *finish;
    const Phase *phases;
    int64_t count;
    atomic_bool no_memory;
} Work;

static void order_weights(void *context, int64_t number)
{
    const Work *work = context;
    const Plan *plan = &work->plan;
    const int64_t blocks = plan->units * plan->blocks, block = number % blocks, size = (int64_t)sizeof(float);
    const Phase *phase = &work->phases[number / blocks];
    const int64_t depth = phase->gather.channels * gather_taps(&phase->gather);
    const Block of = us_lanes_block(plan, block);
    float *to = phase->weights + of.vector * depth * WIDTH;
    if (of.results < of.lanes) {
        memset(to, 0, (size_t)(depth * of.lanes) * sizeof *to);
    }
    const float *from = phase->filter + of.first * depth;
    us_transpose((char *)to, of.lanes * size, (const char *)from, depth * size, of.results, depth, size);
}

/* The sums of `across` neighbours in some rows from `row` on, which see what lies `apart` floats apart, of one vector of
 * results or two. */
US_ALWAYS_INLINE void sum_rows(const Patch *patch, int apart, int vectors, int across, int down, const float *weights,
                               int64_t row, int64_t column, float *sums)
{
    const bool own = apart == WIDTH;
    const int64_t taps = gather_taps(&patch->part.gather), channels = patch->part.gather.channels;
    const float *from[DOWN];
    Lanes sum[DOWN][ACROSS][2];
#pragma GCC unroll 4
    for (int i = 0; i < down; i++) {
        from[i] = patch->cells + patch->starts[row + i] + column * apart;
#pragma GCC unroll 12
        for (int j = 0; j < across; j++) {
            sum[i][j][0] = sum[i][j][1] = (Lanes){0};
        }
    }
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t tap = 0; tap < taps; tap++, weights += vectors * WIDTH) {
            const int64_t at = c * patch->grid.all + patch->shifts[tap];
            const Lanes weight = *(const Lanes *)weights, second = *(const Lanes *)(weights + (vectors - 1) * WIDTH);
#pragma GCC unroll 4
            for (int i = 0; i < down; i++) {
#pragma GCC unroll 12
                for (int j = 0; j < across; j++) {
                    const float *value = from[i] + at + j * apart;
                    const Lanes values = own ? *(const Lanes *)value : all_lanes(*value);
                    sum[i][j][0] = fused(weight, values, sum[i][j][0]);
                    if (vectors == 2) {
                        sum[i][j][1] = fused(second, values, sum[i][j][1]);
                    }
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < down; i++) {
        float *to = sums + (patch->places[row + i] + column * patch->step) * vectors;
#pragma GCC unroll 12
        for (int j = 0; j < across; j++) {
            *(Lanes *)(to + j * patch->step * vectors) = sum[i][j][0];
            if (vectors == 2) {
                *(Lanes *)(to + j * patch->step * vectors + WIDTH) = sum[i][j][1];
            }
        }
    }
}

/* Most neighbours whose sums are formed together. */
US_ALWAYS_INLINE int most_across(int vectors)
{
    return most_sums(vectors) / vectors < ACROSS ? most_sums(vectors) / vectors : ACROSS;
}

US_ALWAYS_INLINE void sum_columns(const Patch *patch, int apart, int vectors, int wanted, const float *weights,
                                  int64_t column, float *sums)
{
    const int most = most_across(vectors), across = wanted < most ? wanted : most;
    const int fitting = most_sums(vectors) / across / vectors, down = fitting < DOWN ? fitting : DOWN;
    int64_t row = 0;
    for (; row + down <= patch->rows; row += down) {
        sum_rows(patch, apart, vectors, across, down, weights, row, column, sums);
    }
    for (; row < patch->rows; row++) {
        sum_rows(patch, apart, vectors, across, 1, weights, row, column, sums);
    }
}

/* All positions of the patch, in columns as wide as each other. */
US_ALWAYS_INLINE void sum_positions(const Patch *patch, int apart, int vectors, const float *weights, float *sums)
{
    const int64_t columns = ceiling(patch->width, most_across(vectors));
    for (int64_t i = 0; i < columns; i++) {
        const int64_t column = i * patch->width / columns, end = (i + 1) * patch->width / columns;
        switch (end - column) {
        case 1: sum_columns(patch, apart, vectors, 1, weights, column, sums); break;
        case 2: sum_columns(patch, apart, vectors, 2, weights, column, sums); break;
        case 3: sum_columns(patch, apart, vectors, 3, weights, column, sums); break;
        case 4: sum_columns(patch, apart, vectors, 4, weights, column, sums); break;
        case 5: sum_columns(patch, apart, vectors, 5, weights, column, sums); break;
        case 6: sum_columns(patch, apart, vectors, 6, weights, column, sums); break;
        case 7: sum_columns(patch, apart, vectors, 7, weights, column, sums); break;
        case 8: sum_columns(patch, apart, vectors, 8, weights, column, sums); break;
        case 9: sum_columns(patch, apart, vectors, 9, weights, column, sums); break;
        case 10: sum_columns(patch, apart, vectors, 10, weights, column, sums); break;
        case 11: sum_columns(patch, apart, vectors, 11, weights, column, sums); break;
        default: sum_columns(patch, apart, vectors, ACROSS, weights, column, sums); break;
        }
    }
}

static void sum_of_own(const Patch *patch, const float *weights, float *sums)
{
    sum_positions(patch, WIDTH, 1, weights, sums);
}

static void sum_of_one(const Patch *patch, const float *weights, float *sums)
{
    sum_positions(patch, 1, 1, weights, sums);
}

static void sum_of_steps(const Patch *patch, const float *weights, float *sums)
{
    sum_positions(patch, LANES_STEP, 1, weights, sums);
}

static void sum_two(const Patch *patch, const float *weights, float *sums)
{
    sum_positions(patch, 1, 2, weights, sums);
}

static void sum_two_of_steps(const Patch *patch, const float *weights, float *sums)
{
    sum_positions(patch, LANES_STEP, 2, weights, sums);
}

static void sum_block(const Patch *patch, const Block *block, const float *weights, float *sums)
{
    const bool two = block->lanes > WIDTH;
    if (patch->plan->own) {
        sum_of_own(patch, weights, sums);
    } else if (patch->apart == 1) {
        (two ? sum_two : sum_of_one)(patch, weights, sums);
    } else {
        (two ? sum_two_of_steps : sum_of_steps)(patch, weights, sums);
    }
}

/* Positions of all results. */
typedef struct Stretch {
    int64_t begin, count;
} Stretch;

/* The sums of some results, [position][lane], to where they belong; `ordered`: memory for as many. */
static void store_sums(const Finish *finish, const Stretch *of, int64_t image, const Block *block, const float *sums,
                       float *ordered)
{
    const int64_t size = (int64_t)sizeof(float);
    for (int64_t done = 0, some; done < of->count; done += some) {
        const int64_t position = of->begin + done, within = position % image;
        some = smaller(of->count - done, image - within);
        float *plane = us_finish_plane(finish, DTYPE_FLOAT32, position / image, block->first);
        char *to = plane != NULL ? (char *)(plane + within) : (char *)(ordered + done);
        us_transpose(to, (plane != NULL ? finish->out.strides[1] : of->count) * size,
                     (const char *)(sums + done * block->lanes), block->lanes * size, some, block->results, size);
        if (plane != NULL) {
            continue;
        }
        for (int64_t k = 0; done + some == of->count && k < block->results; k++) {
            us_finish_positions(finish, DTYPE_FLOAT32, block->first + k, of->begin, of->count, ordered + k * of->count);
        }
    }
}

/* The patches of all phases, and their sums. */
typedef struct Piece {
    const Work *work;
    Stretch stretch;
    Patch *patches;
    float *sums, *ordered;
} Piece;

static void sum_unit(const Piece *piece, int64_t unit)
{
    const Work *work = piece->work;
    const Plan *plan = &work->plan;
    for (int64_t number = 0; number < plan->blocks; number++) {
        const Block block = us_lanes_block(plan, unit * plan->blocks + number);
        for (int64_t k = 0; k < work->count; k++) {
            const Phase *phase = &work->phases[k];
            const int64_t depth = phase->gather.channels * gather_taps(&phase->gather);
            if (number == 0) {
                us_lanes_pack(&piece->patches[k], unit);
            }
            sum_block(&piece->patches[k], &block, phase->weights + block.vector * depth * WIDTH, piece->sums);
        }
        const int64_t image = conv_product3(work->phases->among.size);
        store_sums(work->finish, &piece->stretch, image, &block, piece->sums, piece->ordered);
    }
}

/* The units of a piece, whose patches are begun; false: no memory. */
static bool sum_units(Piece *piece, int64_t set)
{
    const Plan *plan = &piece->work->plan;
    const int64_t lanes = smaller(plan->vectors, 2) * WIDTH;
    const size_t of_sums = us_scratch_bytes(us_scratch_count(piece->stretch.count, lanes), sizeof(float));
    size_t bytes = 2 * of_sums;
    for (int64_t k = 0; k < piece->work->count; k++) {
        bytes += us_lanes_cell_bytes(&piece->patches[k]);
    }
    char *memory = us_scratch_take(bytes), *cursor = memory;
    if (memory == NULL) {
        return false;
    }
    for (int64_t k = 0; k < piece->work->count; k++) {
        us_lanes_take_cells(&piece->patches[k], &cursor);
    }
    piece->sums = us_scratch_part(&cursor, of_sums);
    piece->ordered = us_scratch_part(&cursor, of_sums);
    for (int64_t unit = set * plan->each; unit < smaller((set + 1) * plan->each, plan->units); unit++) {
        sum_unit(piece, unit);
    }
    us_scratch_give_back(memory);
    return true;
}

/* The patches and what they note. Returns memory for the caller to give back; NULL: there is none. */
static void *begin_piece(Piece *piece, int64_t part)
{
    const Work *work = piece->work;
    size_t bytes = us_scratch_bytes(work->count, sizeof *piece->patches);
    for (int64_t k = 0; k < work->count; k++) {
        const Patch patch = us_lanes_patch(&work->plan, &work->phases[k].gather, part);
        bytes += us_lanes_patch_bytes(&patch);
    }
    char *memory = us_scratch_take(bytes), *cursor = memory;
    if (memory == NULL) {
        return NULL;
    }
    piece->patches = us_scratch_part(&cursor, us_scratch_bytes(work->count, sizeof *piece->patches));
    for (int64_t k = 0; k < work->count; k++) {
        piece->patches[k] = us_lanes_patch(&work->plan, &work->phases[k].gather, part);
        us_lanes_begin(&piece->patches[k], &work->phases[k].among, &cursor);
    }
    const GridPart *first = &piece->patches->part;
    const int64_t image = conv_product3(work->phases->among.size);
    piece->stretch = work->count == 1 ? (Stretch){first->begin, first->count} : (Stretch){part * image, image};
    return memory;
}

static void sum_piece(void *context, int64_t number)
{
    Work *work = context;
    Piece piece = {.work = work};
    void *begun = begin_piece(&piece, number / work->plan.sets);
    if (begun == NULL || !sum_units(&piece, number % work->plan.sets)) {
        atomic_store(&work->no_memory, true);
    }
    us_scratch_give_back(begun);
}

/* With filters that are packed. */
static KernelStatus sum_phases(const Plan *plan, Phase *phases, int64_t count, const Finish *finish)
{
    Work work = {.plan = *plan, .finish = finish, .phases = phases, .count = count};
    const int64_t vectors = plan->units * plan->vectors;
    int64_t depth = 0;
    for (int64_t k = 0; k < count; k++) {
        depth += phases[k].gather.channels * gather_taps(&phases[k].gather);
    }
    float *weights = us_scratch_array(us_scratch_count(vectors * WIDTH, depth), sizeof *weights), *next = weights;
    if (weights == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t k = 0; k < count; k++) {
        phases[k].weights = next;
        next += vectors * WIDTH * phases[k].gather.channels * gather_taps(&phases[k].gather);
    }
    atomic_init(&work.no_memory, false);
    us_parallel(count * plan->units * plan->blocks, order_weights, &work);
    us_parallel(plan->cut.count * plan->sets, sum_piece, &work);
    us_scratch_give_back(weights);
    return atomic_load(&work.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_gather_by_lanes(const Gather *gather, const void *filter, const Finish *finish)
{
    const Plan plan = us_lanes_plan(gather);
    Phase phase = {.gather = *gather, .among = us_lanes_all(gather->out_size), .filter = filter};
    return sum_phases(&plan, &phase, 1, finish);
}

KernelStatus us_gather_phases_by_lanes(const GatherPhase *given, int64_t count, const int64_t *stride, const Finish *finish,
                                       bool *taken)
{
    const Gather *largest = &given->gather;
    const int64_t *size = &finish->out.shape[2];
    Plan plan = us_lanes_plan(largest);
    plan.cut = (GridCut){.axis = 0, .images = 1, .rows = largest->out_size[0], .per_image = 1, .count = largest->images};
    plan.each = ceiling(plan.units, bounded(FEW / plan.cut.count, 1, plan.units));
    plan.sets = ceiling(plan.units, plan.each);
    Phase phases[GATHER_MOST_PHASES];
    int64_t taps = 0;
    for (int64_t k = 0; k < count; k++) {
        phases[k] = (Phase){.gather = given[k].gather, .among = us_lanes_all(size)};
        memcpy(phases[k].among.stride, stride, sizeof phases[k].among.stride);
        memcpy(phases[k].among.first, given[k].first, sizeof phases[k].among.first);
        taps += gather_taps(&given[k].gather);
    }
    const int64_t filters_of_tap = largest->groups * largest->results * largest->channels;
    const int64_t weights = us_scratch_count(filters_of_tap, taps);
    float *filters = us_scratch_array(weights, sizeof *filters), *next = filters;
    if (filters == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t k = 0; k < count; k++) {
        us_gather_pack_filter(&given[k].gather, next);
        phases[k].filter = next;
        next += filters_of_tap * gather_taps(&given[k].gather);
    }
    const View all = us_view_contiguous(filters, DTYPE_FLOAT32, 1, &weights);
    *taken = isfinite(us_conv_largest_magnitude(&all));
    const KernelStatus status = *taken ? sum_phases(&plan, phases, count, finish) : KERNEL_OK;
    us_scratch_give_back(filters);
    return status;
}
