#include "kernels/norm/line_gradient.h"

#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { TILE = 256, PARTS = 8, PIECE_ELEMENTS = 8192 };

static void *element(const void *data, DType dtype, int64_t index)
{
    return (char *)data + index * (int64_t)us_dtype_size(dtype);
}

/* ---- loops over a tile: g[i] = dy[i] * scale, u[i] = (x[i] - mean) * inverse ---- */

KERNEL_CLONES static void multiply_tile(double *g, const double *scale, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        g[i] *= scale[i];
    }
}

/* In PARTS sums, whose order does not depend on the instruction set. */
KERNEL_CLONES static void add_tile(double *sums, double *products, const double *g, const double *x, int64_t count,
                                   double mean, double inverse)
{
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            sums[k] += g[i + k];
            products[k] += g[i + k] * ((x[i + k] - mean) * inverse);
        }
    }
    for (int k = 0; i < count; i++, k++) {
        sums[k] += g[i];
        products[k] += g[i] * ((x[i] - mean) * inverse);
    }
}

KERNEL_CLONES static void slopes_of_tile(double *dx, const double *g, const double *x, int64_t count, double mean,
                                         double inverse, double mean_g, double mean_product)
{
    for (int64_t i = 0; i < count; i++) {
        dx[i] = inverse * (g[i] - mean_g - (x[i] - mean) * inverse * mean_product);
    }
}

KERNEL_CLONES static void add_parameters(double *dscale, double *doffset, const double *dy, const double *x, int64_t count,
                                         double mean, double inverse)
{
    for (int64_t i = 0; i < count; i++) {
        dscale[i] += dy[i] * ((x[i] - mean) * inverse);
        doffset[i] += dy[i];
    }
}

/* ---- lines: dx ---- */

static void load_tile(const LineGradient *work, int64_t at, int64_t count, double *x, double *g)
{
    us_load_double(x, element(work->x, work->dtype, at), work->dtype, 1, count);
    us_load_double(g, element(work->dy, work->dtype, at), work->dtype, 1, count);
    for (int64_t i = 0, run; i < count; i += run) {
        const int64_t parameter = (at + i) % work->parameters, left = work->parameters - parameter;
        run = count - i < left ? count - i : left;
        multiply_tile(g + i, work->scale + parameter, run);
    }
}

static double sum_of_parts(const double *sums)
{
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

static void run_line(const LineGradient *work, int64_t line)
{
    double x[TILE], g[TILE], dx[TILE], sums[PARTS] = {0}, products[PARTS] = {0};
    const double mean = work->mean[line], inverse = work->inverse[line], length = (double)work->length;
    for (int pass = 0; pass < 2; pass++) {
        const double mean_g = sum_of_parts(sums) / length, mean_product = sum_of_parts(products) / length;
        for (int64_t i = 0; i < work->length; i += TILE) {
            const int64_t count = work->length - i < TILE ? work->length - i : TILE, at = line * work->length + i;
            load_tile(work, at, count, x, g);
            if (pass == 0) {
                add_tile(sums, products, g, x, count, mean, inverse);
                continue;
            }
            slopes_of_tile(dx, g, x, count, mean, inverse, mean_g, mean_product);
            us_store_double(element(work->dx, work->dtype, at), work->dtype, 1, dx, count);
        }
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
    double x[TILE], dy[TILE], dscale[TILE] = {0}, doffset[TILE] = {0};
    const int64_t first = piece * TILE, left = work->parameters - first, width = left < TILE ? left : TILE;
    for (int64_t at = first; at < work->lines * work->length; at += work->parameters) {
        us_load_double(x, element(work->x, work->dtype, at), work->dtype, 1, width);
        us_load_double(dy, element(work->dy, work->dtype, at), work->dtype, 1, width);
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
    us_parallel((work->parameters + TILE - 1) / TILE, run_parameters, (void *)work);
}
