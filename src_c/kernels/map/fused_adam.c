#include "kernels/map/fused_adam.h"

#include "kernels/map/formulas.h"

enum { FOUND, SCALE, ITEMS, MOST_OPERANDS = 9 };

static double number_of(const View *view, double otherwise)
{
    return us_view_is_absent(view)       ? otherwise
           : view->dtype == DTYPE_INT64 ? (double)*(const int64_t *)view->data
                                        : (double)*(const float *)view->data;
}

/* Step, weight, gradient, m, v[, largest]. */
static KernelStatus step_item(const View *item, MapCall call, bool amsgrad)
{
    View views[MOST_OPERANDS];
    int32_t count = 0;
    for (int32_t i = 1; i < (amsgrad ? 6 : 5); i++) {
        views[count++] = item[i];
    }
    views[count++] = item[1];
    for (int32_t i = 3; i < (amsgrad ? 6 : 5); i++) {
        views[count++] = item[i];
    }
    call.numbers[0].real = number_of(&item[0], 0);
    return us_map(views, &call);
}

KernelStatus us_fused_adam_w(const View *views, const void *attributes)
{
    const FusedAdamW *how = attributes;
    const bool amsgrad = how->amsgrad;
    const MapCall call = {.formula = amsgrad ? &us_map_fused_adam_w_amsgrad : &us_map_fused_adam_w, .compute = DTYPE_FLOAT32,
                          .result = DTYPE_FLOAT32, .inputs = 4 + amsgrad, .outputs = 3 + amsgrad, .items = 1,
                          .numbers = {{0}, {.real = how->rate}, {.real = how->beta1}, {.real = how->beta2},
                                      {.real = how->weight_decay}, {.real = how->eps}, {.real = how->maximize},
                                      {.real = number_of(&views[SCALE], 1)}}};
    KernelStatus status = KERNEL_OK;
    const int32_t items = number_of(&views[FOUND], 0) == 1 ? 0 : how->items;
    for (int32_t item = 0; item < items && status == KERNEL_OK; item++) {
        status = step_item(views + ITEMS + item * (5 + amsgrad), call, amsgrad);
    }
    return status;
}
