#include "kernels/map/item.h"
#include "kernels/map/slices.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a piece of parallel work; bytes below which waking other threads costs more than it gains. */
enum { PIECE = 16 * 1024, SERIAL_BYTES = 128 * 1024 };

static void run_piece(const MapItem *item, int64_t begin)
{
    const int64_t left = item->elements - begin;
    us_map_run(item, begin, begin + (left < PIECE ? left : PIECE));
}

static void run_pieces(int64_t pieces, int64_t bytes, ParallelBody *body, void *context)
{
    if (bytes > SERIAL_BYTES) {
        us_parallel(pieces, body, context);
        return;
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        body(context, piece);
    }
}

static int64_t bytes_per_element(const MapCall *call, const View *views)
{
    int64_t bytes = 0;
    for (int k = 0; k < call->inputs + call->outputs; k++) {
        bytes += (int64_t)us_dtype_size(views[k].dtype);
    }
    return bytes;
}

static bool is_same(const View *a, const View *b)
{
    return a->data == b->data && a->dtype == b->dtype && us_view_same_layout(a, b);
}

static bool is_copy(const MapCall *call, const View *views)
{
    return call->formula == &us_map_copy && call->inputs == 1 && !call->blend.wanted && !us_view_is_absent(&views[0]) &&
           call->compute == call->result;
}

/* A copy without a conversion moves bits. */
static bool is_move(const MapCall *call, const View *views)
{
    return is_copy(call, views) && views[0].dtype == views[1].dtype && call->compute == views[0].dtype;
}

static void move(const View *from, const View *to)
{
    View source = *to; /* the input, broadcast */
    source.data = from->data;
    for (int32_t axis = 0; axis < to->rank; axis++) {
        const int32_t own = axis - (to->rank - from->rank);
        source.strides[axis] = own < 0 || from->shape[own] == 1 ? 0 : from->strides[own];
    }
    us_copy_view(to, &source);
}

/* A copy of neighbours to another type, with nothing in between. */
static bool is_conversion(const MapCall *call, const View *views)
{
    return is_copy(call, views) && (call->compute == views[0].dtype || call->compute == views[1].dtype) &&
           us_view_same_shape(&views[0], &views[1]) && us_view_is_contiguous(&views[0]) && us_view_is_contiguous(&views[1]);
}

static void convert_piece(void *context, int64_t piece)
{
    const View *from = context, *to = from + 1;
    const int64_t begin = piece * PIECE, left = us_view_elements(to) - begin;
    char *const results = (char *)to->data + begin * (int64_t)us_dtype_size(to->dtype);
    const char *const elements = (const char *)from->data + begin * (int64_t)us_dtype_size(from->dtype);
    us_convert(results, to->dtype, elements, from->dtype, left < PIECE ? left : PIECE);
}

static void run_item_piece(void *context, int64_t piece)
{
    run_piece(context, piece * PIECE);
}

static KernelStatus run_elements(const MapCall *call, const View *views, int64_t index)
{
    MapItem item;
    us_map_prepare(&item, call, views, index);
    const int64_t bytes = us_scratch_count(item.elements, bytes_per_element(call, views));
    run_pieces((item.elements + PIECE - 1) / PIECE, bytes, run_item_piece, &item);
    return KERNEL_OK;
}

static KernelStatus run_item(const MapCall *call, const View *views, int64_t index)
{
    if (is_move(call, views)) {
        if (!is_same(&views[0], &views[1])) {
            move(&views[0], &views[1]);
        }
    } else if (is_conversion(call, views)) {
        const int64_t elements = us_view_elements(&views[1]);
        run_pieces(elements / PIECE + (elements % PIECE != 0), us_scratch_count(elements, bytes_per_element(call, views)),
                   convert_piece, (void *)views);
    } else if (us_map_lies_across(call, views)) {
        return us_map_by_slices(call, views, index, run_elements);
    } else if (us_view_elements(&views[call->inputs]) > 0) {
        return run_elements(call, views, index);
    }
    return KERNEL_OK;
}

/* ---- inputs that overlap outputs without being the same view ---- */

typedef struct Reach {
    const char *begin, *end; /* begin == end: nothing */
} Reach;

static Reach reach_of(const View *view)
{
    int64_t lowest, highest;
    if (us_view_is_absent(view) || !us_view_extent(view, &lowest, &highest) || highest < lowest) {
        return (Reach){0};
    }
    const int64_t size = (int64_t)us_dtype_size(view->dtype);
    return (Reach){(const char *)view->data + lowest * size, (const char *)view->data + (highest + 1) * size};
}

/* Whether input k of an item must be read before the outputs are written. */
static bool is_overwritten(const MapCall *call, const View *views, int k)
{
    for (int o = call->inputs; o < call->inputs + call->outputs; o++) {
        if (k < call->formula->inputs && is_same(&views[k], &views[o])) {
            continue; /* harmless */
        }
        const Reach input = reach_of(&views[k]), output = reach_of(&views[o]);
        if (input.begin < output.end && output.begin < input.end) {
            return true;
        }
    }
    return false;
}

/* The first such input, or all that there are. */
static int first_overwritten(const MapCall *call, const View *views)
{
    int k = 0;
    while (k < call->inputs && !is_overwritten(call, views, k)) {
        k++;
    }
    return k;
}

/* Replaces the overwritten inputs, of which `first` is the first, by copies in the same layout, and runs the item. */
static KernelStatus run_with_copies(const MapCall *call, const View *views, int64_t index, int first)
{
    const int count = call->inputs + call->outputs;
    View *own = us_scratch_array(count, sizeof *own);
    void **copies = calloc((size_t)count, sizeof *copies);
    KernelStatus status = own != NULL && copies != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        memcpy(own, views, (size_t)count * sizeof *own);
    }
    for (int k = first; k < call->inputs && status == KERNEL_OK; k++) {
        if (!is_overwritten(call, views, k)) {
            continue;
        }
        const Reach reach = reach_of(&views[k]);
        copies[k] = malloc((size_t)(reach.end - reach.begin));
        if (copies[k] == NULL) {
            status = KERNEL_NO_MEMORY;
            break;
        }
        memcpy(copies[k], reach.begin, (size_t)(reach.end - reach.begin));
        own[k].data = (char *)copies[k] + ((const char *)views[k].data - reach.begin);
    }
    if (status == KERNEL_OK) {
        status = run_item(call, own, index);
    }
    for (int k = first; k < call->inputs && copies != NULL; k++) {
        free(copies[k]);
    }
    free(copies);
    us_scratch_give_back(own);
    return status;
}

static KernelStatus run_alone(const MapCall *call, const View *views, int64_t index)
{
    const int first = first_overwritten(call, views);
    return first < call->inputs ? run_with_copies(call, views, index, first) : run_item(call, views, index);
}

/* ---- lists: their items run at the same time ---- */

typedef struct Piece {
    int64_t item, begin; /* begin: the first element */
} Piece;

typedef struct List {
    const MapCall *call;
    const View *views;
    const Piece *pieces;
    atomic_bool no_memory;
} List;

static void run_list_item(List *list, const View *views, int64_t index)
{
    if (run_alone(list->call, views, index) != KERNEL_OK) {
        atomic_store_explicit(&list->no_memory, true, memory_order_relaxed);
    }
}

/* The loops fetch what they will read a little later, but nobody has fetched the beginning of an item. */
static void fetch_beginning(const MapCall *call, const View *views)
{
    for (int k = 0; k < call->formula->inputs; k++) {
        const int64_t bytes = us_view_elements(&views[k]) * (int64_t)us_dtype_size(views[k].dtype);
        for (int64_t byte = 0; byte < bytes && byte < READ_AHEAD_BYTES; byte += CACHE_LINE_BYTES) {
            __builtin_prefetch((const void *)((uintptr_t)views[k].data + (uintptr_t)byte));
        }
    }
}

static void run_list_piece(void *context, int64_t number)
{
    List *list = context;
    const MapCall *call = list->call;
    const Piece *piece = &list->pieces[number];
    const View *views = list->views + piece->item * (call->inputs + call->outputs);
    const int64_t left = us_view_elements(&views[call->inputs]) - piece->begin;
    if (left <= PIECE && piece->item + 1 < call->items) {
        fetch_beginning(call, views + call->inputs + call->outputs);
    }
    if (piece->begin == 0 && left <= PIECE) {
        run_list_item(list, views, piece->item);
        return;
    }
    MapItem item;
    us_map_prepare(&item, call, views, piece->item);
    run_piece(&item, piece->begin);
}

/* Pieces of an item; an item of several pieces that is a move, or whose inputs are overwritten or lie across, has none, and
 * is run by itself. */
static int64_t pieces_of(const MapCall *call, const View *views)
{
    const int64_t elements = us_view_elements(&views[call->inputs]);
    const bool alone = elements > PIECE && (is_move(call, views) || us_map_lies_across(call, views) ||
                                            first_overwritten(call, views) < call->inputs);
    return alone ? 0 : elements / PIECE + (elements % PIECE != 0); /* a view may have 2^63 - 1 elements */
}

static KernelStatus run_list(const MapCall *call, const View *views)
{
    const int32_t step = call->inputs + call->outputs;
    int64_t count = 0, bytes = 0;
    for (int32_t i = 0; i < call->items; i++) {
        const int64_t elements = us_view_elements(&views[i * step + call->inputs]);
        count += pieces_of(call, views + i * step);
        bytes += bytes > SERIAL_BYTES ? 0 : us_scratch_count(elements, bytes_per_element(call, views + i * step));
    }
    Piece *pieces = us_scratch_array(count, sizeof *pieces), *piece = pieces;
    if (pieces == NULL) {
        return KERNEL_NO_MEMORY;
    }
    List list = {call, views, pieces, false};
    for (int32_t i = 0; i < call->items; i++) {
        const int64_t mine = pieces_of(call, views + i * step);
        for (int64_t k = 0; k < mine; k++) {
            *piece++ = (Piece){i, k * PIECE};
        }
        if (mine == 0) {
            run_list_item(&list, views + i * step, i);
        }
    }
    run_pieces(count, bytes, run_list_piece, &list);
    us_scratch_give_back(pieces);
    return atomic_load_explicit(&list.no_memory, memory_order_relaxed) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_map(const View *views, const void *attributes)
{
    const MapCall *call = attributes;
    return call->items == 1 ? run_alone(call, views, 0) : run_list(call, views);
}

bool us_map_has_lane(const MapFormula *formula, DType compute)
{
    return compute > DTYPE_NONE && compute < DTYPE_COUNT && formula->bodies()[us_lane_of(compute)] != NULL;
}
