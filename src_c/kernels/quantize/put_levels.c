#include "kernels/quantize/put_levels.h"

#include "kernels/index/spans.h"
#include "kernels/map/formulas.h"
#include "kernels/map/map.h"
#include "kernels/scratch.h"
#include "tensor/axes.h"

enum { PLACES, FROM, STEP, ZERO, TARGET };

/* Numbers of any sizes, in row-major order. */
static void gather(const View *view, float *to)
{
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){view}, 1, 0, view->rank);
    us_axes_load(&axes, 0, view->data, view->dtype, 0, us_view_elements(view), LANE_FLOAT, to);
}

static View for_columns_of(const View *from, float *numbers)
{
    const View line = us_view_contiguous(numbers, DTYPE_FLOAT32, 1, &from->shape[from->rank - 1]);
    return us_view_broadcast(&line, from->rank, from->shape);
}

KernelStatus us_put_levels(const View *views, const void *attributes)
{
    const View *from = &views[FROM];
    const bool shifts = !us_view_is_absent(&views[ZERO]);
    const int64_t columns = from->shape[from->rank - 1];
    float *steps = us_scratch_take(us_scratch_bytes(columns, 2 * sizeof *steps) +
                                   us_scratch_bytes(us_view_elements(from), sizeof(int8_t)));
    if (steps == NULL) {
        return KERNEL_NO_MEMORY;
    }
    float *zeros = steps + columns;
    gather(&views[STEP], steps);
    if (shifts) {
        gather(&views[ZERO], zeros);
    }
    const View levels = us_view_contiguous(zeros + columns, DTYPE_INT8, from->rank, from->shape);
    const MapCall call = {.formula = &us_map_rounded_quotient, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32,
                          .inputs = 3, .outputs = 1, .items = 1}; /* without zero points 0 */
    KernelStatus status = us_map((const View[]){*from, for_columns_of(from, steps),
                                                shifts ? for_columns_of(from, zeros) : us_view_absent(), levels}, &call);
    if (status == KERNEL_OK) {
        status = us_put_spans((const View[]){views[PLACES], us_view_absent(), levels, views[TARGET]}, attributes);
    }
    us_scratch_give_back(steps);
    return status;
}
