/* Element-wise operators: src_c/kernels/map. */
#include "ascend/common/op_memory.h"
#include "ascend/opapi/families.h"

#include "kernels/map/formulas.h"

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
    if (outputs.count == 1 && !op_refused(op) && !op_given(outputs.items[0])) { /* pages that let it be NULL */
        return op_plan_nothing(op);
    }
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

aclDataType op_product_dtype(aclDataType promoted, const Operand *a, const Operand *b, const Operand *out)
{
    const bool counts = op_is_integer(a->dtype) || op_is_integer(b->dtype);
    return counts && promoted == ACL_FLOAT16 && out->dtype == ACL_FLOAT ? ACL_FLOAT : promoted;
}

/* ---- lists ---- */

/* Numbers of every item: the common ones, and the item's own scalar last. */
static MapListCall *list_call(OpCall *op, int32_t items, int32_t number_count, const Number *numbers,
                              const ScalarArguments *each, aclDataType type, size_t *size)
{
    const int32_t per_item = each != NULL ? number_count + 1 : 0;
    *size = sizeof(MapListCall) + (size_t)items * (size_t)per_item * sizeof(Number);
    MapListCall *call = op_take(op, *size);
    if (op_refused(op)) {
        return NULL;
    }
    call->call.number_count = per_item;
    set_numbers(op, &call->call, number_count, numbers);
    for (int32_t item = 0; item < items && each != NULL; item++) {
        Number *own = &call->each[item * per_item];
        for (int32_t i = 0; i < number_count; i++) {
            own[i] = numbers[i];
        }
        own[number_count] = op_number(&each->items[item], type);
    }
    return call;
}

/* A list's tensor of an item; one tensor stands for all items, none for an absent input. */
static const Operand *item_of(const Operands *list, int32_t item)
{
    return list->count == 0 ? NULL : list->items[list->count == 1 ? 0 : item];
}

/* The tensor whose shape the results of an item have: that of the first list, before which a scalar may stand. */
static const Operand *partner_of(int32_t input_count, const Operands *inputs, int32_t item)
{
    int32_t i = 0;
    while (i + 1 < input_count && inputs[i].count == 0) {
        i++;
    }
    return item_of(&inputs[i], item);
}

/* The type of the outputs; float for integers that the formula has nothing of its own for. */
static DType list_compute(const MapFormula *formula, aclDataType type)
{
    const DType own = dtype_of_acl(type);
    return us_map_has_lane(formula, own) ? own : dtype_of_acl(op_floating(type));
}

aclnnStatus op_map_lists(OpCall *op, const MapFormula *formula, int32_t input_count, const Operands *inputs,
                         int32_t output_count, const Operands *outputs, Operands device_numbers,
                         const ScalarArguments *each, int32_t number_count, const Number *numbers)
{
    const int32_t items = outputs[0].count;
    const int32_t per_item = input_count + device_numbers.count + output_count;
    const DType compute = list_compute(formula, op_list_dtype(outputs[0]));
    size_t size = 0;
    require_lane(op, formula, compute);
    MapListCall *call = list_call(op, items, number_count, numbers, each, op_list_dtype(outputs[0]), &size);
    PlannedView *views = op_take(op, (size_t)items * (size_t)per_item * sizeof *views);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    call->call.formula = formula;
    call->call.compute = compute;
    call->call.result = result_type(formula, compute);
    call->call.items = items;
    call->call.inputs = input_count + device_numbers.count;
    call->call.outputs = output_count;
    PlannedView *view = views;
    for (int32_t item = 0; item < items; item++) {
        for (int32_t i = 0; i < input_count; i++) {
            *view++ = (PlannedView){item_of(&inputs[i], item), VIEW_READ, NULL};
        }
        for (int32_t i = 0; i < device_numbers.count; i++) {
            *view++ = (PlannedView){device_numbers.items[i], VIEW_READ, NULL};
        }
        for (int32_t i = 0; i < output_count; i++) {
            *view++ = op_list_output(op, outputs[i].items[item], partner_of(input_count, inputs, item));
        }
    }
    return op_plan_lists(op, us_map, call, size, items * per_item, views, output_count, outputs);
}
