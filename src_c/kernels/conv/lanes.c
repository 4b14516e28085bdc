#include "kernels/conv/lanes.h"

#include "kernels/move/transpose.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"

#include <string.h>

/* Results, or depthwise channels, that are worth vectors on every level; taps of a depthwise filter that are worth turning
 * round its channels. */
enum { LEAST = 16, LEAST_TAPS = 8 };

#define ELEMENT float
#define NAME(name) name##_float
#include "kernels/conv/copies.inc"
#undef ELEMENT
#undef NAME

static bool is_depthwise(const Gather *gather)
{
    return gather->channels == 1 && gather->results == 1;
}

Plan us_lanes_plan(const Gather *gather)
{
    Plan plan = {.gather = gather, .own = is_depthwise(gather), .depth = gather->channels * gather_taps(gather)};
    plan.cell = plan.own ? WIDTH : 1;
    plan.units = plan.own ? ceiling(gather->groups, WIDTH) : gather->groups;
    plan.results = plan.own ? WIDTH : gather->results;
    plan.vectors = ceiling(plan.results, WIDTH);
    plan.blocks = ceiling(plan.vectors, 2);
    plan.cut = us_grid_cut(gather, gather->channels * plan.cell, ceiling(FEW, plan.units));
    plan.each = ceiling(plan.units, bounded(FEW / plan.cut.count, 1, plan.units));
    plan.sets = ceiling(plan.units, plan.each);
    return plan;
}

Block us_lanes_block(const Plan *plan, int64_t number)
{
    const int64_t unit = number / plan->blocks, vector = number % plan->blocks * 2;
    const int64_t lanes = smaller(2, plan->vectors - vector) * WIDTH;
    const int64_t all = plan->gather->groups * plan->gather->results;
    const int64_t first = unit * plan->results + vector * WIDTH, end = smaller((unit + 1) * plan->results, all);
    return (Block){.vector = unit * plan->vectors + vector, .lanes = lanes, .first = first,
                   .results = smaller(lanes, end - first)};
}

/* The same on every level: slopes are summed in another order than otherwise. */
static bool has_lanes(const Gather *gather)
{
    const bool own = is_depthwise(gather);
    const int64_t wide = own ? gather->groups : gather->results, lanes = ceiling(wide, LEAST) * LEAST;
    return gather->compute == DTYPE_FLOAT32 && gather->in_type == DTYPE_FLOAT32 && !gather->channels_last && wide >= LEAST &&
           lanes - wide <= wide / 4 && us_grid_fits(gather, own ? LEAST : gather->channels);
}

bool us_lanes_take(const Gather *gather)
{
    return has_lanes(gather) && (!is_depthwise(gather) || gather_taps(gather) >= LEAST_TAPS);
}

bool us_lanes_take_phases(const GatherPhase *phases, int64_t count)
{
    enum { MOST_POSITIONS = 1 << 16 }; /* of an image's results, which are summed in memory */
    const Gather *any = &phases->gather;
    const int64_t units = is_depthwise(any) ? ceiling(any->groups, LEAST) : any->groups;
    int64_t taps = 0, positions = 0;
    for (int64_t k = 0; k < count; k++) {
        if (!has_lanes(&phases[k].gather)) {
            return false;
        }
        taps += gather_taps(&phases[k].gather);
        positions += conv_product3(phases[k].gather.out_size);
    }
    return taps >= LEAST_TAPS && positions <= MOST_POSITIONS && any->images >= ceiling(FEW, units);
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static void note_line(void *context, const GridLine *line)
{
    Patch *patch = context;
    if (line->count > 0) {
        const int64_t last = line->position + (line->count - 1) * line->step;
        patch->lines[patch->line_count++] = (Line){line->cell + line->before, line->position, line->image, line->count};
        patch->lowest = smaller(patch->lowest, line->position);
        patch->highest = larger(patch->highest, last + 1);
    }
}

Among us_lanes_all(const int64_t *size)
{
    return (Among){.stride = {1, 1, 1}, .size = {size[0], size[1], size[2]}};
}

/* Where the rows of results see the cells, and where their sums stand. */
static void note_rows(Patch *patch, const Among *among)
{
    const int64_t *out = patch->part.gather.out_size, *size = among->size, *stride = among->stride, *first = among->first;
    const int64_t *step = patch->part.gather.step, *step_seen = patch->seen.step;
    patch->step = stride[2] * WIDTH;
    for (int64_t i = 0; i < patch->rows; i++) {
        const int64_t image = i / (out[0] * out[1]), i0 = i / out[1] % out[0], i1 = i % out[1];
        const int64_t row = i0 * (step[0] / step_seen[0]) * patch->seen.out_size[1] + i1 * (step[1] / step_seen[1]);
        const int64_t of0 = i0 * stride[0] + first[0], of1 = i1 * stride[1] + first[1];
        patch->starts[i] = us_grid_row(&patch->grid, image, row) * patch->plan->cell;
        patch->places[i] = (((image * size[0] + of0) * size[1] + of1) * size[2] + first[2]) * WIDTH;
    }
}

/* A gather of as many taps whose steps are 1, of which the results of another are some: its grid has one residue only, whose
 * lines are copied as they are. For a single value at a time, that need not lie beside the next one. */
static Gather without_steps(const Gather *gather)
{
    Gather dense = *gather;
    for (int axis = 0; axis < CONV_AXES; axis++) {
        dense.out_size[axis] = (gather->out_size[axis] - 1) * gather->step[axis] + 1;
        dense.step[axis] = 1;
    }
    return dense;
}

Patch us_lanes_patch(const Plan *plan, const Gather *gather, int64_t number)
{
    Patch patch = {.plan = plan, .part = us_grid_part(gather, &plan->cut, number), .lowest = INT64_MAX};
    const int64_t *out = patch.part.gather.out_size, *step = gather->step;
    const bool dense = !plan->own && step[2] == LANES_STEP && step[1] <= LANES_STEP && step[0] <= LANES_STEP;
    patch.rows = patch.part.gather.images * out[0] * out[1];
    patch.width = out[2];
    patch.apart = dense ? LANES_STEP : plan->cell;
    patch.seen = dense ? without_steps(&patch.part.gather) : patch.part.gather;
    return patch;
}

static int64_t most_lines(const Grid *grid)
{
    return grid->all / grid->cells[2];
}

size_t us_lanes_patch_bytes(const Patch *patch)
{
    const Grid grid = us_grid_of(&patch->seen);
    return 2 * us_scratch_bytes(patch->rows, sizeof *patch->starts) + us_scratch_bytes(most_lines(&grid), sizeof *patch->lines);
}

void us_lanes_begin(Patch *patch, const Among *among, char **cursor)
{
    const size_t of_rows = us_scratch_bytes(patch->rows, sizeof *patch->starts);
    patch->grid = us_grid_of(&patch->seen);
    patch->starts = us_scratch_part(cursor, of_rows);
    patch->places = us_scratch_part(cursor, of_rows);
    patch->lines = us_scratch_part(cursor, us_scratch_bytes(most_lines(&patch->grid), sizeof *patch->lines));
    note_rows(patch, among);
    for (int64_t tap = 0; tap < gather_taps(&patch->part.gather); tap++) {
        patch->shifts[tap] = us_grid_shift(&patch->grid, tap) * patch->plan->cell;
    }
    us_grid_lines(&patch->grid, note_line, patch);
}

static size_t turned_bytes(const Patch *patch)
{
    const int64_t positions = patch->plan->own && patch->line_count > 0 ? patch->highest - patch->lowest : 0;
    return us_scratch_bytes(us_scratch_count(positions, WIDTH), sizeof(float));
}

size_t us_lanes_cell_bytes(const Patch *patch)
{
    const int64_t of_unit = us_scratch_count(patch->grid.all, patch->plan->gather->channels * patch->plan->cell);
    return us_scratch_bytes(of_unit, sizeof(float)) + turned_bytes(patch);
}

void us_lanes_take_cells(Patch *patch, char **cursor)
{
    const size_t bytes = us_lanes_cell_bytes(patch), turned = turned_bytes(patch);
    char *memory = us_scratch_part(cursor, bytes);
    patch->cells = (float *)memory;
    patch->turned = (float *)(memory + bytes - turned);
    memset(memory, 0, bytes);
}

/* The channels of a group. */
static void pack_group(const Patch *patch, int64_t group)
{
    const Gather *gather = &patch->seen;
    const int64_t plane = conv_product3(gather->in_size), channels = gather->channels;
    for (int64_t i = 0; i < patch->line_count; i++) {
        const Line *line = &patch->lines[i];
        const Part part = {.inside = line->count};
        const int64_t first = (line->image * gather->groups + group) * channels * plane + line->position;
        for (int64_t c = 0; c < channels; c++) {
            copy_part_float(patch->cells + c * patch->grid.all + line->cell, (const float *)gather->in + first + c * plane,
                            &part, line->count, gather->step[2]);
        }
    }
}

/* Positions that are turned round at a time: they stay in the first cache. */
enum { TURNED = 64 };

/* The channels in the lanes of a unit: an image's are turned round together. In the last unit some lanes have none. */
static void pack_channels(const Patch *patch, int64_t unit)
{
    const Gather *gather = &patch->part.gather;
    const int64_t plane = conv_product3(gather->in_size), step = gather->step[2], size = (int64_t)sizeof(float);
    const int64_t channels = smaller(WIDTH, gather->groups - unit * WIDTH);
    if (channels < WIDTH) {
        memset(patch->turned, 0, turned_bytes(patch));
    }
    for (int64_t i = 0; i < patch->line_count; i++) {
        const Line *line = &patch->lines[i];
        if (i == 0 || line->image != line[-1].image) {
            const float *from = (const float *)gather->in + (line->image * gather->groups + unit * WIDTH) * plane;
            for (int64_t first = patch->lowest; first < patch->highest; first += TURNED) {
                float *to = patch->turned + (first - patch->lowest) * WIDTH;
                const Transposed piece = {.to = (char *)to, .from = (const char *)(from + first), .to_row = WIDTH * size,
                                          .from_row = plane * size, .rows = channels,
                                          .columns = smaller(TURNED, patch->highest - first), .next = TURNED * size};
                us_transpose_part(&piece, size);
            }
        }
        Lanes *to = (Lanes *)(patch->cells + line->cell * WIDTH);
        const Lanes *from = (const Lanes *)(patch->turned + (line->position - patch->lowest) * WIDTH);
        for (int64_t k = 0; k < line->count; k++) {
            to[k] = from[k * step];
        }
    }
}

void us_lanes_pack(const Patch *patch, int64_t unit)
{
    (patch->plan->own ? pack_channels : pack_group)(patch, unit);
}
