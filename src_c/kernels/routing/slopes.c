#include "kernels/routing/slopes.h"

#include "kernels/sizes.h"
#include "kernels/sort/lines.h"

#include <string.h>

enum { TILE = 512 };

/* -1: zeros. */
static void load(const View *rows, int64_t row, int64_t column, int64_t count, float *to)
{
    if (row < 0) {
        memset(to, 0, (size_t)count * sizeof *to);
    } else {
        us_row_load(rows, row, column, count, to);
    }
}

void us_put_slopes(const View *slopes, int64_t from, float scale, const View *gradient, int64_t to)
{
    const int64_t width = slopes->shape[1];
    for (int64_t column = 0, count; column < width; column += count) {
        float line[TILE];
        count = smaller(width - column, TILE);
        load(slopes, from, column, count, line);
        for (int64_t i = 0; i < count && from >= 0; i++) {
            line[i] *= scale;
        }
        us_row_store(gradient, to, column, count, line);
    }
}

float us_dot_slopes(const View *slopes, int64_t row, const View *tokens, int64_t place, const View *bias, int64_t expert)
{
    const int64_t width = slopes->shape[1];
    double sum = 0;
    for (int64_t column = 0, count; column < width; column += count) {
        float line[TILE], token[TILE], addend[TILE];
        count = smaller(width - column, TILE);
        load(slopes, row, column, count, line);
        load(tokens, place, column, count, token);
        load(bias, expert, column, count, addend);
        for (int64_t i = 0; i < count; i++) {
            sum += (double)line[i] * ((double)token[i] + (double)addend[i]);
        }
    }
    return (float)sum;
}
