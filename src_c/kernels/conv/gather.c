#include "kernels/conv/gather.h"

#include "kernels/move/copy_view.h"
#include "kernels/packed.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { NEAR_CHANNELS = 16 };

/* Positions of one image and result row that lie side by side, as one tap sees them. */
typedef struct Segment {
    int64_t image, o0, o1, begin, count; /* of the results */
} Segment;

/* The segment at a position, not beyond `end`. */
static Segment segment_at(const Gather *gather, int64_t position, int64_t end)
{
    Segment segment = {.begin = position % gather->out_size[2]};
    const int64_t row = position / gather->out_size[2], rest = row / gather->out_size[1];
    segment.o1 = row % gather->out_size[1];
    segment.o0 = rest % gather->out_size[0];
    segment.image = rest / gather->out_size[0];
    segment.count = gather->out_size[2] - segment.begin;
    segment.count = segment.count < end - position ? segment.count : end - position;
    return segment;
}

/* The whole next row of results, or what is left of it before `left` positions end. */
static void go_on(const Gather *gather, Segment *segment, int64_t left)
{
    segment->begin = 0;
    segment->count = smaller(gather->out_size[2], left);
    if (++segment->o1 == gather->out_size[1]) {
        segment->o1 = 0;
        if (++segment->o0 == gather->out_size[0]) {
            segment->o0 = 0;
            segment->image++;
        }
    }
}

/* Steps that cover a distance; most often without a division. */
static int64_t steps_over(int64_t distance, int64_t step)
{
    return step == 1 ? distance : step == 2 ? (distance + 1) / 2 : (distance + step - 1) / step;
}

static int64_t place(const Gather *gather, int axis, int64_t position, int64_t tap)
{
    const TapAxis *taps = &gather->taps[axis];
    return position * gather->step[axis] + taps->offset + tap * taps->offset_step;
}

static Part part_of(const Gather *gather, const Segment *segment, const int64_t *tap)
{
    const int64_t i0 = place(gather, 0, segment->o0, tap[0]), i1 = place(gather, 1, segment->o1, tap[1]);
    const int64_t start = place(gather, 2, segment->begin, tap[2]), step = gather->step[2], size = gather->in_size[2];
    Part part = {.before = segment->count};
    if (i0 < 0 || i0 >= gather->in_size[0] || i1 < 0 || i1 >= gather->in_size[1] || start >= size) {
        return part;
    }
    const int64_t before = start < 0 ? steps_over(-start, step) : 0, end = steps_over(size - start, step);
    if (before >= segment->count || end <= before) {
        return part;
    }
    part.before = before;
    part.inside = (end < segment->count ? end : segment->count) - before;
    part.first = (i0 * gather->in_size[1] + i1) * size + start + before * step;
    return part;
}

static void tap_at(const Gather *gather, int64_t number, int64_t *tap)
{
    tap[2] = number % gather->taps[2].count;
    number /= gather->taps[2].count;
    tap[1] = number % gather->taps[1].count;
    tap[0] = number / gather->taps[1].count;
}

#define ELEMENT float
#define NAME(name) name##_float
#include "kernels/conv/gather.inc"

#define ELEMENT double
#define NAME(name) name##_double
#include "kernels/conv/gather.inc"

#define ELEMENT uint16_t
#define NAME(name) name##_half
#include "kernels/conv/gather.inc"

/* Whether every result sees the input element of its own place along an axis. */
static bool is_own_place(const Gather *gather, int axis)
{
    return gather->taps[axis].count == 1 && gather->taps[axis].offset == 0 && gather->step[axis] == 1 &&
           gather->in_size[axis] == gather->out_size[axis];
}

bool us_gather_is_pointwise(const Gather *gather)
{
    return is_own_place(gather, 0) && is_own_place(gather, 1) && is_own_place(gather, 2);
}

/* Makes an axis part of the next one, along which there is only one tap: what is a step apart on it then is a line apart. */
static void merge_into_next(Gather *gather, int axis)
{
    enum { MOST = 1 << 20 }; /* of what is multiplied */
    const int next = axis + 1;
    const TapAxis taps = gather->taps[axis];
    const int64_t line = gather->in_size[next], sizes[] = {line, gather->in_size[axis], gather->out_size[axis], taps.count,
                                                           llabs(taps.offset), llabs(taps.offset_step)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] > MOST) {
            return;
        }
    }
    if (gather->step[axis] != 1 || !is_own_place(gather, next)) {
        return;
    }
    gather->in_size[next] *= gather->in_size[axis];
    gather->out_size[next] *= gather->out_size[axis];
    gather->taps[next] = (TapAxis){taps.count, taps.offset * line, taps.offset_step * line};
    gather->in_size[axis] = gather->out_size[axis] = 1;
    gather->taps[axis] = (TapAxis){1, 0, 0};
    const int64_t stride = gather->filter.strides[3 + next];
    gather->filter.shape[3 + next] = gather->filter.shape[3 + axis];
    gather->filter.shape[3 + axis] = 1;
    gather->filter.strides[3 + next] = gather->filter.strides[3 + axis];
    gather->filter.strides[3 + axis] = stride;
}

void us_gather_merge_axes(Gather *gather)
{
    merge_into_next(gather, 1);
    merge_into_next(gather, 0);
    merge_into_next(gather, 1);
}

/* Of a pointwise gather. */
static void converted_columns(const Gather *gather, int64_t channel, int64_t channels, int64_t begin, int64_t count,
                              float *columns)
{
    const int64_t plane = conv_product3(gather->in_size), all = gather->groups * gather->channels;
    const uint16_t *in = gather->in;
    for (int64_t i = 0; gather->channels_last && i < count; i++) {
        us_load_float(columns + i * channels, in + (begin + i) * all + channel, gather->in_type, 1, channels);
    }
    for (int64_t done = 0, part; !gather->channels_last && done < count; done += part) {
        const int64_t image = (begin + done) / plane, within = (begin + done) % plane;
        part = plane - within < count - done ? plane - within : count - done;
        for (int64_t c = 0; c < channels; c++) {
            us_load_float(columns + c * count + done, in + (image * all + channel + c) * plane + within,
                          gather->in_type, 1, part);
        }
    }
}

void us_gather_columns(const Gather *gather, int64_t group, int64_t first, int64_t channels, int64_t begin,
                       int64_t count, void *columns)
{
    const int64_t channel = group * gather->channels + first;
    if (gather->in_type != gather->column_type) {
        converted_columns(gather, channel, channels, begin, count, columns);
    } else if (gather->column_type == DTYPE_FLOAT64) {
        columns_double(gather, channel, channels, begin, count, columns);
    } else if (gather->column_type != DTYPE_FLOAT32) {
        columns_half(gather, channel, channels, begin, count, columns);
    } else {
        columns_float(gather, channel, channels, begin, count, columns);
    }
}

/* ---- the filter ---- */

typedef struct Packing {
    const Gather *gather;
    char *packed;
} Packing;

/* Results of a group whose filters are read together: of a filter that is turned round they lie side by side. */
enum { BESIDE = 16 };

static void pack_results(void *context, int64_t piece)
{
    const Packing *packing = context;
    const Gather *gather = packing->gather;
    const int64_t size = (int64_t)us_dtype_size(gather->column_type), depth = gather->channels * gather_taps(gather);
    const int64_t blocks = ceiling(gather->results, BESIDE), group = piece / blocks, first = piece % blocks * BESIDE;
    const int64_t count = smaller(BESIDE, gather->results - first);
    const View *filter = &gather->filter;
    const char *from = (const char *)filter->data + (group * filter->strides[0] + first * filter->strides[1]) * size;
    char *to = packing->packed + (group * gather->results + first) * depth * size;
    if (gather->column_type == DTYPE_FLOAT64) {
        pack_results_double(gather, (const double *)from, count, (double *)to);
    } else if (gather->column_type != DTYPE_FLOAT32) {
        pack_results_half(gather, (const uint16_t *)from, count, (uint16_t *)to);
    } else {
        pack_results_float(gather, (const float *)from, count, (float *)to);
    }
}

/* Axes of the filter, outermost first, as the rows of a product count them. */
static const int rows_first[] = {2, 3, 4, 5}, rows_last[] = {3, 4, 5, 2};

bool us_gather_filter_stride(const Gather *gather, int64_t *stride)
{
    const int *order = gather->channels_last ? rows_last : rows_first;
    int64_t reach = 1;
    *stride = 1;
    for (int k = 3; k >= 0; k--) {
        const int64_t count = order[k] == 2 ? gather->channels : gather->taps[order[k] - 3].count;
        const int64_t step = gather->filter.strides[order[k]];
        if (count == 1) {
            continue;
        }
        if (reach > 1 && step != *stride * reach) {
            return false;
        }
        *stride = reach > 1 ? *stride : step;
        reach *= count;
    }
    return true;
}

void us_gather_pack_filter(const Gather *gather, void *packed)
{
    Packing packing = {gather, packed};
    us_parallel(gather->groups * ceiling(gather->results, BESIDE), pack_results, &packing);
}

/* ---- operands ---- */

/* The view's axes in the order of a packed operand. */
static View ordered(const View *view, bool channels_last)
{
    View result = *view;
    for (int axis = 1; channels_last && axis < 5; axis++) {
        const int from = axis < 4 ? axis + 1 : 1;
        result.shape[axis] = view->shape[from];
        result.strides[axis] = view->strides[from];
    }
    return result;
}

typedef struct Copy {
    View view; /* in the packed order */
    DType type;
    char *data;
} Copy;

enum { COPIED = 16 * 1024 };

static void copy_line(const Copy *copy, void *to, const void *from, int64_t stride, int64_t count)
{
    if (copy->type == DTYPE_FLOAT64) {
        us_load_double(to, from, copy->view.dtype, stride, count);
    } else if (copy->type == DTYPE_FLOAT32) {
        us_load_float(to, from, copy->view.dtype, stride, count);
    } else {
        copy_steps_half(to, from, count, stride);
    }
}

/* What lies at one index of the first two axes. */
static void copy_plane(void *context, int64_t piece)
{
    const Copy *copy = context;
    const View *view = &copy->view;
    const int64_t size = (int64_t)us_dtype_size(view->dtype), to_size = (int64_t)us_dtype_size(copy->type);
    const int64_t rows = view->shape[2] * view->shape[3], width = view->shape[4];
    const int64_t base = piece / view->shape[1] * view->strides[0] + piece % view->shape[1] * view->strides[1];
    const bool one_run = view->strides[4] == 1 && view->strides[3] == width &&
                         (view->shape[2] == 1 || view->strides[2] == width * view->shape[3]);
    for (int64_t row = 0; row < rows; row += one_run ? rows : 1) {
        const int64_t offset = base + row / view->shape[3] * view->strides[2] + row % view->shape[3] * view->strides[3];
        const int64_t count = one_run ? rows * width : width;
        const void *from = (const char *)view->data + offset * size;
        void *to = copy->data + (piece * rows + row) * width * to_size;
        copy_line(copy, to, from, view->strides[4], count);
    }
}

/* A part of a view that only has to be converted. */
static void copy_part(void *context, int64_t piece)
{
    const Copy *copy = context;
    const int64_t begin = piece * COPIED, left = us_view_elements(&copy->view) - begin;
    const int64_t count = left < COPIED ? left : COPIED;
    const void *from = (const char *)copy->view.data + begin * (int64_t)us_dtype_size(copy->view.dtype);
    copy_line(copy, copy->data + begin * (int64_t)us_dtype_size(copy->type), from, 1, count);
}

bool us_gather_is_packed_half(const View *view, bool channels_last)
{
    const View packed = ordered(view, channels_last);
    return (view->dtype == DTYPE_FLOAT16 || view->dtype == DTYPE_BFLOAT16) && us_view_is_contiguous(&packed);
}

bool us_gather_is_operand(const View *view, DType type, bool channels_last)
{
    const View packed = ordered(view, channels_last);
    return view->dtype == type && us_view_is_contiguous(&packed);
}

bool us_gather_operand(const View *view, DType type, bool channels_last, const void **data, void **copy)
{
    const View packed = ordered(view, channels_last);
    *copy = NULL;
    *data = view->data;
    if (us_gather_is_operand(view, type, channels_last)) {
        return true;
    }
    *copy = us_scratch_array(us_view_elements(view), us_dtype_size(type));
    *data = *copy;
    if (*copy == NULL) {
        return false;
    }
    const bool apart = packed.strides[4] != 1; /* a copy by squares reads whole cache lines */
    const Packed together = apart && view->dtype != type ? us_pack(&packed) : (Packed){packed, NULL};
    Copy work = {together.view, type, *copy};
    if (apart && view->dtype == type) {
        const View target = us_view_contiguous(*copy, type, packed.rank, packed.shape);
        us_copy_view(&target, &packed);
    } else if (us_view_is_contiguous(&work.view)) {
        us_parallel((us_view_elements(view) + COPIED - 1) / COPIED, copy_part, &work);
    } else {
        us_parallel(packed.shape[0] * packed.shape[1], copy_plane, &work);
    }
    us_pack_end(&together);
    return true;
}
