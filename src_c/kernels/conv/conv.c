#include "kernels/blend/tensor_ops.h"
#include "kernels/conv/gather.h"
#include "kernels/conv/way.h"
#include "kernels/matmul/bf16.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* A problem with three spatial axes; fewer become leading ones of size 1. */
typedef struct Problem {
    const Convolution *conv;
    View x, w, y; /* x or dx, w or dw, y or dy: five axes */
    int64_t stride[CONV_AXES], padding[CONV_AXES], dilation[CONV_AXES];
    DType compute;
} Problem;

static View five_axes(const View *view)
{
    View five = *view;
    const int32_t missing = 5 - view->rank;
    five.rank = 5;
    for (int32_t axis = 4; axis >= 2; axis--) {
        const int32_t from = axis - missing;
        five.shape[axis] = from >= 2 ? view->shape[from] : 1;
        five.strides[axis] = from >= 2 ? view->strides[from] : 0;
    }
    return five;
}

static bool is_single(DType dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT32;
}

static Problem problem_of(const Convolution *conv, const View *x, const View *w, const View *y)
{
    Problem problem = {.conv = conv, .x = five_axes(x), .w = five_axes(w), .y = five_axes(y)};
    for (int axis = 0; axis < CONV_AXES; axis++) {
        const int from = axis - (CONV_AXES - conv->axes);
        problem.stride[axis] = from >= 0 ? conv->stride[from] : 1;
        problem.padding[axis] = from >= 0 ? conv->padding[from] : 0;
        problem.dilation[axis] = from >= 0 ? conv->dilation[from] : 1;
    }
    for (int axis = 2; conv->mirrored && axis < 5; axis++) {
        View *w_view = &problem.w;
        const int64_t last = (w_view->shape[axis] - 1) * w_view->strides[axis];
        w_view->data = (char *)w_view->data + last * (int64_t)us_dtype_size(w_view->dtype);
        w_view->strides[axis] = -w_view->strides[axis];
    }
    return problem;
}

/* The filter as [groups, results, channels, taps]; `turned`: what forward calls channels are the results. */
static View filter_view(const Problem *problem, bool turned)
{
    const View *w = &problem->w;
    const int64_t groups = problem->conv->groups, per_group = w->shape[0] / groups;
    View filter = {.data = w->data, .dtype = w->dtype, .rank = 6,
                   .shape = {groups, turned ? w->shape[1] : per_group, turned ? per_group : w->shape[1]},
                   .strides = {per_group * w->strides[0], w->strides[turned ? 1 : 0], w->strides[turned ? 0 : 1]}};
    for (int axis = 0; axis < CONV_AXES; axis++) {
        filter.shape[3 + axis] = w->shape[2 + axis];
        filter.strides[3 + axis] = w->strides[2 + axis];
    }
    return filter;
}

/* `with`: the operand that meets `in`. */
static Gather gather_of(const Problem *problem, bool turned, const View *in, const View *with, const View *out)
{
    const DType type = us_bf16_takes(in->dtype, with->dtype) ? in->dtype : problem->compute;
    Gather gather = {.compute = problem->compute, .column_type = type, .in_type = problem->compute, .images = in->shape[0],
                     .groups = problem->conv->groups, .filter = filter_view(problem, turned)};
    gather.results = gather.filter.shape[1];
    gather.channels = gather.filter.shape[2];
    for (int axis = 0; axis < CONV_AXES; axis++) {
        gather.in_size[axis] = in->shape[2 + axis];
        gather.out_size[axis] = out->shape[2 + axis];
        gather.step[axis] = problem->stride[axis];
        gather.taps[axis] = (TapAxis){problem->w.shape[2 + axis], -problem->padding[axis], problem->dilation[axis]};
    }
    return gather;
}

/* Makes the filter one of the type that it is read in; *copy owns it. */
static bool convert_filter(Problem *problem, Gather *gather, bool turned, void **copy)
{
    View *w = &problem->w;
    const bool last = us_conv_has_channels_last(w);
    const void *data;
    *copy = NULL;
    if (w->dtype == gather->column_type) {
        return true;
    }
    if (!us_gather_operand(w, gather->column_type, last, &data, copy)) {
        return false;
    }
    View packed = *w;
    int64_t stride = 1;
    if (last) {
        packed.strides[1] = 1;
        stride = packed.shape[1];
    }
    for (int axis = 4; axis >= 0; axis--) {
        if (!last || axis != 1) {
            packed.strides[axis] = stride;
            stride *= packed.shape[axis];
        }
    }
    packed.data = (void *)data;
    packed.dtype = gather->column_type;
    *w = packed;
    gather->filter = filter_view(problem, turned);
    return true;
}

static bool is_depthwise(const Gather *gather)
{
    return gather->channels == 1 && gather->results == 1;
}

/* ---- operands ---- */

/* Only products take 16-bit operands as they are. */
static void choose_column_type(Gather *gather, Way way)
{
    gather->column_type = way == BY_PRODUCT ? gather->column_type : gather->compute;
}

/* Rows go along positions, except where every channel has its own filter, and results lie by channels too. */
static bool goes_along_channels(const Gather *gather, Way way, const View *in, const View *out)
{
    return us_conv_has_channels_last(in) &&
           (way != BY_ROWS || (is_depthwise(gather) && us_conv_has_channels_last(out)));
}

/* The type in which an operand is read. `converts`: 16-bit operands may be converted part by part, where they lie packed. */
static DType type_read(const Gather *gather, bool converts, const View *operand)
{
    const bool is_half = us_gather_is_packed_half(operand, gather->channels_last);
    return converts && gather->column_type == DTYPE_FLOAT32 && is_half ? operand->dtype : gather->column_type;
}

/* Leaves `count` elements of an axis: every step-th from `first` on. A step of one element may be any number. */
static void thin_out(View *view, int32_t axis, int64_t first, int64_t step, int64_t count)
{
    view->data = (char *)view->data + first * view->strides[axis] * (int64_t)us_dtype_size(view->dtype);
    view->shape[axis] = count;
    view->strides[axis] *= count > 1 ? step : 0;
}

static KernelStatus run_images(const Gather *all, const View *in, Way way, const Finish *finish)
{
    void *copy;
    Gather gather = *all;
    gather.images = in->shape[0];
    if (!us_gather_operand(in, gather.in_type, gather.channels_last, &gather.in, &copy)) {
        return KERNEL_NO_MEMORY;
    }
    us_gather_merge_axes(&gather);
    const KernelStatus status = way == BY_ROWS    ? us_gather_by_rows(&gather, finish)
                                : way == BY_TILES ? us_gather_by_winograd(&gather, finish)
                                                  : us_gather_by_product(&gather, finish);
    us_scratch_give_back(copy);
    return status;
}

/* Copies are made of some images at a time: of so few for loops along rows, which take as long as memory does, that they stay in
 * the caches; of more for the others, which prepare the filter each time. */
static int64_t images_at_a_time(const Gather *gather, const View *in, Way way)
{
    enum { OF_ROWS = 1024 * 1024, OF_OTHERS = 4 * OF_ROWS };
    const bool copies = !us_gather_is_operand(in, gather->in_type, gather->channels_last);
    const int64_t images = in->shape[0], of_image = us_view_elements(in) / images;
    return copies && of_image > 0 ? bounded((way == BY_ROWS ? OF_ROWS : OF_OTHERS) / of_image, 1, images) : images;
}

static KernelStatus run(Gather *gather, const View *in, Way way, const Finish *finish)
{
    gather->channels_last = goes_along_channels(gather, way, in, &finish->out);
    gather->in_type = type_read(gather, way == BY_PRODUCT && us_gather_is_pointwise(gather), in);
    const int64_t images = images_at_a_time(gather, in, way);
    KernelStatus status = KERNEL_OK;
    for (int64_t first = 0; status == KERNEL_OK && first < in->shape[0]; first += images) {
        const int64_t count = smaller(images, in->shape[0] - first);
        View part = *in;
        Finish of_part = *finish;
        thin_out(&part, 0, first, 1, count);
        thin_out(&of_part.out, 0, first, 1, count);
        if (finish->addend_scale != 0) {
            thin_out(&of_part.addend, 0, first, 1, count);
        }
        status = run_images(gather, &part, way, &of_part);
    }
    return status;
}

/* ---- forward ---- */

static Finish finish_of(const Convolution *conv, const View *bias, const View *addend, const View *out)
{
    const bool adds = !us_view_is_absent(addend) && conv->addend_scale != 0;
    return (Finish){.out = five_axes(out), .bias = *bias, .addend = adds ? five_axes(addend) : us_view_absent(),
                    .alpha = conv->alpha, .beta = conv->beta, .addend_scale = adds ? conv->addend_scale : 0,
                    .relu = conv->relu};
}

static bool is_exact(const View *a, const View *b)
{
    return !is_single(a->dtype) || !is_single(b->dtype);
}

KernelStatus us_conv_forward(const View *views, const void *attributes)
{
    const Convolution *conv = attributes;
    Problem problem = problem_of(conv, &views[0], &views[1], &views[4]);
    problem.compute = is_exact(&views[0], &views[1]) ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    const Finish finish = finish_of(conv, &views[2], &views[3], &views[4]);
    void *copy;
    if (us_view_is_empty(&problem.y)) {
        return KERNEL_OK;
    }
    Gather gather = gather_of(&problem, false, &problem.x, &problem.w, &problem.y);
    const Way way = us_conv_way(&gather, conv->method, us_conv_looks_outside(&gather), &problem.x, &problem.w);
    choose_column_type(&gather, way);
    if (!convert_filter(&problem, &gather, false, &copy)) {
        return KERNEL_NO_MEMORY;
    }
    const KernelStatus status = run(&gather, &problem.x, way, &finish);
    us_scratch_give_back(copy);
    return status;
}

/* ---- backward to the data ---- */

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Along one axis, the elements of dx at first, first + stride, …: which taps they see, and where in dy. Tap r of
 * element i belongs to result (i + padding - r * dilation) / stride where that is whole. Those taps are `tap_step`
 * apart. */
static TapAxis taps_of_residue(const Problem *problem, int axis, int64_t first, int64_t *first_tap, int64_t *tap_step)
{
    const int64_t stride = problem->stride[axis], dilation = problem->dilation[axis], all = problem->w.shape[2 + axis];
    const int64_t divisor = greatest_divisor(dilation, stride), start = first + problem->padding[axis];
    *tap_step = stride / divisor;
    for (*first_tap = 0; *first_tap < *tap_step && *first_tap < all; ++*first_tap) {
        if ((start - *first_tap * dilation) % stride == 0) {
            return (TapAxis){(all - 1 - *first_tap) / *tap_step + 1, (start - *first_tap * dilation) / stride,
                             -dilation / divisor};
        }
    }
    *first_tap = 0;
    return (TapAxis){0, 0, 0};
}

/* How many elements of an axis of dx have a residue. */
static int64_t residue_size(const Problem *problem, int axis, int64_t first)
{
    return (problem->x.shape[2 + axis] - first - 1) / problem->stride[axis] + 1;
}

/* What gives the elements of dx with one residue on every axis. */
static Gather residue_of(const Problem *problem, const Gather *model, const int64_t *first)
{
    Gather gather = *model;
    for (int axis = 0; axis < CONV_AXES; axis++) {
        int64_t tap, tap_step;
        gather.taps[axis] = taps_of_residue(problem, axis, first[axis], &tap, &tap_step);
        gather.step[axis] = 1;
        thin_out(&gather.filter, 3 + axis, tap, tap_step, gather.taps[axis].count);
        gather.out_size[axis] = residue_size(problem, axis, first[axis]);
    }
    return gather;
}

static KernelStatus run_residue(const Problem *problem, const Finish *all, const GatherPhase *residue, const View *dy, Way way)
{
    Gather gather = residue->gather;
    Finish finish = *all;
    for (int axis = 0; axis < CONV_AXES; axis++) {
        const int64_t first = residue->first[axis], count = gather.out_size[axis];
        thin_out(&finish.out, 2 + axis, first, problem->stride[axis], count);
        if (finish.addend_scale != 0) {
            thin_out(&finish.addend, 2 + axis, first, problem->stride[axis], count);
        }
    }
    return run(&gather, dy, way, &finish);
}

static GatherPhase phase_of(const Problem *problem, const Gather *model, const int64_t *residues, int64_t number)
{
    const int64_t row = number / residues[2];
    GatherPhase phase = {.first = {row / residues[1], row % residues[1], number % residues[2]}};
    phase.gather = residue_of(problem, model, phase.first);
    return phase;
}

/* Many small filters give the elements of all residues of an image together, so that each is written once. *taken false:
 * nothing is done. */
static KernelStatus run_together(const Problem *problem, const Gather *model, const int64_t *residues, const Finish *finish,
                                 bool *taken)
{
    const int64_t count = conv_product3(residues);
    GatherPhase phases[GATHER_MOST_PHASES];
    *taken = false;
    for (int64_t k = 0; k < count && count <= GATHER_MOST_PHASES; k++) {
        phases[k] = phase_of(problem, model, residues, k);
    }
    if (count == 1 || count > GATHER_MOST_PHASES || !us_lanes_take_phases(phases, count)) {
        return KERNEL_OK;
    }
    const void *in;
    void *copy;
    if (!us_gather_operand(&problem->y, DTYPE_FLOAT32, false, &in, &copy)) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t k = 0; k < count; k++) {
        phases[k].gather.in = in;
    }
    const KernelStatus status = us_gather_phases_by_lanes(phases, count, problem->stride, finish, taken);
    us_scratch_give_back(copy);
    return status;
}

/* By products of the filter as it lies. *taken false: nothing is done. */
static KernelStatus run_folded(const Problem *problem, const Finish *finish, bool *taken)
{
    void *copy;
    const void *dy;
    Gather gather = gather_of(problem, false, &problem->x, &problem->w, &problem->x);
    for (int axis = 0; axis < CONV_AXES; axis++) {
        gather.out_size[axis] = problem->y.shape[2 + axis];
    }
    us_gather_merge_axes(&gather);
    *taken = us_folds(&gather);
    if (!*taken) {
        return KERNEL_OK;
    }
    if (!us_gather_operand(&problem->y, DTYPE_FLOAT32, false, &dy, &copy)) {
        return KERNEL_NO_MEMORY;
    }
    const KernelStatus status = us_gather_folded(&gather, dy, finish);
    us_scratch_give_back(copy);
    return status;
}

KernelStatus us_conv_backward_data(const View *views, const void *attributes)
{
    const Convolution *conv = attributes;
    Problem problem = problem_of(conv, &views[4], &views[1], &views[0]);
    problem.compute = is_exact(&views[0], &views[1]) ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    const Finish finish = finish_of(conv, &views[2], &views[3], &views[4]);
    if (us_view_is_empty(&problem.x)) {
        return KERNEL_OK;
    }
    void *copy;
    Gather gather = gather_of(&problem, true, &problem.y, &problem.w, &problem.x);
    /* Where the stride is above 1, the results' positions differ from residue to residue: taken to look outside. */
    const Way way = us_conv_way(&gather, conv->method, true, &problem.y, &problem.w);
    choose_column_type(&gather, way);
    if (!convert_filter(&problem, &gather, true, &copy)) {
        return KERNEL_NO_MEMORY;
    }
    int64_t residues[CONV_AXES];
    for (int axis = 0; axis < CONV_AXES; axis++) {
        const int64_t size = problem.x.shape[2 + axis];
        residues[axis] = problem.stride[axis] < size ? problem.stride[axis] : size;
    }
    const bool planar = !goes_along_channels(&gather, way, &problem.y, &problem.x);
    bool taken = false;
    KernelStatus status = KERNEL_OK;
    if (way == BY_ROWS && planar) {
        status = run_together(&problem, &gather, residues, &finish, &taken);
    } else if (way == BY_PRODUCT && gather.column_type == gather.compute && planar) {
        status = run_folded(&problem, &finish, &taken);
    }
    for (int64_t k = 0; !taken && status == KERNEL_OK && k < conv_product3(residues); k++) {
        const GatherPhase residue = phase_of(&problem, &gather, residues, k);
        status = run_residue(&problem, &finish, &residue, &problem.y, way);
    }
    us_scratch_give_back(copy);
    return status;
}

/* ---- backward to the filter ---- */

/* The view of packed sums in the filter's axes. */
static View packed_filter(const Gather *gather, void *data)
{
    View view = gather->filter;
    view.data = data;
    view.dtype = gather->compute;
    int64_t taps = gather->channels_last ? gather->channels : 1;
    for (int axis = CONV_AXES - 1; axis >= 0; axis--) {
        view.strides[3 + axis] = taps;
        taps *= gather->taps[axis].count;
    }
    view.strides[2] = gather->channels_last ? 1 : gather_taps(gather);
    view.strides[1] = gather->channels * gather_taps(gather);
    view.strides[0] = gather->results * view.strides[1];
    return view;
}

/* The packed sums of products, in the order that `gather` gets. */
static KernelStatus filter_sums_in(Way way, Problem *problem, Gather *gather, void *sums)
{
    void *x_copy, *dy_copy;
    const void *dy;
    choose_column_type(gather, way);
    gather->channels_last = goes_along_channels(gather, way, &problem->x, &problem->y);
    const bool by_product = way == BY_PRODUCT;
    const bool by_lanes = us_lanes_take(gather) && !is_depthwise(gather); /* of float32 */
    const bool by_planes = way == BY_ROWS && !gather->channels_last && !by_lanes;
    const DType dy_type = type_read(gather, by_product || by_planes, &problem->y);
    gather->in_type = type_read(gather, (by_product && us_gather_is_pointwise(gather)) || by_planes, &problem->x);
    if (!us_gather_operand(&problem->x, gather->in_type, gather->channels_last, &gather->in, &x_copy)) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = KERNEL_NO_MEMORY;
    if (us_gather_operand(&problem->y, dy_type, gather->channels_last, &dy, &dy_copy)) {
        Gather merged = *gather;
        us_gather_merge_axes(&merged);
        status = way == BY_ROWS    ? us_gather_slopes_by_rows(&merged, dy, dy_type, sums)
                 : way == BY_TILES ? us_gather_slopes_by_winograd(&merged, dy, problem->w.dtype, sums)
                                   : us_gather_slopes_by_product(&merged, dy, dy_type, sums);
        us_scratch_give_back(dy_copy);
    }
    us_scratch_give_back(x_copy);
    return status;
}

/* What is not finite, or overflows in tiles, shows in the sums: they are few, so these are looked at instead of the
 * values. */
static KernelStatus filter_sums(Problem *problem, Gather *gather, void *sums, int64_t elements)
{
    const Way way = us_conv_usual_way(gather, problem->conv->method, true, &problem->x);
    const View all = us_view_contiguous(sums, gather->compute, 1, &elements);
    const KernelStatus status = filter_sums_in(way, problem, gather, sums);
    if (status != KERNEL_OK || way == BY_ROWS || isfinite(us_conv_largest_magnitude(&all))) {
        return status;
    }
    const bool by_rows = us_conv_looks_outside(gather) && !isfinite(us_conv_largest_magnitude(&problem->y));
    const Way plain = way == BY_TILES ? us_conv_usual_way(gather, CONV_PLAIN, true, &problem->x) : way;
    const Way other = by_rows ? BY_ROWS : plain;
    return other == way ? status : filter_sums_in(other, problem, gather, sums);
}

KernelStatus us_conv_backward_filter(const View *views, const void *attributes)
{
    const Convolution *conv = attributes;
    Problem problem = problem_of(conv, &views[0], &views[2], &views[1]);
    problem.compute = is_exact(&views[0], &views[1]) ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    Gather gather = gather_of(&problem, false, &problem.x, &problem.y, &problem.y);
    if (us_view_is_empty(&problem.w)) {
        return KERNEL_OK;
    }
    const View target = gather.filter;
    const int64_t elements = gather.groups * gather.results * gather.channels * gather_taps(&gather);
    void *sums = us_scratch_array(elements, us_dtype_size(gather.compute));
    if (sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = KERNEL_OK;
    if (us_view_is_empty(&problem.x) || us_view_is_empty(&problem.y)) {
        memset(sums, 0, (size_t)elements * us_dtype_size(gather.compute));
    } else {
        status = filter_sums(&problem, &gather, sums, elements);
    }
    if (status == KERNEL_OK) {
        const View operands[] = {packed_filter(&gather, sums), us_view_absent(), target};
        const TensorArithmetic store = {.operation = TENSOR_SCALE, .alpha1 = conv->alpha, .beta = conv->beta};
        status = us_tensor_arithmetic(operands, &store);
    }
    us_scratch_give_back(sums);
    return status;
}

/* ---- columns ---- */

typedef struct Columns {
    const Gather *gather;
    const View *to;
    atomic_bool no_memory;
} Columns;

/* The rows of one channel. */
static void columns_of_channel(void *context, int64_t channel)
{
    Columns *columns = context;
    const Gather *gather = columns->gather;
    const View *to = columns->to;
    const int64_t taps = gather_taps(gather), positions = gather_positions(gather);
    const int64_t size = (int64_t)us_dtype_size(gather->compute), to_size = (int64_t)us_dtype_size(to->dtype);
    char *memory = us_scratch_array(us_scratch_count(taps, positions), (size_t)size);
    if (memory == NULL) {
        atomic_store(&columns->no_memory, true);
        return;
    }
    us_gather_columns(gather, 0, channel, 1, 0, positions, memory);
    for (int64_t tap = 0; tap < taps; tap++) {
        char *row = (char *)to->data + (channel * taps + tap) * to->strides[0] * to_size;
        const void *from = memory + tap * positions * size;
        if (gather->compute == DTYPE_FLOAT64) {
            us_store_double(row, to->dtype, to->strides[1], from, positions);
        } else {
            us_store_float(row, to->dtype, to->strides[1], from, positions);
        }
    }
    us_scratch_give_back(memory);
}

KernelStatus us_conv_columns(const View *views, const void *attributes)
{
    const ConvColumns *attribute = attributes;
    const Convolution *conv = &attribute->conv;
    Problem problem = problem_of(conv, &views[0], &views[0], &views[0]);
    problem.compute = is_single(views[0].dtype) ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    Gather gather = {.compute = problem.compute, .column_type = problem.compute, .in_type = problem.compute,
                     .images = problem.x.shape[0],
                     .groups = 1, .channels = problem.x.shape[1]};
    for (int axis = 0; axis < CONV_AXES; axis++) {
        const int from = axis - (CONV_AXES - conv->axes);
        const int64_t taps = from >= 0 ? attribute->taps[from] : 1, dilation = problem.dilation[axis];
        gather.in_size[axis] = problem.x.shape[2 + axis];
        gather.out_size[axis] = from >= 0 ? attribute->positions[from] : 1;
        gather.step[axis] = problem.stride[axis];
        gather.taps[axis] = conv->mirrored ? (TapAxis){taps, (taps - 1) * dilation - problem.padding[axis], -dilation}
                                           : (TapAxis){taps, -problem.padding[axis], dilation};
    }
    void *copy;
    if (!us_gather_operand(&problem.x, gather.compute, false, &gather.in, &copy)) {
        return KERNEL_NO_MEMORY;
    }
    Columns columns = {.gather = &gather, .to = &views[1]};
    atomic_init(&columns.no_memory, false);
    us_parallel(gather.channels, columns_of_channel, &columns);
    us_scratch_give_back(copy);
    return atomic_load(&columns.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
