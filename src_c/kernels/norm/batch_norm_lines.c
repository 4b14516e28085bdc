#include "kernels/norm/batch_norm_lines.h"

#include "kernels/maths/maths.h"
#include "kernels/move/past.h"
#include "kernels/norm/copy_some.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <string.h>

/* 16-bit and fp32 data are computed in fp32. Sums are formed column by column: of FLUSH_LINES lines at a time in the
 * compute type, then in double, columns of one group in order, chunks in order; columns of a small plane in another
 * order, plane_sum in batch_norm_body.inc. CELL_LINES lines are handled together; lines of up to SHORT_LINE columns, which
 * are many, are added up LANES columns after LANES columns.
 * Results of PAST_BYTES and more do not fit in the caches and are not written into them. */
enum { FLUSH_LINES = 32, CELL_LINES = 2, SHORT_LINE = 2 * LANES };

/* Sums of a chunk, one per column, and of them one total per column or plane; `centre` is what is subtracted from x. */
typedef struct Sums {
    int64_t columns, totals;
    int64_t pending; /* lines since the last flush */
    Numbers centre, first, second;
    double first_total[FOLD_WIDTH], second_total[FOLD_WIDTH];
} Sums;

/* Lines of columns, `step` elements apart. */
typedef struct Lines {
    int64_t count, width;
    void *data[FOLD_OPERANDS];
    int64_t step[FOLD_OPERANDS];
    int64_t ahead[FOLD_OPERANDS]; /* bytes to what is read next */
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

#define LOOPS "kernels/norm/batch_norm_body.inc"
#include "tensor/instantiate.inc"

/* The loops of one type. */
typedef struct Loops {
    size_t compute_size;
    void (*spread)(const double *values, int64_t groups, int64_t plane, int64_t columns, Numbers *numbers);
    void (*moments)(Sums *sums, const Lines *lines);
    void (*slopes)(Sums *sums, const Lines *lines);
    void (*flush)(Sums *sums);
    void (*normalise)(const Apply *how, const Lines *lines);
    void (*differentiate)(const Apply *how, const Lines *lines);
} Loops;

#define LOOPS_OF(type, compute) \
    {sizeof(compute), spread_##type,    moments_##type,      slopes_##type, \
     flush_##type,    normalise_##type, differentiate_##type}

static const Loops all_loops[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = LOOPS_OF(float, float),
    [DTYPE_FLOAT16] = LOOPS_OF(half, float),
    [DTYPE_BFLOAT16] = LOOPS_OF(bfloat, float),
    [DTYPE_FLOAT64] = LOOPS_OF(double, double),
};

/* ---- panels as lines ---- */

/* A visit of panels: sums or results, whichever is asked for. */
typedef struct Visit {
    const NormWork *work;
    int64_t first_group;
    FoldAccess access;
    void (*sum)(Sums *sums, const Lines *lines);
    Sums *sums;
    void (*apply)(const Apply *how, const Lines *lines);
    Apply how;
} Visit;

static void advance(const NormWork *work, Lines *lines, int64_t count)
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
        us_past_is_done();
    }
}

static void visit_panel(void *context, const Panel *panel)
{
    Visit *visit = context;
    const NormWork *work = visit->work;
    const int64_t stack = work->fold.stack;
    Lines lines = {.count = panel->rows / stack, .width = stack * panel->width, .mask_step = stack * work->mask_row};
    for (int k = 0; k < work->fold.operand_count; k++) {
        lines.data[k] = panel->data[k];
        lines.step[k] = stack * panel->row_stride[k];
        lines.ahead[k] = panel->ahead[k];
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

static void begin_sums(Sums *sums, const NormWork *work, int64_t groups, const double *centres)
{
    sums->totals = work->fold.stack * groups;
    sums->columns = sums->totals * work->fold.plane;
    sums->pending = 0;
    work->loops->spread(centres, groups, work->fold.plane, sums->columns, &sums->centre);
    const size_t bytes = (size_t)(sums->columns + LANES - 1) / LANES * LANES * work->loops->compute_size;
    memset(&sums->first, 0, bytes);
    memset(&sums->second, 0, bytes);
    memset(sums->first_total, 0, (size_t)sums->totals * sizeof(double));
    memset(sums->second_total, 0, (size_t)sums->totals * sizeof(double));
}

/* Totals of one group are added in order. */
static void end_sums(Sums *sums, const NormWork *work, int64_t groups, double *first, double *second)
{
    work->loops->flush(sums);
    for (int64_t group = 0; group < groups; group++) {
        double first_sum = 0, second_sum = 0;
        for (int64_t i = group; i < sums->totals; i += groups) {
            first_sum += sums->first_total[i];
            second_sum += sums->second_total[i];
        }
        first[group] = first_sum;
        second[group] = second_sum;
    }
}

static void form_sums(Visit *visit, int64_t block, int64_t chunk, const double *centres, double *result)
{
    const NormWork *work = visit->work;
    Sums sums;
    int64_t groups;
    us_fold_groups(&work->fold, block, &visit->first_group, &groups);
    begin_sums(&sums, work, groups, centres);
    visit->sums = &sums;
    us_fold_walk(&work->fold, block, chunk, visit->access, visit_panel, visit);
    end_sums(&sums, work, groups, result, result + work->fold.width);
}

void us_norm_sum_moments(const NormWork *work, int64_t block, int64_t chunk, const double *centres, double *sums)
{
    Visit visit = {.work = work, .sum = work->loops->moments, .access = {.reads = 1u << OPERAND_X}};
    form_sums(&visit, block, chunk, centres, sums);
}

typedef struct WideMoments {
    const NormWork *work;
    const double *centres;
    double *sum, *product;
} WideMoments;

static void add_wide_panel(void *context, const Panel *panel)
{
    const WideMoments *moments = context;
    const DType type = moments->work->fold.operands[OPERAND_X].dtype;
    const int64_t size = (int64_t)us_dtype_size(type);
    for (int64_t row = 0; row < panel->rows; row++) {
        double values[FOLD_WIDTH];
        const char *data = (const char *)panel->data[OPERAND_X] + row * panel->row_stride[OPERAND_X] * size;
        us_load_double(values, data, type, 1, panel->width);
        for (int64_t i = 0; i < panel->width; i++) {
            const int64_t group = i / moments->work->fold.plane;
            const double distance = values[i] - moments->centres[group];
            moments->sum[group] += distance;
            moments->product[group] += distance * distance;
        }
    }
}

void us_norm_sum_moments_wide(const NormWork *work, int64_t block, const double *centres, double *sum, double *product)
{
    WideMoments moments = {work, centres, sum, product};
    memset(sum, 0, FOLD_WIDTH * sizeof *sum);
    memset(product, 0, FOLD_WIDTH * sizeof *product);
    for (int64_t chunk = 0; chunk < work->fold.chunks; chunk++) {
        us_fold_walk(&work->fold, block, chunk, (FoldAccess){.reads = 1u << OPERAND_X}, add_wide_panel, &moments);
    }
}

void us_norm_sum_slopes(const NormWork *work, int64_t block, int64_t chunk, const double *centres, double *sums)
{
    Visit visit = {.work = work, .sum = work->loops->slopes,
                   .access = {.reads = 1u << OPERAND_X | 1u << OPERAND_DY}};
    form_sums(&visit, block, chunk, centres, sums);
}

/* ---- results ---- */

static void form_results(Visit *visit, int64_t block, int64_t chunk, const Columns *columns, int added)
{
    const NormWork *work = visit->work;
    int64_t groups;
    us_fold_groups(&work->fold, block, &visit->first_group, &groups);
    visit->how = (Apply){work->norm, columns, !us_view_is_absent(&work->fold.operands[added])};
    /* Made anew: a structure that was just written in part is not read before all earlier stores are done. */
    const FoldAccess given = visit->access;
    const FoldAccess access = {given.reads | (work->norm->beta != 0 ? given.writes : 0), given.writes};
    visit->access = access;
    us_fold_walk(&work->fold, block, chunk, access, visit_panel, visit);
}

void us_norm_apply_forward(const NormWork *work, int64_t block, int64_t chunk, const Columns *columns)
{
    Visit visit = {.work = work, .apply = work->loops->normalise,
                   .access = {.reads = 1u << OPERAND_X | 1u << OPERAND_Z, .writes = 1u << OPERAND_Y}};
    form_results(&visit, block, chunk, columns, OPERAND_Z);
}

void us_norm_apply_backward(const NormWork *work, int64_t block, int64_t chunk, const Columns *columns)
{
    Visit visit = {.work = work, .apply = work->loops->differentiate,
                   .access = {.reads = 1u << OPERAND_X | 1u << OPERAND_DY,
                              .writes = 1u << OPERAND_DX | 1u << OPERAND_DZ}};
    form_results(&visit, block, chunk, columns, OPERAND_DZ);
}

/* ---- calls ---- */

void us_norm_begin(NormWork *work, const BatchNorm *norm, int operand_count, const View *operands,
                   const View *parameters, const View *mask)
{
    bool keeps[VIEW_RANK_LIMIT];
    for (int32_t axis = 0; axis < operands[0].rank; axis++) {
        keeps[axis] = norm->per_activation ? axis > 0 : axis == 1;
    }
    *work = (NormWork){.norm = norm, .parameters = parameters, .loops = &all_loops[operands[0].dtype]};
    us_fold_begin(&work->fold, operand_count, operands, keeps, norm->activation != NORM_NO_ACTIVATION);
    const int64_t elements = work->fold.kept.count * work->fold.elements;
    work->elements = (double)work->fold.elements;
    work->past = elements >= PAST_BYTES / (int64_t)us_dtype_size(operands[0].dtype);
    work->mask = us_view_is_absent(mask) ? NULL : mask->data;
    work->mask_row = (work->fold.kept.count + 7) / 8;
}

void us_norm_set(const NormWork *work, int64_t groups, const double *values, Numbers *numbers)
{
    const Fold *fold = &work->fold;
    work->loops->spread(values, groups, fold->plane, fold->stack * groups * fold->plane, numbers);
}
