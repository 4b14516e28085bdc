/* Operators by name that move elements: each is a copy from one view to another, or one aclnn function. */
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_constant_pad_nd.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_fill_tensor.h"
#include "aclnnop/aclnn_one_hot.h"
#include "aclnnop/aclnn_zero.h"
#include "ascend/op_compiler/calls.h"
#include "kernels/index/fill_ranges.h"

#include <string.h>

/* A view of `rank` axes; the places of what it is made of are inputs of the operator. */
static View view_of(const View *whole, int32_t rank, const int64_t *shape, const int64_t *strides)
{
    View view = {.dtype = whole->dtype, .rank = rank};
    memcpy(view.shape, shape, (size_t)rank * sizeof *shape);
    memcpy(view.strides, strides, (size_t)rank * sizeof *strides);
    return view;
}

/* Copies the view of input 0 to the whole of output 0, in row-major order of both. */
static void copy_view(Named *named, const View *from, int64_t offset)
{
    AclnnCall call = {.named = named};
    View to = named->outputs[0];
    us_require(&named->call, us_view_elements(from) == us_view_elements(&to), "outputDesc", "shape", ACL_ERROR_OP_OUTPUT_NOT_MATCH,
               "output 0 of %s has %lld elements; it gets %lld", named->type, (long long)us_view_elements(&to),
               (long long)us_view_elements(from));
    if (named->call.status == 0) {
        to = us_view_contiguous(NULL, to.dtype, from->rank, from->shape);
    }
    aclTensor *source = call_view(&call, true, 0, from, offset), *target = call_view(&call, false, 0, &to, 0);
    CALL_ACLNN(&call, aclnnInplaceCopy, target, source);
}

/* Size, strides and offset, from input `first` on. */
static View require_view(Named *named, int32_t tensor, int32_t first, int64_t *offset)
{
    int64_t shape[VIEW_RANK_LIMIT] = {0}, strides[VIEW_RANK_LIMIT] = {0};
    const int32_t rank = call_integers(named, first, shape, VIEW_RANK_LIMIT);
    const int32_t others = call_integers(named, first + 1, strides, VIEW_RANK_LIMIT);
    (void)call_integers(named, first + 2, offset, 1);
    us_require(&named->call, rank == others, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "%s has %d sizes and %d strides", named->type, (int)rank, (int)others);
    const View view = view_of(&named->inputs[tensor], rank, shape, strides);
    us_require(&named->call, us_view_elements(&view) >= 0, "inputs", "view", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "a size of %s is negative, or there are more elements than in any memory", named->type);
    return view;
}

void named_as_strided(Named *named)
{
    int64_t offset = 0;
    named_require_counts(named, 4, 4, 1);
    named_require_input(named, 0, -1);
    const View from = require_view(named, 0, 1, &offset);
    copy_view(named, &from, offset);
}

void named_identity(Named *named)
{
    named_require_counts(named, 1, 1, 1);
    named_require_input(named, 0, -1);
    named_require_shape(named, false, 0, named->inputs[0].dtype, named->inputs[0].rank, named->inputs[0].shape);
    copy_view(named, &named->inputs[0], 0);
}

/* Target, its size, strides and offset, source, its ones. The result is the target. */
void named_view_copy(Named *named)
{
    enum { TARGET, SOURCE = 4 };
    int64_t to_offset = 0, from_offset = 0;
    named_require_counts(named, 8, 8, 1);
    named_require_input(named, TARGET, -1);
    named_require_input(named, SOURCE, -1);
    const View to = require_view(named, TARGET, TARGET + 1, &to_offset), from = require_view(named, SOURCE, SOURCE + 1, &from_offset);
    us_require(&named->call, named->outputs[0].data == named->inputs[TARGET].data, "outputs", "place",
               ACL_ERROR_OP_OUTPUT_NOT_MATCH, "output 0 of %s is not its input 0", named->type);
    AclnnCall call = {.named = named};
    aclTensor *source = call_view(&call, true, SOURCE, &from, from_offset), *target = call_view(&call, true, TARGET, &to, to_offset);
    CALL_ACLNN(&call, aclnnInplaceCopy, target, source);
}

/* x with its axes in another order. */
static View permuted(Named *named, const View *x, const int64_t *order, int32_t count)
{
    View view = *x;
    uint32_t seen = 0;
    us_require(&named->call, count == x->rank, "inputs", "order", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "%s is told an order of %d axes; there are %d", named->type, (int)count, (int)x->rank);
    for (int32_t i = 0; named->call.status == 0 && i < count; i++) {
        const int64_t axis = order[i] < 0 ? order[i] + count : order[i];
        us_require(&named->call, axis >= 0 && axis < count && (seen & 1u << axis) == 0, "inputs", "order",
                   ACL_ERROR_OP_INPUT_NOT_MATCH, "the order of %s is no permutation of %d axes", named->type, (int)count);
        if (named->call.status == 0) {
            seen |= 1u << axis;
            view.shape[i] = x->shape[axis];
            view.strides[i] = x->strides[axis];
        }
    }
    return view;
}

void named_transpose(Named *named)
{
    int64_t order[VIEW_RANK_LIMIT];
    named_require_counts(named, 2, 2, 1);
    named_require_input(named, 0, -1);
    const int32_t count = call_integers(named, 1, order, VIEW_RANK_LIMIT);
    if (named->call.status == 0) {
        const View from = permuted(named, &named->inputs[0], order, count);
        copy_view(named, &from, 0);
    }
}

/* Transposed and then reshaped, which leaves the order of the elements, or the other way round. */
void named_confusion_transpose(Named *named)
{
    int64_t order[VIEW_RANK_LIMIT], shape[VIEW_RANK_LIMIT];
    named_require_counts(named, 1, 1, 1);
    named_require_input(named, 0, -1);
    const int32_t count = named_integers(named, "perm", order, VIEW_RANK_LIMIT);
    const int32_t rank = named_integers(named, "shape", shape, VIEW_RANK_LIMIT);
    const bool first = named_bool(named, "transpose_first", false);
    if (named->call.status != 0) {
        return;
    }
    View whole = named->inputs[0];
    if (!first) {
        const bool fits = us_shape_elements(rank, shape) == us_view_elements(&whole);
        us_require(&named->call, fits, "attr", "value", ACL_ERROR_OP_ATTR_NOT_MATCH,
                   "shape of %s has not as many elements as its input", named->type);
        whole = fits ? us_view_contiguous(NULL, whole.dtype, rank, shape) : whole;
    }
    const View from = permuted(named, &whole, order, count);
    copy_view(named, &from, 0);
}

void named_broadcast_to(Named *named)
{
    int64_t shape[VIEW_RANK_LIMIT];
    named_require_counts(named, 2, 2, 1);
    named_require_input(named, 0, -1);
    const int32_t rank = call_integers(named, 1, shape, VIEW_RANK_LIMIT);
    if (named->call.status != 0) {
        return;
    }
    const View target = view_of(&named->inputs[0], rank, shape, shape);
    const View *both[] = {&target, &named->inputs[0]};
    int64_t common[VIEW_RANK_LIMIT];
    int32_t common_rank = 0;
    const bool fits = us_broadcast_shape(both, 2, &common_rank, common, NULL) && common_rank == rank &&
                      memcmp(common, shape, (size_t)rank * sizeof *shape) == 0;
    us_require(&named->call, fits, "inputs", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input 0 of %s cannot be repeated to the shape of input 1", named->type);
    if (fits) {
        const View from = us_view_broadcast(&named->inputs[0], rank, shape);
        copy_view(named, &from, 0);
    }
}

/* Of each axis `count` elements from `begin` on, every `step`th; all of them there. */
typedef struct Slice {
    int64_t begin[VIEW_RANK_LIMIT], count[VIEW_RANK_LIMIT], step[VIEW_RANK_LIMIT];
} Slice;

static void require_axes(Named *named, int32_t index, int32_t count)
{
    us_require(&named->call, count == named->inputs[0].rank, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input %d of %s has %d elements; input 0 has %d dimensions", (int)index, named->type, (int)count,
               (int)named->inputs[0].rank);
}

static void run_slice(Named *named, const Slice *slice)
{
    const View *x = &named->inputs[0];
    View from = *x;
    int64_t offset = 0;
    if (named->call.status != 0) {
        return;
    }
    for (int32_t axis = 0; axis < x->rank; axis++) {
        from.shape[axis] = slice->count[axis];
        from.strides[axis] = x->strides[axis] * slice->step[axis];
        offset += slice->begin[axis] * x->strides[axis];
    }
    copy_view(named, &from, us_view_is_empty(&from) ? 0 : offset);
}

void named_slice(Named *named)
{
    Slice slice = {0};
    named_require_counts(named, 3, 3, 1);
    named_require_input(named, 0, -1);
    require_axes(named, 1, call_integers(named, 1, slice.begin, VIEW_RANK_LIMIT));
    require_axes(named, 2, call_integers(named, 2, slice.count, VIEW_RANK_LIMIT));
    for (int32_t axis = 0; named->call.status == 0 && axis < named->inputs[0].rank; axis++) {
        const int64_t size = named->inputs[0].shape[axis], begin = slice.begin[axis];
        const bool there = begin >= 0 && begin <= size;
        slice.count[axis] = slice.count[axis] == -1 && there ? size - begin : slice.count[axis]; /* -1: all the rest */
        slice.step[axis] = 1;
        us_require(&named->call, there && slice.count[axis] >= 0 && slice.count[axis] <= size - begin, "inputs", "range",
                   ACL_ERROR_OP_INPUT_NOT_MATCH, "%s wants %lld elements from element %lld on of dimension %d, which has %lld",
                   named->type, (long long)slice.count[axis], (long long)begin, (int)axis, (long long)size);
    }
    run_slice(named, &slice);
}

/* Within 0 … size of a step ahead, -1 … size - 1 of one back; what is below 0 counts from the end. */
static int64_t clamped(int64_t place, int64_t size, bool ahead)
{
    const int64_t at = place < 0 ? place + size : place, lowest = ahead ? 0 : -1, highest = ahead ? size : size - 1;
    return at < lowest ? lowest : at > highest ? highest : at;
}

void named_strided_slice(Named *named)
{
    static const char *const MASKS[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"};
    Slice slice = {0};
    int64_t end[VIEW_RANK_LIMIT] = {0};
    named_require_counts(named, 4, 4, 1);
    named_require_input(named, 0, -1);
    for (size_t i = 0; i < sizeof MASKS / sizeof *MASKS; i++) {
        named_require_attribute(named, MASKS[i], named_integer(named, MASKS[i], 0) == 0, "0");
    }
    require_axes(named, 1, call_integers(named, 1, slice.begin, VIEW_RANK_LIMIT));
    require_axes(named, 2, call_integers(named, 2, end, VIEW_RANK_LIMIT));
    require_axes(named, 3, call_integers(named, 3, slice.step, VIEW_RANK_LIMIT));
    for (int32_t axis = 0; named->call.status == 0 && axis < named->inputs[0].rank; axis++) {
        const int64_t size = named->inputs[0].shape[axis], step = slice.step[axis];
        us_require(&named->call, step != 0 && step != INT64_MIN, "inputs", "step", ACL_ERROR_OP_INPUT_NOT_MATCH,
                   "%s wants every %lldth element of dimension %d", named->type, (long long)step, (int)axis);
        if (named->call.status == 0) {
            slice.begin[axis] = clamped(slice.begin[axis], size, step > 0);
            const int64_t reach = clamped(end[axis], size, step > 0) - slice.begin[axis];
            const int64_t length = step > 0 ? reach : -reach, stride = step > 0 ? step : -step;
            slice.count[axis] = length <= 0 ? 0 : (length - 1) / stride + 1;
            slice.step[axis] = slice.count[axis] > 1 ? step : 1;
        }
    }
    run_slice(named, &slice);
}

/* ---- one function each ---- */

void named_cast(Named *named)
{
    AclnnCall call = {.named = named};
    named_require_counts(named, 1, 1, 1);
    named_require_input(named, 0, -1);
    if (named->call.status == 0) {
        const aclDataType type = named->output_types[0];
        const int64_t wanted = named_integer(named, "dst_type", type);
        us_require(&named->call, wanted == type, "attr", "value", ACL_ERROR_OP_ATTR_NOT_MATCH,
                   "dst_type of %s is %lld, the output's type %d", named->type, (long long)wanted, (int)type);
        aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
        CALL_ACLNN(&call, aclnnCast, x, type, y);
    }
}

/* Dimensions, and what all elements are: one element, of the device or of the host. A result without dimensions may be told
 * as [1], which the PyTorch adapter does. */
void named_fill(Named *named)
{
    AclnnCall call = {.named = named};
    int64_t shape[VIEW_RANK_LIMIT];
    named_require_counts(named, 2, 2, 1);
    const int32_t rank = call_integers(named, 0, shape, VIEW_RANK_LIMIT);
    const bool is_scalar = named->outputs[0].rank == 0 && rank == 1 && shape[0] == 1;
    named_require_input(named, 1, -1);
    us_require(&named->call, us_view_elements(&named->inputs[1]) == 1, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input 1 of %s has %lld elements; it must have 1", named->type, (long long)us_view_elements(&named->inputs[1]));
    named_require_shape(named, false, 0, DTYPE_NONE, is_scalar ? 0 : rank, shape);
    aclTensor *y = call_output(&call, 0);
    if (named->call.status == 0 && named->constants[1] != NULL) {
        aclScalar *value = call_scalar(&call, 1);
        CALL_ACLNN(&call, aclnnInplaceFillScalar, y, value);
    } else {
        aclTensor *value = call_input(&call, 1);
        CALL_ACLNN(&call, aclnnInplaceFillTensor, y, value);
    }
}

/* x and what its place and the others get, which begin at input `values`. */
static void one_hot(Named *named, int64_t depth, int32_t values)
{
    AclnnCall call = {.named = named};
    us_require(&named->call, depth >= 0 && depth <= INT32_MAX, "inputs", "range", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "the depth of %s is %lld", named->type, (long long)depth);
    const int64_t axis = named_integer(named, "axis", -1);
    aclTensor *x = call_input(&call, 0), *on = call_input(&call, values), *off = call_input(&call, values + 1);
    aclTensor *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnOneHot, x, (int32_t)depth, on, off, axis, y);
}

void named_one_hot(Named *named)
{
    int64_t depth = 0;
    named_require_counts(named, 4, 4, 1);
    (void)call_integers(named, 1, &depth, 1);
    one_hot(named, depth, 2);
}

void named_one_hot_d(Named *named)
{
    named_require_counts(named, 3, 3, 1);
    one_hot(named, named_integer(named, "depth", -1), 1);
}

/* The overflow flags of a card: nothing raises them here. */
void named_no_overflow(Named *named)
{
    named_require_counts(named, 0, NAMED_LIMIT, named->output_count);
    for (int32_t i = 0; i < named->output_count; i++) {
        AclnnCall call = {.named = named};
        aclTensor *flags = call_output(&call, i);
        CALL_ACLNN(&call, aclnnInplaceZero, flags);
    }
}

/* Pairs of numbers of zeros before and behind each axis: aclnn has them from the last axis on. */
void named_pad(Named *named)
{
    AclnnCall call = {.named = named};
    int64_t given[2 * VIEW_RANK_LIMIT] = {0}, pairs[2 * VIEW_RANK_LIMIT] = {0};
    named_require_counts(named, 2, 2, 1);
    named_require_input(named, 0, -1);
    const int32_t count = call_integers(named, 1, given, 2 * VIEW_RANK_LIMIT);
    us_require(&named->call, count == 2 * named->inputs[0].rank, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input 1 of %s has %d elements; %d dimensions have a pair each", named->type, (int)count,
               (int)named->inputs[0].rank);
    for (int32_t i = 0; i < count && named->call.status == 0; i++) {
        pairs[i] = given[(count / 2 - 1 - i / 2) * 2 + i % 2];
    }
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    aclIntArray *pad = call_array(&call, pairs, (uint64_t)count);
    aclScalar *zero = call_float(&call, 0);
    CALL_ACLNN(&call, aclnnConstantPadNd, x, pad, zero, y);
}

/* x, of one row or of several; where ranges of each row begin and end, of several fills, and what they get. */
void named_masked_fill_range(Named *named)
{
    enum { X, STARTS, ENDS, VALUES, INPUTS };
    named_require_counts(named, INPUTS, INPUTS, 1);
    named_require_input(named, X, -1);
    for (int32_t i = STARTS; i < INPUTS; i++) {
        named_require_input(named, i, i == VALUES ? 1 : 2);
    }
    const int64_t axis = named_integer(named, "axis", -1);
    if (named->call.status != 0) {
        return;
    }
    const View *x = &named->inputs[X];
    us_require(&named->call, x->rank == 1 || x->rank == 2, "inputDesc", "rank", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input 0 of %s has %d dimensions; it must have 1 or 2", named->type, (int)x->rank);
    named_require_attribute(named, "axis", axis == -1 || axis == x->rank - 1, "the last axis");
    if (named->call.status != 0) {
        return;
    }
    const int64_t fills = named->inputs[VALUES].shape[0], rows = x->rank == 2 ? x->shape[0] : 1;
    named_require_shape(named, true, STARTS, DTYPE_INT32, 2, (const int64_t[]){fills, rows});
    named_require_shape(named, true, ENDS, DTYPE_INT32, 2, (const int64_t[]){fills, rows});
    named_require_shape(named, true, VALUES, x->dtype, 1, &fills);
    named_require_shape(named, false, 0, x->dtype, x->rank, x->shape);
    const int64_t matrix[] = {rows, x->shape[x->rank - 1]};
    const View from = us_view_contiguous(x->data, x->dtype, 2, matrix);
    const View to = us_view_contiguous(named->outputs[0].data, x->dtype, 2, matrix);
    NamedViews views = {.count = 0};
    named_read(&views, &from);
    for (int32_t i = STARTS; i < INPUTS; i++) {
        named_read(&views, &named->inputs[i]);
    }
    named_write(&views, &to);
    named_run(named, us_fill_ranges, &views, NULL, 0);
}
