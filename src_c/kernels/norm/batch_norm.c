#include "kernels/norm/batch_norm.h"

#include "kernels/detach.h"
#include "kernels/norm/batch_norm_lines.h"
#include "kernels/packed.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

#include <math.h>

enum { PIECE_ELEMENTS = 16 * 1024 };

/* What a block keeps from stage to stage. */
typedef struct State {
    double mean[FOLD_WIDTH], inverse[FOLD_WIDTH];
    Columns columns;
} State;
_Static_assert(sizeof(State) <= FOLD_STATE, "a block's state has room");

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

/* ---- stages: sums ---- */

/* What moments are formed around: then the sums stay small, and do not cancel, whatever the mean is. */
static void guess_means(void *context, int64_t block, void *state, const double *sums)
{
    (void)sums;
    const NormWork *work = context;
    us_fold_guess(&work->fold, OPERAND_X, block, ((State *)state)->mean);
}

static void sum_moments(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    us_norm_sum_moments(context, block, chunk, ((State *)state)->mean, sums);
}

static void sum_slopes(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    us_norm_sum_slopes(context, block, chunk, ((State *)state)->mean, sums);
}

/* ---- what follows from the sums, for one block ---- */

static int64_t groups_of(const NormWork *work, int64_t block)
{
    int64_t first, groups;
    us_fold_groups(&work->fold, block, &first, &groups);
    return groups;
}

/* `mean` holds the centres on entry. */
static void moments_to_statistics(int64_t groups, double m, double epsilon, const double *sum, const double *product,
                                  double *mean, double *variance, double *inverse)
{
    for (int64_t i = 0; i < groups; i++) {
        const double spread = (product[i] - sum[i] * (sum[i] / m)) / m;
        variance[i] = spread < 0 ? 0 : spread;
        mean[i] += sum[i] / m;
        inverse[i] = 1 / sqrt(variance[i] + epsilon);
    }
}

/* Whether the squares of a block, formed in float, may have left its range: too large, or so small that they were lost
 * and epsilon does not hide it. */
static bool moments_are_lost(const NormWork *work, int64_t groups, const double *sum, const double *product)
{
    const bool hidden = work->norm->epsilon > 1e-20, wide = work->fold.operands[OPERAND_X].dtype == DTYPE_FLOAT64;
    for (int64_t i = 0; !wide && i < groups; i++) {
        if (!isfinite(sum[i]) || !isfinite(product[i]) || (!hidden && product[i] < 1e-30 * work->elements)) {
            return true;
        }
    }
    return false;
}

static void find_statistics(const NormWork *work, int64_t block, State *state, const double *sums, double *variance)
{
    const int64_t groups = groups_of(work, block);
    double wide[FOLD_SUMS * FOLD_WIDTH];
    const double *sum = sums, *product = sums + work->fold.width;
    if (moments_are_lost(work, groups, sum, product)) {
        us_norm_sum_moments_wide(work, block, state->mean, wide, wide + FOLD_WIDTH);
        sum = wide;
        product = wide + FOLD_WIDTH;
    }
    moments_to_statistics(groups, work->elements, work->norm->epsilon, sum, product, state->mean, variance,
                          state->inverse);
}

static void variances_to_inverses(int64_t groups, double epsilon, double *values)
{
    for (int64_t i = 0; i < groups; i++) {
        values[i] = 1 / sqrt(values[i] + epsilon);
    }
}

static void multiply(int64_t groups, double *restrict values, const double *restrict factors)
{
    for (int64_t i = 0; i < groups; i++) {
        values[i] *= factors[i];
    }
}

/* A parameter of a block's groups, or what stands for an absent one. */
static void load_given(const NormWork *work, int64_t block, const View *view, double fallback, double *values)
{
    if (!us_view_is_absent(view)) {
        us_fold_load(&work->fold, block, view, values);
        return;
    }
    for (int64_t i = 0, groups = groups_of(work, block); i < groups; i++) {
        values[i] = fallback;
    }
}

static void load_scale_and_bias(const NormWork *work, int64_t block, const double *inverse, double *scale, double *bias)
{
    load_given(work, block, &work->parameters[0], 1, scale);
    load_given(work, block, &work->parameters[1], 0, bias);
    multiply(groups_of(work, block), scale, inverse);
}

static void set_normal_columns(const NormWork *work, int64_t block, State *state)
{
    const int64_t groups = groups_of(work, block);
    double scale[FOLD_WIDTH], bias[FOLD_WIDTH];
    load_scale_and_bias(work, block, state->inverse, scale, bias);
    us_norm_set(work, groups, state->mean, &state->columns.mean);
    us_norm_set(work, groups, scale, &state->columns.scale);
    us_norm_set(work, groups, bias, &state->columns.shift);
}

static void store_given(const NormWork *work, int64_t block, const View *view, const double *values)
{
    if (!us_view_is_absent(view)) {
        us_fold_store(&work->fold, block, view, values);
    }
}

/* running = running * (1 - f) + value * f */
static void update_running(const NormWork *work, int64_t block, const View *running, const double *values,
                           double correction)
{
    const double f = work->norm->factor;
    const int64_t groups = groups_of(work, block);
    double result[FOLD_WIDTH];
    if (us_view_is_absent(running)) {
        return;
    }
    if (f != 1) {
        us_fold_load(&work->fold, block, running, result);
    }
    for (int64_t i = 0; i < groups; i++) {
        result[i] = (f != 1 ? result[i] * (1 - f) : 0) + values[i] * correction * f;
    }
    us_fold_store(&work->fold, block, running, result);
}

static void finish_training(void *context, int64_t block, void *memory, const double *sums)
{
    const NormWork *work = context;
    State *state = memory;
    double variance[FOLD_WIDTH];
    const double m = work->elements;
    find_statistics(work, block, state, sums, variance);
    set_normal_columns(work, block, state);
    update_running(work, block, &work->parameters[2], state->mean, 1);
    update_running(work, block, &work->parameters[3], variance, m > 1 ? m / (m - 1) : 1);
    store_given(work, block, &work->parameters[4], state->mean);
    store_given(work, block, &work->parameters[5], state->inverse);
}

static void load_mean_and_inverse(const NormWork *work, int64_t block, const View *views, bool of_variance,
                                  double *mean, double *inverse)
{
    us_fold_load(&work->fold, block, &views[0], mean);
    us_fold_load(&work->fold, block, &views[1], inverse);
    if (of_variance) {
        variances_to_inverses(groups_of(work, block), work->norm->epsilon, inverse);
    }
}

static void load_running(const NormWork *work, int64_t block, double *mean, double *inverse)
{
    load_mean_and_inverse(work, block, &work->parameters[2], work->norm->spread != SPREAD_INVERSE, mean, inverse);
}

static void prepare_inference(void *context, int64_t block, void *memory, const double *sums)
{
    (void)sums;
    State *state = memory;
    load_running(context, block, state->mean, state->inverse);
    set_normal_columns(context, block, state);
}

static void recompute_statistics(void *context, int64_t block, void *state, const double *sums)
{
    double variance[FOLD_WIDTH];
    find_statistics(context, block, state, sums, variance);
}

static void load_statistics(void *context, int64_t block, void *memory, const double *sums)
{
    (void)sums;
    const NormWork *work = context;
    State *state = memory;
    load_mean_and_inverse(work, block, &work->parameters[3], work->norm->spread == SPREAD_VARIANCE, state->mean,
                          state->inverse);
}

static void store_blended(const NormWork *work, int64_t block, const View *view, const double *values)
{
    const double alpha = work->norm->alpha_param, beta = work->norm->beta_param;
    const int64_t groups = groups_of(work, block);
    double result[FOLD_WIDTH];
    if (us_view_is_absent(view)) {
        return;
    }
    if (beta != 0) {
        us_fold_load(&work->fold, block, view, result);
    }
    for (int64_t i = 0; i < groups; i++) {
        result[i] = alpha * values[i] + (beta != 0 ? beta * result[i] : 0);
    }
    us_fold_store(&work->fold, block, view, result);
}

/* The products were formed around the mean as rounded to the compute type. */
static void finish_slopes(void *context, int64_t block, void *memory, const double *sums)
{
    const NormWork *work = context;
    State *state = memory;
    const int64_t groups = groups_of(work, block);
    const bool doubles = work->fold.operands[0].dtype == DTYPE_FLOAT64;
    const double m = work->elements, *sum = sums, *product = sums + work->fold.width;
    double scale[FOLD_WIDTH], scale_gradient[FOLD_WIDTH], shift[FOLD_WIDTH], tilt[FOLD_WIDTH];
    load_given(work, block, &work->parameters[0], 1, scale);
    for (int64_t i = 0; i < groups; i++) {
        const double centre = doubles ? state->mean[i] : (double)(float)state->mean[i];
        scale_gradient[i] = (product[i] + (centre - state->mean[i]) * sum[i]) * state->inverse[i];
        scale[i] *= state->inverse[i];
        shift[i] = work->norm->constant ? 0 : sum[i] / m;
        tilt[i] = work->norm->constant ? 0 : scale_gradient[i] * state->inverse[i] / m;
    }
    us_norm_set(work, groups, state->mean, &state->columns.mean);
    us_norm_set(work, groups, scale, &state->columns.scale);
    us_norm_set(work, groups, shift, &state->columns.shift);
    us_norm_set(work, groups, tilt, &state->columns.tilt);
    store_blended(work, block, &work->parameters[1], scale_gradient);
    store_blended(work, block, &work->parameters[2], sum);
}

/* ---- stages: results ---- */

static void normalise(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    (void)sums;
    us_norm_apply_forward(context, block, chunk, &((State *)state)->columns);
}

static void differentiate(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    (void)sums;
    us_norm_apply_backward(context, block, chunk, &((State *)state)->columns);
}

/* ---- calls ---- */

static KernelStatus run(const BatchNorm *norm, int operand_count, const View *operands, const View *parameters,
                        const View *mask, int stage_count, const FoldStage *stages)
{
    NormWork work;
    us_norm_begin(&work, norm, operand_count, operands, parameters, mask);
    return us_fold_run(&work.fold, stage_count, stages, &work);
}

/* Inputs that an output overlaps otherwise than element by element are copied first. */
static KernelStatus train(const View *views, const void *attributes)
{
    static const FoldStage stages[] = {{NULL, guess_means}, {sum_moments, finish_training}, {normalise, NULL}};
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[2]};
        status = run(attributes, 3, operands, views + 3, &views[9], us_view_is_absent(&views[2]) ? 2 : 3, stages);
    }
    us_detach_end(&detached);
    return status;
}

/* Operands of two layouts, two inputs before some outputs, are walked in rows. */
static KernelStatus run_alike(Kernel *kernel, int outputs, int count, const View *views, const void *attributes)
{
    const BatchNorm *norm = attributes;
    return norm->beta == 0 && us_rows_differ(views, 2 + outputs)
               ? us_run_on_rows(kernel, 2, outputs, count, views, attributes)
               : kernel(views, attributes);
}

KernelStatus us_batch_norm_training(const View *views, const void *attributes)
{
    return run_alike(train, 1, 10, views, attributes);
}

/* ---- inference ---- */

/* Channels as planes: the numbers of all of them, and in how many parts each chunk's planes are worked on. */
typedef struct Planes {
    const NormWork *work;
    struct PlaneNumbers {
        double mean, scale, bias;
    } *numbers;
    int64_t parts;
} Planes;

static void normalise_planes(void *context, int64_t piece)
{
    const Planes *planes = context;
    const NormWork *work = planes->work;
    const int64_t blocks = work->fold.blocks, chunk = piece / planes->parts, part = piece % planes->parts;
    Columns columns;
    for (int64_t block = blocks * part / planes->parts; block < blocks * (part + 1) / planes->parts; block++) {
        us_norm_set(work, 1, &planes->numbers[block].mean, &columns.mean);
        us_norm_set(work, 1, &planes->numbers[block].scale, &columns.scale);
        us_norm_set(work, 1, &planes->numbers[block].bias, &columns.shift);
        us_norm_apply_forward(work, block, chunk, &columns);
    }
}

/* Planes one after the other as they lie in memory: nothing is summed that would ask for a channel as a whole. */
static KernelStatus infer_planes(const NormWork *work)
{
    const Fold *fold = &work->fold;
    Planes planes = {.work = work, .numbers = us_scratch_array(fold->blocks, sizeof *planes.numbers)};
    if (planes.numbers == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t block = 0; block < fold->blocks; block++) {
        double mean[FOLD_WIDTH], inverse[FOLD_WIDTH], scale[FOLD_WIDTH], bias[FOLD_WIDTH];
        load_running(work, block, mean, inverse);
        load_scale_and_bias(work, block, inverse, scale, bias);
        planes.numbers[block] = (struct PlaneNumbers){mean[0], scale[0], bias[0]};
    }
    const int64_t parts = fold->blocks * fold->chunk_elements / PIECE_ELEMENTS;
    planes.parts = parts < 1 ? 1 : parts < fold->blocks ? parts : fold->blocks;
    run_pieces(fold->chunks * planes.parts, fold->blocks * fold->elements, normalise_planes, &planes);
    us_scratch_give_back(planes.numbers);
    return KERNEL_OK;
}

static KernelStatus infer(const View *views, const void *attributes)
{
    static const FoldStage stages[] = {{NULL, prepare_inference}, {normalise, NULL}};
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        const View operands[] = {detached.inputs[0], detached.inputs[1], views[2]}, absent = us_view_absent();
        NormWork work;
        us_norm_begin(&work, attributes, 3, operands, views + 3, &absent);
        status = us_fold_cut_by_memory(&work.fold) ? infer_planes(&work) : us_fold_run(&work.fold, 2, stages, &work);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_batch_norm_inference(const View *views, const void *attributes)
{
    return run_alike(infer, 1, 7, views, attributes);
}

static KernelStatus go_back(const View *views, const void *attributes)
{
    static const FoldStage again[] = {{NULL, guess_means}, {sum_moments, recompute_statistics},
                                      {sum_slopes, finish_slopes}, {differentiate, NULL}};
    static const FoldStage saved[] = {{NULL, load_statistics}, {sum_slopes, finish_slopes}, {differentiate, NULL}};
    Detached detached;
    View outputs[] = {views[3], views[2]};
    const bool is_saved = !us_view_is_absent(&views[7]), wants_input = !us_view_is_absent(&views[3]);
    KernelStatus status = us_detach(&detached, 2, views, 2, outputs);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[3], views[2]};
        status = run(attributes, 4, operands, views + 4, &views[9], (is_saved ? 2 : 3) + wants_input,
                     is_saved ? saved : again);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_batch_norm_backward(const View *views, const void *attributes)
{
    return run_alike(go_back, 2, 10, views, attributes);
}

/* ---- parts ---- */

static void finish_totals(void *context, int64_t block, void *memory, const double *sums)
{
    const NormWork *work = context;
    State *state = memory;
    double variance[FOLD_WIDTH];
    find_statistics(work, block, state, sums, variance);
    for (int64_t i = 0, groups = groups_of(work, block); i < groups; i++) {
        variance[i] = (variance[i] + state->mean[i] * state->mean[i]) * work->elements;
        state->mean[i] *= work->elements;
    }
    us_fold_store(&work->fold, block, &work->parameters[0], state->mean);
    us_fold_store(&work->fold, block, &work->parameters[1], variance);
}

KernelStatus us_batch_norm_totals(const View *views, const void *attributes)
{
    static const FoldStage stages[] = {{NULL, guess_means}, {sum_moments, finish_totals}};
    const View absent = us_view_absent(), operands[] = {views[0], absent, absent};
    return run(attributes, 3, operands, views + 1, &absent, 2, stages);
}

/* Parameters of the parts that come backwards: those of finish_slopes, then the two sums. */
enum { SLOPE_SUM = 6, SLOPE_PRODUCT };

static void finish_slope_sums(void *context, int64_t block, void *memory, const double *sums)
{
    const NormWork *work = context;
    State *state = memory;
    const double *sum = sums;
    double product[FOLD_WIDTH], scale_gradient[FOLD_WIDTH];
    for (int64_t i = 0, groups = groups_of(work, block); i < groups; i++) {
        const bool doubles = work->fold.operands[0].dtype == DTYPE_FLOAT64;
        const double centre = doubles ? state->mean[i] : (double)(float)state->mean[i];
        product[i] = sums[work->fold.width + i] + (centre - state->mean[i]) * sum[i];
        scale_gradient[i] = product[i] * state->inverse[i];
    }
    store_given(work, block, &work->parameters[1], scale_gradient);
    store_given(work, block, &work->parameters[2], sum);
    store_given(work, block, &work->parameters[SLOPE_SUM], sum);
    store_given(work, block, &work->parameters[SLOPE_PRODUCT], product);
}

KernelStatus us_batch_norm_slopes(const View *views, const void *attributes)
{
    static const FoldStage stages[] = {{NULL, load_statistics}, {sum_slopes, finish_slope_sums}};
    const View absent = us_view_absent(), operands[] = {views[0], views[1], absent, absent};
    const View parameters[] = {absent, views[6], views[7], views[2], views[3], absent, views[4], views[5]};
    return run(attributes, 4, operands, parameters, &absent, 2, stages);
}

/* All elements of a view, added. */
static double total_of(const View *view)
{
    double total = 0;
    int64_t index[VIEW_RANK_LIMIT] = {0};
    for (int64_t left = us_view_elements(view); left > 0; left--) {
        int64_t offset = 0;
        for (int32_t axis = 0; axis < view->rank; axis++) {
            offset += index[axis] * view->strides[axis];
        }
        double value;
        us_lane_load(LANE_DOUBLE, &value, (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype),
                     view->dtype, 1, 1);
        total += value;
        for (int32_t axis = view->rank - 1; axis >= 0 && ++index[axis] == view->shape[axis]; axis--) {
            index[axis] = 0;
        }
    }
    return total;
}

static void load_slopes(void *context, int64_t block, void *memory, const double *sums)
{
    const NormWork *work = context;
    State *state = memory;
    const int64_t groups = groups_of(work, block);
    double scale[FOLD_WIDTH], shift[FOLD_WIDTH], tilt[FOLD_WIDTH];
    load_statistics(context, block, memory, sums);
    load_given(work, block, &work->parameters[0], 1, scale);
    us_fold_load(&work->fold, block, &work->parameters[SLOPE_SUM], shift);
    us_fold_load(&work->fold, block, &work->parameters[SLOPE_PRODUCT], tilt);
    for (int64_t i = 0; i < groups; i++) {
        scale[i] *= state->inverse[i];
        shift[i] /= work->elements;
        tilt[i] = tilt[i] / work->elements * state->inverse[i] * state->inverse[i];
    }
    us_norm_set(work, groups, state->mean, &state->columns.mean);
    us_norm_set(work, groups, scale, &state->columns.scale);
    us_norm_set(work, groups, shift, &state->columns.shift);
    us_norm_set(work, groups, tilt, &state->columns.tilt);
}

KernelStatus us_batch_norm_from_sums(const View *views, const void *attributes)
{
    static const FoldStage stages[] = {{NULL, load_slopes}, {differentiate, NULL}};
    const View absent = us_view_absent(), operands[] = {views[0], views[1], views[2], absent};
    const View parameters[] = {views[3], absent, absent, views[4], views[5], absent, views[6], views[7]};
    NormWork work;
    us_norm_begin(&work, attributes, 4, operands, parameters, &absent);
    work.elements = total_of(&views[8]);
    return us_fold_run(&work.fold, 2, stages, &work);
}
