/* Taking up the parameters of an operator call: what is behind the program's handles. */
#include "ascend/common/op_call.h"

#include "tensor/convert.h"

#include <string.h>

/* Stands for a tensor after a refusal, so that later lines may read its shape. */
static const Operand no_operand = {.name = "", .dtype = ACL_DT_UNDEFINED, .format = ACL_FORMAT_UNDEFINED, .item = -1};

/* The object behind a handle; NULL after a refusal, and for a NULL that is allowed. */
static const void *object_of(OpCall *op, const char *name, const void *handle, HandleKind kind, const char *type,
                             bool required)
{
    op_require(op, handle != NULL || !required, name, "null", op->missing, "%s is NULL, but must be given", name);
    if (op_refused(op) || handle == NULL) {
        return NULL;
    }
    const void *object = us_handle_object(handle, kind);
    op_require(op, object != NULL, name, "handle", ACLNN_ERR_PARAM_INVALID,
               "%s (%p) is no live %s: destroyed, or never created by this library", name, handle, type);
    return object;
}

static void *take_zeroed(OpCall *op, size_t size, size_t zeroed)
{
    void *taken = executor_take_zeroed(op->executor, size, zeroed);
    op_require(op, taken != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    return taken;
}

static void *take(OpCall *op, size_t size)
{
    return take_zeroed(op, size, size);
}

/* ---- tensors ---- */

/* Strides that no memory has become smaller ones that none has either: then a size times a stride is a number of bytes
 * that 64 bits hold. The check of the view takes those that were given. */
static void tame_strides(View *view)
{
    static const int64_t FAR = (int64_t)1 << 56; /* elements */
    for (int32_t axis = 0; axis < view->rank; axis++) {
        const int64_t part = FAR / (view->shape[axis] > 0 ? view->shape[axis] : 1), limit = part > 2 ? part : 2;
        int64_t *stride = &view->strides[axis];
        *stride = *stride > limit ? limit : *stride < -limit ? -limit : *stride;
    }
}

/* `view` is zeroed, but for its axes. */
static void set_view(View *view, const Tensor *tensor)
{
    /* Modulo 2^64: a senseless offset gives a senseless address, which the device refuses to open. */
    const uintptr_t distance = (uintptr_t)tensor->offset * acl_dtype_bytes(tensor->dtype);
    view->data = (void *)((uintptr_t)tensor->address + distance);
    view->dtype = dtype_of_acl(tensor->dtype);
    view->rank = tensor->view.rank;
    bool wild = false;
    for (int32_t axis = 0; axis < view->rank; axis++) { /* few: calls of memcpy cost more */
        view->shape[axis] = tensor->view.sizes[axis];
        view->strides[axis] = tensor->strides[axis];
        wild |= view->strides[axis] != (int32_t)view->strides[axis];
    }
    if (wild && !us_view_is_contiguous(view)) {
        tame_strides(view);
    }
}

/* Zeroed, but for axes beyond those that operators have: first functions read sizes of operands that were not given, or have too
 * few axes, before they refuse them. */
static Operand *take_operand(OpCall *op)
{
    enum { AXES = 8 };
    Operand *operand = take_zeroed(op, sizeof *operand, offsetof(Operand, view.shape[AXES]));
    if (operand != NULL) {
        memset(operand->view.strides, 0, AXES * sizeof *operand->view.strides);
    }
    return operand;
}

/* `tensor` NULL: not given. */
static const Operand *add_operand(OpCall *op, const char *name, const aclTensor *handle, const Tensor *tensor,
                                  bool output, int32_t item)
{
    Operand *operand = take_operand(op);
    if (operand == NULL) {
        return &no_operand;
    }
    Executor *executor = op->executor;
    operand->name = name;
    operand->output = output;
    operand->input_number = output ? -1 : executor->input_parameters;
    operand->output_number = output ? executor->output_parameters : -1;
    operand->item = item;
    operand->handle = handle;
    if (tensor == NULL) {
        operand->dtype = ACL_DT_UNDEFINED;
        operand->format = ACL_FORMAT_UNDEFINED;
    } else {
        operand->dtype = tensor->dtype;
        operand->format = tensor->format;
        operand->offset = tensor->offset;
        operand->storage = &tensor->storage;
        operand->strides = tensor->strides;
        set_view(&operand->view, tensor);
        op_require(op, op_elements(operand) >= 0, name, "sizes", ACLNN_ERR_PARAM_INVALID,
                   "%s is %s: sizes must not be negative, nor their product exceed 2^63 - 1", name,
                   op_shape_text(op, operand));
    }
    *executor->operands_end = operand;
    executor->operands_end = &operand->next;
    return operand;
}

static void count_parameter(OpCall *op, bool output)
{
    *(output ? &op->executor->output_parameters : &op->executor->input_parameters) += 1;
}

static const Operand *take_up(OpCall *op, const char *name, const aclTensor *handle, bool output, bool required)
{
    const Tensor *tensor = object_of(op, name, handle, HANDLE_TENSOR, "aclTensor", required);
    if (op_refused(op)) {
        return &no_operand;
    }
    const Operand *operand = add_operand(op, name, handle, tensor, output, -1);
    count_parameter(op, output);
    return operand;
}

const Operand *op_input(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, false, true);
}

const Operand *op_optional_input(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, false, false);
}

const Operand *op_filled_input(OpCall *op, const char *name, const aclTensor *tensor)
{
    const Tensor *object = object_of(op, name, tensor, HANDLE_TENSOR, "aclTensor", false);
    if (op_refused(op)) {
        return &no_operand;
    }
    const bool none = object == NULL || (object->view.rank == 1 && object->view.sizes[0] == 0);
    const Operand *operand = add_operand(op, name, none ? NULL : tensor, none ? NULL : object, false, -1);
    count_parameter(op, false);
    return operand;
}

const Operand *op_output(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, true, true);
}

const Operand *op_optional_output(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, true, false);
}

/* The position that it does not have yet. */
static void number_updated(const Executor *executor, const Operand *taken)
{
    Operand *operand = (Operand *)taken;
    if (operand->output) {
        operand->input_number = executor->input_parameters;
    } else {
        operand->output_number = executor->output_parameters;
    }
}

const Operand *op_updated(OpCall *op, const Operand *taken)
{
    if (!op_refused(op)) {
        number_updated(op->executor, taken);
        count_parameter(op, !taken->output);
    }
    return taken;
}

bool op_empty(const Operand *operand)
{
    return us_view_is_empty(&operand->view);
}

const Operand *op_filled(const Operand *operand)
{
    return op_empty(operand) ? &no_operand : operand;
}

/* ---- lists of tensors ---- */

static void compare(Alike *alike, const Operand *operand, const Operand *first)
{
    const View *view = &operand->view;
    alike->known &= op_given(operand) && operand->dtype == first->dtype;
    alike->lowest_rank = view->rank < alike->lowest_rank ? view->rank : alike->lowest_rank;
    alike->highest_rank = view->rank > alike->highest_rank ? view->rank : alike->highest_rank;
}

static Operands take_up_list(OpCall *op, const char *name, const aclTensorList *handle, bool output, bool required)
{
    Operands operands = {.name = name, .output = output};
    const Array *list = object_of(op, name, handle, HANDLE_TENSOR_LIST, "aclTensorList", required);
    op_require(op, list == NULL || list->size < INT32_MAX, name, "entries", ACLNN_ERR_PARAM_INVALID,
               "%s has %llu tensors, more than 2^31 - 2", name, (unsigned long long)list->size);
    if (!op_refused(op) && list == NULL) {
        count_parameter(op, output); /* it has its position all the same */
    }
    if (op_refused(op) || list == NULL) {
        return operands;
    }
    const Operand **items = take(op, list->size * sizeof *items);
    const aclTensor *const *handles = (const aclTensor *const *)list->elements;
    Alike alike = {.known = list->size > 0, .lowest_rank = INT32_MAX};
    for (uint64_t i = 0; i < list->size && !op_refused(op); i++) {
        const Tensor *tensor = object_of(op, name, handles[i], HANDLE_TENSOR, "list of aclTensor", false);
        if (!op_refused(op)) {
            items[i] = add_operand(op, name, handles[i], tensor, output, (int32_t)i);
            compare(&alike, items[i], items[0]);
        }
    }
    if (op_refused(op)) {
        return operands;
    }
    count_parameter(op, output);
    operands.given = required || list->size > 0;
    operands.count = (int32_t)list->size;
    operands.items = items;
    operands.alike = alike;
    return operands;
}

Operands op_inputs(OpCall *op, const char *name, const aclTensorList *list)
{
    return take_up_list(op, name, list, false, true);
}

Operands op_optional_inputs(OpCall *op, const char *name, const aclTensorList *list)
{
    return take_up_list(op, name, list, false, false);
}

Operands op_outputs(OpCall *op, const char *name, const aclTensorList *list)
{
    return take_up_list(op, name, list, true, true);
}

Operands op_optional_outputs(OpCall *op, const char *name, const aclTensorList *list)
{
    return take_up_list(op, name, list, true, false);
}

Operands op_updated_list(OpCall *op, Operands taken)
{
    if (op_refused(op)) {
        return taken;
    }
    for (int32_t i = 0; i < taken.count; i++) {
        number_updated(op->executor, taken.items[i]);
    }
    count_parameter(op, !taken.output);
    return taken;
}

/* ---- scalars ---- */

static int64_t integer_of(double value)
{
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : value > 0 ? INT64_MAX : value < 0 ? INT64_MIN : 0;
}

static Number number_of(const Scalar *scalar)
{
    Number number = {0, 0, 0};
    float parts[2];
    int64_t signed_value = 0;
    uint64_t unsigned_value = 0;
    switch (scalar->dtype) {
    case ACL_COMPLEX64:
        memcpy(parts, scalar->value, sizeof parts);
        number.real = parts[0];
        number.imaginary = parts[1];
        number.integer = integer_of(number.real);
        break;
    case ACL_COMPLEX128:
        memcpy(&number.real, scalar->value, sizeof number.real);
        memcpy(&number.imaginary, scalar->value + sizeof number.real, sizeof number.imaginary);
        number.integer = integer_of(number.real);
        break;
    case ACL_INT64:
        memcpy(&signed_value, scalar->value, sizeof signed_value);
        number.integer = signed_value;
        number.real = (double)signed_value;
        break;
    case ACL_UINT64:
        memcpy(&unsigned_value, scalar->value, sizeof unsigned_value);
        memcpy(&number.integer, &unsigned_value, sizeof unsigned_value);
        number.real = (double)unsigned_value;
        break;
    default:
        us_load_double(&number.real, scalar->value, dtype_of_acl(scalar->dtype), 1, 1);
        number.integer = integer_of(number.real);
        break;
    }
    return number;
}

static ScalarArgument scalar_of(const char *name, const Scalar *scalar)
{
    if (scalar == NULL) {
        return (ScalarArgument){.name = name, .dtype = ACL_DT_UNDEFINED};
    }
    return (ScalarArgument){name, true, scalar->dtype, number_of(scalar)};
}

ScalarArgument op_scalar(OpCall *op, const char *name, const aclScalar *scalar)
{
    return scalar_of(name, object_of(op, name, scalar, HANDLE_SCALAR, "aclScalar", true));
}

ScalarArgument op_optional_scalar(OpCall *op, const char *name, const aclScalar *scalar)
{
    return scalar_of(name, object_of(op, name, scalar, HANDLE_SCALAR, "aclScalar", false));
}

ScalarArguments op_scalars(OpCall *op, const char *name, const aclScalarList *handle)
{
    ScalarArguments scalars = {.name = name};
    const Array *list = object_of(op, name, handle, HANDLE_SCALAR_LIST, "aclScalarList", true);
    op_require(op, list == NULL || list->size < INT32_MAX, name, "entries", ACLNN_ERR_PARAM_INVALID,
               "%s has %llu scalars, more than 2^31 - 2", name, (unsigned long long)list->size);
    if (op_refused(op)) {
        return scalars;
    }
    ScalarArgument *items = take(op, list->size * sizeof *items);
    const aclScalar *const *handles = (const aclScalar *const *)list->elements;
    for (uint64_t i = 0; i < list->size && !op_refused(op); i++) {
        op_require(op, handles[i] != NULL, name, "item", ACLNN_ERR_PARAM_INVALID, "scalar %llu of %s is NULL",
                   (unsigned long long)i, name);
        items[i] = scalar_of(name, object_of(op, name, handles[i], HANDLE_SCALAR, "list of aclScalar", false));
    }
    return op_refused(op) ? scalars : (ScalarArguments){name, true, (int32_t)list->size, items};
}

/* ---- arrays and texts ---- */

IntArguments op_ints(OpCall *op, const char *name, const aclIntArray *array)
{
    const Array *object = object_of(op, name, array, HANDLE_INT_ARRAY, "aclIntArray", true);
    return object == NULL ? (IntArguments){.name = name}
                          : (IntArguments){name, true, (int64_t)object->size, (const int64_t *)object->elements};
}

IntArguments op_optional_ints(OpCall *op, const char *name, const aclIntArray *array)
{
    IntArguments found = array == NULL ? (IntArguments){.name = name} : op_ints(op, name, array);
    found.given = found.count > 0;
    return found;
}

FloatArguments op_floats(OpCall *op, const char *name, const aclFloatArray *array)
{
    const Array *object = object_of(op, name, array, HANDLE_FLOAT_ARRAY, "aclFloatArray", true);
    return object == NULL ? (FloatArguments){.name = name}
                          : (FloatArguments){name, true, (int64_t)object->size, (const float *)object->elements};
}

BoolArguments op_bools(OpCall *op, const char *name, const aclBoolArray *array)
{
    const Array *object = object_of(op, name, array, HANDLE_BOOL_ARRAY, "aclBoolArray", true);
    return object == NULL ? (BoolArguments){.name = name}
                          : (BoolArguments){name, true, (int64_t)object->size, (const bool *)object->elements};
}

BoolArguments op_optional_bools(OpCall *op, const char *name, const aclBoolArray *array)
{
    BoolArguments found = array == NULL ? (BoolArguments){.name = name} : op_bools(op, name, array);
    found.given = found.count > 0;
    return found;
}

const char *op_text(OpCall *op, const char *name, const char *text)
{
    op_require(op, text != NULL, name, "null", op->missing, "%s is NULL, but must be given", name);
    return text != NULL ? text : "";
}

const char *op_optional_text(OpCall *op, const char *name, const char *text)
{
    return text != NULL ? op_text(op, name, text) : "";
}
