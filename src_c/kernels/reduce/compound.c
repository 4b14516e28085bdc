#include "kernels/reduce/compound.h"

#include "kernels/loss/mapped_sum.h"
#include "kernels/map/formulas.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"
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

/* A block is some rows of axis `axis` with all that is inside of it. */
typedef struct Blocks {
    const View *model; /* a view of the shape */
    int32_t axis;
    int64_t rows, per_run, count; /* rows of a block, blocks along the axis, blocks */
} Blocks;

static Blocks cut(const View *model)
{
    Blocks blocks = {.model = model, .rows = 1, .per_run = 1, .count = 1};
    if (model->rank == 0) {
        return blocks;
    }
    int64_t row = 1;
    blocks.axis = model->rank - 1;
    while (blocks.axis > 0 && row * model->shape[blocks.axis] < BLOCK) {
        row *= model->shape[blocks.axis--];
    }
    blocks.rows = BLOCK / row > 0 ? BLOCK / row : 1;
    blocks.per_run = (model->shape[blocks.axis] + blocks.rows - 1) / blocks.rows;
    blocks.count = us_shape_elements(blocks.axis, model->shape) * blocks.per_run;
    return blocks;
}

static View block_of(const Blocks *blocks, const View *view, int64_t block)
{
    if (view->rank == 0) {
        return *view;
    }
    const int32_t axis = blocks->axis;
    const int64_t size = view->shape[axis], first = block % blocks->per_run * blocks->rows;
    int64_t outer = block / blocks->per_run, offset = first * view->strides[axis];
    for (int32_t i = axis - 1; i >= 0; i--) {
        offset += outer % view->shape[i] * view->strides[i];
        outer /= view->shape[i];
    }
    View part = {.dtype = view->dtype, .rank = view->rank - axis};
    part.data = (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
    memcpy(part.shape, view->shape + axis, (size_t)part.rank * sizeof *part.shape);
    memcpy(part.strides, view->strides + axis, (size_t)part.rank * sizeof *part.strides);
    part.shape[0] = size - first < blocks->rows ? size - first : blocks->rows;
    return part;
}

/* ---- equal ---- */

typedef struct Equal {
    Blocks blocks;
    const View *a, *b;
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
    const View a = block_of(&work->blocks, work->a, block);
    const View views[] = {a, block_of(&work->blocks, work->b, block),
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
        Equal work = {.compute = comparison->compute, .blocks = cut(&views[0]), .a = &views[0], .b = &views[1]};
        us_parallel(work.blocks.count, compare_block, &work);
        equal = !atomic_load_explicit(&work.differs, memory_order_relaxed);
    }
    if (views[2].dtype == DTYPE_UINT32) {
        *(uint32_t *)views[2].data = equal ? 0 : comparison->code;
    } else {
        *(bool *)views[2].data = equal;
    }
    return KERNEL_OK;
}

/* ---- fold ---- */

typedef struct Folding {
    const Fold *fold;
    const View *views;
    Blocks blocks;
    _Atomic bool no_memory;
} Folding;

static void fold_block(void *context, int64_t block)
{
    Folding *work = context;
    const Fold *fold = work->fold;
    const View *result = &work->views[fold->inputs];
    const View out = block_of(&work->blocks, result, block);
    void *memory = us_scratch_array(us_view_elements(&out), us_dtype_size(fold->compute));
    if (memory == NULL) {
        atomic_store_explicit(&work->no_memory, true, memory_order_relaxed);
        return;
    }
    const View sum = us_view_contiguous(memory, fold->compute, out.rank, out.shape);
    const MapCall copy = {.formula = &us_map_copy, .compute = fold->compute, .result = fold->compute, .inputs = 1,
                          .outputs = 1, .items = 1};
    const MapCall step = {.formula = fold->formula, .compute = fold->compute, .result = fold->compute, .inputs = 2,
                          .outputs = 1, .items = 1, .numbers = {{1, 0, 1}}};
    for (int32_t i = 0; i < fold->inputs; i++) {
        const View input = us_view_broadcast(&work->views[i], result->rank, result->shape);
        const View part = block_of(&work->blocks, &input, block);
        us_map(i == 0 ? (const View[]){part, sum} : (const View[]){sum, part, sum}, i == 0 ? &copy : &step);
    }
    us_map((const View[]){sum, out}, &copy);
    us_scratch_give_back(memory);
}

KernelStatus us_fold(const View *views, const void *attributes)
{
    const Fold *fold = attributes;
    const View *out = &views[fold->inputs];
    if (us_view_is_empty(out)) {
        return KERNEL_OK;
    }
    Folding work = {.fold = fold, .views = views, .blocks = cut(out)};
    us_parallel(work.blocks.count, fold_block, &work);
    return atomic_load_explicit(&work.no_memory, memory_order_relaxed) ? KERNEL_NO_MEMORY : KERNEL_OK;
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
    const View part = block_of(&work->blocks, work->blocks.model, block);
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
            work.blocks = cut(&views[item]);
            us_parallel(work.blocks.count, unscale_block, &work);
        }
    }
    if (atomic_load_explicit(&work.found, memory_order_relaxed)) {
        *(float *)views[unscale->items].data = 1;
    }
    return KERNEL_OK;
}

/* ---- gradients of prelu ---- */

typedef struct WeightGradient {
    const View *views;
    const PreluBackward *attributes;
    _Atomic bool no_memory;
} WeightGradient;

static View channel_of(View view, int32_t axis, int64_t channel)
{
    if (axis >= 0) {
        view.data = (char *)view.data + channel * view.strides[axis] * (int64_t)us_dtype_size(view.dtype);
        view.shape[axis] = 1;
    }
    return view;
}

static void sum_channel(void *context, int64_t channel)
{
    WeightGradient *work = context;
    const View *views = work->views;
    const int32_t axis = work->attributes->channel;
    const DType compute = work->attributes->compute;
    const MappedSum sum = {.divisor = 1, .map = {.formula = &us_map_prelu_weight_backward, .compute = compute,
                                                 .result = compute, .inputs = 2, .outputs = 1, .items = 1}};
    const View share[] = {channel_of(views[0], axis, channel), channel_of(views[1], axis, channel),
                          channel_of(views[4], axis, channel)};
    if (us_mapped_sum(share, &sum) != KERNEL_OK) {
        atomic_store_explicit(&work->no_memory, true, memory_order_relaxed);
    }
}

/* The weight's gradient first: dx may be the gradient's memory. */
KernelStatus us_prelu_backward(const View *views, const void *attributes)
{
    const PreluBackward *backward = attributes;
    WeightGradient work = {.views = views, .attributes = backward};
    us_parallel(backward->channel >= 0 ? views[1].shape[backward->channel] : 1, sum_channel, &work);
    const MapCall call = {.formula = &us_map_prelu_backward, .compute = backward->compute,
                          .result = backward->compute, .inputs = 3, .outputs = 1, .items = 1};
    const KernelStatus status = us_map(views, &call);
    return atomic_load_explicit(&work.no_memory, memory_order_relaxed) ? KERNEL_NO_MEMORY : status;
}
