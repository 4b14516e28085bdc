#include "kernels/sort/unique.h"

#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "kernels/sort/keys.h"
#include "tensor/axes.h"

#include <string.h>

enum { TILE = 1024 };

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

static void enter_elements(Items *items)
{
    uint64_t keys[TILE];
    for (int64_t begin = 0; begin < items->count; begin += TILE) {
        const int64_t count = items->count - begin < TILE ? items->count - begin : TILE;
        load_keys(items, &items->axes, items->self->data, begin, count, keys);
        for (int64_t i = 0; i < count; i++) {
            items->entries[begin + i] = (WideEntry){keys[i], (uint64_t)(begin + i)};
        }
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

static void enter_rows(Items *items)
{
    const int32_t axis = items->call->axis;
    for (int64_t item = 0; item < items->count; item++) {
        uint64_t *row = items->table + item * items->width;
        items->entries[item] = (WideEntry){0, (uint64_t)item};
        if (axis < 0) {
            load_keys(items, &items->axes, items->self->data, item, 1, row);
            continue;
        }
        const View slice = slice_of(items->self, axis, item);
        Axes axes = {0};
        us_axes_add(&axes, (const View *const[]){&slice}, 1, 0, slice.rank);
        const int64_t elements = us_view_elements(&slice);
        load_keys(items, &axes, slice.data, 0, elements, row);
    }
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

static void store_integer(const View *view, const Axes *axes, int64_t place, int64_t value)
{
    const int64_t offset = us_axes_offset(axes, 0, place);
    char *to = (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
    us_lane_store(LANE_INT64, to, view->dtype, 1, &value, 1);
}

static Axes axes_of(const View *view)
{
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){view}, 1, 0, view->rank);
    return axes;
}

/* What a result that has room for all is, with `count` items along an axis. */
static View result_of(const View *room, int32_t rank, const int64_t *shape, int32_t axis, int64_t count)
{
    View result = *room;
    result.rank = rank;
    memcpy(result.shape, shape, (size_t)rank * sizeof *shape);
    result.shape[axis] = count;
    if (us_view_is_contiguous(room) || room->rank != rank) {
        us_strides_contiguous(rank, result.shape, result.strides);
    }
    return result;
}

/* The first items of the groups, which stand at the front of the entries. */
static void store_values(const Items *items, const View *values, int64_t groups)
{
    const View *self = items->self;
    const int64_t size = (int64_t)us_dtype_size(self->dtype), to_size = (int64_t)us_dtype_size(values->dtype);
    for (int64_t group = 0; group < groups; group++) {
        const int64_t item = (int64_t)items->entries[group].place;
        if (items->call->axis < 0) {
            us_convert((char *)values->data + group * values->strides[0] * to_size, values->dtype,
                       (const char *)self->data + us_axes_offset(&items->axes, 0, item) * size, self->dtype, 1);
            continue;
        }
        const View from = slice_of(self, items->call->axis, item), to = slice_of(values, items->call->axis, group);
        us_copy_view(&to, &from);
    }
}

static int64_t store_groups(const Items *items, const View *inverse, const View *counts)
{
    const Axes inverse_axes = axes_of(inverse), counts_axes = axes_of(counts);
    const bool inverts = !us_view_is_absent(inverse), counts_items = !us_view_is_absent(counts);
    int64_t group = -1, members = 0;
    for (int64_t i = 0; i < items->count; i++) {
        const WideEntry entry = items->entries[i];
        const bool starts = i == 0 || !same(items, items->entries[group], entry);
        if (starts && group >= 0 && counts_items) {
            store_integer(counts, &counts_axes, group, members);
        }
        members = starts ? 1 : members + 1;
        if (starts) {
            items->entries[++group] = entry; /* groups are never ahead of the items */
        }
        if (inverts) {
            store_integer(inverse, &inverse_axes, (int64_t)entry.place, group);
        }
    }
    if (group >= 0 && counts_items) {
        store_integer(counts, &counts_axes, group, members);
    }
    return group + 1;
}

static void finish(Items *items, const View *views)
{
    const View *values = &views[1], *inverse = &views[2], *counts = &views[3], *self = items->self;
    const int32_t axis = items->call->axis;
    View flat_counts = *counts;
    if (!us_view_is_absent(counts)) {
        flat_counts = result_of(counts, 1, &items->count, 0, items->count);
    }
    const int64_t groups = store_groups(items, inverse, &flat_counts);
    View *result = views[4].data;
    *result = axis < 0 ? result_of(values, 1, &items->count, 0, groups)
                       : result_of(values, self->rank, self->shape, axis, groups);
    store_values(items, result, groups);
    if (!us_view_is_absent(counts)) {
        *(View *)views[5].data = result_of(&flat_counts, 1, &items->count, 0, groups);
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
    WideEntry *spare = (void *)(block + entries);
    items.entries = (void *)block;
    items.table = tabled ? (void *)(block + 2 * entries) : NULL;
    (tabled ? enter_rows : enter_elements)(&items);
    if (!call->consecutive) {
        const int bits = 8 * (int)us_dtype_size(self->dtype);
        items.entries = tabled ? sort_rows(&items, items.entries, spare)
                               : us_sort_wide(items.entries, spare, items.count, bits);
    }
    const bool done = items.entries != NULL;
    if (done) {
        finish(&items, views);
    }
    us_scratch_give_back(block);
    return done ? KERNEL_OK : KERNEL_NO_MEMORY;
}
