#include "kernels/resample/roi_pool.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/resample/clamped.h"
#include "kernels/resample/pixel.h"

enum { TILE = 64 }; /* bins that are stored at a time */

typedef struct Regions {
    const View *views;
    const RoiPool *settings;
} Regions;

typedef struct Range {
    int64_t begin, end;
} Range;

/* Pixels of a bin along an axis of `size` pixels. */
static Range bin_of(float from, float to, float scale, int64_t bin, int64_t bins, int64_t size)
{
    const float begin = from * scale, length = (to + 1) * scale - begin, step = length / (float)bins;
    if (!(length > 0)) {
        return (Range){0, 0};
    }
    const float first = (float)bin * step + begin, last = (float)(bin + 1) * step + begin;
    return (Range){(int64_t)clamped(floor((double)first), (double)size), (int64_t)clamped(ceil((double)last), (double)size)};
}

/* Where it is; -1: nowhere, it is 0. */
static int64_t find_maximum(const View *image, const char *plane, Range rows, Range columns, float *maximum)
{
    int64_t place = -1;
    float largest = 0;
    for (int64_t row = rows.begin; row < rows.end; row++) {
        for (int64_t column = columns.begin; column < columns.end; column++) {
            const int64_t at = row * image->strides[2] + column * image->strides[3];
            const float value = (float)us_pixel(plane, image->dtype, at);
            if (place < 0 || value > largest || (value != value && largest == largest)) {
                largest = value;
                place = row * image->shape[3] + column;
            }
        }
    }
    *maximum = largest;
    return place;
}

static void pool_region(void *context, int64_t piece)
{
    enum { IMAGES, REGIONS, MAXIMA, PLACES };
    const Regions *regions = context;
    const View *image = &regions->views[IMAGES], *out = &regions->views[MAXIMA];
    const int64_t channels = out->shape[1], p_count = out->shape[2], q_count = out->shape[3];
    float box[5];
    us_linear_load_float(&regions->views[REGIONS], 5 * (piece / channels), 5, box);
    const bool known = box[0] >= 0 && box[0] < (float)image->shape[0];
    const char *plane = us_plane_of(image, known ? (int64_t)box[0] : 0, piece % channels);
    for (int64_t p = 0; p < p_count; p++) {
        const Range rows = known ? bin_of(box[2], box[4], regions->settings->down, p, p_count, image->shape[2]) : (Range){0, 0};
        for (int64_t q = 0; q < q_count; q += TILE) {
            const int64_t count = q_count - q < TILE ? q_count - q : TILE, at = (piece * p_count + p) * q_count + q;
            float maxima[TILE];
            double places[TILE];
            for (int64_t k = 0; k < count; k++) {
                const Range columns = bin_of(box[1], box[3], regions->settings->across, q + k, q_count, image->shape[3]);
                places[k] = (double)find_maximum(image, plane, rows, columns, &maxima[k]);
            }
            us_linear_store_float(out, at, count, maxima);
            us_linear_store_double(&regions->views[PLACES], at, count, places);
        }
    }
}

KernelStatus us_roi_pool(const View *views, const void *attributes)
{
    Regions regions = {views, attributes};
    run_pieces(views[2].shape[0] * views[2].shape[1], us_view_elements(&views[2]) * 16, pool_region, &regions);
    return KERNEL_OK;
}
