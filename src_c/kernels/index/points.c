#include "kernels/index/points.h"

#include "kernels/linear.h"
#include "kernels/outside.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <string.h>

enum { TILE = 256 };

/* All indices are below `size`. */
static KernelStatus check_indices(const View *indices, int64_t size)
{
    const int64_t count = us_view_elements(indices);
    double tile[TILE];
    OutsideIndex outside = {0};
    for (int64_t begin = 0; begin < count && !outside.found; begin += TILE) {
        const int64_t in_tile = count - begin < TILE ? count - begin : TILE;
        us_linear_load_double(indices, begin, in_tile, tile);
        for (int64_t i = 0; i < in_tile; i++) {
            if (!(tile[i] >= 0 && tile[i] < (double)size)) {
                us_outside_met(&outside, begin + i, (int64_t)tile[i], size);
            }
        }
    }
    return us_outside_status(&outside);
}

typedef struct Sums {
    const View *views;
    double *sums;
} Sums;

static void add_channel(void *context, int64_t piece)
{
    enum { SLOPES, INDICES, WEIGHTS, OUT };
    const Sums *work = context;
    const View *views = work->views;
    const int64_t points = views[SLOPES].shape[2], batch = piece / views[SLOPES].shape[1], size = views[OUT].shape[2];
    double *const sums = work->sums + piece * size;
    memset(sums, 0, (size_t)size * sizeof *sums);
    for (int64_t n = 0; n < points; n++) {
        double slope, indices[3], weights[3];
        us_linear_load_double(&views[SLOPES], piece * points + n, 1, &slope);
        us_linear_load_double(&views[INDICES], 3 * (batch * points + n), 3, indices);
        us_linear_load_double(&views[WEIGHTS], 3 * (batch * points + n), 3, weights);
        for (int i = 0; i < 3; i++) {
            sums[(int64_t)indices[i]] += slope * weights[i];
        }
    }
    us_linear_store_double(&views[OUT], piece * size, size, sums);
}

KernelStatus us_three_points_gradient(const View *views, const void *attributes)
{
    (void)attributes;
    KernelStatus status = check_indices(&views[1], views[3].shape[2]);
    if (status != KERNEL_OK) {
        return status;
    }
    Sums work = {views, us_scratch_array(us_view_elements(&views[3]), sizeof *work.sums)};
    if (work.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(views[0].shape[0] * views[0].shape[1], us_view_elements(&views[0]) * 4, add_channel, &work);
    us_scratch_give_back(work.sums);
    return KERNEL_OK;
}

enum { FIRST, SECOND, FIRST_INDICES, SECOND_INDICES, FIRST_DISTANCES, SECOND_DISTANCES, FIRST_SLOPES, SECOND_SLOPES };

/* The slopes of the distances from the points of one set. */
static void add_distances(const View *points, const View *others, const View *indices, const View *slopes, int64_t batch,
                          double *of_points, double *of_others)
{
    const int64_t count = points->shape[1];
    for (int64_t i = 0; i < count; i++) {
        double point[2], other[2], index, slope;
        us_linear_load_double(indices, batch * count + i, 1, &index);
        us_linear_load_double(slopes, batch * count + i, 1, &slope);
        us_linear_load_double(points, 2 * (batch * count + i), 2, point);
        us_linear_load_double(others, 2 * (batch * others->shape[1] + (int64_t)index), 2, other);
        for (int axis = 0; axis < 2; axis++) {
            const double share = 2 * slope * (point[axis] - other[axis]);
            of_points[2 * i + axis] += share;
            of_others[2 * (int64_t)index + axis] -= share;
        }
    }
}

static void add_sets(void *context, int64_t batch)
{
    const Sums *work = context;
    const View *views = work->views;
    const int64_t first = 2 * views[FIRST].shape[1], second = 2 * views[SECOND].shape[1];
    double *const of_first = work->sums + batch * (first + second), *const of_second = of_first + first;
    memset(of_first, 0, (size_t)(first + second) * sizeof *of_first);
    add_distances(&views[FIRST], &views[SECOND], &views[FIRST_INDICES], &views[FIRST_DISTANCES], batch, of_first, of_second);
    add_distances(&views[SECOND], &views[FIRST], &views[SECOND_INDICES], &views[SECOND_DISTANCES], batch, of_second, of_first);
    us_linear_store_double(&views[FIRST_SLOPES], batch * first, first, of_first);
    us_linear_store_double(&views[SECOND_SLOPES], batch * second, second, of_second);
}

KernelStatus us_nearest_points_gradient(const View *views, const void *attributes)
{
    (void)attributes;
    KernelStatus status = check_indices(&views[FIRST_INDICES], views[SECOND].shape[1]);
    status = status != KERNEL_OK ? status : check_indices(&views[SECOND_INDICES], views[FIRST].shape[1]);
    if (status != KERNEL_OK) {
        return status;
    }
    const int64_t elements = us_view_elements(&views[FIRST]) + us_view_elements(&views[SECOND]);
    Sums work = {views, us_scratch_take(us_scratch_bytes(elements, sizeof *work.sums) + 64)};
    if (work.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(views[FIRST].shape[0], elements * 8, add_sets, &work);
    us_scratch_give_back(work.sums);
    return KERNEL_OK;
}
