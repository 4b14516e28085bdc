#include "kernels/norm/modulate.h"

#include "kernels/pieces.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"

enum { SLOPES, X, FACTORS, X_SLOPES, FACTOR_SLOPES, SHIFT_SLOPES };
enum { TILE = 256 };

static void store_sums(const View *view, int64_t row, int64_t begin, const double *sums, int64_t count)
{
    if (!us_view_is_absent(view)) {
        const Line line = us_line_of(view, view->rank - 1, row);
        us_store_double(us_line_element(&line, begin), line.dtype, line.stride, sums, count);
    }
}

/* One tile of the columns of one of the batch. */
static void add_tile(void *context, int64_t piece)
{
    const View *views = context;
    const int64_t length = views[X].shape[1], width = views[X].shape[2], tiles = (width + TILE - 1) / TILE;
    const int64_t batch = piece / tiles, begin = piece % tiles * TILE, count = width - begin < TILE ? width - begin : TILE;
    float slopes[TILE], x[TILE], factors[TILE];
    double of_factors[TILE] = {0}, of_shifts[TILE] = {0};
    const bool scales = !us_view_is_absent(&views[FACTORS]);
    if (scales) {
        us_row_load(&views[FACTORS], batch, begin, count, factors);
    }
    for (int64_t l = 0; l < length; l++) {
        us_row_load(&views[SLOPES], batch * length + l, begin, count, slopes);
        us_row_load(&views[X], batch * length + l, begin, count, x);
        for (int64_t i = 0; i < count; i++) {
            of_factors[i] += (double)slopes[i] * (double)x[i];
            of_shifts[i] += (double)slopes[i];
            slopes[i] *= scales ? factors[i] : 1;
        }
        us_row_store(&views[X_SLOPES], batch * length + l, begin, count, slopes);
    }
    store_sums(&views[FACTOR_SLOPES], batch, begin, of_factors, count);
    store_sums(&views[SHIFT_SLOPES], batch, begin, of_shifts, count);
}

KernelStatus us_modulate_gradient(const View *views, const void *attributes)
{
    (void)attributes;
    const int64_t tiles = (views[X].shape[2] + TILE - 1) / TILE;
    run_pieces(views[X].shape[0] * tiles, us_view_elements(&views[X]), add_tile, (void *)views);
    return KERNEL_OK;
}
