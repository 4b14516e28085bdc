#include "kernels/sort/unique.h"

#include "kernels/index/places.h"
#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/sort/keys.h"
#include "tensor/axes.h"

#include <string.h>

enum { TILE = 1024, LARGEST = 16 /* bytes */ };

/* Items in order: an item's key, or for slices (and complex elements) its row in a table of keys, `width` each. */
typedef struct Items {
    const View *self;
    const UniqueItems *call;
    KeyRule rule;
    Axes axes; /* of self */
    int64_t count, width;
    WideEntry *entries; /* place: the item */
    uint64_t *table;    /* NULL: keys are in the entries */
} Items;

/* ---- keys ---- */

/* Keys of `count` elements of self from a row-major position; complex elements have two. */
static void load_keys(const Items *items, const Axes *axes, const char *data, int64_t begin, int64_t count,
                      uint64_t *keys)
{
    const DType dtype = items->self->dtype;
    const bool is_complex = dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128;
    const DType part = dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : dtype;
    const int64_t size = (int64_t)us_dtype_size(dtype), stride = axes->strides[0][axes->rank - 1];
    AxesWalk walk;
    for (us_axes_walk(&walk, axes, 0, begin, count); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        const char *from = data + run.offset * size;
        for (int64_t i = 0; is_complex && i < run.length; i++) {
            us_load_keys(keys + 2 * i, from + i * stride * size, part, 1, 2, items->rule);
        }
        if (!is_complex) {
            us_load_keys(keys, from, part, stride, run.length, items->rule);
        }
        keys += run.length * (is_complex ? 2 : 1);
    }
}

static void enter_tile(void *context, int64_t tile)
{
    const Items *items = context;
    uint64_t keys[TILE];
    const int64_t begin = tile * TILE, count = smaller(items->count - begin, TILE);
    load_keys(items, &items->axes, items->self->data, begin, count, keys);
    for (int64_t i = 0; i < count; i++) {
        items->entries[begin + i] = (WideEntry){keys[i], (uint64_t)(begin + i)};
    }
}

/* One item of the axis, without it. */
static View slice_of(const View *view, int32_t axis, int64_t item)
{
    View slice = *view;
    slice.data = (char *)view->data + item * view->strides[axis] * (int64_t)us_dtype_size(view->dtype);
    slice.rank = view->rank - 1;
    for (int32_t d = axis; d < slice.rank; d++) {
        slice.shape[d] = view->shape[d + 1];
        slice.strides[d] = view->strides[d + 1];
    }
    return slice;
}

static void enter_row(void *context, int64_t item)
{
    const Items *items = context;
    const int32_t axis = items->call->axis;
    uint64_t *row = items->table + item * items->width;
    items->entries[item] = (WideEntry){0, (uint64_t)item};
    if (axis < 0) {
        load_keys(items, &items->axes, items->self->data, item, 1, row);
        return;
    }
    const View slice = slice_of(items->self, axis, item);
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){&slice}, 1, 0, slice.rank);
    load_keys(items, &axes, slice.data, 0, us_view_elements(&slice), row);
}

/* ---- order ---- */

static int compare(const Items *items, WideEntry a, WideEntry b)
{
    const uint64_t *x = items->table + (int64_t)a.place * items->width;
    const uint64_t *y = items->table + (int64_t)b.place * items->width;
    for (int64_t k = 0; k < items->width; k++) {
        if (x[k] != y[k]) {
            return x[k] < y[k] ? -1 : 1;
        }
    }
    return 0;
}

static bool same(const Items *items, WideEntry a, WideEntry b)
{
    if (items->table == NULL) {
        return a.key == b.key && !us_key_is_nan(a.key, items->rule);
    }
    const uint64_t *row = items->table + (int64_t)a.place * items->width;
    for (int64_t k = 0; k < items->width; k++) {
        if (us_key_is_nan(row[k], items->rule)) {
            return false;
        }
    }
    return compare(items, a, b) == 0;
}

static void merge(const Items *items, const WideEntry *from, WideEntry *to, int64_t begin, int64_t middle, int64_t end)
{
    for (int64_t a = begin, b = middle, k = begin; k < end; k++) {
        const bool first = b == end || (a < middle && compare(items, from[a], from[b]) <= 0);
        to[k] = first ? from[a++] : from[b++];
    }
}

/* Rows of a table, by merging. */
static WideEntry *sort_rows(const Items *items, WideEntry *entries, WideEntry *spare)
{
    for (int64_t length = 1; length < items->count; length *= 2) {
        for (int64_t begin = 0; begin < items->count; begin += 2 * length) {
            const int64_t middle = begin + length < items->count ? begin + length : items->count;
            const int64_t end = begin + 2 * length < items->count ? begin + 2 * length : items->count;
            merge(items, entries, spare, begin, middle, end);
        }
        WideEntry *sorted = spare;
        spare = entries;
        entries = sorted;
    }
    return entries;
}

/* ---- results ---- */

static Axes axes_of(const View *view)
{
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){view}, 1, 0, view->rank);
    return axes;
}

bool us_unique_packs(const View *room, int32_t rank, const int64_t *shape, int32_t axis)
{
    bool fits = room->rank == rank;
    for (int32_t d = 0; d < rank && fits; d++) {
        fits = d == axis ? room->shape[d] >= shape[d] : room->shape[d] == shape[d];
    }
    return !fits || us_view_is_contiguous(room);
}

/* What a result that has room for items of a shape is, with `count` of them along an axis. */
static View result_of(const View *room, int32_t rank, const int64_t *shape, int32_t axis, int64_t count)
{
    View result = *room;
    result.rank = rank;
    memcpy(result.shape, shape, (size_t)rank * sizeof *shape);
    result.shape[axis] = count;
    if (us_unique_packs(room, rank, shape, axis)) {
        us_strides_contiguous(rank, result.shape, result.strides);
    }
    return result;
}

/* The first items of the groups come to the front of the entries: how many there are. */
static int64_t find_groups(const Items *items, int64_t *group_of, int64_t *members)
{
    WideEntry *entries = items->entries;
    int64_t group = -1;
    for (int64_t i = 0; i < items->count; i++) {
        const WideEntry entry = entries[i];
        if (i == 0 || !same(items, entries[group], entry)) {
            entries[++group] = entry; /* groups are never ahead of the items */
            members[group] = 0;
        }
        members[group]++;
        group_of[entry.place] = group;
    }
    return group + 1;
}

typedef struct Store {
    const Items *items;
    const View *to;
    Axes axes; /* of `to` */
    const int64_t *numbers;
    int64_t count;
} Store;

static void store_tile(void *context, int64_t tile)
{
    const Store *store = context;
    const int64_t begin = tile * TILE;
    us_axes_store(&store->axes, 0, store->to->data, store->to->dtype, begin, smaller(store->count - begin, TILE), LANE_INT64,
                  store->numbers + begin);
}

/* The first elements of `to`, in row-major order. */
static void store_numbers(const View *to, const int64_t *numbers, int64_t count)
{
    if (!us_view_is_absent(to)) {
        Store store = {.to = to, .axes = axes_of(to), .numbers = numbers, .count = count};
        run_pieces(ceiling(count, TILE), count, store_tile, &store);
    }
}

static void store_elements(void *context, int64_t tile)
{
    const Store *store = context;
    const Items *items = store->items;
    const View *self = items->self, *to = store->to;
    _Alignas(16) char values[TILE * LARGEST], converted[TILE * LARGEST];
    int64_t offsets[TILE];
    const int64_t begin = tile * TILE, count = smaller(store->count - begin, TILE), stride = to->strides[0];
    const size_t size = us_dtype_size(to->dtype);
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = us_axes_offset(&items->axes, 0, (int64_t)items->entries[begin + i].place);
    }
    us_place_gather(values, self->data, offsets, count, us_dtype_size(self->dtype));
    us_convert(converted, to->dtype, values, self->dtype, count);
    us_copy_elements((char *)to->data + begin * stride * (int64_t)size, stride, converted, 1, (int64_t)size, count);
}

/* The first items of the groups, which stand at the front of the entries. */
static void store_values(const Items *items, const View *values, int64_t groups)
{
    if (items->call->axis < 0) {
        Store store = {.items = items, .to = values, .count = groups};
        run_pieces(ceiling(groups, TILE), groups, store_elements, &store);
        return;
    }
    for (int64_t group = 0; group < groups; group++) {
        const int64_t item = (int64_t)items->entries[group].place;
        const View from = slice_of(items->self, items->call->axis, item), to = slice_of(values, items->call->axis, group);
        us_copy_view(&to, &from);
    }
}

/* `numbers`: room for two numbers for each item. */
static void finish(const Items *items, const View *views, int64_t *numbers)
{
    const View *values = &views[1], *inverse = &views[2], *counts = &views[3], *self = items->self;
    const int32_t axis = items->call->axis;
    int64_t *group_of = numbers, *members = numbers + items->count;
    const int64_t groups = find_groups(items, group_of, members);
    View *result = views[4].data;
    *result = axis < 0 ? result_of(values, 1, &items->count, 0, groups)
                       : result_of(values, self->rank, self->shape, axis, groups);
    store_values(items, result, groups);
    store_numbers(inverse, group_of, items->count);
    if (!us_view_is_absent(counts)) {
        View *result_of_counts = views[5].data;
        *result_of_counts = result_of(counts, 1, &items->count, 0, groups);
        store_numbers(result_of_counts, members, groups);
    }
}

KernelStatus us_unique(const View *views, const void *attributes)
{
    const UniqueItems *call = attributes;
    const View *self = &views[0];
    const bool is_complex = self->dtype == DTYPE_COMPLEX64 || self->dtype == DTYPE_COMPLEX128;
    const int64_t elements = us_view_elements(self);
    Items items = {.self = self, .call = call, .axes = axes_of(self)};
    const DType part = self->dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : is_complex ? DTYPE_FLOAT64 : self->dtype;
    items.rule = us_key_rule(part, false);
    items.count = call->axis < 0 ? elements : self->shape[call->axis];
    items.width = items.count == 0 ? 0 : elements / items.count * (is_complex ? 2 : 1);
    const bool tabled = call->axis >= 0 || is_complex;
    const size_t entries = us_scratch_bytes(items.count, sizeof *items.entries);
    const size_t table = tabled ? us_scratch_bytes(us_scratch_count(items.count, items.width), sizeof *items.table) : 0;
    char *block = us_scratch_take(2 * entries + table);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    WideEntry *first = (void *)block, *second = (void *)(block + entries);
    items.entries = first;
    items.table = tabled ? (void *)(block + 2 * entries) : NULL;
    if (tabled) {
        run_pieces(items.count, items.count * items.width, enter_row, &items);
    } else {
        run_pieces(ceiling(items.count, TILE), items.count, enter_tile, &items);
    }
    if (!call->consecutive) {
        const int bits = 8 * (int)us_dtype_size(self->dtype);
        items.entries = tabled ? sort_rows(&items, first, second) : us_sort_wide(first, second, items.count, bits);
    }
    const bool done = items.entries != NULL;
    if (done) {
        finish(&items, views, (int64_t *)(void *)(items.entries == first ? second : first));
    }
    us_scratch_give_back(block);
    return done ? KERNEL_OK : KERNEL_NO_MEMORY;
}
