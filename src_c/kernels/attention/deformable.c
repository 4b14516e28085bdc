#include "kernels/attention/deformable.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

enum { VALUES, SIZES, STARTS, PLACES, WEIGHTS, OUT, VALUE_SLOPES, PLACE_SLOPES, WEIGHT_SLOPES };

typedef struct FeatureLevel {
    int64_t rows, columns, start;
} FeatureLevel;

typedef struct Work {
    const View *views;
    int64_t keys, heads, channels, queries, levels, points;
    FeatureLevel level[DEFORMABLE_LEVELS];
    double *sums; /* of the values' slopes: [b, heads, keys, channels] */
} Work;

/* The four pixels about a point: their keys, or -1 outside the image, and their shares. */
typedef struct Corners {
    int64_t keys[4];
    double shares[4], down, across; /* how far the point is from the first one */
} Corners;

static KernelStatus prepare(Work *work, const View *views)
{
    *work = (Work){.views = views, .keys = views[VALUES].shape[1], .heads = views[VALUES].shape[2],
                   .channels = views[VALUES].shape[3], .queries = views[PLACES].shape[1], .levels = views[PLACES].shape[3],
                   .points = views[PLACES].shape[4]};
    for (int64_t l = 0; l < work->levels; l++) {
        double size[2], start;
        us_linear_load_double(&views[SIZES], 2 * l, 2, size);
        us_linear_load_double(&views[STARTS], l, 1, &start);
        if (!(size[0] >= 0 && size[1] >= 0 && start >= 0 && start + size[0] * size[1] <= (double)work->keys)) {
            return us_kernel_fault("level %lld has %.0f x %.0f pixels from key %.0f on, of %lld keys", (long long)l,
                                   size[0], size[1], start, (long long)work->keys);
        }
        work->level[l] = (FeatureLevel){(int64_t)size[0], (int64_t)size[1], (int64_t)start};
    }
    return KERNEL_OK;
}

static bool corners_of(const FeatureLevel *level, const float *place, Corners *corners)
{
    const double x = (double)place[0] * (double)level->columns - 0.5, y = (double)place[1] * (double)level->rows - 0.5;
    if (!(x > -1 && x < (double)level->columns && y > -1 && y < (double)level->rows)) {
        return false;
    }
    const double left = floor(x), top = floor(y), across = x - left, down = y - top;
    const double shares[] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
    memcpy(corners->shares, shares, sizeof shares);
    corners->down = down;
    corners->across = across;
    for (int corner = 0; corner < 4; corner++) {
        const int64_t row = (int64_t)top + corner / 2, column = (int64_t)left + corner % 2;
        const bool inside = row >= 0 && row < level->rows && column >= 0 && column < level->columns;
        corners->keys[corner] = inside ? level->start + row * level->columns + column : -1;
    }
    return true;
}

static const char *values_of(const Work *work, int64_t batch, int64_t key, int64_t head)
{
    const View *values = &work->views[VALUES];
    const int64_t element = batch * values->strides[0] + key * values->strides[1] + head * values->strides[2];
    return (const char *)values->data + element * (int64_t)us_dtype_size(values->dtype);
}

static void load_values(const Work *work, int64_t batch, int64_t key, int64_t head, float *values)
{
    if (key < 0) {
        memset(values, 0, (size_t)work->channels * sizeof *values);
        return;
    }
    const View *view = &work->views[VALUES];
    us_load_float(values, values_of(work, batch, key, head), view->dtype, view->strides[3], work->channels);
}

static void add_values(const Work *work, int64_t batch, int64_t key, int64_t head, float share, float *sums)
{
    float loaded[DEFORMABLE_CHANNELS];
    const View *view = &work->views[VALUES];
    const bool is_plain = view->dtype == DTYPE_FLOAT32 && view->strides[3] == 1;
    const float *values = is_plain ? (const float *)values_of(work, batch, key, head) : loaded;
    if (!is_plain) {
        load_values(work, batch, key, head, loaded);
    }
    for (int64_t c = 0; c < work->channels; c++) {
        sums[c] += share * values[c];
    }
}

static void attend_point(const Work *work, int64_t batch, int64_t head, const FeatureLevel *level, const float *place,
                         float weight, float *sums)
{
    Corners corners;
    if (!corners_of(level, place, &corners)) {
        return;
    }
    for (int corner = 0; corner < 4; corner++) {
        if (corners.keys[corner] >= 0) {
            add_values(work, batch, corners.keys[corner], head, (float)((double)weight * corners.shares[corner]), sums);
        }
    }
}

/* One query of one head. */
static void attend(const Work *work, int64_t number, float *sums)
{
    enum { TILE = 32 };
    const int64_t batch = number / work->heads / work->queries, head = number % work->heads;
    const int64_t points = work->levels * work->points, first = number * points;
    float places[2 * TILE], weights[TILE];
    memset(sums, 0, (size_t)work->channels * sizeof *sums);
    for (int64_t begin = 0; begin < points; begin += TILE) {
        const int64_t count = points - begin < TILE ? points - begin : TILE;
        us_linear_load_float(&work->views[PLACES], 2 * (first + begin), 2 * count, places);
        us_linear_load_float(&work->views[WEIGHTS], first + begin, count, weights);
        for (int64_t i = 0; i < count; i++) {
            const FeatureLevel *level = &work->level[(begin + i) / work->points];
            attend_point(work, batch, head, level, places + 2 * i, weights[i], sums);
        }
    }
}

static void attend_query(void *context, int64_t piece)
{
    const Work *work = context;
    const View *out = &work->views[OUT];
    float sums[DEFORMABLE_CHANNELS];
    for (int64_t head = 0; head < work->heads; head++) {
        attend(work, piece * work->heads + head, sums);
        us_row_store(out, piece, head * work->channels, work->channels, sums);
    }
}

KernelStatus us_deformable_attention(const View *views, const void *attributes)
{
    (void)attributes;
    Work work;
    const KernelStatus status = prepare(&work, views);
    if (status == KERNEL_OK) {
        const int64_t queries = views[VALUES].shape[0] * work.queries;
        run_pieces(queries, us_view_elements(&views[WEIGHTS]) * work.channels * 4, attend_query, &work);
    }
    return status;
}

/* ---- gradient: a head of one of the batch is one piece, which alone has its values ---- */

/* What a point gives: its values' slopes are added; its place's and its weight's are returned. */
static void add_point(const Work *work, int64_t batch, int64_t head, double *sums, const float *slopes,
                      const FeatureLevel *level, const float *place, float weight, double *place_slope, double *weight_slope)
{
    Corners corners;
    place_slope[0] = place_slope[1] = *weight_slope = 0;
    if (!corners_of(level, place, &corners)) {
        return;
    }
    double met[4] = {0}; /* the slopes' products with the values of the corners */
    for (int corner = 0; corner < 4; corner++) {
        float values[DEFORMABLE_CHANNELS];
        load_values(work, batch, corners.keys[corner], head, values);
        for (int64_t c = 0; c < work->channels; c++) {
            met[corner] += (double)slopes[c] * (double)values[c];
        }
        *weight_slope += corners.shares[corner] * met[corner];
        double *const of_key = corners.keys[corner] >= 0 ? sums + corners.keys[corner] * work->channels : NULL;
        for (int64_t c = 0; c < work->channels && of_key != NULL; c++) {
            of_key[c] += corners.shares[corner] * (double)weight * (double)slopes[c];
        }
    }
    const double down = corners.down, across = corners.across;
    place_slope[0] = (double)level->columns * (double)weight * ((met[1] - met[0]) * (1 - down) + (met[3] - met[2]) * down);
    place_slope[1] = (double)level->rows * (double)weight * ((met[2] - met[0]) * (1 - across) + (met[3] - met[1]) * across);
}

static void add_query(const Work *work, int64_t batch, int64_t query, int64_t head, double *sums)
{
    float slopes[DEFORMABLE_CHANNELS];
    us_row_load(&work->views[OUT], batch * work->queries + query, head * work->channels, work->channels, slopes);
    const int64_t number = (batch * work->queries + query) * work->heads + head;
    for (int64_t l = 0; l < work->levels; l++) {
        for (int64_t p = 0; p < work->points; p++) {
            const int64_t at = (number * work->levels + l) * work->points + p;
            float place[2], weight;
            double place_slope[2], weight_slope;
            us_linear_load_float(&work->views[PLACES], 2 * at, 2, place);
            us_linear_load_float(&work->views[WEIGHTS], at, 1, &weight);
            add_point(work, batch, head, sums, slopes, &work->level[l], place, weight, place_slope, &weight_slope);
            us_linear_store_double(&work->views[PLACE_SLOPES], 2 * at, 2, place_slope);
            us_linear_store_double(&work->views[WEIGHT_SLOPES], at, 1, &weight_slope);
        }
    }
}

static void add_head(void *context, int64_t piece)
{
    const Work *work = context;
    const int64_t batch = piece / work->heads, head = piece % work->heads, size = work->keys * work->channels;
    double *const sums = work->sums + piece * size;
    memset(sums, 0, (size_t)size * sizeof *sums);
    for (int64_t query = 0; query < work->queries; query++) {
        add_query(work, batch, query, head, sums);
    }
    for (int64_t key = 0; key < work->keys; key++) {
        const Line line = us_line_of(&work->views[VALUE_SLOPES], 3, (batch * work->keys + key) * work->heads + head);
        us_store_double(line.data, line.dtype, line.stride, sums + key * work->channels, work->channels);
    }
}

KernelStatus us_deformable_attention_gradient(const View *views, const void *attributes)
{
    (void)attributes;
    Work work;
    const KernelStatus status = prepare(&work, views);
    if (status != KERNEL_OK) {
        return status;
    }
    work.sums = us_scratch_take(us_scratch_bytes(us_view_elements(&views[VALUES]), sizeof *work.sums) + 64);
    if (work.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(views[VALUES].shape[0] * work.heads, us_view_elements(&views[WEIGHTS]) * work.channels * 4, add_head, &work);
    us_scratch_give_back(work.sums);
    return KERNEL_OK;
}
