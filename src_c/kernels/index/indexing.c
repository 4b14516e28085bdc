#include "kernels/index/indexing.h"

#include "kernels/index/lines.h"
#include "kernels/index/truths.h"
#include "kernels/move/copy_view.h"
#include "kernels/move/past.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

#include <string.h>

/* ---- reading and replacing ---- */

/* Positions of a piece; of slices, which are asked for ahead; bytes that are put together before they go past the caches. */
enum { COPY_PIECE = 16 * 1024, SLICES_PIECE = 128 * 1024, SLICES_AHEAD = 4, PUT_TOGETHER = 4096 };

typedef struct CopyRun {
    const Places *places;
    const PlaceAxes *axes;
    PlaceCut cut;
    int64_t element; /* bytes */
    bool copies_parts;
    bool past; /* what is read goes past the caches */
    OutsideIndex *outside;
} CopyRun;

#define COPY_CASE(type) \
    case sizeof(type): \
        for (int64_t i = 0; i < count; i++) { \
            memcpy((type *)(void *)to + to_offsets[i], (const type *)(const void *)from + from_offsets[i], \
                   sizeof(type)); \
        } \
        break;

static void copy_elements(char *to, const int64_t *to_offsets, const char *from, const int64_t *from_offsets,
                          int64_t count, int64_t element)
{
    switch (element) {
        COPY_CASE(uint8_t)
        COPY_CASE(uint16_t)
        COPY_CASE(uint32_t)
        COPY_CASE(uint64_t)
        COPY_CASE(Sixteen)
    }
}

/* A line, or some of it. */
static int64_t read_line_past(PlaceLine line, int64_t element)
{
    _Alignas(64) char together[PUT_TOGETHER];
    char *const to = line.other;
    const int64_t most = PUT_TOGETHER / element;
    line.other = together;
    line.ahead_other = 0;
    line.count = line.count < most ? line.count : most;
    const int64_t count = us_place_line(&line, LINE_READ, (size_t)element);
    us_copy_past(to, together, (size_t)(count * element), together);
    return count;
}

static bool is_run(const Axes *inner)
{
    return inner->rank == 1 && inner->strides[PLACE_TENSOR][0] == 1 && inner->strides[PLACE_OTHER][0] == 1;
}

static void copy_slice(char *to, int to_operand, const char *from, int from_operand, const Axes *inner, int64_t count,
                       int64_t element)
{
    const int32_t last = inner->rank - 1;
    const int64_t to_stride = inner->strides[to_operand][last], from_stride = inner->strides[from_operand][last];
    AxesWalk targets, sources;
    us_axes_walk(&targets, inner, to_operand, 0, count);
    us_axes_walk(&sources, inner, from_operand, 0, count);
    while (targets.remaining > 0) {
        const AxesRun target = us_axes_next(&targets), source = us_axes_next(&sources);
        us_copy_elements(to + target.offset * element, to_stride, from + source.offset * element, from_stride, element,
                         target.length);
    }
}

/* Slices of `length` neighbours; a later one is asked for while one is copied. */
static void copy_runs(const CopyRun *run, char *to, const int64_t *to_offsets, const char *from, const int64_t *from_offsets,
                      int64_t count, int64_t length)
{
    const size_t bytes = (size_t)(length * run->element);
    for (int64_t i = 0; i < count; i++) {
        const char *slice = from + from_offsets[i] * run->element;
        char *target = to + to_offsets[i] * run->element;
        if (run->past) {
            const int64_t later = i + SLICES_AHEAD < count ? i + SLICES_AHEAD : i;
            us_copy_past(target, slice, bytes, from + from_offsets[later] * run->element);
        } else {
            memcpy(target, slice, bytes);
        }
    }
}

static void copy_piece(void *context, int64_t piece)
{
    const CopyRun *run = context;
    const Places *places = run->places;
    const PlacePiece part = us_place_piece(places, run->axes, &run->cut, piece);
    const PlaceAxes *axes = &part.axes;
    char *const *data = part.data;
    if (run->copies_parts) {
        us_place_copy_part(places, &part, &run->cut);
    }
    const bool reads = places->call->action == INDEX_READ;
    const int to = reads ? PLACE_OTHER : PLACE_TENSOR, from = reads ? PLACE_TENSOR : PLACE_OTHER;
    const int64_t outer = axes->outer_count, inner = axes->inner_count;
    int64_t offsets[2][PLACE_TILE];
    const bool by_lines = inner == 1 && us_places_have_lines(places, &axes->outer);
    PlaceLine line = {0};
    for (int64_t begin = 0, count = -1; begin < outer; begin += count) {
        if (!by_lines) {
            line.count = outer - begin;
        } else {
            if (!us_place_line_next(&line, count)) {
                line = us_place_line_at(places, &axes->outer, data, part.index_data[0], begin);
            }
            const bool past = run->past && line.other_step == 1;
            count = past ? read_line_past(line, run->element)
                         : us_place_line(&line, reads ? LINE_READ : LINE_PUT, (size_t)run->element);
            if (count > 0) {
                continue;
            }
        }
        count = line.count < PLACE_TILE ? line.count : PLACE_TILE;
        if (!us_place_tile(places, &axes->outer, part.index_data, begin, count, offsets[PLACE_TENSOR],
                           offsets[PLACE_OTHER], piece, run->outside)) {
            return;
        }
        if (inner == 1) {
            copy_elements(data[to], offsets[to], data[from], offsets[from], count, run->element);
            continue;
        }
        if (is_run(&axes->inner)) {
            copy_runs(run, data[to], offsets[to], data[from], offsets[from], count, inner);
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            copy_slice(data[to] + offsets[to][i] * run->element, to, data[from] + offsets[from][i] * run->element, from,
                       &axes->inner, inner, run->element);
        }
    }
    if (run->past) {
        us_past_is_done();
    }
}

static KernelStatus copy_places(const Places *places)
{
    const PlaceAxes axes = us_place_axes(places);
    OutsideIndex outside = {0};
    const int64_t positions = axes.inner_count > 1 ? SLICES_PIECE : COPY_PIECE;
    CopyRun run = {.places = places, .axes = &axes, .cut = us_place_cut(&axes, places->call->action != INDEX_READ, positions),
                   .element = (int64_t)us_dtype_size(places->tensor.dtype), .outside = &outside};
    run.copies_parts = us_place_copies_parts(places, &axes, &run.cut);
    run.past = places->call->action == INDEX_READ && axes.outer_count * axes.inner_count > PAST_BYTES / run.element;
    run_pieces(run.cut.pieces, axes.outer_count * axes.inner_count, copy_piece, &run);
    return us_outside_status(&outside);
}

/* ---- masks ---- */

/* The coordinates of the true elements of a mask, a row of `count` for each of its axes. NULL: no memory. */
static int64_t *coordinates_of(const View *mask, int64_t count)
{
    int64_t *coordinates = us_scratch_array(us_scratch_count(count, mask->rank), sizeof *coordinates);
    if (coordinates != NULL && !us_true_coordinates(mask, coordinates, 1, count)) {
        us_scratch_give_back(coordinates);
        return NULL;
    }
    return coordinates;
}

static View index_along(const Indexing *call, const int64_t *values, int64_t count)
{
    View view = {.data = (void *)(uintptr_t)values, .dtype = DTYPE_INT64, .rank = call->rank};
    view.strides[call->mask_axis] = count == 1 ? 0 : 1;
    return view;
}

/* The places with integers only; the positions along the mask axis are as many as the masks name. `taken` are blocks to
 * give back, the last one first. */
static KernelStatus resolve(const Indexing *call, const View *views, Places *places, void **taken, int32_t *taken_count)
{
    int64_t counts[INDEX_LIMIT], named = 1;
    const View *other = &places->other;
    for (int32_t k = 0; k < call->index_count; k++) {
        if (call->mask_rank[k] == 0) {
            const bool varies = call->mask_axis >= 0 && views[k].strides[call->mask_axis] != 0;
            named = varies ? views[k].shape[call->mask_axis] : named;
            continue;
        }
        if (!us_count_true(&views[k], &counts[k])) {
            return KERNEL_NO_MEMORY;
        }
        if (counts[k] != 1 && named != 1 && counts[k] != named) {
            return us_kernel_fault("a mask has %lld true elements, another index has %lld", (long long)counts[k],
                                   (long long)named);
        }
        named = counts[k] != 1 ? counts[k] : named;
    }
    for (int32_t k = 0; k < call->index_count; k++) {
        if (call->mask_rank[k] == 0) {
            places->axes[places->count++].index = views[k];
            continue;
        }
        int64_t *coordinates = coordinates_of(&views[k], counts[k]);
        if (coordinates == NULL) {
            return KERNEL_NO_MEMORY;
        }
        taken[(*taken_count)++] = coordinates;
        for (int32_t d = 0; d < call->mask_rank[k]; d++) {
            places->axes[places->count++].index = index_along(call, coordinates + d * counts[k], counts[k]);
        }
    }
    for (int32_t k = 0; k < places->count; k++) {
        places->axes[k].axis = call->axes[k];
    }
    if (call->mask_axis >= 0) {
        const int64_t given = other->shape[call->mask_axis];
        if (given != named && (given != 1 || call->action == INDEX_READ)) {
            return us_kernel_fault("the masks name %lld places, the other tensor has %lld", (long long)named,
                                   (long long)given);
        }
        places->other.strides[call->mask_axis] = given == 1 ? 0 : other->strides[call->mask_axis];
        places->tensor.shape[call->mask_axis] = places->other.shape[call->mask_axis] = named;
    }
    return KERNEL_OK;
}

/* ---- the kernel ---- */

/* Copies what the tensor is before, or leaves it to the pieces. */
static void copy_before(const View *before, const View *tensor, Places *places)
{
    const Indexing *call = places->call;
    const bool same = before->data == tensor->data && us_view_same_layout(before, tensor);
    if (us_view_is_absent(before) || same || us_view_is_empty(tensor)) {
        return;
    }
    const bool fits = before->dtype == tensor->dtype && us_view_is_contiguous(before) && us_view_is_contiguous(tensor);
    if (fits && call->mask_axis < 0 && !call->clears && !us_view_is_empty(&places->tensor)) {
        places->before = *before;
        places->target = *tensor;
    } else {
        us_copy_view(tensor, before);
    }
}

static void clear(const View *tensor)
{
    _Alignas(16) static const unsigned char zero[16];
    View zeros = *tensor;
    zeros.data = (void *)(uintptr_t)zero;
    memset(zeros.strides, 0, sizeof zeros.strides);
    us_copy_view(tensor, &zeros);
}

KernelStatus us_indexing(const View *views, const void *attributes)
{
    const Indexing *call = attributes;
    _Alignas(16) unsigned char value[16];
    Places places = {.call = call, .tensor = views[1], .other = views[2], .before = us_view_absent()};
    places.tensor.rank = call->rank;
    memcpy(places.tensor.shape, call->shape, sizeof call->shape);
    memcpy(places.tensor.strides, call->steps, sizeof call->steps);
    copy_before(&views[0], &views[1], &places);
    if (call->clears && !us_view_is_empty(&views[1])) {
        clear(&views[1]);
    }
    if (us_view_is_absent(&places.other)) {
        us_number_store(value, views[1].dtype, call->value);
        places.other = (View){.data = value, .dtype = views[1].dtype, .rank = call->rank};
        memcpy(places.other.shape, call->shape, sizeof call->shape);
    }
    void *taken[INDEX_LIMIT];
    int32_t taken_count = 0;
    KernelStatus status = resolve(call, views + 3, &places, taken, &taken_count);
    if (status == KERNEL_OK && !us_view_is_empty(&places.tensor)) {
        const bool copies = call->action == INDEX_READ || call->action == INDEX_PUT;
        status = copies ? copy_places(&places) : us_accumulate_places(&places);
    }
    while (taken_count > 0) {
        us_scratch_give_back(taken[--taken_count]);
    }
    return status;
}

static KernelStatus fill_places(const View *views, const Indexing *call, int32_t axis, const int64_t *values)
{
    View index = {.data = (void *)(uintptr_t)values, .dtype = DTYPE_INT64, .rank = call->rank};
    memcpy(index.shape, call->shape, sizeof index.shape);
    index.strides[axis] = 1;
    return us_indexing((const View[]){views[0], views[1], us_view_absent(), index}, call);
}

KernelStatus us_index_fill(const View *views, const void *attributes)
{
    const IndexFill *fill = attributes;
    return fill_places(views, &fill->call, fill->axis, fill->index);
}

/* How many indices are inside an axis of `size`; these, in order. */
static int64_t indices_inside(const View *index, int64_t size, int64_t *inside)
{
    const int64_t given = us_view_elements(index), step = index->rank > 0 ? index->strides[0] : 0;
    int64_t count = 0;
    for (int64_t i = 0; i < given; i++) {
        inside[count] = index->dtype == DTYPE_INT32 ? ((const int32_t *)index->data)[i * step]
                                                    : ((const int64_t *)index->data)[i * step];
        count += inside[count] >= -size && inside[count] < size;
    }
    return count;
}

KernelStatus us_index_fill_inside(const View *views, const void *attributes)
{
    const IndexFill *fill = attributes;
    int64_t *inside = us_scratch_array(us_view_elements(&views[2]), sizeof *inside);
    if (inside == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Indexing call = fill->call;
    call.shape[fill->axis] = indices_inside(&views[2], call.axes[0].size, inside);
    const KernelStatus status = fill_places(views, &call, fill->axis, inside);
    us_scratch_give_back(inside);
    return status;
}

/* A view in row-major order: itself, or a copy in a block of scratch memory. */
typedef struct Packed {
    View view;
    void *block;
} Packed;

static bool pack(const View *view, Packed *packed)
{
    *packed = (Packed){.view = *view};
    if (us_view_is_absent(view) || us_view_is_contiguous(view)) {
        return true;
    }
    packed->block = us_scratch_array(us_view_elements(view), us_dtype_size(view->dtype));
    if (packed->block == NULL) {
        return false;
    }
    packed->view = us_view_contiguous(packed->block, view->dtype, view->rank, view->shape);
    us_copy_view(&packed->view, view);
    return true;
}

static void unpack(Packed *packed)
{
    if (packed->block != NULL) {
        us_scratch_give_back(packed->block);
    }
}

/* `other` in the positions' shape. */
static KernelStatus index_packed(const View *views, const View *tensor, const Indexing *call)
{
    Packed other = {.view = views[2]};
    bool fits = us_view_is_absent(&views[2]) || views[2].rank == call->rank;
    for (int32_t axis = 0; axis < call->rank && fits && !us_view_is_absent(&views[2]); axis++) {
        fits = views[2].shape[axis] == call->shape[axis];
    }
    if (!fits) {
        if (!pack(&views[2], &other)) {
            return KERNEL_NO_MEMORY;
        }
        other.view = us_view_contiguous(other.view.data, other.view.dtype, call->rank, call->shape);
    }
    const KernelStatus status = us_indexing((const View[]){views[0], *tensor, other.view, views[3]}, call);
    unpack(&other);
    return status;
}

KernelStatus us_flat_indexing(const View *views, const void *attributes)
{
    const Indexing *call = attributes;
    Packed tensor;
    if (!pack(&views[1], &tensor)) {
        return KERNEL_NO_MEMORY;
    }
    const KernelStatus status = index_packed(views, &tensor.view, call);
    if (tensor.block != NULL && call->action != INDEX_READ) {
        us_copy_view(&views[1], &tensor.view);
    }
    unpack(&tensor);
    return status;
}
