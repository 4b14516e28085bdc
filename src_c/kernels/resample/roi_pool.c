#include "kernels/resample/roi_pool.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/resample/clamped.h"
#include "tensor/convert.h"

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

static void find_maximum(const View *image, const char *plane, Range rows, Range columns, float *maximum, int32_t *place)
{
    *maximum = 0;
    *place = -1;
    for (int64_t row = rows.begin; row < rows.end; row++) {
        for (int64_t column = columns.begin; column < columns.end; column++) {
            float value;
            const int64_t at = row * image->strides[2] + column * image->strides[3];
            us_load_float(&value, plane + at * (int64_t)us_dtype_size(image->dtype), image->dtype, 1, 1);
            if (*place < 0 || value > *maximum || (value != value && *maximum == *maximum)) {
                *maximum = value;
                *place = (int32_t)(row * image->shape[3] + column);
            }
        }
    }
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
    const int64_t at = known ? (int64_t)box[0] * image->strides[0] + piece % channels * image->strides[1] : 0;
    const char *plane = (const char *)image->data + at * (int64_t)us_dtype_size(image->dtype);
    for (int64_t p = 0; p < p_count; p++) {
        const Range rows = known ? bin_of(box[2], box[4], regions->settings->down, p, p_count, image->shape[2]) : (Range){0, 0};
        for (int64_t q = 0; q < q_count; q++) {
            const Range columns = bin_of(box[1], box[3], regions->settings->across, q, q_count, image->shape[3]);
            float maximum;
            int32_t place;
            find_maximum(image, plane, rows, columns, &maximum, &place);
            const double number = place;
            us_linear_store_float(out, (piece * p_count + p) * q_count + q, 1, &maximum);
            us_linear_store_double(&regions->views[PLACES], (piece * p_count + p) * q_count + q, 1, &number);
        }
    }
}

KernelStatus us_roi_pool(const View *views, const void *attributes)
{
    Regions regions = {views, attributes};
    run_pieces(views[2].shape[0] * views[2].shape[1], us_view_elements(&views[2]) * 16, pool_region, &regions);
    return KERNEL_OK;
}
