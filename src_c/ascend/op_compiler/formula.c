/* Operators by name that compute: each is one aclnn function. */
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_batch_matmul.h"
#include "aclnnop/aclnn_cdist_backward.h"
#include "aclnnop/aclnn_iou.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_max_dim.h"
#include "aclnnop/aclnn_min_dim.h"
#include "aclnnop/aclnn_mish_backward.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_scaled_masked_softmax.h"
#include "aclnnop/aclnn_scaled_masked_softmax_backward.h"
#include "aclnnop/aclnn_scatter.h"
#include "aclnnop/aclnn_sign.h"
#include "aclnnop/aclnn_sign_bits_pack.h"
#include "aclnnop/aclnn_sign_bits_unpack.h"
#include "aclnnop/aclnn_softmax.h"
#include "aclnnop/aclnn_softmax_cross_entropy_with_logits.h"
#include "aclnnop/aclnn_sub.h"
#include "aclnnop/aclnn_swish.h"
#include "aclnnop/aclnn_swish_backward.h"
#include "aclnnop/aclnn_zero.h"
#include "ascend/op_compiler/calls.h"
#include "kernels/sort/sort.h"

#include <math.h>

static AclnnCall begin(Named *named, int32_t inputs, int32_t outputs)
{
    named_require_counts(named, inputs, inputs, outputs);
    return (AclnnCall){.named = named};
}

/* ---- one tensor, or two ---- */

void named_unary(Named *named)
{
    AclnnCall call = begin(named, 1, 1);
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    call_end(&call, call_refused(&call) ? 0 : named->entry->unary(x, y, &call.workspace_size, &call.executor), named->entry->run);
}

void named_binary(Named *named)
{
    AclnnCall call = begin(named, 2, 1);
    aclTensor *a = call_input(&call, 0), *b = call_input(&call, 1), *y = call_output(&call, 0);
    call_end(&call, call_refused(&call) ? 0 : named->entry->binary(a, b, y, &call.workspace_size, &call.executor),
             named->entry->run);
}

void named_add(Named *named)
{
    AclnnCall call = begin(named, 2, 1);
    aclScalar *one = call_float(&call, 1);
    aclTensor *a = call_input(&call, 0), *b = call_input(&call, 1), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnAdd, a, b, one, y);
}

void named_sub(Named *named)
{
    AclnnCall call = begin(named, 2, 1);
    aclScalar *one = call_float(&call, 1);
    aclTensor *a = call_input(&call, 0), *b = call_input(&call, 1), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnSub, a, b, one, y);
}

/* The next two are not in the table of functions of one tensor: the vendor's prototypes have a result that is const. */
void named_relu(Named *named)
{
    AclnnCall call = begin(named, 1, 1);
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnRelu, x, y);
}

void named_sign(Named *named)
{
    AclnnCall call = begin(named, 1, 1);
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnSign, x, y);
}

/* ---- activations ---- */

void named_swish(Named *named)
{
    AclnnCall call = begin(named, 1, 1);
    aclScalar *scale = call_float(&call, (float)named_number(named, "scale", 1));
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnSwish, x, scale, y);
}

/* The gradient of y, x, and y, of which there is no need. */
void named_swish_grad(Named *named)
{
    AclnnCall call = begin(named, 3, 1);
    aclScalar *scale = call_float(&call, (float)named_number(named, "scale", 1));
    aclTensor *gradient = call_input(&call, 0), *x = call_input(&call, 1), *out = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnSwishBackward, gradient, x, scale, out);
}

/* The gradient of y, x, and tanh(softplus(x)), which may be left out and of which there is no need. */
void named_mish_grad(Named *named)
{
    named_require_counts(named, 2, 3, 1);
    AclnnCall call = {.named = named};
    aclTensor *gradient = call_input(&call, 0), *x = call_input(&call, 1), *out = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnMishBackward, gradient, x, out);
}

/* ---- reductions and norms ---- */

static void extrema(Named *named, bool largest)
{
    AclnnCall call = begin(named, 1, 2);
    const int64_t axis = named_integer(named, "dimension", 0);
    const bool keeps = named_bool(named, "keep_dims", false);
    aclTensor *x = call_input(&call, 0), *places = call_output(&call, 0), *values = call_output(&call, 1);
    if (largest) {
        CALL_ACLNN(&call, aclnnMaxDim, x, axis, keeps, values, places);
    } else {
        CALL_ACLNN(&call, aclnnMinDim, x, axis, keeps, values, places);
    }
}

void named_arg_max(Named *named)
{
    extrema(named, true);
}

void named_arg_min(Named *named)
{
    extrema(named, false);
}

/* x, places along `dimension` and what they get; the rest is 0. */
void named_arg_max_grad(Named *named)
{
    AclnnCall clear = begin(named, 3, 1), call = {.named = named};
    named_require_input(named, 1, -1);
    named_require_input(named, 2, -1);
    const int64_t axis = named_integer(named, "dimension", 0);
    const int32_t rank = named->outputs[0].rank;
    const int64_t at = axis < 0 ? axis + rank : axis;
    named_require_attribute(named, "dimension", at >= 0 && at < rank, "an axis of output 0");
    for (int32_t i = 1; named->call.status == 0 && i < 3; i++) {
        if (named->inputs[i].rank < rank) {
            named->inputs[i] = us_view_insert_axis(named->inputs[i], (int32_t)at, 1, 0);
        }
    }
    aclTensor *zeros = call_output(&clear, 0);
    CALL_ACLNN(&clear, aclnnInplaceZero, zeros);
    aclTensor *places = call_input(&call, 1), *values = call_input(&call, 2), *out = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnInplaceScatter, out, at, places, values, 0);
}

/* x and its axes. */
void named_reduce_sum(Named *named)
{
    AclnnCall call = begin(named, 2, 1);
    int64_t axes[VIEW_RANK_LIMIT];
    const int32_t count = call_integers(named, 1, axes, VIEW_RANK_LIMIT);
    const bool keeps = named_bool(named, "keep_dims", false);
    named_require_input(named, 0, -1);
    named_require_shape(named, false, 0, named->inputs[0].dtype, named->outputs[0].rank, named->outputs[0].shape);
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    aclIntArray *along = call_array(&call, axes, (uint64_t)count);
    CALL_ACLNN(&call, aclnnReduceSum, x, along, keeps, named->output_types[0], y);
}

/* Values alone, of which no aclnn function knows. */
void named_sort(Named *named)
{
    named_require_counts(named, 1, 1, 1);
    named_require_input(named, 0, -1);
    const int64_t axis = named_integer(named, "axis", -1);
    const bool descending = named_bool(named, "descending", false);
    if (named->call.status != 0) {
        return;
    }
    const View *x = &named->inputs[0];
    const int64_t rank = x->rank > 0 ? x->rank : 1, at = axis < 0 ? axis + rank : axis;
    named_require_attribute(named, "axis", at >= 0 && at < rank, "an axis of input 0");
    us_require(&named->call, x->dtype != DTYPE_COMPLEX64 && x->dtype != DTYPE_COMPLEX128, "inputDesc", "type",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input 0 of %s is of type %s, which has no order", named->type,
               us_dtype_name(x->dtype));
    named_require_shape(named, false, 0, x->dtype, x->rank, x->shape);
    const SortLines how = {.axis = (int32_t)at, .descending = descending};
    NamedViews views = {.count = 0};
    named_read(&views, x);
    named_write(&views, &named->outputs[0]);
    named_write(&views, NULL);
    named_run(named, us_sort, &views, &how, sizeof how);
}

void named_softmax(Named *named)
{
    AclnnCall call = begin(named, 1, 1);
    int64_t axes[VIEW_RANK_LIMIT] = {0};
    const int32_t count = named_integers(named, "axes", axes, VIEW_RANK_LIMIT);
    named_require_attribute(named, "axes", count == 1, "one axis");
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnSoftmax, x, axes[0], y);
}

/* x, gamma, beta; y, mean and, of LayerNormV3, 1 / the standard deviation. */
void named_layer_norm(Named *named)
{
    AclnnCall call = begin(named, 3, 3);
    named_require_input(named, 0, -1);
    int64_t axis = named_integer(named, "begin_norm_axis", 0);
    const int64_t parameters = named_integer(named, "begin_params_axis", 0);
    const double epsilon = named_number(named, "epsilon", 1e-5);
    const int32_t rank = named->call.status == 0 ? named->inputs[0].rank : 0;
    axis += axis < 0 ? rank : 0;
    named_require_attribute(named, "begin_norm_axis", axis >= 0 && axis <= rank, "an axis of input 0");
    named_require_attribute(named, "begin_params_axis", parameters == axis || parameters + rank == axis, "begin_norm_axis");
    aclIntArray *shape = call_array(&call, &named->inputs[0].shape[named->call.status == 0 ? axis : 0], (uint64_t)(rank - axis));
    aclTensor *x = call_input(&call, 0), *gamma = call_input(&call, 1), *beta = call_input(&call, 2);
    aclTensor *y = call_output(&call, 0), *mean = call_output(&call, 1), *deviation = call_output(&call, 2);
    CALL_ACLNN(&call, aclnnLayerNorm, x, shape, gamma, beta, epsilon, y, mean, deviation);
}

void named_scaled_masked_softmax(Named *named)
{
    AclnnCall call = begin(named, 2, 1);
    const double scale = named_number(named, "scale", 1);
    const bool triangle = named_bool(named, "fixed_triu_mask", false);
    aclTensor *x = call_input(&call, 0), *mask = call_input(&call, 1), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnScaledMaskedSoftmax, x, mask, scale, triangle, y);
}

void named_scaled_masked_softmax_grad(Named *named)
{
    AclnnCall call = begin(named, 3, 1);
    const double scale = named_number(named, "scale", 1);
    const bool triangle = named_bool(named, "fixed_triu_mask", false);
    aclTensor *gradient = call_input(&call, 0), *y = call_input(&call, 1), *mask = call_input(&call, 2);
    aclTensor *out = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnScaledMaskedSoftmaxBackward, gradient, y, mask, scale, triangle, out);
}

void named_softmax_cross_entropy(Named *named)
{
    AclnnCall call = begin(named, 2, 2);
    aclTensor *logits = call_input(&call, 0), *labels = call_input(&call, 1);
    aclTensor *loss = call_output(&call, 0), *gradient = call_output(&call, 1);
    CALL_ACLNN(&call, aclnnSoftmaxCrossEntropyWithLogits, logits, labels, loss, gradient);
}

/* ---- matrices ---- */

/* x [.., m, k], transposed where `adjoint`. */
static aclTensor *matrix(AclnnCall *call, int32_t index, bool adjoint)
{
    View view = index < call->named->input_count ? call->named->inputs[index] : us_view_absent();
    const int32_t last = view.rank - 1;
    if (us_view_is_absent(&view) || !adjoint || view.rank < 2) {
        return call_input(call, index);
    }
    const int64_t rows = view.shape[last - 1], stride = view.strides[last - 1];
    view.shape[last - 1] = view.shape[last];
    view.strides[last - 1] = view.strides[last];
    view.shape[last] = rows;
    view.strides[last] = stride;
    return call_view(call, true, index, &view, 0);
}

/* A bias, and what some versions have behind it, are left out or absent. */
static void require_matrices_alone(Named *named)
{
    named_require_counts(named, 2, 4, 1);
    for (int32_t i = 2; i < named->input_count; i++) {
        named_require_absent(named, i);
    }
}

void named_mat_mul(Named *named)
{
    AclnnCall call = {.named = named};
    require_matrices_alone(named);
    const bool first = named_bool(named, "transpose_x1", false), second = named_bool(named, "transpose_x2", false);
    aclTensor *a = matrix(&call, 0, first), *b = matrix(&call, 1, second), *out = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnMatmul, a, b, out, 0);
}

void named_batch_mat_mul(Named *named)
{
    AclnnCall call = {.named = named};
    require_matrices_alone(named);
    const bool first = named_bool(named, "adj_x1", false), second = named_bool(named, "adj_x2", false);
    aclTensor *a = matrix(&call, 0, first), *b = matrix(&call, 1, second), *out = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnBatchMatMul, a, b, out, 0);
}

/* All four inputs are repeated to [.., rows, others, columns]: rows of the first operand beside others of the second. */
void named_cdist_grad(Named *named)
{
    AclnnCall call = begin(named, 4, 1);
    for (int32_t i = 0; i < 4; i++) {
        named_require_input(named, i, -1);
        named_require_shape(named, true, i, DTYPE_NONE, named->inputs[0].rank, named->inputs[0].shape);
    }
    const int32_t rank = named->call.status == 0 ? named->inputs[0].rank : 0;
    us_require(&named->call, rank >= 3, "inputDesc", "rank", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input 0 of %s has %d dimensions; it must have 3 or more", named->type, (int)rank);
    const bool nothing = us_view_is_empty(&named->inputs[0]); /* then operands are lost that were repeated no time */
    static const int8_t repeated_behind[] = {1, 2, 3, 1}; /* which axis from the end is left out, of grad, x1, x2, cdist */
    aclTensor *tensors[4] = {NULL};
    for (int32_t i = 0; named->call.status == 0 && !nothing && i < 4; i++) {
        const View view = us_view_remove_axis(named->inputs[i], rank - repeated_behind[i]);
        tensors[i] = call_view(&call, true, i, &view, 0);
    }
    const float told = (float)named_number(named, "p", 2), p = told == -1 ? INFINITY : told; /* as the adapter tells it */
    aclTensor *out = call_output(&call, 0);
    if (nothing) {
        CALL_ACLNN(&call, aclnnInplaceZero, out);
        return;
    }
    CALL_ACLNN(&call, aclnnCdistBackward, tensors[0], tensors[1], tensors[2], tensors[3], p, out);
}

/* The result is [boxes of input 1, boxes of input 0]. */
void named_iou(Named *named)
{
    AclnnCall call = begin(named, 2, 1);
    const bool whole = named_is(named, "mode", true, "iou");
    named_require_attribute(named, "mode", whole || named_is(named, "mode", false, "iof"), "\"iou\" or \"iof\"");
    const float epsilon = (float)named_number(named, "eps", 1);
    if (named->call.status == 0) {
        View turned = named->outputs[0];
        us_require(&named->call, turned.rank == 2, "outputDesc", "rank", ACL_ERROR_OP_OUTPUT_NOT_MATCH,
                   "output 0 of %s has %d dimensions; it must have 2", named->type, (int)turned.rank);
        turned = us_view_contiguous(NULL, turned.dtype, 2, (const int64_t[]){turned.shape[1], turned.shape[0]});
        turned.strides[0] = 1;
        turned.strides[1] = turned.shape[0];
        aclTensor *boxes = call_input(&call, 0), *others = call_input(&call, 1), *out = call_view(&call, false, 0, &turned, 0);
        CALL_ACLNN(&call, aclnnIou, boxes, others, whole ? "iou" : "iof", epsilon, false, out);
    }
}

/* ---- signs as bits ---- */

void named_sign_bits_pack(Named *named)
{
    AclnnCall call = begin(named, 1, 1);
    const int64_t size = named_integer(named, "size", 1);
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnSignBitsPack, x, size, y);
}

void named_sign_bits_unpack(Named *named)
{
    AclnnCall call = begin(named, 1, 1);
    const int64_t size = named_integer(named, "size", 1);
    aclTensor *x = call_input(&call, 0), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnSignBitsUnpack, x, size, named->output_types[0], y);
}
