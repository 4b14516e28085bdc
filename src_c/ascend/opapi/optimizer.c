#include "ascend/opapi/optimizer.h"

#include "ascend/common/op_memory.h"
#include "kernels/map/formulas.h"
#include "kernels/map/fused_adam.h"

/* Views of an item in one row. */
enum { MOST_VIEWS = MAP_OPERANDS + MAP_CALL_NUMBERS };

/* inputs, device numbers, outputs. `first` numbers of the formula are the device's; then those given. */
static aclnnStatus plan(OpCall *op, const MapFormula *formula, DType compute, int32_t input_count,
                        const Operand *const *inputs, Operands device, int32_t output_count,
                        const Operand *const *outputs, int32_t number_count, const Number *numbers)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    MapCall call = {.formula = formula, .compute = compute, .result = compute, .inputs = input_count + device.count,
                    .outputs = output_count, .items = 1};
    memcpy(call.numbers + device.count, numbers, (size_t)number_count * sizeof *numbers);
    PlannedView views[MOST_VIEWS];
    int32_t count = 0;
    for (int32_t i = 0; i < input_count; i++) {
        views[count++] = (PlannedView){inputs[i], VIEW_READ, NULL};
    }
    for (int32_t i = 0; i < device.count; i++) {
        views[count++] = (PlannedView){device.items[i], VIEW_READ, NULL};
    }
    for (int32_t i = 0; i < output_count; i++) {
        views[count++] = (PlannedView){outputs[i], VIEW_WRITE, NULL};
    }
    return op_plan_views(op, us_map, &call, sizeof call, count, views);
}

static Number number(double value)
{
    return op_real(value, ACL_FLOAT);
}

/* The operands, and one more if it is given. */
typedef struct Row {
    const Operand *items[MAP_OPERANDS];
    int32_t count;
} Row;

static Row row_of(Operands operands, const Operand *more)
{
    Row row = {.count = operands.count};
    memcpy(row.items, operands.items, (size_t)operands.count * sizeof *row.items);
    if (more != NULL) {
        row.items[row.count++] = more;
    }
    return row;
}

aclnnStatus op_adam_w(OpCall *op, Operands inputs, Operands numbers, bool maximize, const Operand *bound,
                      Operands outputs)
{
    const Row from = row_of(inputs, bound);
    return plan(op, bound != NULL ? &us_map_adam_w_amsgrad : &us_map_adam_w, inputs.items[0]->view.dtype, from.count,
                from.items, numbers, outputs.count, outputs.items, 1, &(Number){maximize, 0, maximize});
}

/* In float32, whatever the tensors' type: 16 bits do not hold steps and rates. */
aclnnStatus op_adam_w_v2(OpCall *op, Operands inputs, const Operand *step, AdamW numbers, const Operand *largest,
                         Operands outputs)
{
    const Row from = row_of(inputs, largest), to = row_of(outputs, largest);
    const Number host[] = {number(numbers.rate),         number(numbers.beta1), number(numbers.beta2),
                           number(numbers.weight_decay), number(numbers.eps),   number(numbers.maximize)};
    return plan(op, largest != NULL ? &us_map_adam_w_v2_amsgrad : &us_map_adam_w_v2, DTYPE_FLOAT32, from.count,
                from.items, OPERANDS(step), to.count, to.items, 6, host);
}

aclnnStatus op_ema_adam(OpCall *op, Operands inputs, const Operand *step, EmaAdam numbers, Operands outputs)
{
    const Number host[] = {number(numbers.rate), number(numbers.average_decay), number(numbers.beta1),
                           number(numbers.beta2), number(numbers.eps), number(numbers.mode),
                           number(numbers.corrects_bias), number(numbers.weight_decay)};
    return plan(op, &us_map_ema_adam, DTYPE_FLOAT32, inputs.count, inputs.items, OPERANDS(step), outputs.count,
                outputs.items, 8, host);
}

/* ---- lists ---- */

/* Element i of a tensor in row-major order. */
static View element(const View *view, int64_t i)
{
    View one = {.dtype = view->dtype};
    int64_t offset = 0;
    for (int32_t axis = view->rank - 1; axis >= 0; axis--) {
        offset += i % view->shape[axis] * view->strides[axis];
        i /= view->shape[axis];
    }
    one.data = (void *)((uintptr_t)view->data + (uintptr_t)(offset * (int64_t)us_dtype_size(view->dtype)));
    return one;
}

aclnnStatus op_addc_lists(OpCall *op, const MapFormula *formula, int32_t input_count, const Operands *inputs,
                          const Operand *scalars, Operands out)
{
    const DType compute = dtype_of_acl(op_list_dtype(out));
    const int32_t per_item = input_count + 2;
    const MapCall call = {.formula = formula, .compute = compute, .result = compute, .inputs = input_count + 1,
                          .outputs = 1, .items = out.count};
    View *own = op_take(op, (size_t)out.count * sizeof *own);
    PlannedView *views = op_take(op, (size_t)out.count * (size_t)per_item * sizeof *views);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    PlannedView *view = views;
    for (int32_t item = 0; item < out.count; item++) {
        for (int32_t i = 0; i < input_count; i++) {
            *view++ = (PlannedView){inputs[i].items[item], VIEW_READ, NULL};
        }
        own[item] = element(&scalars->view, item);
        *view++ = (PlannedView){scalars, VIEW_READ, &own[item]};
        *view++ = op_list_output(op, out.items[item], inputs[0].items[item]);
    }
    return op_plan_lists(op, us_map, &call, sizeof call, out.count * per_item, views, 1, &out);
}

void require_single_numbers(OpCall *op, Operands list)
{
    for (int32_t i = 0; i < list.count && !op_refused(op); i++) {
        op_require(op, op_elements(list.items[i]) == 1, list.name, "elements", op->invalid,
                   "tensor %d of %s has not one element", (int)i, list.name);
    }
}

void require_moments(OpCall *op, Operands weights, Operands moments)
{
    if (moments.count == 0) {
        return;
    }
    op_require_list_length(op, moments.name, moments.count, weights);
    op_require_same_shapes(op, moments, weights);
    for (int32_t i = 0; i < moments.count && !op_refused(op); i++) {
        op_require(op, moments.items[i]->dtype == op_list_dtype(weights), moments.name, "same-dtype", op->invalid,
                   "tensor %d of %s has another type than those of %s", (int)i, moments.name, weights.name);
    }
}

aclnnStatus op_sgd_lists(OpCall *op, Operands weights, Operands gradients, Operands accumulated, const Operand *scale, Sgd sgd)
{
    const Operands lists[] = {weights, gradients, accumulated};
    const int32_t kinds = accumulated.count > 0 ? 3 : 2, scales = op_given(scale), per_item = 2 * kinds + scales;
    MapCall call = {.formula = kinds == 3 ? &us_map_fused_sgd : &us_map_fused_sgd_plain, .compute = DTYPE_FLOAT32,
                    .result = DTYPE_FLOAT32, .inputs = kinds + scales, .outputs = kinds, .items = weights.count,
                    .numbers = {number(1), number(sgd.weight_decay), number(sgd.moment), number(sgd.rate),
                                number(sgd.dampening), number(sgd.looks_ahead), number(sgd.maximize), number(sgd.first)}};
    PlannedView *views = op_take(op, (size_t)weights.count * (size_t)per_item * sizeof *views);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    PlannedView *view = views;
    for (int32_t item = 0; item < weights.count; item++) {
        for (int32_t kind = 0; kind < kinds; kind++) {
            *view++ = (PlannedView){lists[kind].items[item], VIEW_READ, NULL};
        }
        if (scales > 0) {
            *view++ = (PlannedView){scale, VIEW_READ, NULL};
        }
        for (int32_t kind = 0; kind < kinds; kind++) {
            *view++ = (PlannedView){lists[kind].items[item], VIEW_WRITE, NULL};
        }
    }
    return op_plan_views(op, us_map, &call, sizeof call, weights.count * per_item, views);
}

aclnnStatus op_adam_w_lists(OpCall *op, const Operands *lists, Operands largest, Operands steps, const Operand *scale,
                            const Operand *found, AdamW numbers)
{
    enum { LISTS = 4, GRADIENT = 1 };
    const int32_t items = steps.count, amsgrad = largest.count > 0;
    const FusedAdamW how = {numbers.rate, numbers.beta1, numbers.beta2, numbers.weight_decay, numbers.eps,
                            numbers.maximize, amsgrad, items};
    PlannedView *views = op_take(op, (2 + (size_t)items * (size_t)(LISTS + 1 + amsgrad)) * sizeof *views);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    int32_t count = 0;
    views[count++] = (PlannedView){found, VIEW_READ, NULL};
    views[count++] = (PlannedView){scale, VIEW_READ, NULL};
    for (int32_t item = 0; item < items; item++) {
        views[count++] = (PlannedView){steps.items[item], VIEW_READ, NULL};
        for (int32_t i = 0; i < LISTS; i++) {
            views[count++] = (PlannedView){lists[i].items[item], i == GRADIENT ? VIEW_READ : VIEW_READ_WRITE, NULL};
        }
        if (amsgrad) {
            views[count++] = (PlannedView){largest.items[item], VIEW_READ_WRITE, NULL};
        }
    }
    return op_plan_views(op, us_fused_adam_w, &how, sizeof how, count, views);
}
