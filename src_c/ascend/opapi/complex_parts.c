#include "ascend/opapi/complex_parts.h"

#include "kernels/map/formulas.h"

View op_parts_of(const Operand *operand, bool imaginary)
{
    View view = operand->view;
    view.dtype = operand->dtype == ACL_COMPLEX128 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    for (int32_t axis = 0; axis < view.rank; axis++) {
        view.strides[axis] = (int64_t)(2 * (uint64_t)view.strides[axis]); /* that of an axis of size 1 may be any */
    }
    view.data = (void *)((uintptr_t)view.data + (imaginary ? us_dtype_size(view.dtype) : 0));
    return view;
}

aclnnStatus op_complex(OpCall *op, const Operand *real, const Operand *imaginary, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const DType dtype = dtype_of_acl(real->dtype);
    const MapCall call = {.formula = &us_map_copy, .compute = dtype, .result = dtype, .inputs = 1, .outputs = 1,
                          .items = 2};
    const View parts[] = {op_parts_of(out, false), op_parts_of(out, true)};
    const PlannedView views[] = {{real, VIEW_READ, NULL}, {out, VIEW_WRITE, &parts[0]}, {imaginary, VIEW_READ, NULL},
                                 {out, VIEW_WRITE, &parts[1]}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}

aclDataType op_angle_type(aclDataType dtype)
{
    return dtype == ACL_COMPLEX128                              ? ACL_DOUBLE
           : dtype == ACL_COMPLEX64 || op_is_integer(dtype) ? ACL_FLOAT
                                                                : dtype;
}

aclnnStatus op_angle(OpCall *op, const Operand *x, const Operand *out)
{
    const bool is_complex = x->dtype == ACL_COMPLEX64 || x->dtype == ACL_COMPLEX128;
    if (!is_complex) {
        return op_map(op, &us_map_angle, op_angle_type(x->dtype), OPERANDS(x), OPERANDS(out), NO_NUMBERS);
    }
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View parts[] = {op_parts_of(x, true), op_parts_of(x, false)};
    const MapCall call = {.formula = &us_map_atan2, .compute = parts[0].dtype, .result = parts[0].dtype, .inputs = 2,
                          .outputs = 1, .items = 1};
    const PlannedView views[] = {{x, VIEW_READ, &parts[0]}, {x, VIEW_READ, &parts[1]}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 3, views);
}

aclnnStatus op_polar(OpCall *op, const Operand *modulus, const Operand *angle, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const MapCall call = {.formula = &us_map_polar, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 2,
                          .outputs = 2, .items = 1};
    const View parts[] = {op_parts_of(out, false), op_parts_of(out, true)};
    const PlannedView views[] = {{modulus, VIEW_READ, NULL}, {angle, VIEW_READ, NULL}, {out, VIEW_WRITE, &parts[0]},
                                 {out, VIEW_WRITE, &parts[1]}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}
