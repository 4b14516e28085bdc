#include "kernels/map/item.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Elements of a piece of parallel work; bytes below which waking other threads costs more than it gains. */
enum { PIECE = 16 * 1024, SERIAL_BYTES = 128 * 1024 };

typedef struct Piece {
    int64_t item, begin; /* begin: the first element */
} Piece;

typedef struct Work {
    const MapCall *call;
    const View *views;
    const MapItem *only; /* where there is one item: prepared */
    const Piece *pieces; /* of a list */
} Work;

static void run_only_piece(void *context, int64_t piece)
{
    const Work *work = context;
    const int64_t begin = piece * PIECE, left = work->only->elements - begin;
    us_map_run(work->only, begin, begin + (left < PIECE ? left : PIECE));
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
    const Work *work = context;
    const MapCall *call = work->call;
    const Piece *piece = &work->pieces[number];
    const View *views = work->views + piece->item * (call->inputs + call->outputs);
    MapItem item;
    us_map_prepare(&item, call, views, piece->item);
    const int64_t left = item.elements - piece->begin;
    if (left <= PIECE && piece->item + 1 < call->items) {
        fetch_beginning(call, views + call->inputs + call->outputs);
    }
    us_map_run(&item, piece->begin, piece->begin + (left < PIECE ? left : PIECE));
}

static void run_pieces(int64_t pieces, int64_t bytes, ParallelBody *body, Work *work)
{
    if (bytes > SERIAL_BYTES) {
        us_parallel(pieces, body, work);
        return;
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        body(work, piece);
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

static KernelStatus run_list(const MapCall *call, const View *views)
{
    const int32_t step = call->inputs + call->outputs;
    int64_t count = 0, bytes = 0;
    for (int32_t i = 0; i < call->items; i++) {
        const int64_t elements = us_view_elements(&views[i * step + call->inputs]);
        count += elements / PIECE + (elements % PIECE != 0); /* a view may have 2^63 - 1 elements */
        bytes += bytes > SERIAL_BYTES ? 0 : elements * bytes_per_element(call, views + i * step); /* enough is known */
    }
    Piece *pieces = us_scratch_array(count, sizeof *pieces), *piece = pieces;
    if (pieces == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int32_t i = 0; i < call->items; i++) {
        const int64_t elements = us_view_elements(&views[i * step + call->inputs]);
        for (int64_t begin = 0; begin < elements; begin += PIECE) {
            *piece++ = (Piece){i, begin};
        }
    }
    Work work = {call, views, NULL, pieces};
    run_pieces(count, bytes, run_list_piece, &work);
    us_scratch_give_back(pieces);
    return KERNEL_OK;
}

static bool is_same(const View *a, const View *b)
{
    return a->data == b->data && a->dtype == b->dtype && us_view_same_layout(a, b);
}

/* A copy without a conversion moves bits. */
static bool is_move(const MapCall *call, const View *views)
{
    return call->formula == &us_map_copy && call->inputs == 1 && !call->blend.wanted && !us_view_is_absent(&views[0]) &&
           views[0].dtype == views[1].dtype && call->compute == views[0].dtype && call->result == views[0].dtype;
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

static KernelStatus run_one(const MapCall *call, const View *views)
{
    if (is_move(call, views)) {
        if (!is_same(&views[0], &views[1])) {
            move(&views[0], &views[1]);
        }
    } else if (us_view_elements(&views[call->inputs]) > 0) {
        MapItem item;
        us_map_prepare(&item, call, views, 0);
        Work work = {call, views, &item, NULL};
        const int64_t bytes = item.elements * bytes_per_element(call, views);
        run_pieces((item.elements + PIECE - 1) / PIECE, bytes, run_only_piece, &work);
    }
    return KERNEL_OK;
}

static KernelStatus run(const MapCall *call, const View *views)
{
    return call->items == 1 ? run_one(call, views) : run_list(call, views);
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

/* Replaces the overwritten inputs by copies in the same layout, and runs. `first` is the first of them. */
static KernelStatus run_with_copies(const MapCall *call, const View *views, int64_t first)
{
    const int32_t step = call->inputs + call->outputs;
    const int64_t count = (int64_t)call->items * step;
    View *own = malloc((size_t)count * sizeof *own);
    void **copies = calloc((size_t)count, sizeof *copies);
    KernelStatus status = own != NULL && copies != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        memcpy(own, views, (size_t)count * sizeof *own);
    }
    for (int64_t i = first; i < count && status == KERNEL_OK; i++) {
        const int k = (int)(i % step);
        if (k >= call->inputs || !is_overwritten(call, views + i - k, k)) {
            continue;
        }
        const Reach reach = reach_of(&views[i]);
        char *copy = malloc((size_t)(reach.end - reach.begin));
        copies[i] = copy;
        if (copy == NULL) {
            status = KERNEL_NO_MEMORY;
            break;
        }
        memcpy(copy, reach.begin, (size_t)(reach.end - reach.begin));
        own[i].data = copy + ((const char *)views[i].data - reach.begin);
    }
    if (status == KERNEL_OK) {
        status = run(call, own);
    }
    for (int64_t i = 0; i < count && copies != NULL; i++) {
        free(copies[i]);
    }
    free(copies);
    free(own);
    return status;
}

KernelStatus us_map(const View *views, const void *attributes)
{
    const MapCall *call = attributes;
    const int32_t step = call->inputs + call->outputs;
    for (int64_t first = 0; first < (int64_t)call->items * step; first += step) {
        for (int k = 0; k < call->inputs; k++) {
            if (is_overwritten(call, views + first, k)) {
                return run_with_copies(call, views, first + k);
            }
        }
    }
    return run(call, views);
}

bool us_map_has_lane(const MapFormula *formula, DType compute)
{
    return compute > DTYPE_NONE && compute < DTYPE_COUNT && formula->bodies()[us_lane_of(compute)] != NULL;
}
