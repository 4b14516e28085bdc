/* Executors: aclnn-base 4 to 6. Unlike other functions, these answer NULL with 561103 and dead executors with
 * 561000. */
#include "ascend/common/executor.h"
#include "ascend/common/dtype.h"
#include "ascend/common/status.h"
#include "ascend/nnopbase/nnopbase.h"
#include "report/grace.h"

static Executor *require_executor(Call *call, const aclOpExecutor *executor)
{
    us_require(call, executor != NULL, "executor", "null", ACLNN_ERR_INNER_NULLPTR, "executor is NULL");
    if (call->status != 0) {
        return NULL;
    }
    Executor *object = us_handle_object(executor, HANDLE_EXECUTOR);
    us_require(call, object != NULL, "executor", "handle", ACLNN_ERR_INNER,
               "executor (%p) is not alive: it has run, was destroyed, or was never created", (const void *)executor);
    return object;
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
{
    Call call = us_call_begin("aclSetAclOpExecutorRepeatable");
    Executor *object = require_executor(&call, executor);
    if (call.status == 0) {
        object->repeatable = true;
    }
    return us_call_end(&call);
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor)
{
    Call call = us_call_begin("aclDestroyAclOpExecutor");
    require_executor(&call, executor);
    Executor *object = call.status == 0 ? us_handle_end(executor, HANDLE_EXECUTOR) : NULL;
    us_require(&call, object != NULL, "executor", "handle", ACLNN_ERR_INNER,
               "executor (%p) has just been destroyed, or run, by another thread", (const void *)executor);
    if (object != NULL) { /* another thread may be running it just now */
        us_grace_bury(executor_release, object);
    }
    return us_call_end(&call);
}

/* ---- addresses of a repeatable executor ---- */

typedef enum Kind { INPUTS, OUTPUTS, BOTH } Kind;

/* Input or output number `index`, counted among its own kind; BOTH counts all inputs, then all outputs. Tensors of lists
 * count one by one. */
static Operand *find_operand(const Executor *executor, Kind kind, size_t index)
{
    size_t seen = 0;
    for (int pass = 0; pass < 2; pass++) {
        bool outputs = pass == 1;
        if (kind != BOTH && outputs != (kind == OUTPUTS)) {
            continue;
        }
        for (Operand *operand = executor->operands; operand != NULL; operand = operand->next) {
            if (operand_number(operand, outputs) >= 0 && seen++ == index) {
                return operand;
            }
        }
    }
    return NULL;
}

/* Tensor `item` of the list that is parameter number `index`, counted as above. */
static Operand *find_item(const Executor *executor, Kind kind, size_t index, size_t item)
{
    const size_t inputs = (size_t)executor->input_parameters;
    const bool outputs = kind == OUTPUTS || (kind == BOTH && index >= inputs);
    const size_t number = kind == BOTH && outputs ? index - inputs : index;
    for (Operand *operand = executor->operands; operand != NULL; operand = operand->next) {
        const int32_t own = operand_number(operand, outputs), place = operand->item;
        if (own >= 0 && (size_t)own == number && place >= 0 && (size_t)place == item) {
            return operand;
        }
    }
    return NULL;
}

/* Every view of the operand moves to the new address, keeping its distance. */
static void move_operand(Executor *executor, Operand *operand, void *addr)
{
    const uintptr_t distance = (uintptr_t)operand->offset * acl_dtype_bytes(operand->dtype);
    const uintptr_t before = (uintptr_t)operand->view.data;
    const uintptr_t after = (uintptr_t)addr + distance;
    for (int32_t i = 0; i < executor->task.view_count; i++) {
        View *view = executor->views[i];
        if (executor->view_operands[i] == operand && view != &operand->view) {
            view->data = (void *)((uintptr_t)view->data - before + after);
        }
    }
    operand->view.data = (void *)after;
}

/* The tensor's own address changes before the executor is looked at, as the vendor's does. */
static aclnnStatus set_address(Call call, aclOpExecutor *executor, Kind kind, size_t index, aclTensor *tensor,
                               void *addr)
{
    us_require(&call, tensor != NULL, "tensor", "null", ACLNN_ERR_INNER_NULLPTR, "tensor is NULL");
    Tensor *object = call.status == 0 ? us_handle_object(tensor, HANDLE_TENSOR) : NULL;
    us_require(&call, object != NULL, "tensor", "handle", ACLNN_ERR_PARAM_INVALID, "tensor (%p) is not alive",
               (void *)tensor);
    if (call.status == 0) {
        object->address = addr;
    }
    Executor *plan = require_executor(&call, executor);
    Operand *operand = call.status == 0 ? find_operand(plan, kind, index) : NULL;
    us_require(&call, operand != NULL && operand->handle != NULL, "index", "range", ACLNN_ERR_PARAM_INVALID,
               "%s has no such tensor number %zu, or it was NULL", plan->function, index);
    if (call.status == 0) {
        move_operand(plan, operand, addr);
    }
    return us_call_end(&call);
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
{
    return set_address(us_call_begin("aclSetInputTensorAddr"), executor, INPUTS, index, tensor, addr);
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
{
    return set_address(us_call_begin("aclSetOutputTensorAddr"), executor, OUTPUTS, index, tensor, addr);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
{
    return set_address(us_call_begin("aclSetTensorAddr"), executor, BOTH, index, tensor, addr);
}

static aclnnStatus set_list_address(Call call, aclOpExecutor *executor, Kind kind, size_t index, size_t relative_index,
                                    aclTensorList *tensors, void *addr)
{
    us_require(&call, tensors != NULL, "tensors", "null", ACLNN_ERR_INNER_NULLPTR, "tensors is NULL");
    const Array *list = call.status == 0 ? us_handle_object(tensors, HANDLE_TENSOR_LIST) : NULL;
    us_require(&call, list != NULL, "tensors", "handle", ACLNN_ERR_PARAM_INVALID, "tensors (%p) is not alive",
               (void *)tensors);
    us_require(&call, relative_index < list->size, "relativeIndex", "range", ACLNN_ERR_PARAM_INVALID,
               "relativeIndex is %zu, the list has %llu elements", relative_index, (unsigned long long)list->size);
    if (call.status == 0) {
        Tensor *element = us_handle_object(((void *const *)list->elements)[relative_index], HANDLE_TENSOR);
        if (element != NULL) {
            element->address = addr;
        }
    }
    Executor *plan = require_executor(&call, executor);
    Operand *operand = call.status == 0 ? find_item(plan, kind, index, relative_index) : NULL;
    us_require(&call, operand != NULL && operand->handle != NULL, "irIndex", "range", ACLNN_ERR_PARAM_INVALID,
               "%s has no list with tensor %zu as parameter %zu", plan->function, relative_index, index);
    if (call.status == 0) {
        move_operand(plan, operand, addr);
    }
    return us_call_end(&call);
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,
                                         aclTensorList *tensors, void *addr)
{
    return set_list_address(us_call_begin("aclSetDynamicInputTensorAddr"), executor, INPUTS, irIndex, relativeIndex, tensors,
                            addr);
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,
                                          aclTensorList *tensors, void *addr)
{
    return set_list_address(us_call_begin("aclSetDynamicOutputTensorAddr"), executor, OUTPUTS, irIndex, relativeIndex, tensors,
                            addr);
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,
                                    aclTensorList *tensors, void *addr)
{
    return set_list_address(us_call_begin("aclSetDynamicTensorAddr"), executor, BOTH, irIndex, relativeIndex, tensors, addr);
}

/* ---- the same functions under their other name ---- */

aclnnStatus AclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
    __attribute__((alias("aclSetInputTensorAddr")));

aclnnStatus AclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
    __attribute__((alias("aclSetOutputTensorAddr")));

aclnnStatus AclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
    __attribute__((alias("aclSetTensorAddr")));

aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,
                                         aclTensorList *tensors, void *addr)
    __attribute__((alias("aclSetDynamicInputTensorAddr")));

aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,
                                          aclTensorList *tensors, void *addr)
    __attribute__((alias("aclSetDynamicOutputTensorAddr")));

aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex,
                                    aclTensorList *tensors, void *addr)
    __attribute__((alias("aclSetDynamicTensorAddr")));
