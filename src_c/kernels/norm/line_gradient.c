#include "kernels/norm/line_gradient.h"

#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

/* Elements of a line, and parameters, handled at a time; sums of a line; elements of a piece of lines. */
enum { TILE = 1024, PARAMETERS = 256, PARTS = 16, PIECE_ELEMENTS = 8192 };

static void *element(const void *data, DType dtype, int64_t index)
{
    return (char *)data + index * (int64_t)us_dtype_size(dtype);
}

/* Elements as float: as they are, or through a tile. */
static const float *floats_at(const void *data, DType dtype, int64_t index, int64_t count, float *tile)
{
    if (dtype == DTYPE_FLOAT32) {
        return element(data, dtype, index);
    }
    us_load_float(tile, element(data, dtype, index), dtype, 1, count);
    return tile;
}

/* ---- loops over a tile: g = dy * scale, u = (x - mean) * inverse ---- */

typedef float Floats __attribute__((vector_size(PARTS / 2 * sizeof(float))));
typedef double Doubles __attribute__((vector_size(PARTS / 2 * sizeof(double))));

US_ALWAYS_INLINE void widen(Doubles *to, const float *from)
{
    Floats floats;
    memcpy(&floats, from, sizeof floats);
    *to = __builtin_convertvector(floats, Doubles);
}

/* Sums of g and g * u of a line. */
typedef struct Sums {
    Doubles g[2], products[2];
} Sums;

/* In PARTS sums, whose order does not depend on the instruction set. */
KERNEL_CLONES static void add_tile(Sums *sums, const float *dy, const float *x, const double *scale, int64_t count,
                                   double mean, double inverse)
{
    Sums now = *sums;
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const int64_t at = i + k * PARTS / 2;
            Doubles g, values, factors;
            memcpy(&factors, scale + at, sizeof factors);
            widen(&g, dy + at);
            widen(&values, x + at);
            g *= factors;
            now.g[k] += g;
            now.products[k] += g * ((values - mean) * inverse);
        }
    }
    for (int k = 0; i < count; i++, k++) {
        const double g = (double)dy[i] * scale[i];
        now.g[k / (PARTS / 2)][k % (PARTS / 2)] += g;
        now.products[k / (PARTS / 2)][k % (PARTS / 2)] += g * (((double)x[i] - mean) * inverse);
    }
    *sums = now;
}

/* What stands for all elements of a line. */
typedef struct Line {
    double mean, inverse, mean_g, mean_product;
} Line;

US_ALWAYS_INLINE double slope(const Line *line, double dy, double x, double scale)
{
    return line->inverse * (dy * scale - line->mean_g - (x - line->mean) * line->inverse * line->mean_product);
}

KERNEL_CLONES static void slopes_to_float(float *restrict dx, const float *dy, const float *x, const double *scale,
                                          int64_t count, const Line *line)
{
    for (int64_t i = 0; i < count; i++) {
        dx[i] = (float)slope(line, (double)dy[i], (double)x[i], scale[i]);
    }
}

KERNEL_CLONES static void slopes_to_double(double *restrict dx, const float *dy, const float *x, const double *scale,
                                           int64_t count, const Line *line)
{
    for (int64_t i = 0; i < count; i++) {
        dx[i] = slope(line, (double)dy[i], (double)x[i], scale[i]);
    }
}

KERNEL_CLONES static void add_parameters(double *restrict dscale, double *restrict doffset, const float *dy, const float *x,
                                         int64_t count, double mean, double inverse)
{
    for (int64_t i = 0; i < count; i++) {
        dscale[i] += (double)dy[i] * (((double)x[i] - mean) * inverse);
        doffset[i] += (double)dy[i];
    }
}

/* ---- lines: dx ---- */

static double sum_of(const Doubles *halves)
{
    double sums[PARTS / 2];
    const Doubles both = halves[0] + halves[1];
    memcpy(sums, &both, sizeof sums);
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* dx from element `at` on. */
static void store_slopes(const LineGradient *work, int64_t at, int64_t count, const float *dy, const float *x,
                         const double *scale, const Line *line)
{
    void *dx = element(work->dx, work->dtype, at);
    if (work->dtype == DTYPE_FLOAT32) {
        slopes_to_float(dx, dy, x, scale, count, line);
        return;
    }
    double slopes[TILE];
    slopes_to_double(slopes, dy, x, scale, count, line);
    us_store_double(dx, work->dtype, 1, slopes, count);
}

/* Tiles end where the parameters begin again. */
static void run_line(const LineGradient *work, int64_t number)
{
    float x_tile[TILE], dy_tile[TILE];
    Sums sums = {0};
    Line line = {.mean = work->mean[number], .inverse = work->inverse[number]};
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0, count; i < work->length; i += count) {
            const int64_t at = number * work->length + i, parameter = at % work->parameters;
            const int64_t left = work->parameters - parameter;
            count = work->length - i < TILE ? work->length - i : TILE;
            count = left < count ? left : count;
            const float *x = floats_at(work->x, work->dtype, at, count, x_tile);
            const float *dy = floats_at(work->dy, work->dtype, at, count, dy_tile);
            if (pass == 0) {
                add_tile(&sums, dy, x, work->scale + parameter, count, line.mean, line.inverse);
            } else {
                store_slopes(work, at, count, dy, x, work->scale + parameter, &line);
            }
        }
        line.mean_g = sum_of(sums.g) / (double)work->length;
        line.mean_product = sum_of(sums.products) / (double)work->length;
    }
}

static int64_t lines_of_piece(const LineGradient *work)
{
    return work->length < PIECE_ELEMENTS ? PIECE_ELEMENTS / work->length : 1;
}

static void run_lines(void *context, int64_t piece)
{
    const LineGradient *work = context;
    const int64_t lines = lines_of_piece(work);
    for (int64_t line = piece * lines; line < work->lines && line < (piece + 1) * lines; line++) {
        run_line(work, line);
    }
}

/* ---- parameters: a tile of neighbours at a time, over all elements in their order ---- */

static void run_parameters(void *context, int64_t piece)
{
    const LineGradient *work = context;
    float x_tile[PARAMETERS], dy_tile[PARAMETERS];
    double dscale[PARAMETERS] = {0}, doffset[PARAMETERS] = {0};
    const int64_t first = piece * PARAMETERS, left = work->parameters - first, width = left < PARAMETERS ? left : PARAMETERS;
    for (int64_t at = first; at < work->lines * work->length; at += work->parameters) {
        const float *x = floats_at(work->x, work->dtype, at, width, x_tile);
        const float *dy = floats_at(work->dy, work->dtype, at, width, dy_tile);
        for (int64_t i = 0, count; i < width; i += count) { /* up to the end of the line */
            const int64_t line = (at + i) / work->length, rest = (line + 1) * work->length - at - i;
            count = width - i < rest ? width - i : rest;
            add_parameters(dscale + i, doffset + i, dy + i, x + i, count, work->mean[line], work->inverse[line]);
        }
    }
    us_store_double(element(work->dscale, work->dtype, first), work->dtype, 1, dscale, width);
    us_store_double(element(work->doffset, work->dtype, first), work->dtype, 1, doffset, width);
}

void us_line_gradient(const LineGradient *work)
{
    const int64_t lines = lines_of_piece(work);
    us_parallel((work->lines + lines - 1) / lines, run_lines, (void *)work);
    us_parallel((work->parameters + PARAMETERS - 1) / PARAMETERS, run_parameters, (void *)work);
}
