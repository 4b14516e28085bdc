#include "kernels/batch_norm.h"

#include "kernels/detach.h"
#include "kernels/expm1.h"
#include "kernels/fold.h"
#include "tensor/clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One call. Arrays with one number per group are in the order of the fold's groups. */
typedef struct Work {
    const BatchNorm *norm;
    Fold fold;
    bool doubles;
    int64_t elements; /* of a group */
    double *scale, *bias, *mean, *inverse; /* bias: also dBias / m in the backward direction */
    double *tilt;         /* what x - mean is multiplied with in the gradient */
    double *variance, *slope_sum, *slope_product;
    double *partial, *partial_product; /* chunks x groups */
    uint8_t *mask;
    int64_t mask_row;
} Work;

/* Operands of the fold, forwards and backwards. */
enum { OPERAND_X, OPERAND_Z, OPERAND_Y };
enum { OPERAND_DY = 1, OPERAND_DX, OPERAND_DZ };

static int64_t spatial_elements(int32_t rank, const int64_t *sizes)
{
    int64_t product = 1;
    for (int32_t axis = 2; axis < rank; axis++) {
        product *= sizes[axis];
    }
    return product;
}

int64_t us_batch_norm_mask_bytes(int32_t rank, const int64_t *sizes, bool per_activation)
{
    int64_t space = spatial_elements(rank, sizes);
    int64_t rows = per_activation ? sizes[0] : sizes[0] * space;
    int64_t groups = per_activation ? sizes[1] * space : sizes[1];
    return rows * ((groups + 7) / 8);
}

/* Per-column copies of what the groups of a block have in common. */
static void spread(const Work *work, int64_t block, const double *values, int64_t width, double *columns)
{
    int64_t first, count;
    us_fold_groups(&work->fold, block, &first, &count);
    for (int64_t i = 0; i < width; i++) {
        columns[i] = values[work->fold.columns_are_groups ? first + i : first];
    }
}

enum {
    STRIP = 32,   /* columns whose sums are kept in registers */
    LINE = 256,   /* elements of one group that are handled as columns: their numbers stay in the first-level cache */
};

/* Sums of STRIP columns around their centres. */
typedef struct Strip {
    double centre[STRIP], sum[STRIP], product[STRIP];
} Strip;

/* Sums of a chunk: one per column, added to one per group at the end. Elements of one group are STRIP columns. */
typedef struct Sums {
    const Work *work;
    int64_t first_group, groups;
    Strip strips[FOLD_PANEL / STRIP];
} Sums;

/* `centres`: what is subtracted from x, one per group of the block. */
static void begin_sums(Sums *sums, const Work *work, int64_t block, const double *centres)
{
    sums->work = work;
    us_fold_groups(&work->fold, block, &sums->first_group, &sums->groups);
    const int64_t columns = work->fold.columns_are_groups ? sums->groups : STRIP;
    for (int64_t i = 0; i < columns; i++) {
        Strip *strip = &sums->strips[i / STRIP];
        strip->centre[i % STRIP] = centres[work->fold.columns_are_groups ? i : 0];
        strip->sum[i % STRIP] = strip->product[i % STRIP] = 0;
    }
}

static void end_sums(const Sums *sums, int64_t chunk)
{
    const Work *work = sums->work;
    const int64_t columns = work->fold.columns_are_groups ? sums->groups : STRIP;
    double *sum = work->partial + chunk * work->fold.kept.count + sums->first_group;
    double *product = work->partial_product + chunk * work->fold.kept.count + sums->first_group;
    for (int64_t i = 0; i < sums->groups; i++) {
        sum[i] = product[i] = 0;
    }
    for (int64_t i = 0; i < columns; i++) {
        const int64_t group = work->fold.columns_are_groups ? i : 0;
        sum[group] += sums->strips[i / STRIP].sum[i % STRIP];
        product[group] += sums->strips[i / STRIP].product[i % STRIP];
    }
}

/* How a panel is laid over the columns: all its rows, or the elements of one group in rows of LINE, which are `step`
 * apart in every operand, and a rest. */
typedef struct Lines {
    int64_t rows, width, step, rest;
} Lines;

static Lines lines_of(const Fold *fold, const Panel *panel)
{
    if (fold->columns_are_groups) {
        return (Lines){panel->rows, panel->width, 0, 0};
    }
    return (Lines){panel->width / LINE, LINE, LINE, panel->width % LINE};
}

/* From line to line of an operand whose panel has this distance from row to row. */
static int64_t along(const Lines *lines, int64_t row_stride)
{
    return lines->step != 0 ? lines->step : row_stride;
}

static int64_t columns_of(const Fold *fold, int64_t block)
{
    int64_t first, count;
    us_fold_groups(fold, block, &first, &count);
    return fold->columns_are_groups ? count : LINE;
}

/* What the elements of a panel need, one number per column. */
typedef struct Columns {
    const Work *work;
    int64_t first_group;
    union {
        struct { float mean[FOLD_PANEL], scale[FOLD_PANEL], shift[FOLD_PANEL], tilt[FOLD_PANEL]; } floats;
        struct { double mean[FOLD_PANEL], scale[FOLD_PANEL], shift[FOLD_PANEL], tilt[FOLD_PANEL]; } doubles;
    };
} Columns;

/* The mask bits of a row of a panel. */
static uint8_t *mask_at(const Work *work, int64_t first_group, int64_t row)
{
    return work->mask + row * work->mask_row + first_group / 8;
}

#define ELEMENT float
#define NAME(name) name##_float
#define PART floats
#include "kernels/batch_norm_body.inc"

#define ELEMENT double
#define NAME(name) name##_double
#define PART doubles
#include "kernels/batch_norm_body.inc"

/* Mean and variance from sums around the first element of each group: no cancellation, whatever the mean is. */
static void sum_moments(void *context, int64_t block, int64_t chunk)
{
    const Work *work = context;
    double centres[FOLD_PANEL];
    Sums sums;
    us_fold_first(&work->fold, OPERAND_X, block, centres);
    begin_sums(&sums, work, block, centres);
    us_fold_walk(&work->fold, block, chunk, work->doubles ? moments_double : moments_float, &sums);
    end_sums(&sums, chunk);
}

static double add_chunks(const Work *work, const double *partial, int64_t group)
{
    double sum = 0;
    for (int64_t chunk = 0; chunk < work->fold.chunks; chunk++) {
        sum += partial[chunk * work->fold.kept.count + group];
    }
    return sum;
}

static void finish_moments(void *context, int64_t block)
{
    Work *work = context;
    double centre[FOLD_PANEL];
    int64_t first, count;
    us_fold_groups(&work->fold, block, &first, &count);
    us_fold_first(&work->fold, OPERAND_X, block, centre);
    const double m = (double)work->elements;
    for (int64_t i = 0; i < count; i++) {
        int64_t group = first + i;
        double sum = add_chunks(work, work->partial, group);
        double variance = (add_chunks(work, work->partial_product, group) - sum * (sum / m)) / m;
        variance = variance < 0 ? 0 : variance;
        work->mean[group] = centre[i] + sum / m;
        work->variance[group] = variance;
        work->inverse[group] = 1 / sqrt(variance + work->norm->epsilon);
    }
}

static Columns *spread_columns(Columns *columns, const Work *work, int64_t block)
{
    int64_t count;
    columns->work = work;
    us_fold_groups(&work->fold, block, &columns->first_group, &count);
    (work->doubles ? fill_columns_double : fill_columns_float)(columns, block, columns_of(&work->fold, block));
    return columns;
}

static void normalise(void *context, int64_t block, int64_t chunk)
{
    const Work *work = context;
    Columns columns;
    us_fold_walk(&work->fold, block, chunk, work->doubles ? normalise_double : normalise_float,
                 spread_columns(&columns, work, block));
}

static void sum_slopes(void *context, int64_t block, int64_t chunk)
{
    const Work *work = context;
    int64_t first, count;
    Sums sums;
    us_fold_groups(&work->fold, block, &first, &count);
    begin_sums(&sums, work, block, work->mean + first);
    us_fold_walk(&work->fold, block, chunk, work->doubles ? slopes_double : slopes_float, &sums);
    end_sums(&sums, chunk);
}

static void finish_slopes(void *context, int64_t block)
{
    Work *work = context;
    int64_t first, count;
    us_fold_groups(&work->fold, block, &first, &count);
    const double m = (double)work->elements;
    for (int64_t group = first; group < first + count; group++) {
        work->slope_sum[group] = add_chunks(work, work->partial, group);
        work->slope_product[group] = add_chunks(work, work->partial_product, group) * work->inverse[group];
        work->bias[group] = work->slope_sum[group] / m;
        work->tilt[group] = work->slope_product[group] * work->inverse[group] / m;
    }
}

static void apply_gradient(void *context, int64_t block, int64_t chunk)
{
    const Work *work = context;
    Columns columns;
    us_fold_walk(&work->fold, block, chunk, work->doubles ? gradient_double : gradient_float,
                 spread_columns(&columns, work, block));
}

/* Folds the operands and finds room for `arrays` numbers per group and two per group and chunk. */
static double *begin(Work *work, const BatchNorm *norm, int operand_count, const View *operands, int arrays)
{
    bool keeps[VIEW_RANK_LIMIT];
    for (int32_t axis = 0; axis < operands[0].rank; axis++) {
        keeps[axis] = norm->per_activation ? axis > 0 : axis == 1;
    }
    *work = (Work){.norm = norm, .doubles = operands[0].dtype == DTYPE_FLOAT64};
    us_fold_begin(&work->fold, operand_count, operands, keeps, norm->activation != NORM_NO_ACTIVATION);
    work->elements = work->fold.reduced.count;
    work->mask_row = (work->fold.kept.count + 7) / 8;
    const size_t groups = (size_t)work->fold.kept.count;
    double *memory = calloc(groups * ((size_t)arrays + 2 * (size_t)work->fold.chunks), sizeof *memory);
    if (memory != NULL) {
        work->partial = memory + groups * (size_t)arrays;
        work->partial_product = work->partial + groups * (size_t)work->fold.chunks;
    }
    return memory;
}

static void store_given(const Work *work, const View *view, const double *values)
{
    if (!us_view_is_absent(view)) {
        us_fold_store(&work->fold, view, values);
    }
}

/* running = running * (1 - f) + value * f */
static void update_running(const Work *work, const View *running, const double *values, double correction, double *old)
{
    const double f = work->norm->factor;
    if (us_view_is_absent(running)) {
        return;
    }
    if (f != 1) {
        us_fold_load(&work->fold, running, old);
    }
    for (int64_t group = 0; group < work->fold.kept.count; group++) {
        old[group] = (f != 1 ? old[group] * (1 - f) : 0) + values[group] * correction * f;
    }
    us_fold_store(&work->fold, running, old);
}

static KernelStatus train(const BatchNorm *norm, const View *operands, const View *parameters)
{
    static const FoldStage stages[] = {{sum_moments, finish_moments}, {normalise, NULL}};
    Work work;
    double *memory = begin(&work, norm, 3, operands, 6);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t groups = work.fold.kept.count;
    work.scale = memory;
    work.bias = memory + groups;
    work.mean = memory + 2 * groups;
    work.inverse = memory + 3 * groups;
    work.variance = memory + 4 * groups;
    work.mask = us_view_is_absent(&parameters[6]) ? NULL : parameters[6].data;
    us_fold_load(&work.fold, &parameters[0], work.scale);
    us_fold_load(&work.fold, &parameters[1], work.bias);
    us_fold_run(&work.fold, 2, stages, &work);
    const double m = (double)work.elements;
    update_running(&work, &parameters[2], work.mean, 1, memory + 5 * groups);
    update_running(&work, &parameters[3], work.variance, m > 1 ? m / (m - 1) : 1, memory + 5 * groups);
    store_given(&work, &parameters[4], work.mean);
    store_given(&work, &parameters[5], work.inverse);
    free(memory);
    return KERNEL_OK;
}

static KernelStatus infer(const BatchNorm *norm, const View *operands, const View *parameters)
{
    static const FoldStage stage = {normalise, NULL};
    Work work;
    double *memory = begin(&work, norm, 3, operands, 4);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t groups = work.fold.kept.count;
    work.scale = memory;
    work.bias = memory + groups;
    work.mean = memory + 2 * groups;
    work.inverse = memory + 3 * groups;
    us_fold_load(&work.fold, &parameters[0], work.scale);
    us_fold_load(&work.fold, &parameters[1], work.bias);
    us_fold_load(&work.fold, &parameters[2], work.mean);
    us_fold_load(&work.fold, &parameters[3], work.inverse);
    for (int64_t group = 0; group < groups; group++) {
        work.inverse[group] = 1 / sqrt(work.inverse[group] + norm->epsilon);
    }
    us_fold_run(&work.fold, 1, &stage, &work);
    free(memory);
    return KERNEL_OK;
}

static void store_blended(const Work *work, const View *view, const double *values, double *prior)
{
    const double alpha = work->norm->alpha_param, beta = work->norm->beta_param;
    if (beta != 0) {
        us_fold_load(&work->fold, view, prior);
    }
    for (int64_t group = 0; group < work->fold.kept.count; group++) {
        prior[group] = alpha * values[group] + (beta != 0 ? beta * prior[group] : 0);
    }
    us_fold_store(&work->fold, view, prior);
}

static KernelStatus differentiate(const BatchNorm *norm, const View *operands, const View *parameters)
{
    static const FoldStage stages[] = {{sum_moments, finish_moments}, {sum_slopes, finish_slopes}, {apply_gradient,
                                                                                                    NULL}};
    Work work;
    double *memory = begin(&work, norm, 4, operands, 9);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t groups = work.fold.kept.count;
    double **const arrays[] = {&work.scale, &work.bias,     &work.mean,      &work.inverse,
                               &work.tilt,  &work.variance, &work.slope_sum, &work.slope_product};
    for (int i = 0; i < 8; i++) {
        *arrays[i] = memory + i * groups;
    }
    const View *mean = &parameters[3], *inverse = &parameters[4];
    work.mask = us_view_is_absent(&parameters[5]) ? NULL : parameters[5].data;
    us_fold_load(&work.fold, &parameters[0], work.scale);
    bool saved = !us_view_is_absent(mean);
    if (saved) {
        us_fold_load(&work.fold, mean, work.mean);
        us_fold_load(&work.fold, inverse, work.inverse);
    }
    us_fold_run(&work.fold, saved ? 2 : 3, saved ? stages + 1 : stages, &work);
    store_blended(&work, &parameters[1], work.slope_product, memory + 8 * groups);
    store_blended(&work, &parameters[2], work.slope_sum, memory + 8 * groups);
    free(memory);
    return KERNEL_OK;
}

/* Inputs that an output overlaps otherwise than element by element are copied first. */
KernelStatus us_batch_norm_training(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[2]};
        status = train(attributes, operands, views + 3);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_batch_norm_inference(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[2]};
        status = infer(attributes, operands, views + 3);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_batch_norm_backward(const View *views, const void *attributes)
{
    Detached detached;
    View outputs[] = {views[3], views[2]};
    KernelStatus status = us_detach(&detached, 2, views, 2, outputs);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[3], views[2]};
        status = differentiate(attributes, operands, views + 4);
    }
    us_detach_end(&detached);
    return status;
}
