/* The sums of a gather in float32, and its slopes, whose vectors hold what neighbouring results get at one position: they meet
 * one value of the input at a time, that of a cell (kernels/conv/grid.h). Of depthwise filters they hold what neighbouring
 * channels get, of a value each. Planes may be as small as one likes: no lane is lost at the end of a row. */
#include "kernels/conv/grid.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* Lanes of a vector; neighbours in a row and rows whose sums are formed together, and so many at most, which stay in registers;
 * weights whose slopes are formed together, and of those that are left; work for a few threads. */
enum { WIDTH = REGISTER_BYTES / sizeof(float), ACROSS = 8, DOWN = 4, SUMS = REGISTER_BYTES == 64 ? 24 : 12, TOGETHER = 9,
       LEAST_TOGETHER = 3, FEW = 8 };

/* Results, or depthwise channels, that are worth vectors on every level; taps of a depthwise filter that are worth turning
 * round its channels. */
enum { LEAST = 16, LEAST_TAPS = 8 };

typedef float Lanes __attribute__((vector_size(REGISTER_BYTES), aligned(sizeof(float)), may_alias));

#define ELEMENT float
#define NAME(name) name##_float
#include "kernels/conv/copies.inc"
#undef ELEMENT
#undef NAME

/* Units share cells: a group, or WIDTH channels of depthwise filters. A piece has a set of them and a part of the positions. */
typedef struct Plan {
    const Gather *gather;
    bool own;                         /* depthwise: every lane has its own channel */
    int64_t depth;                    /* weights of a result */
    int64_t results, vectors, units;  /* of a unit; vectors of its results */
    int64_t cell;                     /* floats of a cell: one channel, or WIDTH */
    int64_t each, sets;               /* units of a set */
    GridCut cut;
} Plan;

static bool is_depthwise(const Gather *gather)
{
    return gather->channels == 1 && gather->results == 1;
}

static Plan plan_of(const Gather *gather)
{
    Plan plan = {.gather = gather, .own = is_depthwise(gather), .depth = gather->channels * gather_taps(gather)};
    plan.cell = plan.own ? WIDTH : 1;
    plan.units = plan.own ? ceiling(gather->groups, WIDTH) : gather->groups;
    plan.results = plan.own ? WIDTH : gather->results;
    plan.vectors = ceiling(plan.results, WIDTH);
    plan.cut = us_grid_cut(gather, gather->channels * plan.cell, ceiling(FEW, plan.units));
    plan.each = ceiling(plan.units, bounded(FEW / plan.cut.count, 1, plan.units));
    plan.sets = ceiling(plan.units, plan.each);
    return plan;
}

/* The first result of a vector of a unit, counted over all groups, and how many there are. */
static int64_t results_of(const Plan *plan, int64_t unit, int64_t vector, int64_t *first)
{
    const int64_t all = plan->gather->groups * plan->gather->results, end = smaller((unit + 1) * plan->results, all);
    *first = unit * plan->results + vector * WIDTH;
    return smaller(WIDTH, end - *first);
}

/* The same on every level: slopes are summed in another order than otherwise. */
bool us_lanes_take(const Gather *gather)
{
    const bool own = is_depthwise(gather);
    const int64_t wide = own ? gather->groups : gather->results, lanes = ceiling(wide, LEAST) * LEAST;
    return gather->compute == DTYPE_FLOAT32 && gather->in_type == DTYPE_FLOAT32 && !gather->channels_last && wide >= LEAST &&
           lanes - wide <= wide / 4 && (!own || gather_taps(gather) >= LEAST_TAPS) &&
           us_grid_fits(gather, own ? LEAST : gather->channels);
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Cells of a line that lie inside the input, and the positions that they hold, `step` apart, counted over all images. */
typedef struct Line {
    int64_t cell, position, image, count;
} Line;

/* A part of the positions, and the cells that they see of a unit. */
typedef struct Patch {
    const Plan *plan;
    GridPart part;
    Grid grid;
    int64_t rows, width;      /* rows of results */
    int64_t *starts;          /* of a row: what its first result sees of the first tap */
    int64_t shifts[GRID_MOST_TAPS];
    Line *lines;
    int64_t line_count;
    int64_t lowest, highest;  /* positions of an image that the lines reach from and to */
    float *cells;             /* [channel][cell], or [cell][channel]; those outside the input are zeros */
    float *turned;            /* positions of an image: [position][channel] */
} Patch;

static Patch patch_of(const Plan *plan, int64_t number)
{
    Patch patch = {.plan = plan, .part = us_grid_part(plan->gather, &plan->cut, number), .lowest = INT64_MAX};
    const int64_t *size = patch.part.gather.out_size;
    patch.rows = patch.part.gather.images * size[0] * size[1];
    patch.width = size[2];
    return patch;
}

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

/* The least memory of a patch, whose cells are yet to come; returns it for the caller to give back, NULL: there is none. */
static void *begin_patch(Patch *patch)
{
    const int64_t *out = patch->part.gather.out_size, lines = patch->grid.all / patch->grid.cells[2];
    const size_t of_starts = us_scratch_bytes(patch->rows, sizeof *patch->starts);
    char *memory = us_scratch_take(of_starts + us_scratch_bytes(lines, sizeof *patch->lines));
    if (memory == NULL) {
        return NULL;
    }
    patch->starts = (int64_t *)memory;
    patch->lines = (Line *)(memory + of_starts);
    for (int64_t row = 0; row < patch->rows; row++) {
        patch->starts[row] = us_grid_row(&patch->grid, row / (out[0] * out[1]), row % (out[0] * out[1])) * patch->plan->cell;
    }
    for (int64_t tap = 0; tap < gather_taps(patch->plan->gather); tap++) {
        patch->shifts[tap] = us_grid_shift(&patch->grid, tap) * patch->plan->cell;
    }
    us_grid_lines(&patch->grid, note_line, patch);
    return memory;
}

static size_t cell_bytes(const Patch *patch)
{
    const int64_t of_unit = us_scratch_count(patch->grid.all, patch->plan->gather->channels * patch->plan->cell);
    return us_scratch_bytes(of_unit, sizeof(float));
}

static size_t turned_bytes(const Patch *patch)
{
    const int64_t positions = patch->plan->own && patch->line_count > 0 ? patch->highest - patch->lowest : 0;
    return us_scratch_bytes(us_scratch_count(positions, WIDTH), sizeof(float));
}

/* Memory for cells and turned positions; all of them become zeros. */
static void take_cells(Patch *patch, char **cursor)
{
    const size_t cells = cell_bytes(patch), turned = turned_bytes(patch);
    patch->cells = us_scratch_part(cursor, cells);
    patch->turned = us_scratch_part(cursor, turned);
    memset(patch->cells, 0, cells);
    memset(patch->turned, 0, turned);
}

/* The channels of a group. */
static void pack_group(const Patch *patch, int64_t group)
{
    const Gather *gather = &patch->part.gather;
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
            us_transpose((char *)patch->turned, WIDTH * size, (const char *)(from + patch->lowest), plane * size, channels,
                         patch->highest - patch->lowest, size);
        }
        Lanes *to = (Lanes *)(patch->cells + line->cell * WIDTH);
        const Lanes *from = (const Lanes *)(patch->turned + (line->position - patch->lowest) * WIDTH);
        for (int64_t k = 0; k < line->count; k++) {
            to[k] = from[k * step];
        }
    }
}

/* ---- sums of a gather -------------------------------------------------------------------------------------------- */

typedef struct Work {
    Plan plan;
    const Finish *finish;
    const float *filter; /* packed */
    float *weights;      /* [unit][vector][channel][tap][lane] */
    atomic_bool no_memory;
} Work;

static void order_weights(void *context, int64_t number)
{
    const Work *work = context;
    const Plan *plan = &work->plan;
    const int64_t size = (int64_t)sizeof(float);
    int64_t first;
    const int64_t count = results_of(plan, number / plan->vectors, number % plan->vectors, &first);
    float *to = work->weights + number * plan->depth * WIDTH;
    if (count < WIDTH) {
        memset(to, 0, (size_t)(plan->depth * WIDTH) * sizeof *to);
    }
    us_transpose((char *)to, WIDTH * size, (const char *)(work->filter + first * plan->depth), plan->depth * size, count,
                 plan->depth, size);
}

/* The sums of `across` neighbours in some rows from `row` on: [position][lane]. */
US_ALWAYS_INLINE void sum_rows(const Patch *patch, bool own, int across, int down, const float *weights, int64_t row,
                               int64_t column, float *sums)
{
    const int64_t taps = gather_taps(patch->plan->gather), channels = patch->plan->gather->channels;
    const float *from[DOWN];
    Lanes sum[DOWN][ACROSS];
#pragma GCC unroll 4
    for (int i = 0; i < down; i++) {
        from[i] = patch->cells + patch->starts[smaller(row + i, patch->rows - 1)] + column * (own ? WIDTH : 1);
#pragma GCC unroll 8
        for (int j = 0; j < across; j++) {
            sum[i][j] = (Lanes){0};
        }
    }
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t tap = 0; tap < taps; tap++, weights += WIDTH) {
            const int64_t at = c * patch->grid.all + patch->shifts[tap];
            const Lanes weight = *(const Lanes *)weights;
#pragma GCC unroll 4
            for (int i = 0; i < down; i++) {
#pragma GCC unroll 8
                for (int j = 0; j < across; j++) {
                    sum[i][j] += own ? weight * *(const Lanes *)(from[i] + at + j * WIDTH) : weight * from[i][at + j];
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < down; i++) { /* rows behind the last one are that one once more */
        float *to = sums + (smaller(row + i, patch->rows - 1) * patch->width + column) * WIDTH;
#pragma GCC unroll 8
        for (int j = 0; j < across; j++) {
            *(Lanes *)(to + j * WIDTH) = sum[i][j];
        }
    }
}

US_ALWAYS_INLINE void sum_columns(const Patch *patch, bool own, int across, const float *weights, int64_t column, float *sums)
{
    const int fitting = SUMS / across, down = fitting < DOWN ? fitting : DOWN;
    for (int64_t row = 0; row < patch->rows; row += down) {
        sum_rows(patch, own, across, down, weights, row, column, sums);
    }
}

/* All positions of the patch, in columns as wide as each other. */
US_ALWAYS_INLINE void sum_positions(const Patch *patch, bool own, const float *weights, float *sums)
{
    const int64_t columns = ceiling(patch->width, ACROSS);
    for (int64_t i = 0; i < columns; i++) {
        const int64_t column = i * patch->width / columns, end = (i + 1) * patch->width / columns;
        switch (end - column) {
        case 1: sum_columns(patch, own, 1, weights, column, sums); break;
        case 2: sum_columns(patch, own, 2, weights, column, sums); break;
        case 3: sum_columns(patch, own, 3, weights, column, sums); break;
        case 4: sum_columns(patch, own, 4, weights, column, sums); break;
        case 5: sum_columns(patch, own, 5, weights, column, sums); break;
        case 6: sum_columns(patch, own, 6, weights, column, sums); break;
        case 7: sum_columns(patch, own, 7, weights, column, sums); break;
        default: sum_columns(patch, own, ACROSS, weights, column, sums); break;
        }
    }
}

static void sum_of_one(const Patch *patch, const float *weights, float *sums)
{
    sum_positions(patch, false, weights, sums);
}

static void sum_of_own(const Patch *patch, const float *weights, float *sums)
{
    sum_positions(patch, true, weights, sums);
}

/* The sums of some results, [position][lane], to where they belong; `ordered`: memory for as many. */
static void store_sums(const Patch *patch, const Finish *finish, int64_t first, int64_t results, const float *sums,
                       float *ordered)
{
    const GridPart *part = &patch->part;
    const int64_t image = conv_product3(patch->plan->gather->out_size), size = (int64_t)sizeof(float);
    for (int64_t done = 0, some; done < part->count; done += some) {
        const int64_t position = part->begin + done, within = position % image;
        some = smaller(part->count - done, image - within);
        float *plane = us_finish_plane(finish, DTYPE_FLOAT32, position / image, first);
        char *to = plane != NULL ? (char *)(plane + within) : (char *)(ordered + done);
        us_transpose(to, (plane != NULL ? finish->out.strides[1] : part->count) * size, (const char *)(sums + done * WIDTH),
                     WIDTH * size, some, results, size);
        if (plane != NULL) {
            continue;
        }
        for (int64_t k = 0; done + some == part->count && k < results; k++) {
            us_finish_positions(finish, DTYPE_FLOAT32, first + k, part->begin, part->count, ordered + k * part->count);
        }
    }
}

static void sum_piece(void *context, int64_t number)
{
    Work *work = context;
    const Plan *plan = &work->plan;
    Patch patch = patch_of(plan, number / plan->sets);
    patch.grid = us_grid_of(&patch.part.gather);
    void *begun = begin_patch(&patch);
    const size_t of_sums = us_scratch_bytes(us_scratch_count(patch.part.count, WIDTH), sizeof(float));
    char *memory = begun == NULL ? NULL : us_scratch_take(cell_bytes(&patch) + turned_bytes(&patch) + 2 * of_sums);
    if (memory == NULL) {
        us_scratch_give_back(begun);
        atomic_store(&work->no_memory, true);
        return;
    }
    char *cursor = memory;
    take_cells(&patch, &cursor);
    float *sums = us_scratch_part(&cursor, of_sums), *ordered = us_scratch_part(&cursor, of_sums);
    const int64_t begin = number % plan->sets * plan->each, end = smaller(begin + plan->each, plan->units);
    for (int64_t unit = begin; unit < end; unit++) {
        (plan->own ? pack_channels : pack_group)(&patch, unit);
        for (int64_t vector = 0; vector < plan->vectors; vector++) {
            int64_t first;
            const int64_t results = results_of(plan, unit, vector, &first);
            const float *weights = work->weights + (unit * plan->vectors + vector) * plan->depth * WIDTH;
            (plan->own ? sum_of_own : sum_of_one)(&patch, weights, sums);
            store_sums(&patch, work->finish, first, results, sums, ordered);
        }
    }
    us_scratch_give_back(memory);
    us_scratch_give_back(begun);
}

KernelStatus us_gather_by_lanes(const Gather *gather, const void *filter, const Finish *finish)
{
    Work work = {.plan = plan_of(gather), .finish = finish, .filter = filter};
    const int64_t vectors = work.plan.units * work.plan.vectors;
    work.weights = us_scratch_array(us_scratch_count(vectors * WIDTH, work.plan.depth), sizeof(float));
    if (work.weights == NULL) {
        return KERNEL_NO_MEMORY;
    }
    atomic_init(&work.no_memory, false);
    us_parallel(vectors, order_weights, &work);
    us_parallel(work.plan.cut.count * work.plan.sets, sum_piece, &work);
    us_scratch_give_back(work.weights);
    return atomic_load(&work.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- slopes ------------------------------------------------------------------------------------------------------ */

typedef struct Slopes {
    Plan plan;
    const float *dy;
    int64_t parts, parts_each; /* parts of the positions have their own sums; parts of the cut in each */
    float *sums;               /* [part][unit][vector][channel][tap][lane] */
    float *result;             /* packed */
    atomic_bool no_memory;
} Slopes;

/* Adds to the slopes of some weights, from `first` on, the products of dy with what their taps see: [weight][lane]. */
US_ALWAYS_INLINE void add_products(const Patch *patch, int count, const float *dy, int64_t first, float *slopes)
{
    const int64_t taps = gather_taps(patch->plan->gather);
    Lanes sum[TOGETHER];
    const float *seen[TOGETHER];
#pragma GCC unroll 9
    for (int i = 0; i < count; i++) {
        seen[i] = patch->cells + (first + i) / taps * patch->grid.all + patch->shifts[(first + i) % taps];
        sum[i] = (Lanes){0};
    }
    for (int64_t row = 0; row < patch->rows; row++) {
        for (int64_t at = patch->starts[row], end = at + patch->width; at < end; at++, dy += WIDTH) {
            const Lanes of_dy = *(const Lanes *)dy;
#pragma GCC unroll 9
            for (int i = 0; i < count; i++) {
                sum[i] += of_dy * seen[i][at];
            }
        }
    }
#pragma GCC unroll 9
    for (int i = 0; i < count; i++) {
        *(Lanes *)(slopes + (first + i) * WIDTH) += sum[i];
    }
}

static void add_all(const Patch *patch, const float *dy, float *slopes)
{
    const int64_t depth = patch->plan->depth;
    int64_t first = 0;
    for (; first + TOGETHER <= depth; first += TOGETHER) {
        add_products(patch, TOGETHER, dy, first, slopes);
    }
    for (; first + LEAST_TOGETHER <= depth; first += LEAST_TOGETHER) {
        add_products(patch, LEAST_TOGETHER, dy, first, slopes);
    }
    for (; first < depth; first++) {
        add_products(patch, 1, dy, first, slopes);
    }
}

/* dy of some results: [position][lane]. */
static void turn_dy(const Slopes *slopes, const Patch *patch, int64_t first, int64_t results, float *turned)
{
    const GridPart *part = &patch->part;
    const Gather *gather = slopes->plan.gather;
    const int64_t image = conv_product3(gather->out_size), size = (int64_t)sizeof(float);
    for (int64_t done = 0, some; done < part->count; done += some) {
        const int64_t position = part->begin + done, within = position % image;
        some = smaller(part->count - done, image - within);
        const float *from = slopes->dy + (position / image * gather->groups * gather->results + first) * image + within;
        us_transpose((char *)(turned + done * WIDTH), WIDTH * size, (const char *)from, image * size, results, some, size);
    }
}

/* Adds what a part of the positions gives a set of units; false: no memory. */
static bool add_part(const Slopes *slopes, int64_t number, int64_t begin, int64_t end, float *sums)
{
    const Plan *plan = &slopes->plan;
    Patch patch = patch_of(plan, number);
    patch.grid = us_grid_of(&patch.part.gather);
    void *begun = begin_patch(&patch);
    const size_t of_dy = us_scratch_bytes(us_scratch_count(patch.part.count, WIDTH), sizeof(float));
    char *memory = begun == NULL ? NULL : us_scratch_take(cell_bytes(&patch) + turned_bytes(&patch) + of_dy), *cursor = memory;
    if (memory != NULL) {
        take_cells(&patch, &cursor);
        memset(cursor, 0, of_dy);
    }
    for (int64_t unit = begin; memory != NULL && unit < end; unit++) {
        pack_group(&patch, unit);
        for (int64_t vector = 0; vector < plan->vectors; vector++) {
            int64_t first;
            const int64_t results = results_of(plan, unit, vector, &first);
            turn_dy(slopes, &patch, first, results, (float *)cursor);
            add_all(&patch, (const float *)cursor, sums + (unit * plan->vectors + vector) * plan->depth * WIDTH);
        }
    }
    us_scratch_give_back(memory);
    us_scratch_give_back(begun);
    return memory != NULL;
}

static int64_t floats_of_part(const Plan *plan)
{
    return us_scratch_count(plan->units * plan->vectors * WIDTH, plan->depth);
}

static void slope_piece(void *context, int64_t number)
{
    Slopes *slopes = context;
    const Plan *plan = &slopes->plan;
    const int64_t part = number % slopes->parts, begin = number / slopes->parts * plan->each;
    const int64_t end = smaller(begin + plan->each, plan->units), of_unit = plan->vectors * WIDTH * plan->depth;
    float *sums = slopes->sums + part * floats_of_part(plan);
    memset(sums + begin * of_unit, 0, (size_t)((end - begin) * of_unit) * sizeof *sums);
    for (int64_t of = part * slopes->parts_each; of < (part + 1) * slopes->parts_each && of < plan->cut.count; of++) {
        if (!add_part(slopes, of, begin, end, sums)) {
            atomic_store(&slopes->no_memory, true);
        }
    }
}

/* Adds up the parts of a vector of results, and turns them round. */
static void finish_vector(void *context, int64_t number)
{
    const Slopes *slopes = context;
    const Plan *plan = &slopes->plan;
    const int64_t count = plan->depth * WIDTH, size = (int64_t)sizeof(float);
    float *sums = slopes->sums + number * count;
    for (int64_t part = 1; part < slopes->parts; part++) {
        const float *more = sums + part * floats_of_part(plan);
        for (int64_t i = 0; i < count; i++) {
            sums[i] += more[i];
        }
    }
    int64_t first;
    const int64_t results = results_of(plan, number / plan->vectors, number % plan->vectors, &first);
    us_transpose((char *)(slopes->result + first * plan->depth), plan->depth * size, (const char *)sums, WIDTH * size,
                 plan->depth, results, size);
}

KernelStatus us_gather_slopes_by_lanes(const Gather *gather, const void *dy, void *sums)
{
    Slopes slopes = {.plan = plan_of(gather), .dy = dy, .result = sums};
    Plan *plan = &slopes.plan;
    plan->each = ceiling(plan->units, smaller(FEW, plan->units));
    plan->sets = ceiling(plan->units, plan->each);
    slopes.parts_each = ceiling(plan->cut.count, bounded(FEW / plan->sets, 1, plan->cut.count));
    slopes.parts = ceiling(plan->cut.count, slopes.parts_each);
    slopes.sums = us_scratch_array(us_scratch_count(slopes.parts, floats_of_part(plan)), sizeof(float));
    if (slopes.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    atomic_init(&slopes.no_memory, false);
    us_parallel(plan->sets * slopes.parts, slope_piece, &slopes);
    us_parallel(plan->units * plan->vectors, finish_vector, &slopes);
    us_scratch_give_back(slopes.sums);
    return atomic_load(&slopes.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
