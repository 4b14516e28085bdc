#include "kernels/fold.h"

#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <stdlib.h>

/* Groups from which on there is work for all threads without cutting the reduced elements; otherwise chunks of about
 * this many elements, not more than that many. */
enum { ENOUGH_BLOCKS = 16, CHUNK_ELEMENTS = 32 * 1024, CHUNK_LIMIT = 64, SERIAL_ELEMENTS = 16 * 1024 };

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
            axes->strides[k][axes->rank - 1] = fold->operands[k].strides[axis];
        }
        axes->count *= size;
    }
    if (axes->rank == 0) {
        axes->rank = 1;
        axes->sizes[0] = 1;
        for (int k = 0; k < fold->operand_count; k++) {
            axes->strides[k][0] = 0;
        }
    }
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static void cut(Fold *fold)
{
    const int64_t run = fold->kept.sizes[fold->kept.rank - 1];
    fold->blocks_per_run = fold->columns_are_groups ? divide_up(run, FOLD_PANEL) : run;
    fold->blocks = fold->kept.count / run * fold->blocks_per_run;
    const int64_t width = fold->columns_are_groups ? (run < FOLD_PANEL ? run : FOLD_PANEL) : 1;
    int64_t chunks = fold->blocks >= ENOUGH_BLOCKS ? 1 : divide_up(fold->reduced.count * width, CHUNK_ELEMENTS);
    chunks = chunks > CHUNK_LIMIT ? CHUNK_LIMIT : chunks;
    fold->chunk_elements = divide_up(fold->reduced.count, chunks);
    fold->chunks = divide_up(fold->reduced.count, fold->chunk_elements);
}

void us_fold_begin(Fold *fold, int operand_count, const View *operands, const bool *keeps, bool columns_are_groups)
{
    fold->operand_count = operand_count;
    for (int k = 0; k < operand_count; k++) {
        fold->operands[k] = operands[k];
    }
    sort_axes(&fold->kept, &operands[0], keeps, true);
    sort_axes(&fold->reduced, &operands[0], keeps, false);
    merge_axes(fold, &fold->kept);
    merge_axes(fold, &fold->reduced);
    int64_t kept_stride = llabs(fold->kept.strides[0][fold->kept.rank - 1]);
    int64_t reduced_stride = llabs(fold->reduced.strides[0][fold->reduced.rank - 1]);
    fold->columns_are_groups = columns_are_groups || (fold->kept.count > 1 && fold->reduced.count > 1 &&
                                                      kept_stride < reduced_stride);
    cut(fold);
}

void us_fold_groups(const Fold *fold, int64_t block, int64_t *first, int64_t *count)
{
    const int64_t run = fold->kept.sizes[fold->kept.rank - 1];
    if (!fold->columns_are_groups) {
        *first = block;
        *count = 1;
        return;
    }
    const int64_t begin = block % fold->blocks_per_run * FOLD_PANEL;
    *first = block / fold->blocks_per_run * run + begin;
    *count = run - begin < FOLD_PANEL ? run - begin : FOLD_PANEL;
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

void us_fold_first(const Fold *fold, int operand, int64_t block, double *values)
{
    int64_t group, groups;
    us_fold_groups(fold, block, &group, &groups);
    const View *view = &fold->operands[operand];
    const char *data = (const char *)view->data +
                       offset_at(&fold->kept, operand, group) * (int64_t)us_dtype_size(view->dtype);
    us_load_double(values, data, view->dtype, fold->kept.strides[operand][fold->kept.rank - 1], groups);
}

void us_fold_walk(const Fold *fold, int64_t block, int64_t chunk, PanelVisit *visit, void *context)
{
    int64_t group, groups;
    us_fold_groups(fold, block, &group, &groups);
    const FoldAxes *kept = &fold->kept, *reduced = &fold->reduced;
    int64_t bases[FOLD_OPERANDS];
    for (int k = 0; k < fold->operand_count; k++) {
        bases[k] = offset_at(kept, k, group);
    }
    const int64_t run = reduced->sizes[reduced->rank - 1];
    const int64_t limit = fold->columns_are_groups ? FOLD_PANEL / groups : FOLD_PANEL;
    int64_t position = chunk * fold->chunk_elements;
    int64_t end = reduced->count - position < fold->chunk_elements ? reduced->count : position + fold->chunk_elements;
    while (position < end) {
        int64_t length = run - position % run;
        length = length > end - position ? end - position : length;
        length = length > limit ? limit : length;
        Panel panel = {.rows = fold->columns_are_groups ? length : 1,
                       .width = fold->columns_are_groups ? groups : length,
                       .first_row = position};
        for (int k = 0; k < fold->operand_count; k++) {
            const int64_t along_run = reduced->strides[k][reduced->rank - 1];
            panel.offsets[k] = bases[k] + offset_at(reduced, k, position);
            panel.column_stride[k] = fold->columns_are_groups ? kept->strides[k][kept->rank - 1] : along_run;
            panel.row_stride[k] = fold->columns_are_groups ? along_run : 0;
        }
        visit(context, &panel);
        position += length;
    }
}

typedef struct Run {
    const Fold *fold;
    int stage_count;
    const FoldStage *stages;
    void *context;
} Run;

static void run_block(void *context, int64_t block)
{
    const Run *run = context;
    for (int stage = 0; stage < run->stage_count; stage++) {
        for (int64_t chunk = 0; chunk < run->fold->chunks; chunk++) {
            run->stages[stage].run(run->context, block, chunk);
        }
        if (run->stages[stage].finish != NULL) {
            run->stages[stage].finish(run->context, block);
        }
    }
}

static void run_chunk(void *context, int64_t piece)
{
    const Run *run = context;
    run->stages->run(run->context, piece / run->fold->chunks, piece % run->fold->chunks);
}

void us_fold_run(const Fold *fold, int stage_count, const FoldStage *stages, void *context)
{
    Run run = {fold, stage_count, stages, context};
    if (fold->kept.count * fold->reduced.count <= SERIAL_ELEMENTS) {
        for (int64_t block = 0; block < fold->blocks; block++) {
            run_block(&run, block);
        }
        return;
    }
    if (fold->chunks == 1) {
        us_parallel(fold->blocks, run_block, &run);
        return;
    }
    for (; run.stages < stages + stage_count; run.stages++) {
        us_parallel(fold->blocks * fold->chunks, run_chunk, &run);
        for (int64_t block = 0; run.stages->finish != NULL && block < fold->blocks; block++) {
            run.stages->finish(context, block);
        }
    }
}

/* Walks the parameters in the order of the groups, in runs along the innermost kept axis. */
static void transfer(const Fold *fold, const View *parameters, double *values, bool load)
{
    const FoldAxes *kept = &fold->kept;
    const View *model = &fold->operands[0];
    const int64_t size = (int64_t)us_dtype_size(parameters->dtype);
    const int32_t last = kept->order_count - 1;
    const int64_t run = last >= 0 ? model->shape[kept->order[last]] : 1;
    const int64_t stride = last >= 0 ? parameters->strides[kept->order[last]] : 0;
    for (int64_t first = 0; first < kept->count; first += run) {
        int64_t offset = 0, rest = first / run;
        for (int32_t i = last - 1; i >= 0; i--) {
            int32_t axis = kept->order[i];
            offset += rest % model->shape[axis] * parameters->strides[axis];
            rest /= model->shape[axis];
        }
        char *data = (char *)parameters->data + offset * size;
        if (load) {
            us_load_double(values + first, data, parameters->dtype, stride, run);
        } else {
            us_store_double(data, parameters->dtype, stride, values + first, run);
        }
    }
}

void us_fold_load(const Fold *fold, const View *parameters, double *values)
{
    transfer(fold, parameters, values, true);
}

void us_fold_store(const Fold *fold, const View *parameters, const double *values)
{
    transfer(fold, parameters, (double *)values, false);
}

#define ELEMENT float
#define DTYPE DTYPE_FLOAT32
#define NAME(name) name##_float
#include "kernels/fold_panel.inc"

#define ELEMENT double
#define DTYPE DTYPE_FLOAT64
#define NAME(name) name##_double
#include "kernels/fold_panel.inc"
