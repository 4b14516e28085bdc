#include "kernels/conv/grid.h"

#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

/* Of a part: elements of the input, positions that are worth a part, and most. */
enum { PART_ELEMENTS = 192 * 1024, LEAST_POSITIONS = 128, MOST_POSITIONS = 1024 };

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static int64_t place_of(const Grid *grid, int axis, int64_t tap)
{
    const TapAxis *taps = &grid->gather->taps[axis];
    return taps->offset + tap * taps->offset_step - grid->lowest[axis];
}

Grid us_grid_of(const Gather *gather)
{
    Grid grid = {.gather = gather, .image = 1};
    for (int axis = 0; axis < CONV_AXES; axis++) {
        const TapAxis *taps = &gather->taps[axis];
        const int64_t step = gather->step[axis], last = taps->offset + (taps->count - 1) * taps->offset_step;
        grid.lowest[axis] = last < taps->offset ? last : taps->offset;
        int64_t farthest = 0, residue = 0;
        for (int64_t tap = 0; tap < taps->count; tap++) {
            const int64_t place = place_of(&grid, axis, tap);
            farthest = place / step > farthest ? place / step : farthest;
            residue = place % step > residue ? place % step : residue;
        }
        grid.cells[axis] = gather->out_size[axis] + farthest;
        grid.residues[axis] = residue + 1;
        grid.image *= grid.cells[axis] * grid.residues[axis];
    }
    grid.all = gather->images * grid.image;
    return grid;
}

/* The first cell of the grid of residues, within an image. */
static int64_t residue_start(const Grid *grid, const int64_t *residue)
{
    const int64_t number = (residue[0] * grid->residues[1] + residue[1]) * grid->residues[2] + residue[2];
    return number * conv_product3(grid->cells);
}

static int64_t cell_at(const Grid *grid, const int64_t *cell)
{
    return (cell[0] * grid->cells[1] + cell[1]) * grid->cells[2] + cell[2];
}

int64_t us_grid_shift(const Grid *grid, int64_t tap)
{
    int64_t residue[CONV_AXES], cell[CONV_AXES];
    for (int axis = CONV_AXES - 1; axis >= 0; axis--) {
        const int64_t count = grid->gather->taps[axis].count, place = place_of(grid, axis, tap % count);
        residue[axis] = place % grid->gather->step[axis];
        cell[axis] = place / grid->gather->step[axis];
        tap /= count;
    }
    return residue_start(grid, residue) + cell_at(grid, cell);
}

int64_t us_grid_row(const Grid *grid, int64_t image, int64_t row)
{
    const int64_t *out = grid->gather->out_size, cell[] = {row / out[1], row % out[1], 0};
    return image * grid->image + cell_at(grid, cell);
}

static int64_t cover(const Grid *grid, int64_t width, int32_t *starts, int32_t *slots)
{
    const int64_t *out = grid->gather->out_size, rows = out[0] * out[1];
    int64_t runs = 0;
    for (int64_t row = 0; row < grid->gather->images * rows; row++) {
        const int64_t first = us_grid_row(grid, row / rows, row % rows);
        for (int64_t i = first; i < first + out[2]; i++) {
            if (runs == 0 || i >= starts[runs - 1] + width) {
                starts[runs++] = (int32_t)i;
            }
            *slots++ = (int32_t)((runs - 1) * width + i - starts[runs - 1]);
        }
    }
    starts[runs] = starts[runs - 1];
    return runs;
}

void *us_grid_cover(const Grid *grid, int64_t width, int32_t **starts, int32_t **slots, int64_t *runs)
{
    const int64_t count = gather_positions(grid->gather);
    const size_t first = us_scratch_bytes(count + 1, sizeof **starts);
    char *memory = us_scratch_take(first + us_scratch_bytes(count, sizeof **slots));
    if (memory != NULL) {
        *starts = (int32_t *)memory;
        *slots = (int32_t *)(memory + first);
        *runs = cover(grid, width, *starts, *slots);
    }
    return memory;
}

/* ---- the input --------------------------------------------------------------------------------------------------- */

/* Where the input's index in a cell is; false: outside. */
static bool index_at(const Grid *grid, int axis, int64_t residue, int64_t cell, int64_t *index)
{
    *index = grid->lowest[axis] + residue + cell * grid->gather->step[axis];
    return *index >= 0 && *index < grid->gather->in_size[axis];
}

static void visit_row(const Grid *grid, const int64_t *residue, int64_t row, bool outside, GridLine *line, GridVisit *visit,
                      void *context)
{
    const int64_t step = grid->gather->step[2], size = grid->gather->in_size[2], cells = grid->cells[2];
    const int64_t origin = grid->lowest[2] + residue[2]; /* the index in the first cell */
    const int64_t before = origin < 0 ? ceiling(-origin, step) : 0, index = origin + before * step;
    line->before = outside || before > cells ? cells : before;
    line->count = size > index ? ceiling(size - index, step) : 0;
    line->count = line->count < cells - line->before ? line->count : cells - line->before;
    line->behind = cells - line->before - line->count;
    line->position = line->count > 0 ? row * size + index : 0;
    visit(context, line);
    line->cell += cells;
}

void us_grid_lines(const Grid *grid, GridVisit *visit, void *context)
{
    const int64_t *residues = grid->residues, *cells = grid->cells, rows = cells[0] * cells[1];
    GridLine line = {.step = grid->gather->step[2]};
    for (; line.image < grid->gather->images; line.image++) {
        for (int64_t number = 0; number < conv_product3(residues) * rows; number++) {
            const int64_t of = number / rows, cell[2] = {number % rows / cells[1], number % cells[1]};
            const int64_t residue[] = {of / residues[2] / residues[1], of / residues[2] % residues[1], of % residues[2]};
            int64_t index[2];
            const bool outside = !index_at(grid, 0, residue[0], cell[0], &index[0]) |
                                 !index_at(grid, 1, residue[1], cell[1], &index[1]);
            visit_row(grid, residue, index[0] * grid->gather->in_size[1] + index[1], outside, &line, visit, context);
        }
    }
}

Bf16Operand us_grid_operand(const Gather *gather, const GridLine *line, int64_t first, int64_t channels)
{
    const int64_t plane = conv_product3(gather->in_size), all = gather->groups * gather->channels;
    const int64_t position = gather->channels_last ? all : 1, channel = gather->channels_last ? 1 : plane;
    const int64_t start = line->image * plane * all + line->position * position + first * channel;
    return (Bf16Operand){.data = (const uint16_t *)gather->in + start, .dtype = gather->column_type, .lines = line->count,
                         .depth = channels, .line_step = line->step * position, .depth_step = channel};
}

typedef struct Search {
    const uint16_t *numbers;
    int64_t count, each;
    Bf16Range *ranges;
} Search;

static void search(void *context, int64_t piece)
{
    const Search *search = context;
    const int64_t begin = piece * search->each, left = search->count - begin;
    search->ranges[piece] = us_bf16_range(search->numbers + begin, left < search->each ? left : search->each);
}

int64_t us_grid_elements(const Gather *gather)
{
    return gather->images * gather->groups * gather->channels * conv_product3(gather->in_size);
}

Bf16Range us_grid_range(const void *numbers, int64_t count)
{
    enum { PIECES = 16, LEAST = 16 * 1024 };
    Bf16Range ranges[PIECES], whole = us_bf16_no_range();
    Search work = {numbers, count, ceiling(count, PIECES) > LEAST ? ceiling(count, PIECES) : LEAST, ranges};
    const int64_t pieces = ceiling(count, work.each);
    us_parallel(pieces, search, &work);
    for (int64_t i = 0; i < pieces; i++) {
        whole = us_bf16_both(whole, ranges[i]);
    }
    return whole;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static int first_axis(const Gather *gather)
{
    return gather->out_size[0] > 1 ? 0 : gather->out_size[1] > 1 ? 1 : 2;
}

/* Halves parts while they are too large, or too few. */
GridCut us_grid_cut(const Gather *gather, int64_t channels, int64_t least_parts)
{
    GridCut cut = {.axis = first_axis(gather)};
    const int64_t size = gather->out_size[cut.axis], image = conv_product3(gather->out_size), row = image / size;
    const int64_t cells = us_grid_of(gather).image, fitting = PART_ELEMENTS / channels / cells;
    const int64_t together = ceiling(MOST_POSITIONS, image) < fitting ? ceiling(MOST_POSITIONS, image) : fitting;
    cut.images = together < 1 ? 1 : together < gather->images ? together : gather->images;
    while (cut.images > 1 && ceiling(gather->images, cut.images) < least_parts) {
        cut.images = (cut.images + 1) / 2;
    }
    cut.rows = size;
    while (cut.images == 1 && cut.rows * row >= 2 * LEAST_POSITIONS && cut.rows > 1 &&
           (cut.rows * row > 2 * MOST_POSITIONS || cells * channels / size * cut.rows > 2 * PART_ELEMENTS ||
            gather->images * ceiling(size, cut.rows) < least_parts)) {
        cut.rows = (cut.rows + 1) / 2;
    }
    cut.per_image = ceiling(size, cut.rows);
    cut.count = ceiling(gather->images, cut.images) * cut.per_image;
    return cut;
}

GridPart us_grid_part(const Gather *gather, const GridCut *cut, int64_t number)
{
    GridPart part = {.gather = *gather};
    const int64_t image = number / cut->per_image * cut->images, row = number % cut->per_image * cut->rows;
    const int64_t in_image = gather->groups * gather->channels * conv_product3(gather->in_size);
    const int64_t left = gather->images - image, rows_left = gather->out_size[cut->axis] - row;
    part.gather.in = (const char *)gather->in + image * in_image * (int64_t)us_dtype_size(gather->in_type);
    part.gather.images = left < cut->images ? left : cut->images;
    part.gather.out_size[cut->axis] = rows_left < cut->rows ? rows_left : cut->rows;
    part.gather.taps[cut->axis].offset += row * gather->step[cut->axis];
    part.begin = image * conv_product3(gather->out_size) +
                 row * (conv_product3(gather->out_size) / gather->out_size[cut->axis]);
    part.count = gather_positions(&part.gather);
    return part;
}

/* Whether the elements of an image's cells can be counted: taps may be as far apart as one likes. */
static bool is_countable(const Gather *gather, int64_t channels)
{
    double elements = (double)channels;
    for (int axis = 0; axis < CONV_AXES; axis++) {
        const double step = (double)gather->step[axis], apart = (double)gather->taps[axis].offset_step;
        const double reach = (double)(gather->taps[axis].count - 1) * (apart < 0 ? -apart : apart);
        elements *= ((double)gather->out_size[axis] + reach / step) * (reach + 1 < step ? reach + 1 : step);
    }
    return elements < 0x1p50;
}

bool us_grid_fits(const Gather *gather, int64_t channels)
{
    enum { MOST_ELEMENTS = 1 << 22, MOST_SUMS = 1 << 16 }; /* a part's sums: 32 MiB */
    const int64_t taps = gather_taps(gather);
    if (taps == 0 || taps > GRID_MOST_TAPS || channels == 0 || gather_positions(gather) == 0 ||
        !is_countable(gather, channels)) {
        return false;
    }
    const GridCut cut = us_grid_cut(gather, channels, 1);
    const GridPart part = us_grid_part(gather, &cut, 0);
    return us_grid_of(&part.gather).all <= MOST_ELEMENTS / channels && part.count <= MOST_SUMS;
}

bool us_grid_takes(const Gather *gather)
{
    enum { WASTE = 3 };
    if (gather->column_type == gather->compute || gather->in_type != gather->column_type || us_gather_is_pointwise(gather) ||
        !us_grid_fits(gather, gather->channels)) {
        return false;
    }
    const int64_t width = gather->out_size[2], cells = us_grid_of(gather).cells[2];
    const int64_t beside = cells < 2 * width ? cells : ceiling(width, 16) * 16;
    const double padded = (double)(ceiling(gather->channels, BF16_DEEP) * BF16_DEEP) * (double)beside;
    return padded <= WASTE * (double)gather->channels * (double)width;
}
