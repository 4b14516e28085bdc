/* Reductions and scans: src_c/kernels/reduce, src_c/kernels/scan. */
#include "ascend/opapi/reduce.h"

#include "ascend/common/op_memory.h"
#include "kernels/reduce/compound.h"
#include "kernels/sort/median.h"

#include <string.h>

/* The output seen with the input's rank: reduced axes have size 1. */
static View result_view(const Operand *out, const View *from, uint32_t axes)
{
    View view = {.data = out->view.data, .dtype = out->view.dtype, .rank = from->rank};
    const bool keeps = out->view.rank == from->rank;
    int32_t next = 0;
    for (int32_t axis = 0; axis < from->rank; axis++) {
        const bool is_reduced = (axes >> axis & 1) != 0;
        view.shape[axis] = is_reduced ? 1 : from->shape[axis];
        view.strides[axis] = is_reduced ? 0 : out->view.strides[keeps ? axis : next];
        next += !is_reduced;
    }
    return view;
}

static bool is_test(const Reduction *reduction)
{
    return reduction == &us_reduce_any || reduction == &us_reduce_all;
}

static ReduceCall make_call(OpCall *op, const Reduction *reduction, uint32_t axes, aclDataType compute,
                            int32_t outputs, int32_t number_count, const Number *numbers)
{
    ReduceCall call = {.reduction = reduction, .compute = dtype_of_acl(compute), .axes = axes, .outputs = outputs};
    call.result = is_test(reduction) ? DTYPE_BOOL : call.compute;
    op_require(op, us_reduce_has_lane(reduction, call.compute), "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "%s is not computed in %s", reduction->name, us_dtype_name(call.compute));
    if (number_count > 0) {
        memcpy(call.numbers, numbers, (size_t)number_count * sizeof *numbers);
    }
    return call;
}

/* Outputs as the kernels want them. */
static aclnnStatus plan_kernel(OpCall *op, Kernel *kernel, const void *attributes, size_t size, const Operand *from,
                               uint32_t axes, Operands outputs)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    View views[REDUCE_OUTPUTS];
    PlannedView planned[1 + REDUCE_OUTPUTS] = {{from, VIEW_READ, NULL}};
    for (int32_t i = 0; i < outputs.count; i++) {
        const Operand *out = outputs.items[i];
        views[i] = out != NULL ? result_view(out, &from->view, axes) : us_view_absent();
        planned[1 + i] = (PlannedView){out, VIEW_WRITE, &views[i]};
    }
    return op_plan_views(op, kernel, attributes, size, 1 + outputs.count, planned);
}

static aclnnStatus plan(OpCall *op, const ReduceCall *call, const Operand *from, Operands outputs)
{
    return plan_kernel(op, us_reduce, call, sizeof *call, from, call->axes, outputs);
}

aclnnStatus op_reduce(OpCall *op, const Reduction *reduction, const Operand *from, uint32_t axes, aclDataType compute,
                      Operands outputs, int32_t number_count, const Number *numbers)
{
    const ReduceCall call = make_call(op, reduction, axes, compute, outputs.count, number_count, numbers);
    return plan(op, &call, from, outputs);
}

aclnnStatus op_mean(OpCall *op, const Operand *from, uint32_t axes, aclDataType compute, const Operand *out)
{
    const bool is_integer = op_is_integer(compute);
    ReduceCall call = make_call(op, &us_reduce_mean, axes, is_integer ? ACL_DOUBLE : compute, 1, NO_NUMBERS);
    call.result = dtype_of_acl(compute);
    return plan(op, &call, from, OPERANDS(out));
}

Shape op_shape_globally_pooled(OpCall *op, const Operand *from)
{
    return op_refused(op) ? (Shape){0} : op_reduced_shape(from, SPACE_AXES, true);
}

aclnnStatus op_norm(OpCall *op, const Operand *from, const ScalarArgument *p, uint32_t axes, aclDataType compute,
                    const Operand *out)
{
    const Number number = op_number(p, ACL_FLOAT);
    ReduceCall call = make_call(op, us_reduce_norm(number.real), axes, compute, 1, 1, &number);
    call.result = dtype_of_acl(out->dtype);
    return plan(op, &call, from, OPERANDS(out));
}

aclnnStatus op_variance(OpCall *op, const Reduction *reduction, const Operand *from, uint32_t axes, double correction,
                        Operands outputs)
{
    return op_reduce(op, reduction, from, axes, from->dtype, outputs, NUMBERS(op_real(correction, ACL_FLOAT)));
}

aclnnStatus op_median(OpCall *op, const Operand *from, uint32_t axes, bool skips_nan, Operands outputs)
{
    const Median median = {.axes = axes, .skips_nan = skips_nan, .outputs = outputs.count};
    return plan_kernel(op, us_median, &median, sizeof median, from, axes, outputs);
}

aclnnStatus op_kth_value(OpCall *op, const Operand *from, int64_t k, int32_t axis, Operands outputs)
{
    const uint32_t axes = UINT32_C(1) << axis;
    const Median median = {.axes = axes, .outputs = outputs.count, .rank = k};
    return plan_kernel(op, us_median, &median, sizeof median, from, axes, outputs);
}

/* ---- shapes and types ---- */

void require_elements_along(OpCall *op, const Operand *operand, uint32_t axes, const char *name)
{
    for (int32_t axis = 0; axis < operand->view.rank; axis++) {
        op_require(op, (axes >> axis & 1) == 0 || operand->view.shape[axis] != 0, name, "empty", op->invalid,
                   "%s is %s: there is nothing to reduce along dimension %d", operand->name,
                   op_shape_text(op, operand), (int)axis);
    }
}

void require_list_type(OpCall *op, const Operand *operand, Operands list)
{
    op_require_given_dtype(op, operand, list.name, op_list_dtype(list));
}

Shape op_shape_joint(OpCall *op, Operands list)
{
    return op_broadcast(op, list);
}

bool op_is_noop(IntArguments dims, bool noop_with_empty_dims)
{
    return noop_with_empty_dims && dims.count == 0;
}

Shape op_shape_reduced_unless(OpCall *op, const Operand *from, IntArguments dims, bool keep_dims, bool noop)
{
    return op_is_noop(dims, noop) ? op_shape(from)
                                  : op_reduced_shape(from, op_require_dims(op, dims, from->view.rank), keep_dims);
}

void require_single_items(OpCall *op, Operands list)
{
    for (int32_t i = 0; i < list.count; i++) {
        const int64_t elements = op_elements(list.items[i]);
        op_require(op, elements == 1, list.name, "elements", op->invalid, "tensor %d of %s has %lld elements, not 1",
                   (int)i, list.name, (long long)elements);
    }
}

/* ---- lists ---- */

aclnnStatus op_norm_lists(OpCall *op, Operands from, const ScalarArgument *p, Operands out)
{
    const Number number = op_number(p, ACL_FLOAT);
    const ReduceLists lists = {.items = from.count, .call = make_call(op, us_reduce_norm(number.real), ALL_AXES,
                                                                      op_list_dtype(from), 1, 1, &number)};
    View *views = op_take(op, (size_t)from.count * sizeof *views);
    PlannedView *planned = op_take(op, 2 * (size_t)from.count * sizeof *planned);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    for (int32_t i = 0; i < from.count; i++) {
        views[i] = result_view(out.items[i], &from.items[i]->view, ALL_AXES);
        planned[2 * i] = (PlannedView){from.items[i], VIEW_READ, NULL};
        planned[2 * i + 1] = (PlannedView){out.items[i], VIEW_WRITE, &views[i]};
    }
    return op_plan_views(op, us_reduce_lists, &lists, sizeof lists, 2 * from.count, planned);
}

aclnnStatus op_fold(OpCall *op, const MapFormula *formula, Operands list, const Operand *out)
{
    const DType lane = us_lane_dtype(us_lane_of(out->view.dtype));
    const Fold fold = {.formula = formula, .compute = lane, .inputs = list.count};
    op_require(op, us_map_has_lane(formula, lane), "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "%s is not computed in %s", formula->name, us_dtype_name(lane));
    return op_plan_operands(op, us_fold, &fold, sizeof fold, list, OPERANDS(out));
}

aclnnStatus op_unscale(OpCall *op, Operands list, const Operand *found, const Operand *scale)
{
    const Unscale unscale = {list.count};
    PlannedView *planned = op_take(op, ((size_t)list.count + 2) * sizeof *planned);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    for (int32_t i = 0; i < list.count; i++) {
        planned[i] = (PlannedView){list.items[i], VIEW_WRITE, NULL};
    }
    planned[list.count] = (PlannedView){found, VIEW_WRITE, NULL};
    planned[list.count + 1] = (PlannedView){scale, VIEW_READ, NULL};
    return op_plan_views(op, us_unscale, &unscale, sizeof unscale, list.count + 2, planned);
}

/* ---- scans and comparison ---- */

aclnnStatus op_scan(OpCall *op, const Scan *scan, const Operand *from, int32_t axis, aclDataType compute,
                    bool exclusive, bool reverse, Operands outputs)
{
    const ScanCall call = {.scan = scan, .compute = dtype_of_acl(compute), .result = dtype_of_acl(compute),
                           .axis = axis, .outputs = outputs.count, .exclusive = exclusive, .reverse = reverse};
    op_require(op, us_scan_has_lane(scan, call.compute), "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "%s is not computed in %s", scan->name, us_dtype_name(call.compute));
    return op_plan_operands(op, us_scan, &call, sizeof call, OPERANDS(from), outputs);
}

aclnnStatus op_equal(OpCall *op, const Operand *a, const Operand *b, aclDataType compute, const Operand *out)
{
    const Comparison comparison = {.compute = dtype_of_acl(compute)};
    return op_plan_operands(op, us_equal, &comparison, sizeof comparison, OPERANDS(a, b), OPERANDS(out));
}

aclnnStatus op_compare_precision(OpCall *op, const Operand *golden, const Operand *found, const Operand *out)
{
    enum { DIFFERENT = 503 };
    const Comparison comparison = {.compute = dtype_of_acl(golden->dtype), .code = DIFFERENT};
    return op_plan_operands(op, us_equal, &comparison, sizeof comparison, OPERANDS(golden, found), OPERANDS(out));
}
