/* An operator by name: what aclopCompileAndExecute was given, checked, and the task that it becomes. Tensors are row-major
 * arrays; their descriptions tell type and dimensions. Inputs that an operator may do without have no type. */
#ifndef ASCEND_OP_COMPILER_NAMED_H
#define ASCEND_OP_COMPILER_NAMED_H

#include "acl/acl_op_compiler.h"
#include "aclnn/aclnn_base.h"
#include "ascend/common/descriptions.h"
#include "launch/launch.h"
#include "report/report.h"

enum { NAMED_LIMIT = 24 }; /* inputs, or outputs */

typedef struct Named {
    Call call;
    const struct NamedEntry *entry;
    const char *type;                       /* the operator's name; of its entry, so it outlives the call */
    const OperatorAttributes *attributes;   /* NULL: none */
    Stream *stream;
    aclrtStream stream_handle;
    int32_t input_count, output_count;      /* absent ones count */
    View inputs[NAMED_LIMIT], outputs[NAMED_LIMIT];
    aclDataType input_types[NAMED_LIMIT], output_types[NAMED_LIMIT];
    const void *constants[NAMED_LIMIT];     /* of inputs whose value the description holds, or that lie on the host */
} Named;

/* Checks, and queues a task; only for calls that execute. Every refusal is on `call`. */
typedef void NamedOperator(Named *named);

/* Operators that are one aclnn function of one or two tensors have one plan, which takes the function from here. */
typedef aclnnStatus AclnnUnary(const aclTensor *x, aclTensor *y, uint64_t *workspace_size, aclOpExecutor **executor);
typedef aclnnStatus AclnnBinary(const aclTensor *a, const aclTensor *b, aclTensor *y, uint64_t *workspace_size,
                                aclOpExecutor **executor);
typedef aclnnStatus AclnnRun(void *workspace, uint64_t workspace_size, aclOpExecutor *executor, aclrtStream stream);

typedef struct NamedEntry {
    const char *type;
    NamedOperator *plan;
    AclnnUnary *unary;
    AclnnBinary *binary;
    AclnnRun *run;
} NamedEntry;
const NamedEntry *named_entry(const char *type); /* NULL: no such operator */

/* ---- what an operator requires: 100021 of inputs, 100022 of outputs, 100023 of attributes ---- */

void named_require_counts(Named *named, int32_t least_inputs, int32_t most_inputs, int32_t outputs);
/* Given, of a type of kernels; `rank` -1: any. */
void named_require_input(Named *named, int32_t index, int32_t rank);
/* What is given there is not emulated. A tensor without dimensions stands for none: the PyTorch adapter gives such. */
void named_require_absent(Named *named, int32_t index);
/* Shapes and, where it is not DTYPE_NONE, types. */
void named_require_shape(Named *named, bool input, int32_t index, DType dtype, int32_t rank, const int64_t *shape);

/* Of the attribute, or `other` where it has not been set. attr/type: its value is of another kind. */
int64_t named_integer(Named *named, const char *attribute, int64_t other);
/* Elements of a list; their count. */
int32_t named_integers(Named *named, const char *attribute, int64_t *values, int32_t limit);
/* The same of numbers; a list that has not been set has none. */
int32_t named_numbers(Named *named, const char *attribute, double *values, int32_t limit);
double named_number(Named *named, const char *attribute, double other);
bool named_bool(Named *named, const char *attribute, bool other);
/* The attribute has this text, or has not been set and `is_default`. */
bool named_is(Named *named, const char *attribute, bool is_default, const char *text);
/* attr/value: another value is not emulated, as `values` says. */
void named_require_attribute(Named *named, const char *attribute, bool fits, const char *values);

/* ---- the task ---- */

typedef struct NamedViews {
    int32_t count;
    const View *views[2 * NAMED_LIMIT]; /* NULL: absent */
    ViewAccess access[2 * NAMED_LIMIT];
} NamedViews;
void named_read(NamedViews *views, const View *view);
void named_write(NamedViews *views, const View *view);
void named_run(Named *named, Kernel *kernel, const NamedViews *views, const void *attributes, size_t size);

/* ---- operators, by families ---- */

/* move.c */
NamedOperator named_as_strided, named_broadcast_to, named_cast, named_confusion_transpose, named_fill, named_identity,
    named_masked_fill_range, named_no_overflow, named_one_hot, named_one_hot_d, named_pad, named_slice,
    named_strided_slice, named_transpose, named_view_copy;
/* formula.c */
NamedOperator named_add, named_arg_max, named_arg_max_grad, named_arg_min, named_batch_mat_mul, named_binary,
    named_cdist_grad, named_iou, named_layer_norm, named_mat_mul, named_mish_grad, named_reduce_sum,
    named_relu, named_scaled_masked_softmax, named_scaled_masked_softmax_grad, named_sign, named_sign_bits_pack,
    named_sign_bits_unpack, named_softmax, named_softmax_cross_entropy, named_sort, named_sub, named_swish,
    named_swish_grad, named_unary;
/* boxes.c */
NamedOperator named_batch_multi_class_non_max_suppression, named_bounding_box_decode, named_bounding_box_encode,
    named_diou, named_diou_grad, named_giou, named_giou_grad, named_nms_with_mask, named_non_max_suppression,
    named_roi_align, named_roi_align_grad;
/* optimizer.c */
NamedOperator named_apply_adam;
/* dropout.c */
NamedOperator named_dropout_do_mask, named_dropout_do_mask_v3, named_dropout_gen_mask;
/* convolution.c */
NamedOperator named_conv_2d, named_conv_2d_backprop_filter, named_conv_2d_backprop_input, named_conv_2d_transpose,
    named_conv_3d, named_conv_3d_backprop_filter, named_conv_3d_backprop_input, named_conv_3d_transpose,
    named_deformable_offsets, named_deformable_offsets_grad;
/* recurrent.c */
NamedOperator named_dynamic_gru_v2, named_dynamic_gru_v2_grad, named_dynamic_rnn, named_dynamic_rnn_grad,
    named_dynamic_rnn_v2, named_dynamic_rnn_v2_grad;

#endif
