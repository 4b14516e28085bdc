#include "kernels/norm/line_norm.h"

#include "kernels/maths/maths.h"
#include "kernels/norm/line_sums.h"
#include "kernels/norm/narrow_lines.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <math.h>
#include <string.h>

/* Runs shorter than SHORT_RUN are taken row by row where the runs of other lines lie between them; WIDE_ROW: elements that
 * short rows are put together to. */
enum { TILE = 1024, PIECE_ELEMENTS = 16384, SHORT_RUN = 128, WIDE_ROW = 256 };

/* Elements of a line that are written at a time (of 16 bits: TILE, they share more), and bytes of one that is fetched
 * while the last one is written. */
enum { WRITTEN = 256, MOST_AHEAD = 16384, ROWS_AHEAD = 1024 /* elements */, FAR_BYTES = 4 << 20 };

/* Elements as they are read and written in loops: float64 and integers as float64, other floats as float32. */
typedef union Tile {
    float floats[TILE];
    double doubles[TILE];
} __attribute__((aligned(64))) Tile;

#include "kernels/norm/vectors.inc"

static int64_t line_begin(const LineNorm *norm, int64_t line)
{
    return line / norm->block_lines * norm->block_step + line % norm->block_lines * norm->line_step;
}

static const void *element(const void *data, DType dtype, int64_t index)
{
    return (const char *)data + index * (int64_t)us_dtype_size(dtype);
}

/* Whether the loops see float64. */
static bool is_wide(DType dtype)
{
    return dtype != DTYPE_FLOAT32 && dtype != DTYPE_FLOAT16 && dtype != DTYPE_BFLOAT16;
}

static bool is_narrow(DType dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

/* Elements from `index` on as the loops see them, through a tile unless they are that. */
static const void *seen(const void *data, DType dtype, int64_t index, int64_t count, Tile *tile)
{
    const void *from = element(data, dtype, index);
    if (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64) {
        return from;
    }
    if (is_wide(dtype)) {
        us_load_double(tile->doubles, from, dtype, 1, count);
    } else {
        us_load_float(tile->floats, from, dtype, 1, count);
    }
    return tile;
}

/* Whether the terms of elements of 16 bits are added in float32; nothing overflows there that the type holds. */
static bool is_added_narrow(const LineNorm *norm, Term term)
{
    return term == TERM_VALUE || term == TERM_SQUARE ? is_narrow(norm->dtype)
                                                     : norm->dtype == DTYPE_FLOAT16 && term != TERM_POWER &&
                                                           norm->power <= NARROW_POWER_LIMIT;
}

static double sum_line(const LineNorm *norm, int64_t begin, Term term, double center)
{
    double sums[LANES] = {0};
    Tile tile;
    const NarrowTerm narrow = term == TERM_VALUE ? NARROW_VALUE : term == TERM_SQUARE ? NARROW_SQUARE : NARROW_POWER;
    const NarrowLoops *loops = is_added_narrow(norm, term) ? us_narrow_loops(norm->dtype) : NULL;
    for (int64_t row = 0; row < norm->rows; row++) {
        for (int64_t i = 0; i < norm->run; i += TILE) {
            const int64_t count = norm->run - i < TILE ? norm->run - i : TILE, at = begin + row * norm->row_step + i;
            if (loops != NULL) {
                loops->add_terms(sums, element(norm->x, norm->dtype, at), count, narrow, (float)center, (float)norm->power);
            } else {
                const void *x = seen(norm->x, norm->dtype, at, count, &tile);
                us_add_terms(sums, x, count, is_wide(norm->dtype), term, center, norm->power);
            }
        }
    }
    return sum_of_lanes(sums);
}

static double root_of_power(double sum, double power)
{
    return power == 1 ? sum : power == 2 ? sqrt(sum) : sum > 0 ? exp_double(log_double(sum) / power) : sum;
}

/* y = (x - center) * factor * scale + offset; one scale and offset, or one for each element. */
US_ALWAYS_INLINE void apply_float(float *y, const float *x, int64_t count, double center, double factor, const float *scale,
                                  const float *offset, bool by_element)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++) {
        const double normal = ((double)x[i] - center) * factor;
        y[i] = (float)(normal * scale[by_element ? i : 0] + offset[by_element ? i : 0]);
    }
}

US_ALWAYS_INLINE void apply_double(double *y, const double *x, int64_t count, double center, double factor,
                                   const double *scale, const double *offset, bool by_element)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++) {
        y[i] = (x[i] - center) * factor * scale[by_element ? i : 0] + offset[by_element ? i : 0];
    }
}

static void apply(void *y, const void *x, int64_t count, bool wide, double center, double factor, const void *scale,
                  const void *offset, bool by_element)
{
    if (wide) {
        apply_double(y, x, count, center, factor, scale, offset, by_element);
        return;
    }
    const float one_scale = *(const float *)scale, one_offset = *(const float *)offset;
    scale = by_element ? scale : &one_scale; /* which y does not change */
    offset = by_element ? offset : &one_offset;
    if (by_element) {
        apply_float(y, x, count, center, factor, scale, offset, true);
    } else {
        apply_float(y, x, count, center, factor, scale, offset, false);
    }
}

/* Parameters of `count` elements of a row, or the one of a line where all have the same. */
static const void *parameters(const LineNorm *norm, const void *from, double fallback, int64_t index, int64_t count,
                              Tile *tile)
{
    count = norm->by_element ? count : 1;
    if (from) {
        return seen(from, norm->dtype, index, count, tile);
    }
    for (int64_t i = 0; i < count; i++) {
        if (is_wide(norm->dtype)) {
            tile->doubles[i] = fallback;
        } else {
            tile->floats[i] = (float)fallback;
        }
    }
    return tile;
}

/* Elements that will be read, and those that will be written; not of tensors that second caches hold. */
static void fetch(const LineNorm *norm, int64_t first, int64_t count)
{
    if (norm->lines * norm->rows * norm->run * (int64_t)us_dtype_size(norm->dtype) < FAR_BYTES) {
        return;
    }
    const uintptr_t x = (uintptr_t)element(norm->x, norm->dtype, first), y = (uintptr_t)element(norm->y, norm->dtype, first);
    for (uintptr_t byte = 0; byte < (uintptr_t)count * us_dtype_size(norm->dtype); byte += CACHE_LINE_BYTES) {
        __builtin_prefetch((const void *)(x + byte));
        __builtin_prefetch((const void *)(y + byte), 1);
    }
}

/* The processor by itself does not read beyond a page, which a line often is: while a line is written the next one is
 * fetched, unless the line is so long that it leaves the first cache by itself. */
static void fetch_next(const LineNorm *norm, int64_t line, int64_t first, int64_t count)
{
    const int64_t size = (int64_t)us_dtype_size(norm->dtype);
    if (line + 1 < norm->lines && norm->rows == 1 && norm->run * size <= MOST_AHEAD) {
        fetch(norm, line_begin(norm, line + 1) + first, count);
    }
}

/* A line in hand: y = (x - center) * factor * scale + offset. */
typedef struct Line {
    int64_t number, begin;
    double center, factor;
} Line;

static void write_narrow(const LineNorm *norm, const Line *line, int64_t at, int64_t count, const void *scale,
                         const void *offset)
{
    const float center = (float)line->center, rest = (float)(line->center - (double)center);
    const NarrowFactors by = {center, rest, (float)line->factor, scale, offset};
    const void *x = element(norm->x, norm->dtype, at);
    us_narrow_loops(norm->dtype)->apply((void *)element(norm->y, norm->dtype, at), x, count, &by, norm->by_element);
}

static void write_run(const LineNorm *norm, const Line *line, int64_t at, int64_t count, const void *scale,
                      const void *offset)
{
    Tile read, written;
    const bool in_place = norm->dtype == DTYPE_FLOAT32 || norm->dtype == DTYPE_FLOAT64, wide = is_wide(norm->dtype);
    const void *x = seen(norm->x, norm->dtype, at, count, &read);
    void *y = (void *)element(norm->y, norm->dtype, at);
    apply(in_place ? y : &written, x, count, wide, line->center, line->factor, scale, offset, norm->by_element);
    if (!in_place) {
        us_store_double(y, norm->dtype, 1, written.doubles, count);
    }
}

/* Elements from `i` on of a row, which begins at `at`. */
static void write_part(const LineNorm *norm, const Line *line, int64_t at, int64_t i, int64_t count, const void *scale,
                       const void *offset)
{
    const DType seen_as = is_wide(norm->dtype) ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    if (is_narrow(norm->dtype)) {
        fetch_next(norm, line->number, i, count);
        write_narrow(norm, line, at + i, count, scale, offset);
        return;
    }
    for (int64_t k = 0, some; k < count; k += some) {
        const int64_t by = norm->by_element ? k : 0;
        some = count - k < WRITTEN ? count - k : WRITTEN;
        fetch_next(norm, line->number, i + k, some);
        write_run(norm, line, at + i + k, some, element(scale, seen_as, by), element(offset, seen_as, by));
    }
}

static void write_line(const LineNorm *norm, const Line *line)
{
    Tile scales, offsets;
    const int64_t parameter = line->number / norm->line_divisor % norm->period * norm->stride;
    for (int64_t i = 0; i < norm->run; i += TILE) {
        const int64_t count = norm->run - i < TILE ? norm->run - i : TILE;
        const int64_t index = parameter + (norm->by_element ? i : 0);
        const void *scale = parameters(norm, norm->scale, 1, index, count, &scales);
        const void *offset = parameters(norm, norm->offset, 0, index, count, &offsets);
        for (int64_t row = 0; row < norm->rows; row++) {
            write_part(norm, line, line->begin + row * norm->row_step, i, count, scale, offset);
        }
    }
}

static void store_statistic(const LineNorm *norm, void *to, int64_t line, double value)
{
    if (to) {
        us_store_double((void *)element(to, norm->statistics, line), norm->statistics, 1, &value, 1);
    }
}

static Term term_of_power(double power)
{
    const bool is_half = power <= 8 && 2 * power == floor(2 * power);
    return power == 1 ? TERM_MAGNITUDE : power == 2 ? TERM_SQUARE : is_half ? TERM_HALVES : TERM_POWER;
}

static void norm_line(const LineNorm *norm, int64_t line)
{
    const int64_t begin = line_begin(norm, line);
    const double count = (double)(norm->rows * norm->run);
    if (norm->power != 0) {
        const double sum = sum_line(norm, begin, term_of_power(norm->power), 0) + norm->epsilon;
        write_line(norm, &(Line){line, begin, 0, 1 / root_of_power(sum, norm->power)});
        return;
    }
    const double mean = sum_line(norm, begin, TERM_VALUE, 0) / count;
    const double variance = sum_line(norm, begin, TERM_SQUARE, mean) / count;
    store_statistic(norm, norm->means, line, mean);
    store_statistic(norm, norm->variances, line, variance);
    write_line(norm, &(Line){line, begin, mean, 1 / sqrt(variance + norm->epsilon)});
}

static int64_t lines_of_piece(const LineNorm *norm)
{
    const int64_t elements = norm->rows * norm->run;
    return elements >= PIECE_ELEMENTS || elements == 0 ? 1 : PIECE_ELEMENTS / elements;
}

static void run_piece(void *context, int64_t piece)
{
    const LineNorm *norm = context;
    const int64_t lines = lines_of_piece(norm), begin = piece * lines;
    const int64_t end = norm->lines - begin < lines ? norm->lines : begin + lines;
    for (int64_t line = begin; line < end; line++) {
        norm_line(norm, line);
    }
}

/* ---- lines side by side ---- */

/* Rows of a block hold a run of each of its lines. */
typedef struct Rows {
    const LineNorm *norm;
    int64_t width;                             /* elements of one or more rows that are written at once */
    int64_t piece_rows, pieces;                /* pieces of a block */
    int64_t parameters;                        /* width elements for every block */
    double *centres, *factors, *offsets;       /* y = (x - centre) * factor + offset; one behind the other */
    float *narrow;                             /* the same as float32, for elements of 16 bits: see round_parameters */
} Rows;

static bool lines_lie_side_by_side(const LineNorm *norm)
{
    return norm->power == 0 && norm->run < SHORT_RUN && norm->block_lines > 1 && norm->line_step == norm->run &&
           norm->row_step == norm->block_lines * norm->run && norm->block_step == norm->rows * norm->row_step &&
           norm->by_element && (norm->dtype == DTYPE_FLOAT32 || is_narrow(norm->dtype));
}

static void apply_row(float *y, const float *x, int64_t count, const double *centres, const double *factors,
                      const double *offsets)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++) {
        y[i] = (float)(((double)x[i] - centres[i]) * factors[i] + offsets[i]);
    }
}

static void write_rows(void *context, int64_t number)
{
    const Rows *rows = context;
    const LineNorm *norm = rows->norm;
    const int64_t block = number / rows->pieces, first = number % rows->pieces * rows->piece_rows, row = norm->row_step;
    const int64_t left = norm->rows - first, end = (left < rows->piece_rows ? left : rows->piece_rows) * row;
    const int64_t begin = block * norm->block_step + first * row;
    const NarrowLoops *loops = us_narrow_loops(norm->dtype);
    for (int64_t i = 0, count; i < end; i += count) {
        const int64_t column = i % rows->width, parameter = block * rows->width + column;
        count = rows->width - column < TILE ? rows->width - column : TILE;
        count = end - i < count ? end - i : count;
        const void *x = element(norm->x, norm->dtype, begin + i);
        void *y = (void *)element(norm->y, norm->dtype, begin + i);
        fetch(norm, begin + i + ROWS_AHEAD, count);
        if (loops != NULL) {
            const float *narrow = rows->narrow + parameter;
            loops->apply_each(y, x, count, narrow, narrow + rows->parameters, narrow + 2 * rows->parameters);
            continue;
        }
        apply_row(y, x, count, rows->centres + parameter, rows->factors + parameter, rows->offsets + parameter);
    }
}

/* Mean and variance of a line from those of its columns. */
static void put_together(const Rows *rows, int64_t line, const double *means, const double *variances)
{
    const LineNorm *norm = rows->norm;
    const int64_t block = line / norm->block_lines, first = line % norm->block_lines * norm->run;
    const double *of_column = means + line * norm->run;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < norm->run; i++) {
        mean += of_column[i] / (double)norm->run;
    }
    for (int64_t i = 0; i < norm->run; i++) {
        const double away = of_column[i] - mean;
        variance += (variances[line * norm->run + i] + away * away) / (double)norm->run;
    }
    store_statistic(norm, norm->means, line, mean);
    store_statistic(norm, norm->variances, line, variance);
    const double inverse = 1 / sqrt(variance + norm->epsilon);
    const int64_t parameter = line / norm->line_divisor % norm->period * norm->stride;
    for (int64_t i = 0; i < norm->run; i++) {
        Tile scale, offset;
        const float *scales = parameters(norm, norm->scale, 1, parameter + i, 1, &scale);
        const float *offsets = parameters(norm, norm->offset, 0, parameter + i, 1, &offset);
        for (int64_t at = first + i; at < rows->width; at += norm->row_step) {
            rows->centres[block * rows->width + at] = mean;
            rows->factors[block * rows->width + at] = inverse * (double)scales[0];
            rows->offsets[block * rows->width + at] = (double)offsets[0];
        }
    }
}

/* What a centre loses by rounding goes to the offset: elements may all be nearer to it than that. */
static void round_parameters(const Rows *rows)
{
    float *const centres = rows->narrow, *const factors = centres + rows->parameters, *const offsets = factors + rows->parameters;
    for (int64_t i = 0; i < rows->parameters; i++) {
        centres[i] = (float)rows->centres[i];
        factors[i] = (float)rows->factors[i];
        offsets[i] = (float)(rows->offsets[i] - (rows->centres[i] - (double)centres[i]) * rows->factors[i]);
    }
}

static KernelStatus norm_rows(const LineNorm *norm)
{
    const int64_t blocks = norm->lines / norm->block_lines, columns = norm->row_step, count = blocks * columns;
    const int64_t wide = columns < WIDE_ROW ? WIDE_ROW / columns : 1, at_once = wide < norm->rows ? wide : norm->rows;
    Rows rows = {.norm = norm, .width = at_once * columns};
    rows.parameters = blocks * rows.width;
    const size_t numbers = us_scratch_bytes(count, 2 * sizeof(double)) + us_scratch_bytes(rows.parameters, 3 * sizeof(double));
    double *means = us_scratch_take(numbers + us_scratch_bytes(rows.parameters, 3 * sizeof *rows.narrow));
    if (!means) {
        return KERNEL_NO_MEMORY;
    }
    double *variances = means + count;
    rows.centres = variances + count;
    rows.factors = rows.centres + rows.parameters;
    rows.offsets = rows.factors + rows.parameters;
    rows.narrow = (float *)(void *)((char *)means + numbers);
    const int64_t shape[] = {blocks, norm->rows, columns}, kept[] = {blocks, 1, columns};
    const View views[] = {us_view_contiguous((void *)norm->x, norm->dtype, 3, shape),
                          us_view_contiguous(variances, DTYPE_FLOAT64, 3, kept),
                          us_view_contiguous(means, DTYPE_FLOAT64, 3, kept)};
    const ReduceCall reduce = {.reduction = &us_reduce_variance, .compute = norm->dtype, .result = DTYPE_FLOAT64, .axes = 2,
                               .outputs = 2};
    const KernelStatus status = us_reduce(views, &reduce);
    for (int64_t line = 0; status == KERNEL_OK && line < norm->lines; line++) {
        put_together(&rows, line, means, variances);
    }
    if (status == KERNEL_OK) {
        round_parameters(&rows);
    }
    rows.piece_rows = (PIECE_ELEMENTS / rows.width + 1) * at_once;
    rows.pieces = (norm->rows + rows.piece_rows - 1) / rows.piece_rows;
    if (status == KERNEL_OK) {
        us_parallel(blocks * rows.pieces, write_rows, &rows);
    }
    us_scratch_give_back(means);
    return status;
}

KernelStatus us_line_norm(const LineNorm *norm)
{
    if (norm->lines * norm->rows * norm->run == 0) {
        return KERNEL_OK;
    }
    if (lines_lie_side_by_side(norm)) {
        return norm_rows(norm);
    }
    const int64_t lines = lines_of_piece(norm);
    us_parallel((norm->lines + lines - 1) / lines, run_piece, (void *)norm);
    return KERNEL_OK;
}
