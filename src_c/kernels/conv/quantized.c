#include "kernels/conv/quantized.h"

#include "kernels/map/formulas.h"
#include "kernels/map/map.h"
#include "kernels/scratch.h"

enum { X, W, SCALE, BIAS, Y };

/* [K] as [K, 1, …], which broadcasts to the results. */
static View by_channel(View view, int32_t axes)
{
    while (!us_view_is_absent(&view) && view.rank < axes + 1) {
        view = us_view_insert_axis(view, view.rank, 1, 0);
    }
    return view;
}

static KernelStatus scale_sums(const View *views, const View *sums, int32_t axes)
{
    const View scale = by_channel(views[SCALE], axes), bias = by_channel(views[BIAS], axes);
    const bool biased = !us_view_is_absent(&bias);
    const MapCall call = {.formula = biased ? &us_map_addcmul : &us_map_mul, .compute = DTYPE_FLOAT64,
                          .result = DTYPE_FLOAT64, .inputs = biased ? 3 : 2, .outputs = 1, .items = 1,
                          .numbers = {{1, 0, 1}}};
    const View operands[] = {bias, *sums, scale, views[Y]};
    return us_map(biased ? operands : operands + 1, &call);
}

KernelStatus us_conv_quantized(const View *views, const void *attributes)
{
    Convolution conv = *(const Convolution *)attributes;
    const View *y = &views[Y];
    conv.alpha = 1;
    conv.beta = conv.addend_scale = 0;
    double *space = us_scratch_array(us_view_elements(y), sizeof *space);
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View sums = us_view_contiguous(space, DTYPE_FLOAT64, y->rank, y->shape), absent = us_view_absent();
    KernelStatus status = us_conv_forward((const View[]){views[X], views[W], absent, absent, sums}, &conv);
    status = status == KERNEL_OK ? scale_sums(views, &sums, conv.axes) : status;
    us_scratch_give_back(space);
    return status;
}
