#include "kernels/blend/tensor_ops.h"

#include "kernels/detach.h"
#include "kernels/map/formulas.h"
#include "kernels/move/copy_view.h"

/* alpha1 a + beta c is a sum of its own. */
static bool adds_c(const TensorArithmetic *arithmetic)
{
    return arithmetic->operation == TENSOR_SCALE && arithmetic->beta != 0;
}

static const MapFormula *formula_of(const TensorArithmetic *arithmetic)
{
    const bool keeps_nan = arithmetic->propagate_nan;
    switch (arithmetic->operation) {
    case TENSOR_FILL: return &us_map_fill;
    case TENSOR_SCALE: return adds_c(arithmetic) ? &us_map_weighted_sum : &us_map_scale;
    case TENSOR_ADD: return &us_map_weighted_sum;
    case TENSOR_MULTIPLY: return &us_map_weighted_product;
    case TENSOR_MINIMUM: return keeps_nan ? &us_map_weighted_minimum : &us_map_weighted_minimum_number;
    case TENSOR_MAXIMUM: return keeps_nan ? &us_map_weighted_maximum : &us_map_weighted_maximum_number;
    case TENSOR_ROOT: return &us_map_scaled_root;
    case TENSOR_NOT: return &us_map_rest_of_one;
    }
    return NULL;
}

/* The type of all operands that are there, else float64 where one has that type, or float32. */
static DType compute_type(const View *views)
{
    bool differ = false, any_double = false;
    for (int k = 0; k < 3; k++) {
        differ |= !us_view_is_absent(&views[k]) && views[k].dtype != views[2].dtype;
        any_double |= views[k].dtype == DTYPE_FLOAT64;
    }
    return !differ ? views[2].dtype : any_double ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
}

/* a as it is, perhaps in another layout. */
static bool is_copy(const TensorArithmetic *arithmetic, const View *a, const View *c)
{
    return arithmetic->operation == TENSOR_SCALE && arithmetic->alpha1 == 1 && arithmetic->beta == 0 &&
           a->dtype == c->dtype && us_view_same_shape(a, c);
}

static KernelStatus copy(const View *a, const View *c)
{
    Detached detached;
    if (a->data == c->data && us_view_same_layout(a, c)) {
        return KERNEL_OK;
    }
    const KernelStatus status = us_detach(&detached, 1, a, 1, c);
    if (status == KERNEL_OK) {
        us_copy_view(c, &detached.inputs[0]);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_tensor_arithmetic(const View *views, const void *attributes)
{
    const TensorArithmetic *arithmetic = attributes;
    if (is_copy(arithmetic, &views[0], &views[2])) {
        return copy(&views[0], &views[2]);
    }
    const MapFormula *formula = formula_of(arithmetic);
    const View *c = &views[2], *second = adds_c(arithmetic) || us_view_is_absent(&views[1]) ? c : &views[1];
    const DType compute = compute_type(views);
    const MapCall call = {
        .formula = formula, .compute = compute, .result = compute, .inputs = formula->inputs, .outputs = 1, .items = 1,
        .numbers = {{.real = arithmetic->alpha1}, {.real = adds_c(arithmetic) ? arithmetic->beta : arithmetic->alpha2}},
        .blend = {arithmetic->beta != 0 && !adds_c(arithmetic), 1, arithmetic->beta},
    };
    return us_map((const View[]){views[0], formula->inputs == 2 ? *second : *c, *c}, &call);
}
