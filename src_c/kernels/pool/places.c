#include "kernels/pool/places.h"

#include "kernels/detach.h"
#include "kernels/packed.h"
#include "kernels/pieces.h"
#include "kernels/pool/side_by_side.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/lane.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Elements of x in one piece of work; windows at a time; elements of the largest planes that are taken side by side;
 * planes into which places are scattered together. */
enum { PIECE_ELEMENTS = 32 * 1024, RUN = 512, BESIDE_LIMIT = 4096, SCATTERED = 4 };

typedef struct Span {
    int64_t begin, end;
} Span;

/* One call. x is the larger tensor, or its gradient; y the smaller one. */
typedef struct Places {
    const PoolWindows *windows;
    View x, y, places;
    int64_t in[3], out[3];
    int64_t plane, planes, rows; /* elements of a plane of x; rows of windows in a plane */
    int64_t rows_per_piece, planes_per_piece;
    int64_t slots, pitch; /* rows of x that one row of windows needs, and elements from one of them to the next */
    int64_t wide;         /* windows of a row: whole vectors, of which the last ones may look at nothing */
    bool fits;            /* rows of x can be used where they lie */
    DType compute;
    atomic_bool no_memory;
} Places;

/* The elements of window `o` on an axis that lie inside. */
static Span window_of(const Places *call, int axis, int64_t o)
{
    const PoolWindows *windows = call->windows;
    const int64_t in = call->in[axis], out = call->out[axis];
    if (windows->adaptive) {
        return (Span){o * in / out, ((o + 1) * in + out - 1) / out};
    }
    const int64_t begin = o * windows->stride[axis] - windows->padding[axis];
    const Span span = {larger(begin, 0), smaller(begin + windows->window[axis], in)};
    return (Span){span.begin, larger(span.begin, span.end)};
}

static int64_t length(Span span)
{
    return span.end - span.begin;
}

static char *row_of(const View *view, int64_t plane, int64_t d, int64_t h)
{
    const int64_t channels = view->shape[1];
    const int64_t at = plane / channels * view->strides[0] + plane % channels * view->strides[1] +
                       d * view->strides[2] + h * view->strides[3];
    return (char *)view->data + at * (int64_t)us_dtype_size(view->dtype);
}

/* Whether nothing lies between the elements of a plane. */
static bool has_packed_planes(const View *view)
{
    int64_t packed = 1;
    bool is = true;
    for (int axis = 4; axis >= 2; axis--) {
        is = is && (view->shape[axis] == 1 || view->strides[axis] == packed);
        packed *= view->shape[axis];
    }
    return is;
}

/* Elements of such a plane, from `first` on. */
static void load_run(Lane lane, const View *view, int64_t plane, int64_t first, int64_t count, void *to)
{
    const char *from = row_of(view, plane, 0, 0) + first * (int64_t)us_dtype_size(view->dtype);
    us_lane_load(lane, to, from, view->dtype, 1, count);
}

static void load_row(const Places *call, const View *view, const void *row, void *to)
{
    us_lane_load(us_lane_of(call->compute), to, row, view->dtype, view->strides[4], view->shape[4]);
}

static void store_row(const Places *call, const View *view, void *row, const void *from)
{
    us_lane_store(us_lane_of(call->compute), row, view->dtype, view->strides[4], from, view->shape[4]);
}

/* ---- places ---- */

/* Where a mask has the place of an element of y: 4 bytes that may lie apart. */
static void mask_bytes(const View *mask, int64_t plane, int64_t element, char *bytes[sizeof(int32_t)])
{
    const int64_t channels = mask->shape[1], line = mask->shape[4];
    char *data = (char *)mask->data + plane / channels * mask->strides[0] + plane % channels * mask->strides[1];
    for (int64_t k = 0; k < (int64_t)sizeof(int32_t); k++) {
        const int64_t at = element * (int64_t)sizeof(int32_t) + k;
        bytes[k] = data + at / line * mask->strides[3] + at % line * mask->strides[4];
    }
}

/* The mask's rows of 32-bit numbers where its bytes are neighbours, else NULL. */
static char *packed_mask(const View *mask, int64_t plane, int64_t element)
{
    const bool packed = mask->strides[4] == 1 && (mask->shape[3] == 1 || mask->strides[3] == mask->shape[4]);
    char *bytes[sizeof(int32_t)];
    mask_bytes(mask, plane, element, bytes);
    return packed ? bytes[0] : NULL;
}

/* Places of a row of windows, counted from element `first` of the plane, or less than 0: to `places` and back. Masks
 * hold them as they are, and none where a window is one element. */
static void store_places(const Places *call, int64_t plane, int64_t row, int64_t first, const int32_t *found)
{
    const View *places = &call->places;
    const int64_t width = call->out[2], od = row / call->out[1], oh = row % call->out[1];
    if (us_view_is_absent(places)) {
        return;
    }
    if (!call->windows->masked) {
        int64_t whole[256];
        enum { AT_ONCE = sizeof whole / sizeof *whole };
        for (int64_t o = 0; o < width; o += AT_ONCE) {
            const int64_t count = smaller(width - o, AT_ONCE);
            for (int64_t k = 0; k < count; k++) {
                whole[k] = found[o + k] < 0 ? -1 : first + found[o + k];
            }
            char *to = row_of(places, plane, od, oh) + o * places->strides[4] * (int64_t)us_dtype_size(places->dtype);
            us_lane_store(LANE_INT64, to, places->dtype, places->strides[4], whole, count);
        }
    } else if (places->shape[3] > 1) {
        char *to = packed_mask(places, plane, row * width);
        if (to != NULL) {
            memcpy(to, found, (size_t)width * sizeof *found);
        }
        for (int64_t o = 0; to == NULL && o < width; o++) {
            char *bytes[sizeof(int32_t)];
            mask_bytes(places, plane, row * width + o, bytes);
            for (size_t k = 0; k < sizeof(int32_t); k++) {
                *bytes[k] = ((const char *)&found[o])[k];
            }
        }
    }
}

/* Where a row of windows begins in the plane: what places are counted from. */
static int64_t first_of(const Places *call, int64_t row)
{
    const Span d = window_of(call, 0, row / call->out[1]), h = window_of(call, 1, row % call->out[1]);
    return (d.begin * call->in[1] + h.begin) * call->in[2];
}

static void load_places(const Places *call, int64_t plane, int64_t row, int64_t *found)
{
    const View *places = &call->places;
    const int64_t width = call->out[2];
    if (!call->windows->masked) {
        us_lane_load(LANE_INT64, found, row_of(places, plane, row / call->out[1], row % call->out[1]), places->dtype,
                     places->strides[4], width);
        return;
    }
    const int64_t first = first_of(call, row);
    const char *from = packed_mask(places, plane, row * width);
    for (int64_t o = 0; o < width; o++) {
        int32_t place;
        if (places->shape[3] == 1) {
            place = (int32_t)window_of(call, 2, o).begin;
        } else if (from != NULL) {
            memcpy(&place, from + o * (int64_t)sizeof place, sizeof place);
        } else {
            char *bytes[sizeof(int32_t)];
            mask_bytes(places, plane, row * width + o, bytes);
            for (size_t k = 0; k < sizeof place; k++) {
                ((char *)&place)[k] = *bytes[k];
            }
        }
        found[o] = place < 0 ? -1 : first + place;
    }
}

#define COMPUTE float
#define NAME(function) function##_float
#include "kernels/pool/places.inc"
#undef COMPUTE
#undef NAME

#define COMPUTE double
#define NAME(function) function##_double
#include "kernels/pool/places.inc"
#undef COMPUTE
#undef NAME

/* ---- calls ---- */

static void begin(Places *call, const PoolWindows *windows, const View *x, const View *y, const View *places)
{
    *call = (Places){.windows = windows, .x = *x, .y = *y, .places = *places, .plane = 1, .slots = 1};
    for (int axis = 0; axis < 3; axis++) {
        call->in[axis] = x->shape[2 + axis];
        call->out[axis] = y->shape[2 + axis];
        call->plane *= call->in[axis];
        call->slots *= axis == 2 || windows->adaptive ? 1 : smaller(windows->window[axis], call->in[axis]);
    }
    call->planes = x->shape[0] * x->shape[1];
    call->rows = call->out[0] * call->out[1];
    call->planes_per_piece = ceiling(PIECE_ELEMENTS / SCATTERED, larger(call->plane, 1)) * SCATTERED;
    call->compute = x->dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    atomic_init(&call->no_memory, false);
}

static PlaneWindow window_beside(const void *context, int axis, int64_t o)
{
    const Span span = window_of(context, axis, o);
    return (PlaneWindow){span.begin, span.end, (double)length(span)};
}

static KernelStatus pool_side_by_side(const Places *call, BesideMode mode)
{
    const Beside beside = {mode, &call->x, &call->y, &call->places, window_beside, call, 0};
    return us_pool_side_by_side(&beside);
}

static KernelStatus end(Places *call, int64_t pieces, ParallelBody *of_float, ParallelBody *of_double)
{
    run_pieces(pieces, us_view_elements(&call->x), call->compute == DTYPE_FLOAT64 ? of_double : of_float, call);
    return atomic_load(&call->no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* Pieces of planes, of some rows of windows each. */
static int64_t cut_rows(Places *call)
{
    const int64_t pieces = larger(smaller(call->plane / PIECE_ELEMENTS, call->rows), 1);
    call->rows_per_piece = (call->rows + pieces - 1) / pieces;
    return (call->rows + call->rows_per_piece - 1) / call->rows_per_piece * call->planes;
}

/* Of windows two elements apart vectors have no rest where rows are copied, with nothing behind them; long rows are not worth a
 * copy. */
static void choose_rows(Places *call)
{
    enum { VECTOR = 16, LONG = 128 };
    const PoolWindows *windows = call->windows;
    const int64_t stride = windows->stride[2], out = call->out[2], in = call->in[2];
    call->wide = windows->adaptive || stride != 2 ? out : ceiling(out, VECTOR) * VECTOR;
    const int64_t pairs = stride == 2 ? windows->window[2] % 2 : 0; /* the last tap is read with its neighbour */
    const int64_t reach = windows->adaptive ? 0 : (out - 1) * stride + windows->window[2] + pairs;
    call->fits = reach <= in && (call->wide == out || out >= LONG);
    call->pitch = larger(reach + (call->wide - out) * stride, windows->padding[2] + in);
}

/* Windows read what lies beside the place that is written. */
static KernelStatus maximum_of_rows(const View *views, const void *attributes)
{
    const PoolWindows *windows = attributes;
    Detached detached;
    KernelStatus status = us_detach_same(&detached, 1, views, 2, &views[1]);
    if (status == KERNEL_OK) {
        Places call;
        begin(&call, windows, &detached.inputs[0], &views[1], &views[2]);
        choose_rows(&call);
        status = !windows->masked && length(window_of(&call, 0, 0)) == 1 &&
                         us_lies_side_by_side(&call.x, &call.y, &call.places, BESIDE_LIMIT)
                     ? pool_side_by_side(&call, BESIDE_MAXIMUM)
                     : end(&call, cut_rows(&call), maximum_piece_float, maximum_piece_double);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_pool_maximum(const View *views, const void *attributes)
{
    const int outputs = ((const PoolWindows *)attributes)->masked ? 1 : 2; /* of a mask not every byte is written */
    return us_run_on_rows(maximum_of_rows, 1, outputs, 3, views, attributes);
}

/* Whether loops take what is there, several planes at a time: a few large ones are better taken apart. */
static bool is_scattered_directly(const Places *call)
{
    const DType type = call->places.dtype;
    const bool enough = call->plane <= PIECE_ELEMENTS / SCATTERED || call->planes >= 16 * SCATTERED;
    return enough && !call->windows->masked && (type == DTYPE_INT32 || type == DTYPE_INT64) &&
           call->x.dtype == call->compute && call->y.dtype == call->compute && us_view_is_contiguous(&call->x) &&
           us_view_is_contiguous(&call->y) && us_view_is_contiguous(&call->places);
}

static KernelStatus maximum_gradient_of_rows(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach_same(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        Places call;
        begin(&call, attributes, &views[2], &detached.inputs[0], &detached.inputs[1]);
        const int64_t pieces = ceiling(call.planes, call.planes_per_piece);
        status = is_scattered_directly(&call)
                     ? end(&call, pieces, scatter_piece_float, scatter_piece_double)
                     : end(&call, call.planes, maximum_gradient_plane_float, maximum_gradient_plane_double);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_pool_maximum_gradient(const View *views, const void *attributes)
{
    return us_run_on_rows(maximum_gradient_of_rows, 2, 1, 3, views, attributes);
}

static KernelStatus average_of_rows(const View *views, const void *attributes)
{
    const View absent = us_view_absent();
    Places call;
    begin(&call, attributes, &views[0], &views[1], &absent);
    if (us_lies_side_by_side(&call.x, &call.y, NULL, BESIDE_LIMIT)) {
        return pool_side_by_side(&call, BESIDE_AVERAGE);
    }
    return end(&call, cut_rows(&call), average_piece_float, average_piece_double);
}

KernelStatus us_pool_average(const View *views, const void *attributes)
{
    return us_run_on_rows(average_of_rows, 1, 1, 2, views, attributes);
}

static KernelStatus average_gradient_of_rows(const View *views, const void *attributes)
{
    const View absent = us_view_absent();
    Places call;
    begin(&call, attributes, &views[1], &views[0], &absent);
    if (us_lies_side_by_side(&call.x, &call.y, NULL, BESIDE_LIMIT)) {
        return pool_side_by_side(&call, BESIDE_AVERAGE_GRADIENT);
    }
    return end(&call, call.planes, average_gradient_plane_float, average_gradient_plane_double);
}

KernelStatus us_pool_average_gradient(const View *views, const void *attributes)
{
    return us_run_on_rows(average_gradient_of_rows, 1, 1, 2, views, attributes);
}
