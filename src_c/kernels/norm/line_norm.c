#include "kernels/norm/line_norm.h"

#include "kernels/maths/maths.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <math.h>

enum { TILE = 1024, PARTS = 8, PIECE_ELEMENTS = 16384 };

/* What is summed over a line. */
typedef enum Term { TERM_VALUE, TERM_SQUARE, TERM_MAGNITUDE, TERM_POWER } Term;

static double term_of_power(double value, double power)
{
    const double size = value < 0 ? -value : value;
    return size > 0 ? exp_double(power * log_double(size)) : size;
}

/* In PARTS sums, so that the order does not depend on the instruction set. */
US_ALWAYS_INLINE void add_of(double *sums, const double *x, int64_t count, Term term, double center)
{
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            const double value = x[i + k] - center, size = value < 0 ? -value : value;
            sums[k] += term == TERM_VALUE ? value : term == TERM_SQUARE ? value * value : size;
        }
    }
    for (int k = 0; i < count; i++, k++) {
        const double value = x[i] - center, size = value < 0 ? -value : value;
        sums[k] += term == TERM_VALUE ? value : term == TERM_SQUARE ? value * value : size;
    }
}

KERNEL_CLONES static void add_terms(double *sums, const double *x, int64_t count, Term term, double center)
{
    if (term == TERM_VALUE) {
        add_of(sums, x, count, TERM_VALUE, center);
    } else if (term == TERM_SQUARE) {
        add_of(sums, x, count, TERM_SQUARE, center);
    } else {
        add_of(sums, x, count, TERM_MAGNITUDE, center);
    }
}

static int64_t line_begin(const LineNorm *norm, int64_t line)
{
    return line / norm->block_lines * norm->block_step + line % norm->block_lines * norm->line_step;
}

static const void *element(const void *data, DType dtype, int64_t index)
{
    return (const char *)data + index * (int64_t)us_dtype_size(dtype);
}

static double sum_line(const LineNorm *norm, int64_t begin, Term term, double center)
{
    double sums[PARTS] = {0}, tile[TILE];
    for (int64_t row = 0; row < norm->rows; row++) {
        for (int64_t i = 0; i < norm->run; i += TILE) {
            const int64_t count = norm->run - i < TILE ? norm->run - i : TILE;
            us_load_double(tile, element(norm->x, norm->dtype, begin + row * norm->row_step + i), norm->dtype, 1, count);
            for (int64_t k = 0; term == TERM_POWER && k < count; k++) {
                tile[k] = term_of_power(tile[k], norm->power);
            }
            add_terms(sums, tile, count, term == TERM_POWER ? TERM_VALUE : term, center);
        }
    }
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

static double root_of_power(double sum, double power)
{
    return power == 1 ? sum : power == 2 ? sqrt(sum) : sum > 0 ? exp_double(log_double(sum) / power) : sum;
}

/* The same where all elements have one scale and offset. */
KERNEL_CLONES static void apply_one(double *x, int64_t count, double center, double factor, double scale, double offset)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = (x[i] - center) * factor * scale + offset;
    }
}

KERNEL_CLONES static void apply(double *x, int64_t count, double center, double factor, const double *scale,
                                const double *offset)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = (x[i] - center) * factor * scale[i] + offset[i];
    }
}

/* Parameters of `count` elements of a row from i on, or of a line where all have the same. */
static void load_parameters(const LineNorm *norm, const void *from, double fallback, int64_t index, int64_t count,
                            double *values)
{
    if (from && norm->by_element) {
        us_load_double(values, element(from, norm->dtype, index), norm->dtype, 1, count);
        return;
    }
    double value = fallback;
    if (from) {
        us_load_double(&value, element(from, norm->dtype, index), norm->dtype, 1, 1);
    }
    for (int64_t i = 0; i < (norm->by_element ? count : 1); i++) {
        values[i] = value;
    }
}

static void write_line(const LineNorm *norm, int64_t line, int64_t begin, double center, double factor)
{
    double tile[TILE], scale[TILE], offset[TILE];
    const int64_t parameter = line / norm->line_divisor % norm->period * norm->stride;
    for (int64_t i = 0; i < norm->run; i += TILE) {
        const int64_t count = norm->run - i < TILE ? norm->run - i : TILE;
        const int64_t index = parameter + (norm->by_element ? i : 0);
        load_parameters(norm, norm->scale, 1, index, count, scale);
        load_parameters(norm, norm->offset, 0, index, count, offset);
        for (int64_t row = 0; row < norm->rows; row++) {
            const int64_t at = begin + row * norm->row_step + i;
            us_load_double(tile, element(norm->x, norm->dtype, at), norm->dtype, 1, count);
            if (norm->by_element) {
                apply(tile, count, center, factor, scale, offset);
            } else {
                apply_one(tile, count, center, factor, scale[0], offset[0]);
            }
            us_store_double((void *)element(norm->y, norm->dtype, at), norm->dtype, 1, tile, count);
        }
    }
}

static void store_statistic(const LineNorm *norm, void *to, int64_t line, double value)
{
    if (to) {
        us_store_double((void *)element(to, norm->statistics, line), norm->statistics, 1, &value, 1);
    }
}

static void norm_line(const LineNorm *norm, int64_t line)
{
    const int64_t begin = line_begin(norm, line);
    const double count = (double)(norm->rows * norm->run);
    if (norm->power != 0) {
        const Term term = norm->power == 1 ? TERM_MAGNITUDE : norm->power == 2 ? TERM_SQUARE : TERM_POWER;
        const double sum = sum_line(norm, begin, term, 0) + norm->epsilon;
        write_line(norm, line, begin, 0, 1 / root_of_power(sum, norm->power));
        return;
    }
    const double mean = sum_line(norm, begin, TERM_VALUE, 0) / count;
    const double variance = sum_line(norm, begin, TERM_SQUARE, mean) / count;
    store_statistic(norm, norm->means, line, mean);
    store_statistic(norm, norm->variances, line, variance);
    write_line(norm, line, begin, mean, 1 / sqrt(variance + norm->epsilon));
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

void us_line_norm(const LineNorm *norm)
{
    if (norm->rows * norm->run > 0) {
        const int64_t lines = lines_of_piece(norm);
        us_parallel((norm->lines + lines - 1) / lines, run_piece, (void *)norm);
    }
}
