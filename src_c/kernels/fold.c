#include "kernels/fold.h"

#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <stdlib.h>

/* Blocks from which on there is work for all threads without cutting the reduced elements; otherwise chunks of about
 * so many elements, not more than that many. Columns that short rows are put together to. Elements of a panel in place.
 * Elements from which on it is worth waking other threads.
 * Elements of a group that its mean is guessed from. Elements of the largest small plane where groups
 * have several, and where they have one. */
enum {
    ENOUGH_BLOCKS = 16,
    CHUNK_ELEMENTS = 16 * 1024,
    CHUNK_LIMIT = 64,
    LINE = 32,
    PANEL_ELEMENTS = 16 * 1024,
    SERIAL_ELEMENTS = 16 * 1024,
    GUESS_ELEMENTS = 4,
    PLANE_LIMIT = FOLD_WIDTH - LANES,
    SINGLE_PLANE_LIMIT = 256,
};

/* The axes of one kind, sorted by the first operand's strides, outermost first; axes of size 1 are left out. */
static void sort_axes(FoldAxes *axes, const View *model, const bool *keeps, bool kept)
{
    axes->order_count = 0;
    for (int32_t axis = 0; axis < model->rank; axis++) {
        if (keeps[axis] != kept || model->shape[axis] == 1) {
            continue;
        }
        int32_t place = axes->order_count++;
        while (place > 0 && llabs(model->strides[axes->order[place - 1]]) < llabs(model->strides[axis])) {
            axes->order[place] = axes->order[place - 1];
            place--;
        }
        axes->order[place] = axis;
    }
}

static bool merges(const Fold *fold, const FoldAxes *axes, int32_t axis)
{
    for (int k = 0; k < fold->operand_count; k++) {
        const View *view = &fold->operands[k];
        if (!us_view_is_absent(view) && axes->strides[k][axes->rank - 1] != view->strides[axis] * view->shape[axis]) {
            return false;
        }
    }
    return true;
}

/* An axis of one element. */
static void set_one(FoldAxes *axes)
{
    axes->rank = 1;
    axes->sizes[0] = 1;
    for (int k = 0; k < FOLD_OPERANDS; k++) {
        axes->strides[k][0] = 0;
    }
}

static void merge_axes(const Fold *fold, FoldAxes *axes)
{
    axes->rank = 0;
    axes->count = 1;
    for (int32_t i = 0; i < axes->order_count; i++) {
        int32_t axis = axes->order[i];
        int64_t size = fold->operands[0].shape[axis];
        if (axes->rank > 0 && merges(fold, axes, axis)) {
            axes->sizes[axes->rank - 1] *= size;
        } else {
            axes->sizes[axes->rank++] = size;
        }
        for (int k = 0; k < fold->operand_count; k++) {
            const View *view = &fold->operands[k];
            axes->strides[k][axes->rank - 1] = us_view_is_absent(view) ? 0 : view->strides[axis]; /* which has no axes */
        }
        axes->count *= size;
    }
    if (axes->rank == 0) {
        set_one(axes);
    }
}

/* The last reduced axis of an operand lies between neighbouring groups without gaps. */
static bool has_planes(const Fold *fold, int operand)
{
    const FoldAxes *kept = &fold->kept, *reduced = &fold->reduced;
    return us_view_is_absent(&fold->operands[operand]) ||
           (reduced->strides[operand][reduced->rank - 1] == 1 &&
            kept->strides[operand][kept->rank - 1] == reduced->sizes[reduced->rank - 1]);
}

/* Takes small planes from the reduced axes. Rows are as long as a line at least. */
static void take_planes(Fold *fold)
{
    FoldAxes *reduced = &fold->reduced;
    const int64_t plane = reduced->sizes[reduced->rank - 1], run = fold->kept.sizes[fold->kept.rank - 1];
    const int64_t limit = reduced->count > plane ? PLANE_LIMIT : SINGLE_PLANE_LIMIT;
    if (run == 1 || plane > limit || plane * smaller(run, LINE) < LINE) {
        return;
    }
    for (int k = 0; k < fold->operand_count; k++) {
        if (!has_planes(fold, k)) {
            return;
        }
    }
    fold->plane = plane;
    reduced->count /= plane;
    if (--reduced->rank == 0) {
        set_one(reduced);
    }
}

/* Groups of a block where `run` neighbours have planes: as many in every block and, where that can be, such that rows
 * are whole vectors. Behind a row there is room for a vector. */
static int64_t planes_width(const Fold *fold, int64_t run)
{
    int64_t step = LANES;
    for (int64_t plane = fold->plane; plane % 2 == 0 && step > 1; plane /= 2) {
        step /= 2;
    }
    const int64_t most = (FOLD_WIDTH - LANES) / fold->plane;
    step = most < step ? 1 : step;
    return ceiling(ceiling(run, ceiling(run, most - most % step)), step) * step;
}

static void cut(Fold *fold, bool by_row)
{
    const int64_t run = fold->kept.sizes[fold->kept.rank - 1];
    const int64_t kept_stride = llabs(fold->kept.strides[0][fold->kept.rank - 1]);
    const int64_t reduced_stride = llabs(fold->reduced.strides[0][fold->reduced.rank - 1]);
    const bool groups_innermost =
        by_row || (fold->kept.count > 1 && (fold->reduced.count == 1 || kept_stride < reduced_stride));
    fold->width = groups_innermost ? smaller(run, FOLD_WIDTH) : 1;
    if (fold->plane > 1) {
        fold->width = planes_width(fold, run);
    }
    fold->blocks_per_run = ceiling(run, fold->width);
    fold->blocks = fold->kept.count / run * fold->blocks_per_run;
    const int64_t block_elements = fold->elements * fold->width;
    const int64_t chunks = fold->blocks >= ENOUGH_BLOCKS ? 1 : ceiling(block_elements, CHUNK_ELEMENTS);
    fold->chunk_elements = ceiling(fold->reduced.count, smaller(chunks, CHUNK_LIMIT));
    fold->chunks = ceiling(fold->reduced.count, fold->chunk_elements);
}

/* Lines are put together where every row has the full width. */
static void lay_out(Fold *fold, bool by_row)
{
    const bool even = fold->kept.sizes[fold->kept.rank - 1] % fold->width == 0;
    const bool stacks = even && fold->plane == 1 && !(by_row && fold->width % 8 != 0) && fold->width < LINE;
    fold->stack = stacks ? LINE / fold->width : 1;
    bool gathers = false;
    for (int k = 0; k < fold->operand_count; k++) {
        const int64_t along_row = fold->kept.strides[k][fold->kept.rank - 1];
        const int64_t along_run = fold->reduced.strides[k][fold->reduced.rank - 1];
        fold->gathers[k] =
            (fold->width > 1 && along_row != fold->plane) || (fold->stack > 1 && along_run != fold->width);
        gathers |= fold->gathers[k] && !us_view_is_absent(&fold->operands[k]);
    }
    const int64_t line = fold->stack * fold->width * fold->plane;
    fold->panel_rows = (gathers ? FOLD_TILE : PANEL_ELEMENTS) / line * fold->stack;
}

void us_fold_begin(Fold *fold, int operand_count, const View *operands, const bool *keeps, bool by_row)
{
    fold->operand_count = operand_count;
    for (int k = 0; k < operand_count; k++) {
        fold->operands[k] = operands[k];
    }
    sort_axes(&fold->kept, &operands[0], keeps, true);
    sort_axes(&fold->reduced, &operands[0], keeps, false);
    merge_axes(fold, &fold->kept);
    merge_axes(fold, &fold->reduced);
    fold->elements = fold->reduced.count;
    fold->plane = 1;
    if (!by_row) {
        take_planes(fold);
    }
    cut(fold, by_row);
    lay_out(fold, by_row);
}

bool us_fold_cut_by_memory(Fold *fold)
{
    const FoldAxes *kept = &fold->kept, *reduced = &fold->reduced;
    if (fold->width > 1 || fold->plane > 1 || fold->blocks == 1 || reduced->rank == 1 ||
        llabs(reduced->strides[0][0]) < llabs(kept->strides[0][0])) {
        return false;
    }
    fold->chunks = reduced->sizes[0];
    fold->chunk_elements = reduced->count / fold->chunks;
    return true;
}

void us_fold_groups(const Fold *fold, int64_t block, int64_t *first, int64_t *count)
{
    const int64_t run = fold->kept.sizes[fold->kept.rank - 1];
    const int64_t begin = block % fold->blocks_per_run * fold->width;
    *first = block / fold->blocks_per_run * run + begin;
    *count = smaller(run - begin, fold->width);
}

/* Offset of element `position` of the axes, in row-major order of the merged sizes. */
static int64_t offset_at(const FoldAxes *axes, int operand, int64_t position)
{
    int64_t offset = 0;
    for (int32_t axis = axes->rank - 1; axis >= 0; axis--) {
        offset += position % axes->sizes[axis] * axes->strides[operand][axis];
        position /= axes->sizes[axis];
    }
    return offset;
}

void us_fold_guess(const Fold *fold, int operand, int64_t block, double *values)
{
    int64_t group, groups;
    us_fold_groups(fold, block, &group, &groups);
    const View *view = &fold->operands[operand];
    const int64_t base = offset_at(&fold->kept, operand, group), count = smaller(fold->elements, GUESS_ELEMENTS);
    const int64_t stride = fold->kept.strides[operand][fold->kept.rank - 1];
    float row[FOLD_WIDTH], sum[FOLD_WIDTH];
    for (int64_t position = 0; position < count; position++) {
        const int64_t row_offset = offset_at(&fold->reduced, operand, position / fold->plane);
        const int64_t offset = base + row_offset + position % fold->plane;
        const char *data = (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
        if (view->dtype == DTYPE_FLOAT64) {
            us_load_double(values, data, view->dtype, stride, groups);
            return;
        }
        us_load_float(row, data, view->dtype, stride, groups);
        for (int64_t i = 0; i < groups; i++) {
            sum[i] = position == 0 ? row[i] : sum[i] + row[i];
        }
    }
    const float weight = 1.0f / (float)count;
    for (int64_t i = 0; i < groups; i++) {
        values[i] = (double)(sum[i] * weight);
    }
}

/* ---- panels ---- */

/* Elements of `size` bytes between memory with gaps and rows without. */
static void copy_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride, size_t size,
                          int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t a = i * to_stride, b = i * from_stride;
        switch (size) {
        case 2: ((uint16_t *)to)[a] = ((const uint16_t *)from)[b]; break;
        case 4: ((uint32_t *)to)[a] = ((const uint32_t *)from)[b]; break;
        default: ((uint64_t *)to)[a] = ((const uint64_t *)from)[b]; break;
        }
    }
}

/* Between the tile of an operand and its place in memory. */
static void move_tile(const Fold *fold, const Panel *panel, int operand, char *data, bool store)
{
    const size_t size = us_dtype_size(fold->operands[operand].dtype);
    const int64_t along_row = fold->kept.strides[operand][fold->kept.rank - 1] * (int64_t)size;
    const int64_t along_run = fold->reduced.strides[operand][fold->reduced.rank - 1] * (int64_t)size;
    const int64_t tile_row = panel->width * (int64_t)size;
    char *tile = panel->data[operand];
    const bool rows = panel->width > 1; /* the longer loop inside */
    const int64_t outer = rows ? panel->rows : 1, inner = rows ? panel->width : panel->rows;
    const int64_t stride = (rows ? along_row : along_run) / (int64_t)size;
    for (int64_t i = 0; i < outer; i++, tile += tile_row, data += along_run) {
        if (store) {
            copy_elements(data, stride, tile, 1, size, inner);
        } else {
            copy_elements(tile, 1, data, stride, size, inner);
        }
    }
}

typedef union Tile {
    uint64_t elements[FOLD_TILE];
} __attribute__((aligned(64))) Tile;

/* Walks one chunk of one block. */
typedef struct Walk {
    const Fold *fold;
    int64_t bases[FOLD_OPERANDS]; /* offset of the first group */
    int64_t groups;
    FoldAccess access;
    PanelVisit *visit;
    void *context;
} Walk;

static char *place_of(const Walk *walk, int operand, int64_t position)
{
    const View *view = &walk->fold->operands[operand];
    const int64_t offset = walk->bases[operand] + offset_at(&walk->fold->reduced, operand, position);
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* Bytes from one panel to the next one, unless that follows in memory: then the processor foresees it. */
static int64_t bytes_ahead(const Walk *walk, const Panel *panel, int operand, const char *place, int64_t next)
{
    const int64_t size = (int64_t)us_dtype_size(walk->fold->operands[operand].dtype);
    const int64_t bytes = place_of(walk, operand, next) - place;
    return walk->fold->gathers[operand] || bytes == panel->rows * panel->row_stride[operand] * size ? 0 : bytes;
}

/* `next`: the position of the next panel, or the same again. */
static void visit_panel(const Walk *walk, int64_t position, int64_t rows, int64_t next)
{
    const Fold *fold = walk->fold;
    Tile tiles[FOLD_OPERANDS];
    char *places[FOLD_OPERANDS];
    Panel panel = {.rows = rows, .width = walk->groups * fold->plane, .first_row = position};
    const unsigned used = walk->access.reads | walk->access.writes;
    for (int k = 0; k < fold->operand_count; k++) {
        if (!(used >> k & 1)) {
            continue;
        }
        places[k] = place_of(walk, k, position);
        panel.data[k] = fold->gathers[k] ? (char *)&tiles[k] : places[k];
        panel.row_stride[k] = fold->gathers[k] ? panel.width : fold->reduced.strides[k][fold->reduced.rank - 1];
        panel.ahead[k] = bytes_ahead(walk, &panel, k, places[k], next);
        if (fold->gathers[k] && walk->access.reads >> k & 1) {
            move_tile(fold, &panel, k, places[k], false);
        }
    }
    walk->visit(walk->context, &panel);
    for (int k = 0; k < fold->operand_count; k++) {
        if (fold->gathers[k] && walk->access.writes >> k & 1) {
            move_tile(fold, &panel, k, places[k], true);
        }
    }
}

void us_fold_walk(const Fold *fold, int64_t block, int64_t chunk, FoldAccess access, PanelVisit *visit, void *context)
{
    Walk walk = {.fold = fold, .access = access, .visit = visit, .context = context};
    int64_t group;
    us_fold_groups(fold, block, &group, &walk.groups);
    for (int k = 0; k < fold->operand_count; k++) {
        if (us_view_is_absent(&fold->operands[k])) { /* it has no strides */
            walk.access.reads &= ~(1u << k);
            walk.access.writes &= ~(1u << k);
        } else {
            walk.bases[k] = offset_at(&fold->kept, k, group);
        }
    }
    const int64_t run = fold->reduced.sizes[fold->reduced.rank - 1];
    const int64_t begin = chunk * fold->chunk_elements;
    const int64_t end = begin + smaller(fold->reduced.count - begin, fold->chunk_elements);
    for (int64_t position = begin, rows; position < end; position += rows) {
        rows = smaller(smaller(run - position % run, fold->panel_rows), end - position);
        visit_panel(&walk, position, rows, position + rows < end ? position + rows : position);
    }
}

/* ---- stages ---- */

typedef struct Run {
    const Fold *fold;
    int stage_count;
    const FoldStage *stages;
    void *context;
    char *states;  /* of the blocks, where these are cut into chunks */
    double *sums;  /* of the chunks of the blocks */
    bool backwards;
} Run;

/* A block from stage to stage: its data stay in cache. */
static void run_block(void *context, int64_t block)
{
    const Run *run = context;
    _Alignas(64) char state[FOLD_STATE];
    double sums[FOLD_SUMS * FOLD_WIDTH];
    for (int stage = 0; stage < run->stage_count; stage++) {
        if (run->stages[stage].run != NULL) {
            run->stages[stage].run(run->context, block, 0, state, sums);
        }
        if (run->stages[stage].finish != NULL) {
            run->stages[stage].finish(run->context, block, state, sums);
        }
    }
}

static void run_chunk(void *context, int64_t piece)
{
    const Run *run = context;
    const Fold *fold = run->fold;
    piece = run->backwards ? fold->blocks * fold->chunks - 1 - piece : piece;
    const int64_t block = piece / fold->chunks;
    run->stages->run(run->context, block, piece % fold->chunks, run->states + block * FOLD_STATE,
                     run->sums + piece * FOLD_SUMS * fold->width);
}

/* Adds the sums of a block's chunks, in order, to the first ones. */
static double *add_chunks(const Run *run, int64_t block)
{
    const int64_t count = FOLD_SUMS * run->fold->width;
    double *sums = run->sums + block * run->fold->chunks * count;
    for (int64_t chunk = 1; run->stages->run != NULL && chunk < run->fold->chunks; chunk++) {
        for (int64_t i = 0; i < count; i++) {
            sums[i] += sums[chunk * count + i];
        }
    }
    return sums;
}

KernelStatus us_fold_run(const Fold *fold, int stage_count, const FoldStage *stages, void *context)
{
    Run run = {fold, stage_count, stages, context, NULL, NULL, false};
    if (fold->chunks == 1) {
        if (fold->kept.count * fold->elements > SERIAL_ELEMENTS) {
            us_parallel(fold->blocks, run_block, &run);
            return KERNEL_OK;
        }
        for (int64_t block = 0; block < fold->blocks; block++) {
            run_block(&run, block);
        }
        return KERNEL_OK;
    }
    const int64_t numbers = us_scratch_count(fold->blocks * fold->chunks, fold->width);
    const size_t states = us_scratch_bytes(fold->blocks, FOLD_STATE);
    run.states = us_scratch_take(states + us_scratch_bytes(numbers, FOLD_SUMS * sizeof *run.sums));
    if (run.states == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run.sums = (double *)(run.states + states);
    for (; run.stages < stages + stage_count; run.stages++) {
        if (run.stages->run != NULL) {
            us_parallel(fold->blocks * fold->chunks, run_chunk, &run);
            run.backwards = !run.backwards;
        }
        for (int64_t block = 0; run.stages->finish != NULL && block < fold->blocks; block++) {
            run.stages->finish(context, block, run.states + block * FOLD_STATE, add_chunks(&run, block));
        }
    }
    us_scratch_give_back(run.states);
    return KERNEL_OK;
}

/* Walks the parameters in the order of the groups, in runs along the innermost kept axis. */
static void transfer(const Fold *fold, int64_t block, const View *parameters, double *values, bool load)
{
    const FoldAxes *kept = &fold->kept;
    const View *model = &fold->operands[0];
    const int64_t size = (int64_t)us_dtype_size(parameters->dtype);
    const int32_t last = kept->order_count - 1;
    const int64_t run = last >= 0 ? model->shape[kept->order[last]] : 1;
    const int64_t stride = last >= 0 ? parameters->strides[kept->order[last]] : 0;
    int64_t group, groups;
    us_fold_groups(fold, block, &group, &groups);
    for (int64_t done = 0, count; done < groups; done += count) {
        int64_t offset = (group + done) % run * stride, rest = (group + done) / run;
        count = smaller(run - (group + done) % run, groups - done);
        for (int32_t i = last - 1; i >= 0; i--) {
            int32_t axis = kept->order[i];
            offset += rest % model->shape[axis] * parameters->strides[axis];
            rest /= model->shape[axis];
        }
        char *data = (char *)parameters->data + offset * size;
        if (load) {
            us_load_double(values + done, data, parameters->dtype, stride, count);
        } else {
            us_store_double(data, parameters->dtype, stride, values + done, count);
        }
    }
}

void us_fold_load(const Fold *fold, int64_t block, const View *parameters, double *values)
{
    transfer(fold, block, parameters, values, true);
}

void us_fold_store(const Fold *fold, int64_t block, const View *parameters, const double *values)
{
    transfer(fold, block, parameters, (double *)values, false);
}
