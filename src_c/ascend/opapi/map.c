/* Element-wise operators: src_c/kernels/map. */
#include "ascend/opapi/families.h"

#include <string.h>

static DType result_type(const MapFormula *formula, DType compute)
{
    if (formula->result == MAP_BOOL) {
        return DTYPE_BOOL;
    }
    if (formula->result == MAP_REAL) {
        return compute == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : compute == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : compute;
    }
    return compute;
}

static void require_lane(OpCall *op, const MapFormula *formula, DType compute)
{
    op_require(op, us_map_has_lane(formula, compute), "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "%s is not computed in %s", formula->name, us_dtype_name(compute));
}

static void set_numbers(OpCall *op, MapCall *call, int32_t count, const Number *numbers)
{
    op_require(op, count <= MAP_CALL_NUMBERS, "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "%d numbers are more than a formula takes", (int)count);
    if (!op_refused(op) && count > 0) {
        memcpy(call->numbers, numbers, (size_t)count * sizeof *numbers);
    }
}

aclnnStatus op_map(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs, Operands outputs,
                   int32_t number_count, const Number *numbers)
{
    MapCall call = {.formula = formula,
                    .compute = dtype_of_acl(compute),
                    .result = result_type(formula, dtype_of_acl(compute)),
                    .inputs = inputs.count,
                    .outputs = outputs.count,
                    .items = 1};
    require_lane(op, formula, call.compute);
    set_numbers(op, &call, number_count, numbers);
    return op_plan_operands(op, us_map, &call, sizeof call, inputs, outputs);
}

/* ---- lists ---- */

static MapListCall *list_call(OpCall *op, const MapFormula *formula, int32_t items, const ScalarArguments *each,
                              DType compute, size_t *size)
{
    *size = sizeof(MapListCall) + (each != NULL ? (size_t)items * sizeof(Number) : 0);
    MapListCall *call = op_refused(op) ? NULL : executor_take(op->executor, *size);
    op_require(op, call != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op_refused(op)) {
        return NULL;
    }
    call->call = (MapCall){.formula = formula, .compute = compute, .result = result_type(formula, compute),
                           .items = items, .number_count = each != NULL ? 1 : 0};
    return call;
}

aclnnStatus op_map_lists(OpCall *op, const MapFormula *formula, int32_t input_count, const Operands *inputs,
                         int32_t output_count, const Operands *outputs, Operands device_numbers,
                         const ScalarArguments *each, int32_t number_count, const Number *numbers)
{
    const int32_t items = inputs[0].count;
    const int32_t per_item = input_count + device_numbers.count + output_count;
    const aclDataType compute = op_list_dtype(inputs[0]);
    size_t size = 0;
    require_lane(op, formula, dtype_of_acl(compute));
    MapListCall *call = list_call(op, formula, items, each, dtype_of_acl(compute), &size);
    PlannedView *views =
        op_refused(op) ? NULL : executor_take(op->executor, (size_t)items * (size_t)per_item * sizeof *views);
    op_require(op, views != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    call->call.inputs = input_count + device_numbers.count;
    call->call.outputs = output_count;
    set_numbers(op, &call->call, number_count, numbers);
    PlannedView *view = views;
    for (int32_t item = 0; item < items; item++) {
        for (int32_t i = 0; i < input_count; i++) {
            *view++ = (PlannedView){inputs[i].items[item], VIEW_READ, NULL};
        }
        for (int32_t i = 0; i < device_numbers.count; i++) {
            *view++ = (PlannedView){device_numbers.items[i], VIEW_READ, NULL};
        }
        for (int32_t i = 0; i < output_count; i++) {
            *view++ = (PlannedView){outputs[i].items[item], VIEW_WRITE, NULL};
        }
        if (each != NULL) {
            call->each[item] = op_number(&each->items[item], compute);
        }
    }
    return op_plan_views(op, us_map, call, size, items * per_item, views);
}
