#include "kernels/batch_norm.h"

#include "kernels/detach.h"
#include "kernels/exponential.h"
#include "kernels/fold.h"
#include "tensor/clones.h"
#include "tensor/levels.h"

#include <math.h>
#include <string.h>

/* 16-bit and fp32 data are computed in fp32. Sums are formed column by column: of FLUSH_LINES lines at a time in the
 * compute type, then in double, columns of one group in order, chunks in order. CELL_LINES lines are handled together.
 * Results of PAST_BYTES and more do not fit in the caches and are not written into them. */
enum { FLUSH_LINES = 32, CELL_LINES = 2, PAST_BYTES = 8 << 20 };

/* Operands of the fold, forwards and backwards. */
enum { OPERAND_X, OPERAND_Z, OPERAND_Y };
enum { OPERAND_DY = 1, OPERAND_DX, OPERAND_DZ };

/* One number per column in the compute type. */
typedef union Numbers {
    float floats[FOLD_WIDTH];
    double doubles[FOLD_WIDTH];
} Numbers;

/* Sums of a chunk, one per column; `centre` is what is subtracted from x. */
typedef struct Sums {
    int64_t columns, pending; /* lines since the last flush */
    Numbers centre, first, second;
    double first_total[FOLD_WIDTH], second_total[FOLD_WIDTH];
} Sums;

typedef struct Columns {
    Numbers mean, scale, shift, tilt;
} Columns;

/* What a block keeps from stage to stage. */
typedef struct State {
    double mean[FOLD_WIDTH], inverse[FOLD_WIDTH];
    Columns columns;
} State;
_Static_assert(sizeof(State) <= FOLD_STATE, "a block's state has room");

/* Lines of columns, `step` elements apart. */
typedef struct Lines {
    int64_t count, width;
    void *data[FOLD_OPERANDS];
    int64_t step[FOLD_OPERANDS];
    uint8_t *mask; /* NULL: none */
    int64_t mask_step;
    bool past; /* results go past the caches */
} Lines;

/* How results are formed from the columns' numbers. */
typedef struct Apply {
    const BatchNorm *norm;
    const Columns *columns;
    bool adds; /* z or dz is given */
} Apply;

static inline uint32_t read_mask(const uint8_t *mask, int64_t count)
{
    return count > 8 ? mask[0] | (uint32_t)mask[1] << 8 : mask[0];
}

static inline void write_mask(uint8_t *mask, uint32_t bits, int64_t count)
{
    mask[0] = (uint8_t)bits;
    if (count > 8) {
        mask[1] = (uint8_t)(bits >> 8);
    }
}

/* Stores past the caches become visible to other threads before anything that follows. */
static inline void past_is_done(void)
{
#ifdef US_HAS_LEVELS
    _mm_sfence();
#endif
}

#define LOOPS "kernels/batch_norm_body.inc"
#include "tensor/instantiate.inc"

/* The loops of one type at one level. */
typedef struct Loops {
    void (*spread)(const double *values, int64_t groups, int64_t columns, Numbers *numbers);
    void (*moments)(Sums *sums, const Lines *lines);
    void (*slopes)(Sums *sums, const Lines *lines);
    void (*flush)(Sums *sums);
    void (*normalise)(Apply *apply, const Lines *lines);
    void (*differentiate)(Apply *apply, const Lines *lines);
} Loops;

#define LOOPS_OF(type, level)                                                                                       \
    {spread_##type##_##level, moments_##type##_##level,   slopes_##type##_##level,                                  \
     flush_##type##_##level,  normalise_##type##_##level, differentiate_##type##_##level}
#define LOOPS_OF_LEVEL(level)                                                                                       \
    {[DTYPE_FLOAT32] = LOOPS_OF(float, level),                                                                      \
     [DTYPE_FLOAT16] = LOOPS_OF(half, level),                                                                       \
     [DTYPE_BFLOAT16] = LOOPS_OF(bfloat, level),                                                                    \
     [DTYPE_FLOAT64] = LOOPS_OF(double, level)}

static const Loops all_loops[LEVEL_COUNT][DTYPE_FLOAT64 + 1] = {
    [LEVEL_BASE] = LOOPS_OF_LEVEL(base),
#ifdef US_HAS_LEVELS
    [LEVEL_V3] = LOOPS_OF_LEVEL(v3),
    [LEVEL_V4] = LOOPS_OF_LEVEL(v4),
#endif
};

/* One call. */
typedef struct Work {
    const BatchNorm *norm;
    const View *parameters; /* as the kernels' headers list them, from the scale on */
    const Loops *loops;
    Fold fold;
    double elements; /* of a group */
    bool past;
    uint8_t *mask;
    int64_t mask_row;
} Work;

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

/* ---- panels as lines ---- */

/* A visit of panels: sums or results, whichever is asked for. */
typedef struct Visit {
    const Work *work;
    int64_t first_group;
    FoldAccess access;
    void (*sum)(Sums *sums, const Lines *lines);
    Sums *sums;
    void (*apply)(Apply *apply, const Lines *lines);
    Apply how;
} Visit;

static void advance(const Work *work, Lines *lines, int64_t count)
{
    const int64_t size = (int64_t)us_dtype_size(work->fold.operands[0].dtype);
    for (int k = 0; k < work->fold.operand_count; k++) {
        lines->data[k] = lines->data[k] != NULL ? (char *)lines->data[k] + count * lines->step[k] * size : NULL;
    }
    lines->mask = lines->mask != NULL ? lines->mask + count * lines->mask_step : NULL;
}

static void sum_lines(const Visit *visit, Lines lines)
{
    Sums *sums = visit->sums;
    for (int64_t left = lines.count; left > 0; left -= lines.count) {
        lines.count = left < FLUSH_LINES - sums->pending ? left : FLUSH_LINES - sums->pending;
        visit->sum(sums, &lines);
        advance(visit->work, &lines, lines.count);
        sums->pending += lines.count;
        if (sums->pending == FLUSH_LINES) {
            visit->work->loops->flush(sums);
            sums->pending = 0;
        }
    }
}

/* Whether whole vectors of the results are aligned on every line. */
static bool results_are_aligned(const Visit *visit, const Lines *lines)
{
    const size_t size = us_dtype_size(visit->work->fold.operands[0].dtype);
    const size_t vector = LANES * size < 64 ? LANES * size : 64;
    for (int k = 0; k < visit->work->fold.operand_count; k++) {
        const size_t place = (uintptr_t)lines->data[k] | (size_t)lines->step[k] * size;
        if (visit->access.writes >> k & 1 && place % vector != 0) {
            return false;
        }
    }
    return true;
}

static void visit_lines(Visit *visit, Lines lines)
{
    if (visit->apply == NULL) {
        sum_lines(visit, lines);
        return;
    }
    lines.past = visit->work->past && results_are_aligned(visit, &lines);
    visit->apply(&visit->how, &lines);
    if (lines.past) {
        past_is_done();
    }
}

static void visit_panel(void *context, const Panel *panel)
{
    Visit *visit = context;
    const Work *work = visit->work;
    const int64_t stack = work->fold.stack;
    Lines lines = {.count = panel->rows / stack, .width = stack * panel->width, .mask_step = stack * work->mask_row};
    for (int k = 0; k < work->fold.operand_count; k++) {
        lines.data[k] = panel->data[k];
        lines.step[k] = stack * panel->row_stride[k];
    }
    if (work->mask != NULL) {
        lines.mask = work->mask + panel->first_row * work->mask_row + visit->first_group / 8;
    }
    visit_lines(visit, lines);
    if (panel->rows % stack > 0) {
        advance(work, &lines, lines.count);
        lines.count = 1;
        lines.width = panel->rows % stack * panel->width;
        visit_lines(visit, lines);
    }
}

/* ---- sums ---- */

static void begin_sums(Sums *sums, const Work *work, int64_t groups, const double *centres)
{
    sums->columns = work->fold.stack * groups;
    sums->pending = 0;
    work->loops->spread(centres, groups, sums->columns, &sums->centre);
    const size_t bytes = (size_t)(sums->columns + LANES - 1) / LANES * LANES * sizeof(double);
    memset(&sums->first, 0, bytes);
    memset(&sums->second, 0, bytes);
    memset(sums->first_total, 0, bytes);
    memset(sums->second_total, 0, bytes);
}

/* Columns of one group are added in order. */
static void end_sums(Sums *sums, const Work *work, int64_t groups, double *first, double *second)
{
    work->loops->flush(sums);
    memcpy(first, sums->first_total, (size_t)groups * sizeof *first);
    memcpy(second, sums->second_total, (size_t)groups * sizeof *second);
    for (int64_t column = groups; column < sums->columns; column += groups) {
        for (int64_t group = 0; group < groups; group++) {
            first[group] += sums->first_total[column + group];
            second[group] += sums->second_total[column + group];
        }
    }
}

static void form_sums(Visit *visit, int64_t block, int64_t chunk, const double *centres, double *result)
{
    const Work *work = visit->work;
    Sums sums;
    int64_t groups;
    us_fold_groups(&work->fold, block, &visit->first_group, &groups);
    begin_sums(&sums, work, groups, centres);
    visit->sums = &sums;
    us_fold_walk(&work->fold, block, chunk, visit->access, visit_panel, visit);
    end_sums(&sums, work, groups, result, result + work->fold.width);
}

/* Around a number near the mean: the sums stay small, and do not cancel, whatever the mean is. */
static void sum_moments(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    (void)state;
    const Work *work = context;
    Visit visit = {.work = work, .sum = work->loops->moments, .access = {.reads = 1u << OPERAND_X}};
    double centres[FOLD_WIDTH];
    us_fold_guess(&work->fold, OPERAND_X, block, centres);
    form_sums(&visit, block, chunk, centres, sums);
}

static void sum_slopes(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    const Work *work = context;
    Visit visit = {.work = work, .sum = work->loops->slopes,
                   .access = {.reads = 1u << OPERAND_X | 1u << OPERAND_DY}};
    form_sums(&visit, block, chunk, ((State *)state)->mean, sums);
}

/* ---- what follows from the sums, for one block ---- */

static int64_t groups_of(const Work *work, int64_t block)
{
    int64_t first, groups;
    us_fold_groups(&work->fold, block, &first, &groups);
    return groups;
}

/* `mean` holds the centres on entry. */
KERNEL_CLONES static void moments_to_statistics(int64_t groups, double m, double epsilon, const double *sum,
                                                const double *product, double *mean, double *variance, double *inverse)
{
    for (int64_t i = 0; i < groups; i++) {
        const double spread = (product[i] - sum[i] * (sum[i] / m)) / m;
        variance[i] = spread < 0 ? 0 : spread;
        mean[i] += sum[i] / m;
        inverse[i] = 1 / sqrt(variance[i] + epsilon);
    }
}

static void find_statistics(const Work *work, int64_t block, State *state, const double *sums, double *variance)
{
    us_fold_guess(&work->fold, OPERAND_X, block, state->mean);
    moments_to_statistics(groups_of(work, block), work->elements, work->norm->epsilon, sums, sums + work->fold.width,
                          state->mean, variance, state->inverse);
}

static void set_column(const Work *work, int64_t groups, const double *values, Numbers *numbers)
{
    work->loops->spread(values, groups, work->fold.stack * groups, numbers);
}

static void set_normal_columns(const Work *work, int64_t block, State *state)
{
    const int64_t groups = groups_of(work, block);
    double scale[FOLD_WIDTH], bias[FOLD_WIDTH];
    us_fold_load(&work->fold, block, &work->parameters[0], scale);
    us_fold_load(&work->fold, block, &work->parameters[1], bias);
    for (int64_t i = 0; i < groups; i++) {
        scale[i] *= state->inverse[i];
    }
    set_column(work, groups, state->mean, &state->columns.mean);
    set_column(work, groups, scale, &state->columns.scale);
    set_column(work, groups, bias, &state->columns.shift);
}

static void store_given(const Work *work, int64_t block, const View *view, const double *values)
{
    if (!us_view_is_absent(view)) {
        us_fold_store(&work->fold, block, view, values);
    }
}

/* running = running * (1 - f) + value * f */
static void update_running(const Work *work, int64_t block, const View *running, const double *values,
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
    const Work *work = context;
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

static void prepare_inference(void *context, int64_t block, void *memory, const double *sums)
{
    (void)sums;
    const Work *work = context;
    State *state = memory;
    us_fold_load(&work->fold, block, &work->parameters[2], state->mean);
    us_fold_load(&work->fold, block, &work->parameters[3], state->inverse);
    for (int64_t i = 0; i < groups_of(work, block); i++) {
        state->inverse[i] = 1 / sqrt(state->inverse[i] + work->norm->epsilon);
    }
    set_normal_columns(work, block, state);
}

static void recompute_statistics(void *context, int64_t block, void *state, const double *sums)
{
    double variance[FOLD_WIDTH];
    find_statistics(context, block, state, sums, variance);
}

static void load_statistics(void *context, int64_t block, void *memory, const double *sums)
{
    (void)sums;
    const Work *work = context;
    State *state = memory;
    us_fold_load(&work->fold, block, &work->parameters[3], state->mean);
    us_fold_load(&work->fold, block, &work->parameters[4], state->inverse);
}

static void store_blended(const Work *work, int64_t block, const View *view, const double *values)
{
    const double alpha = work->norm->alpha_param, beta = work->norm->beta_param;
    const int64_t groups = groups_of(work, block);
    double result[FOLD_WIDTH];
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
    const Work *work = context;
    State *state = memory;
    const int64_t groups = groups_of(work, block);
    const bool doubles = work->fold.operands[0].dtype == DTYPE_FLOAT64;
    const double m = work->elements, *sum = sums, *product = sums + work->fold.width;
    double scale[FOLD_WIDTH], scale_gradient[FOLD_WIDTH], shift[FOLD_WIDTH], tilt[FOLD_WIDTH];
    us_fold_load(&work->fold, block, &work->parameters[0], scale);
    for (int64_t i = 0; i < groups; i++) {
        const double centre = doubles ? state->mean[i] : (double)(float)state->mean[i];
        scale_gradient[i] = (product[i] + (centre - state->mean[i]) * sum[i]) * state->inverse[i];
        scale[i] *= state->inverse[i];
        shift[i] = sum[i] / m;
        tilt[i] = scale_gradient[i] * state->inverse[i] / m;
    }
    set_column(work, groups, state->mean, &state->columns.mean);
    set_column(work, groups, scale, &state->columns.scale);
    set_column(work, groups, shift, &state->columns.shift);
    set_column(work, groups, tilt, &state->columns.tilt);
    store_blended(work, block, &work->parameters[1], scale_gradient);
    store_blended(work, block, &work->parameters[2], sum);
}

/* ---- results ---- */

static void apply(Visit *visit, int64_t block, int64_t chunk, const void *state, int added)
{
    const Work *work = visit->work;
    int64_t groups;
    us_fold_groups(&work->fold, block, &visit->first_group, &groups);
    visit->how = (Apply){work->norm, &((const State *)state)->columns,
                         !us_view_is_absent(&work->fold.operands[added])};
    us_fold_walk(&work->fold, block, chunk, visit->access, visit_panel, visit);
}

static void normalise(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    (void)sums;
    const Work *work = context;
    Visit visit = {.work = work, .apply = work->loops->normalise,
                   .access = {.reads = 1u << OPERAND_X | 1u << OPERAND_Z, .writes = 1u << OPERAND_Y}};
    visit.access.reads |= work->norm->beta != 0 ? 1u << OPERAND_Y : 0;
    apply(&visit, block, chunk, state, OPERAND_Z);
}

static void differentiate(void *context, int64_t block, int64_t chunk, void *state, double *sums)
{
    (void)sums;
    const Work *work = context;
    const unsigned results = 1u << OPERAND_DX | 1u << OPERAND_DZ;
    Visit visit = {.work = work, .apply = work->loops->differentiate,
                   .access = {.reads = 1u << OPERAND_X | 1u << OPERAND_DY, .writes = results}};
    visit.access.reads |= work->norm->beta != 0 ? results : 0;
    apply(&visit, block, chunk, state, OPERAND_DZ);
}

/* ---- calls ---- */

static KernelStatus run(const BatchNorm *norm, int operand_count, const View *operands, const View *parameters,
                        const View *mask, int stage_count, const FoldStage *stages)
{
    bool keeps[VIEW_RANK_LIMIT];
    for (int32_t axis = 0; axis < operands[0].rank; axis++) {
        keeps[axis] = norm->per_activation ? axis > 0 : axis == 1;
    }
    Work work = {.norm = norm, .parameters = parameters, .loops = &all_loops[us_level()][operands[0].dtype]};
    us_fold_begin(&work.fold, operand_count, operands, keeps, norm->activation != NORM_NO_ACTIVATION);
    const int64_t elements = work.fold.kept.count * work.fold.reduced.count;
    work.elements = (double)work.fold.reduced.count;
    work.past = elements >= PAST_BYTES / (int64_t)us_dtype_size(operands[0].dtype);
    work.mask = mask == NULL || us_view_is_absent(mask) ? NULL : mask->data;
    work.mask_row = (work.fold.kept.count + 7) / 8;
    return us_fold_run(&work.fold, stage_count, stages, &work);
}

/* Inputs that an output overlaps otherwise than element by element are copied first. */
KernelStatus us_batch_norm_training(const View *views, const void *attributes)
{
    static const FoldStage stages[] = {{sum_moments, finish_training}, {normalise, NULL}};
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[2]};
        status = run(attributes, 3, operands, views + 3, &views[9], 2, stages);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_batch_norm_inference(const View *views, const void *attributes)
{
    static const FoldStage stages[] = {{NULL, prepare_inference}, {normalise, NULL}};
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[2]};
        status = run(attributes, 3, operands, views + 3, NULL, 2, stages);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_batch_norm_backward(const View *views, const void *attributes)
{
    static const FoldStage again[] = {{sum_moments, recompute_statistics}, {sum_slopes, finish_slopes},
                                      {differentiate, NULL}};
    static const FoldStage saved[] = {{NULL, load_statistics}, {sum_slopes, finish_slopes}, {differentiate, NULL}};
    Detached detached;
    View outputs[] = {views[3], views[2]};
    KernelStatus status = us_detach(&detached, 2, views, 2, outputs);
    if (status == KERNEL_OK) {
        View operands[] = {detached.inputs[0], detached.inputs[1], views[3], views[2]};
        status = run(attributes, 4, operands, views + 4, &views[9], 3, us_view_is_absent(&views[7]) ? again : saved);
    }
    us_detach_end(&detached);
    return status;
}
