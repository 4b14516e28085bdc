/* Steps of optimizers by name. */
#include "ascend/op_compiler/calls.h"
#include "kernels/map/formulas.h"

#include <math.h>

/* What the host knows stands between the tensors. */
enum { WEIGHTS, M, V, POWER1, POWER2, RATE, BETA1, BETA2, EPSILON, GRADIENT, INPUTS };
enum { KEPT = 3 };

static void require_tensors(Named *named)
{
    named_require_input(named, WEIGHTS, -1);
    if (named->call.status != 0) {
        return;
    }
    const View *weights = &named->inputs[WEIGHTS];
    us_require(&named->call, us_dtype_is_float(weights->dtype) && weights->dtype != DTYPE_FLOAT64, "inputDesc", "type",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input 0 of %s is of type %s; it must be float32, float16 or bfloat16",
               named->type, us_dtype_name(weights->dtype));
    static const int8_t others[] = {M, V, GRADIENT};
    for (int32_t i = 0; i < KEPT; i++) {
        named_require_input(named, others[i], -1);
        named_require_shape(named, true, others[i], weights->dtype, weights->rank, weights->shape);
        named_require_shape(named, false, i, weights->dtype, weights->rank, weights->shape);
    }
}

/* Weights, m, v; powers of beta1 and beta2, rate, beta1, beta2, epsilon; the gradient. Results are the first three. */
void named_apply_adam(Named *named)
{
    double given[INPUTS] = {0};
    named_require_counts(named, INPUTS, INPUTS, KEPT);
    for (int32_t i = POWER1; i <= EPSILON; i++) {
        given[i] = call_number(named, i);
    }
    const bool ahead = named_bool(named, "use_nesterov", false);
    require_tensors(named);
    const double numbers[] = {given[BETA1], given[BETA2], given[EPSILON],
                              given[RATE] * sqrt(1 - given[POWER2]) / (1 - given[POWER1]), ahead};
    MapCall call = {.formula = &us_map_adam, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = KEPT + 1,
                    .outputs = KEPT, .items = 1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        call.numbers[i].real = numbers[i];
    }
    static const int8_t reads[] = {M, V, GRADIENT, WEIGHTS}, writes[] = {M, V, WEIGHTS};
    NamedViews views = {.count = 0};
    for (size_t i = 0; i < sizeof reads; i++) {
        named_read(&views, &named->inputs[reads[i]]);
    }
    for (size_t i = 0; i < sizeof writes; i++) {
        named_write(&views, &named->outputs[writes[i]]);
    }
    named_run(named, us_map, &views, &call, sizeof call);
}
