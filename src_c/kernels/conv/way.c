#include "kernels/conv/way.h"

#include "kernels/matmul/bf16.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

/* Magnitudes of floats are ordered like their bits; NaN is above infinity. */
enum { MAGNITUDE = 0x7fffffff };

static int32_t largest_of(const float *values, int64_t count)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t magnitude = (int32_t)(float_bits(values[i]) & MAGNITUDE);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

typedef struct Search {
    const View *view; /* five axes; or, without gaps, one */
    atomic_int largest;
} Search;

enum { SEARCHED = 16 * 1024, PART = 256 };

static void search_values(Search *search, const void *data, int64_t stride, int64_t count)
{
    const DType dtype = search->view->dtype;
    int32_t largest = 0;
    for (int64_t done = 0; done < count; done += PART) {
        float values[PART];
        const int64_t part = count - done < PART ? count - done : PART;
        us_load_float(values, (const char *)data + done * stride * (int64_t)us_dtype_size(dtype), dtype, stride, part);
        const int32_t found = largest_of(values, part);
        largest = found > largest ? found : largest;
    }
    int known = atomic_load(&search->largest);
    while (known < largest && !atomic_compare_exchange_weak(&search->largest, &known, largest)) {
    }
}

static void search_run(void *context, int64_t piece)
{
    Search *search = context;
    const View *view = search->view;
    const int64_t begin = piece * SEARCHED, left = view->shape[0] - begin;
    const char *data = (const char *)view->data + begin * (int64_t)us_dtype_size(view->dtype);
    search_values(search, data, 1, left < SEARCHED ? left : SEARCHED);
}

/* One index of the first two axes. */
static void search_plane(void *context, int64_t piece)
{
    Search *search = context;
    const View *view = search->view;
    const int64_t base = piece / view->shape[1] * view->strides[0] + piece % view->shape[1] * view->strides[1];
    const int64_t rows = view->shape[2] * view->shape[3], size = (int64_t)us_dtype_size(view->dtype);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t offset = base + row / view->shape[3] * view->strides[2] + row % view->shape[3] * view->strides[3];
        const char *data = (const char *)view->data + offset * size;
        search_values(search, data, view->strides[4], view->shape[4]);
    }
}

float us_conv_largest_magnitude(const View *view)
{
    Search search = {.view = view};
    int64_t lowest, highest;
    atomic_init(&search.largest, 0);
    if (!us_dtype_is_float(view->dtype)) {
        return 0;
    }
    const int64_t elements = us_view_elements(view);
    if (us_view_extent(view, &lowest, &highest) && highest - lowest + 1 == elements) { /* no gaps: in memory order */
        char *data = (char *)view->data + lowest * (int64_t)us_dtype_size(view->dtype);
        const View run = us_view_contiguous(data, view->dtype, 1, &elements);
        search.view = &run;
        us_parallel((elements + SEARCHED - 1) / SEARCHED, search_run, &search);
    } else {
        us_parallel(view->shape[0] * view->shape[1], search_plane, &search);
    }
    return bits_float((uint32_t)atomic_load(&search.largest));
}

bool us_conv_looks_outside(const Gather *gather)
{
    for (int axis = 0; axis < CONV_AXES; axis++) {
        const TapAxis *taps = &gather->taps[axis];
        const int64_t last = taps->offset + (taps->count - 1) * taps->offset_step;
        const int64_t lowest = last < taps->offset ? last : taps->offset;
        const int64_t highest = last < taps->offset ? taps->offset : last;
        if (lowest < 0 || (gather->out_size[axis] - 1) * gather->step[axis] + highest >= gather->in_size[axis]) {
            return true;
        }
    }
    return false;
}

/* Most results of a group for which vectors of results are faster than products; and than tiles, for sums and slopes. */
enum { MOST_BY_LANES = 128, MOST_SUMS = 32, MOST_SLOPES = 64 };

/* The same of sums and slopes where registers are short and few: of more results, products take half the time (Zen 3). */
enum { MOST_BY_SHORT_LANES = 32 };

static int64_t most_by_lanes(void)
{
    return us_has_long_registers() ? MOST_BY_LANES : MOST_BY_SHORT_LANES;
}

static int64_t most_slopes(void)
{
    return us_has_long_registers() ? MOST_SLOPES : MOST_BY_SHORT_LANES;
}

/* Whether no sum of Winograd's method can overflow: its maps enlarge values and products less than GROWTH times. */
static bool is_moderate(double a, double b, double terms)
{
    enum { GROWTH = 1 << 16 };
    const double limit = (double)FLT_MAX / GROWTH / terms;
    return a < limit && b < limit && a * b < limit;
}

bool us_conv_winograd_pays(DType dtype, bool slopes, int64_t channels, int64_t results, int64_t positions)
{
    enum { LEAST_CHANNELS = 16, LEAST_FILTERS = 1024, LEAST_POSITIONS = 256 };
    const bool multiplies_fast = us_bf16_takes(dtype, dtype), by_lanes = slopes && results <= most_slopes();
    return !multiplies_fast && !by_lanes && channels >= LEAST_CHANNELS && results >= LEAST_CHANNELS &&
           channels * results >= LEAST_FILTERS && positions >= LEAST_POSITIONS;
}

/* Whether 16-bit operands are better converted to float32 than multiplied as they are, whose tiles hold more results. */
static bool leaves_tiles_empty(const Gather *gather, bool slopes)
{
    enum { FEW = 4, SOME = 8, CHANNELS = 16, CHANNELS_OF_SLOPES = 8 };
    const bool shallow = gather->channels <= (slopes ? CHANNELS_OF_SLOPES : CHANNELS);
    return gather->results <= FEW || (shallow && gather->results <= SOME);
}

/* Whether matrix products would have so few rows that their columns cost too much. */
static bool has_few_results(const Gather *gather, ConvMethod method, bool slopes, const View *in)
{
    enum { FEW_RESULTS = 16, FEW_OF_DEEP = 32, DEEP = 128 };
    const bool deep = gather->channels * gather_taps(gather) >= DEEP;
    const bool lanes = us_lanes_take(gather);
    const int64_t of_deep = lanes && gather_taps(gather) > 1 ? most_by_lanes() : FEW_OF_DEEP;
    const int64_t most = deep && (lanes || !slopes) ? of_deep : FEW_RESULTS;
    const bool in_floats = gather->column_type == gather->compute || leaves_tiles_empty(gather, slopes);
    return method != CONV_PRODUCT && gather->results <= most && in_floats && !us_conv_has_channels_last(in) &&
           !us_gather_is_pointwise(gather) && us_cells_take(gather);
}

Way us_conv_usual_way(const Gather *gather, ConvMethod method, bool slopes, const View *in)
{
    enum { FEW_CHANNELS = 8 }; /* groups with no more channels and results than these go by rows */
    enum { NEAR_VALUES = 64 * 1024 }; /* of an image and group: tiles of few results pay where there are more, for sums */
    const bool few = gather->channels <= FEW_CHANNELS && gather->results <= FEW_CHANNELS && gather->groups > 1;
    if (method == CONV_DIRECT || (few && method != CONV_PRODUCT && method != CONV_WINOGRAD)) {
        return BY_ROWS;
    }
    const bool by_rows = has_few_results(gather, method, slopes, in);
    const bool few_values = gather->channels * conv_product3(gather->in_size) <= NEAR_VALUES;
    const bool near = by_rows && (slopes ? gather->results <= most_slopes() : gather->results <= MOST_SUMS && few_values);
    const bool pays =
        us_conv_winograd_pays(gather->column_type, false, gather->channels, gather->results, gather_positions(gather));
    const bool tiles = us_winograd_takes(gather) && (method == CONV_WINOGRAD || (method == CONV_ANY && pays && !near));
    return tiles ? BY_TILES : by_rows ? BY_ROWS : BY_PRODUCT;
}

Way us_conv_way(const Gather *gather, ConvMethod method, bool outside, const View *in, const View *filter)
{
    const Way way = us_conv_usual_way(gather, method, false, in);
    if (way == BY_ROWS || (way == BY_PRODUCT && !outside)) {
        return way;
    }
    const float largest = us_conv_largest_magnitude(filter);
    const double terms = (double)(gather->channels * gather_taps(gather));
    if (outside && !isfinite(largest)) {
        return BY_ROWS;
    }
    const bool plain = way == BY_TILES && !is_moderate((double)largest, (double)us_conv_largest_magnitude(in), terms);
    return plain ? us_conv_usual_way(gather, CONV_PLAIN, false, in) : way;
}
