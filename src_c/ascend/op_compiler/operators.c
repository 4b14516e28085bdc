/* The names of the operators, and what runs them. */
#include "ascend/op_compiler/named.h"

#include <string.h>

static const NamedEntry KERNELS[] = {
    {.type = "DynamicGRUV2", .plan = named_dynamic_gru_v2},
    {.type = "DynamicGRUV2Grad", .plan = named_dynamic_gru_v2_grad},
    {.type = "DynamicRNN", .plan = named_dynamic_rnn},
    {.type = "DynamicRNNGrad", .plan = named_dynamic_rnn_grad},
    {.type = "DynamicRNNV2", .plan = named_dynamic_rnn_v2},
    {.type = "DynamicRNNV2Grad", .plan = named_dynamic_rnn_v2_grad},
};

#ifdef SOME_PAGES /* a build of some aclnn functions only */

static const NamedEntry FUNCTIONS[1];

#else

#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_acos.h"
#include "aclnnop/aclnn_acosh.h"
#include "aclnnop/aclnn_asin.h"
#include "aclnnop/aclnn_asinh.h"
#include "aclnnop/aclnn_atan.h"
#include "aclnnop/aclnn_atan2.h"
#include "aclnnop/aclnn_atanh.h"
#include "aclnnop/aclnn_ceil.h"
#include "aclnnop/aclnn_cos.h"
#include "aclnnop/aclnn_cosh.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_eq_tensor.h"
#include "aclnnop/aclnn_erf.h"
#include "aclnnop/aclnn_erfc.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_expm1.h"
#include "aclnnop/aclnn_floor.h"
#include "aclnnop/aclnn_ge_tensor.h"
#include "aclnnop/aclnn_gt_tensor.h"
#include "aclnnop/aclnn_le_tensor.h"
#include "aclnnop/aclnn_log.h"
#include "aclnnop/aclnn_log1p.h"
#include "aclnnop/aclnn_logical_and.h"
#include "aclnnop/aclnn_logical_not.h"
#include "aclnnop/aclnn_logical_or.h"
#include "aclnnop/aclnn_lt_tensor.h"
#include "aclnnop/aclnn_maximum.h"
#include "aclnnop/aclnn_minimum.h"
#include "aclnnop/aclnn_mish.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_ne_tensor.h"
#include "aclnnop/aclnn_neg.h"
#include "aclnnop/aclnn_pow_tensor_tensor.h"
#include "aclnnop/aclnn_reciprocal.h"
#include "aclnnop/aclnn_rsqrt.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_sin.h"
#include "aclnnop/aclnn_sinh.h"
#include "aclnnop/aclnn_sqrt.h"
#include "aclnnop/aclnn_tan.h"
#include "aclnnop/aclnn_tanh.h"

#define UNARY(name, function) {.type = name, .plan = named_unary, .unary = function##GetWorkspaceSize, .run = function}
#define BINARY(name, function) {.type = name, .plan = named_binary, .binary = function##GetWorkspaceSize, .run = function}

static const NamedEntry FUNCTIONS[] = {
    UNARY("Abs", aclnnAbs),
    UNARY("Acos", aclnnAcos),
    UNARY("Acosh", aclnnAcosh),
    {.type = "Add", .plan = named_add},
    {.type = "ApplyAdamD", .plan = named_apply_adam},
    {.type = "ArgMaxGrad", .plan = named_arg_max_grad},
    {.type = "ArgMaxWithValue", .plan = named_arg_max},
    {.type = "ArgMinWithValue", .plan = named_arg_min},
    {.type = "AsStrided", .plan = named_as_strided},
    UNARY("Asin", aclnnAsin),
    UNARY("Asinh", aclnnAsinh),
    UNARY("Atan", aclnnAtan),
    BINARY("Atan2", aclnnAtan2),
    UNARY("Atanh", aclnnAtanh),
    {.type = "BatchMatMul", .plan = named_batch_mat_mul},
    {.type = "BatchMatMulV2", .plan = named_batch_mat_mul},
    {.type = "BatchMultiClassNonMaxSuppression", .plan = named_batch_multi_class_non_max_suppression},
    {.type = "BoundingBoxDecode", .plan = named_bounding_box_decode},
    {.type = "BoundingBoxEncode", .plan = named_bounding_box_encode},
    {.type = "BroadcastTo", .plan = named_broadcast_to},
    {.type = "Cast", .plan = named_cast},
    {.type = "CdistGrad", .plan = named_cdist_grad},
    UNARY("Ceil", aclnnCeil),
    {.type = "ConfusionTransposeD", .plan = named_confusion_transpose},
    {.type = "Conv2D", .plan = named_conv_2d},
    {.type = "Conv2DBackpropFilter", .plan = named_conv_2d_backprop_filter},
    {.type = "Conv2DBackpropInput", .plan = named_conv_2d_backprop_input},
    {.type = "Conv2DTranspose", .plan = named_conv_2d_transpose},
    {.type = "Conv3D", .plan = named_conv_3d},
    {.type = "Conv3DBackpropFilter", .plan = named_conv_3d_backprop_filter},
    {.type = "Conv3DBackpropInput", .plan = named_conv_3d_backprop_input},
    {.type = "Conv3DTranspose", .plan = named_conv_3d_transpose},
    UNARY("Cos", aclnnCos),
    UNARY("Cosh", aclnnCosh),
    {.type = "DIoU", .plan = named_diou},
    {.type = "DIoUGrad", .plan = named_diou_grad},
    {.type = "DeformableOffsets", .plan = named_deformable_offsets},
    {.type = "DeformableOffsetsGrad", .plan = named_deformable_offsets_grad},
    {.type = "DropOutDoMask", .plan = named_dropout_do_mask},
    {.type = "DropOutDoMaskV3", .plan = named_dropout_do_mask_v3},
    {.type = "DropOutGenMaskV3", .plan = named_dropout_gen_mask},
    BINARY("Equal", aclnnEqTensor),
    UNARY("Erf", aclnnErf),
    UNARY("Erfc", aclnnErfc),
    UNARY("Exp", aclnnExp),
    UNARY("Expm1", aclnnExpm1),
    {.type = "Fill", .plan = named_fill},
    UNARY("Floor", aclnnFloor),
    {.type = "GIoU", .plan = named_giou},
    {.type = "GIoUGrad", .plan = named_giou_grad},
    BINARY("Greater", aclnnGtTensor),
    BINARY("GreaterEqual", aclnnGeTensor),
    {.type = "Identity", .plan = named_identity},
    {.type = "Iou", .plan = named_iou},
    {.type = "LayerNormV3", .plan = named_layer_norm},
    BINARY("Less", aclnnLtTensor),
    BINARY("LessEqual", aclnnLeTensor),
    UNARY("Log", aclnnLog),
    UNARY("Log1p", aclnnLog1p),
    BINARY("LogicalAnd", aclnnLogicalAnd),
    UNARY("LogicalNot", aclnnLogicalNot),
    BINARY("LogicalOr", aclnnLogicalOr),
    {.type = "MatMul", .plan = named_mat_mul},
    {.type = "MatMulV2", .plan = named_mat_mul},
    {.type = "MaskedFillRange", .plan = named_masked_fill_range},
    BINARY("Maximum", aclnnMaximum),
    BINARY("Minimum", aclnnMinimum),
    UNARY("Mish", aclnnMish),
    {.type = "MishGrad", .plan = named_mish_grad},
    BINARY("Mul", aclnnMul),
    {.type = "NMSWithMask", .plan = named_nms_with_mask},
    {.type = "NPUAllocFloatStatus", .plan = named_no_overflow},
    {.type = "NPUClearFloatStatus", .plan = named_no_overflow},
    {.type = "NPUClearFloatStatusV2", .plan = named_no_overflow},
    {.type = "NPUGetFloatStatus", .plan = named_no_overflow},
    {.type = "NPUGetFloatStatusV2", .plan = named_no_overflow},
    UNARY("Neg", aclnnNeg),
    {.type = "NonMaxSuppressionV4", .plan = named_non_max_suppression},
    BINARY("NotEqual", aclnnNeTensor),
    {.type = "OneHot", .plan = named_one_hot},
    {.type = "OneHotD", .plan = named_one_hot_d},
    {.type = "Pad", .plan = named_pad},
    BINARY("Pow", aclnnPowTensorTensor),
    {.type = "ROIAlign", .plan = named_roi_align},
    {.type = "ROIAlignGrad", .plan = named_roi_align_grad},
    BINARY("RealDiv", aclnnDiv),
    UNARY("Reciprocal", aclnnReciprocal),
    {.type = "ReduceSum", .plan = named_reduce_sum},
    {.type = "Relu", .plan = named_relu},
    UNARY("Rsqrt", aclnnRsqrt),
    {.type = "ScaledMaskedSoftmax", .plan = named_scaled_masked_softmax},
    {.type = "ScaledMaskedSoftmaxGrad", .plan = named_scaled_masked_softmax_grad},
    UNARY("Sigmoid", aclnnSigmoid),
    {.type = "Sign", .plan = named_sign},
    {.type = "SignBitsPack", .plan = named_sign_bits_pack},
    {.type = "SignBitsUnpack", .plan = named_sign_bits_unpack},
    UNARY("Sin", aclnnSin),
    UNARY("Sinh", aclnnSinh),
    {.type = "Slice", .plan = named_slice},
    {.type = "SoftmaxCrossEntropyWithLogits", .plan = named_softmax_cross_entropy},
    {.type = "SoftmaxV2", .plan = named_softmax},
    {.type = "SortV2", .plan = named_sort},
    UNARY("Sqrt", aclnnSqrt),
    {.type = "StridedSlice", .plan = named_strided_slice},
    {.type = "Sub", .plan = named_sub},
    {.type = "Swish", .plan = named_swish},
    {.type = "SwishGrad", .plan = named_swish_grad},
    UNARY("Tan", aclnnTan),
    UNARY("Tanh", aclnnTanh),
    {.type = "Transpose", .plan = named_transpose},
    {.type = "ViewCopy", .plan = named_view_copy},
};

#endif

static const NamedEntry *find(const char *type, const NamedEntry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].type != NULL && strcmp(entries[i].type, type) == 0) {
            return &entries[i];
        }
    }
    return NULL;
}

const NamedEntry *named_entry(const char *type)
{
    const NamedEntry *kernel = find(type, KERNELS, sizeof KERNELS / sizeof *KERNELS);
    return kernel != NULL ? kernel : find(type, FUNCTIONS, sizeof FUNCTIONS / sizeof *FUNCTIONS);
}
