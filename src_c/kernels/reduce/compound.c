#include "kernels/reduce/compound.h"

#include "kernels/map/formulas.h"
#include "kernels/reduce/reductions.h"
#include "tensor/axes.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* Elements of a block, which its thread handles alone while they are in its cache. */
enum { BLOCK = 16 * 1024 };

/* ---- lists ---- */

typedef struct Lists {
    const ReduceLists *lists;
    const View *views;
    _Atomic bool no_memory;
} Lists;

static void reduce_item(void *context, int64_t item)
{
    Lists *work = context;
    const View *views = work->views + item * (1 + work->lists->call.outputs);
    if (us_reduce(views, &work->lists->call) != KERNEL_OK) {
        atomic_store_explicit(&work->no_memory, true, memory_order_relaxed);
    }
}

/* Large items one after the other on all cores, the small ones side by side. */
KernelStatus us_reduce_lists(const View *views, const void *attributes)
{
    Lists work = {.lists = attributes, .views = views};
    const int32_t items = work.lists->items, step = 1 + work.lists->call.outputs;
    int64_t largest = 0;
    for (int32_t item = 0; item < items; item++) {
        const int64_t elements = us_view_elements(&views[item * step]);
        largest = elements > largest ? elements : largest;
    }
    if (largest <= BLOCK) {
        us_parallel(items, reduce_item, &work);
    } else {
        for (int32_t item = 0; item < items; item++) {
            reduce_item(&work, item);
        }
    }
    return atomic_load_explicit(&work.no_memory, memory_order_relaxed) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- blocks of views of one shape ---- */

enum { BLOCK_VIEWS = 2 };

/* The shared axes; a block is some rows of axis `axis` with all that is inside of it. */
typedef struct Blocks {
    Axes axes;
    const View *views[BLOCK_VIEWS];
    int32_t axis;
    int64_t row, rows, per_run, count; /* elements of a row, rows of a block, blocks along the axis, blocks */
} Blocks;

static Blocks cut(const View *const *views, int count)
{
    Blocks blocks = {.row = 1};
    us_axes_add(&blocks.axes, views, count, 0, views[0]->rank);
    us_axes_complete(&blocks.axes, count);
    for (int k = 0; k < count; k++) {
        blocks.views[k] = views[k];
    }
    const Axes *axes = &blocks.axes;
    blocks.axis = axes->rank - 1;
    while (blocks.axis > 0 && blocks.row * axes->shape[blocks.axis] < BLOCK) {
        blocks.row *= axes->shape[blocks.axis--];
    }
    const int64_t size = axes->shape[blocks.axis];
    blocks.rows = BLOCK / blocks.row > 0 ? BLOCK / blocks.row : 1;
    blocks.per_run = (size + blocks.rows - 1) / blocks.rows;
    blocks.count = us_shape_elements(blocks.axis, axes->shape) * blocks.per_run;
    return blocks;
}

static View block_of(const Blocks *blocks, int k, int64_t block)
{
    const Axes *axes = &blocks->axes;
    const int64_t size = axes->shape[blocks->axis], first = block % blocks->per_run * blocks->rows;
    const int64_t place = (block / blocks->per_run * size + first) * blocks->row;
    View view = {.dtype = blocks->views[k]->dtype, .rank = axes->rank - blocks->axis};
    view.data = (char *)blocks->views[k]->data +
                us_axes_offset(axes, k, place) * (int64_t)us_dtype_size(view.dtype);
    memcpy(view.shape, axes->shape + blocks->axis, (size_t)view.rank * sizeof *view.shape);
    memcpy(view.strides, axes->strides[k] + blocks->axis, (size_t)view.rank * sizeof *view.strides);
    view.shape[0] = size - first < blocks->rows ? size - first : blocks->rows;
    return view;
}

/* ---- equal ---- */

typedef struct Equal {
    Blocks blocks;
    DType compute;
    _Atomic bool differs;
} Equal;

static void compare_block(void *context, int64_t block)
{
    Equal *work = context;
    if (atomic_load_explicit(&work->differs, memory_order_relaxed)) {
        return;
    }
    bool unequal[BLOCK];
    const View a = block_of(&work->blocks, 0, block);
    const View views[] = {a, block_of(&work->blocks, 1, block),
                          us_view_contiguous(unequal, DTYPE_BOOL, a.rank, a.shape)};
    const MapCall call = {.formula = &us_map_ne, .compute = work->compute, .result = DTYPE_BOOL, .inputs = 2,
                          .outputs = 1, .items = 1};
    us_map(views, &call);
    if (memchr(unequal, true, (size_t)us_view_elements(&a)) != NULL) {
        atomic_store_explicit(&work->differs, true, memory_order_relaxed);
    }
}

KernelStatus us_equal(const View *views, const void *attributes)
{
    const Comparison *comparison = attributes;
    bool equal = us_view_same_shape(&views[0], &views[1]);
    if (equal && !us_view_is_empty(&views[0])) {
        Equal work = {.compute = comparison->compute,
                      .blocks = cut((const View *const[]){&views[0], &views[1]}, 2)};
        us_parallel(work.blocks.count, compare_block, &work);
        equal = !atomic_load_explicit(&work.differs, memory_order_relaxed);
    }
    *(bool *)views[2].data = equal;
    return KERNEL_OK;
}

/* ---- unscale ---- */

typedef struct Unscaling {
    Blocks blocks;
    float scale;
    _Atomic bool found;
} Unscaling;

/* The second pass finds the block in the cache. */
static void unscale_block(void *context, int64_t block)
{
    Unscaling *work = context;
    const View part = block_of(&work->blocks, 0, block);
    bool found = false;
    View views[] = {part, {.data = &found, .dtype = DTYPE_BOOL, .rank = part.rank}, part};
    for (int32_t axis = 0; axis < part.rank; axis++) {
        views[1].shape[axis] = 1;
    }
    const ReduceCall search = {.reduction = &us_reduce_any_not_finite, .compute = part.dtype, .result = DTYPE_BOOL,
                               .axes = UINT32_MAX, .outputs = 1};
    us_reduce(views, &search);
    if (found) {
        atomic_store_explicit(&work->found, true, memory_order_relaxed);
    }
    views[1] = us_view_absent();
    const MapCall scale = {.formula = &us_map_mul, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32,
                           .inputs = 2, .outputs = 1, .items = 1, .numbers = {{work->scale, 0, 0}}};
    us_map(views, &scale);
}

KernelStatus us_unscale(const View *views, const void *attributes)
{
    const Unscale *unscale = attributes;
    Unscaling work = {.scale = *(const float *)views[unscale->items + 1].data};
    for (int32_t item = 0; item < unscale->items; item++) {
        if (!us_view_is_empty(&views[item])) {
            work.blocks = cut((const View *const[]){&views[item]}, 1);
            us_parallel(work.blocks.count, unscale_block, &work);
        }
    }
    if (atomic_load_explicit(&work.found, memory_order_relaxed)) {
        *(float *)views[unscale->items].data = 1;
    }
    return KERNEL_OK;
}
