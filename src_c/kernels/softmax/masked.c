#include "kernels/softmax/masked.h"

#include "kernels/map/formulas.h"
#include "kernels/scratch.h"

static const Softmax ALONG_ROWS = {.algorithm = SOFTMAX_ACCURATE, .first_axis = 1, .last_axis = 1, .alpha = 1};

/* One plane of the first two axes, of which those of one element stand for all. */
static View plane_of(const View *view, int64_t image, int64_t channel)
{
    View plane = {.dtype = view->dtype, .rank = 2, .shape = {view->shape[2], view->shape[3]},
                  .strides = {view->strides[2], view->strides[3]}};
    const int64_t offset = (view->shape[0] > 1 ? image * view->strides[0] : 0) +
                           (view->shape[1] > 1 ? channel * view->strides[1] : 0);
    plane.data = (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
    return plane;
}

static KernelStatus scale_unless(const MaskedSoftmax *how, double fill, View x, View mask, View y)
{
    const MapCall call = {.formula = &us_map_scaled_unless, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 2,
                          .outputs = 1, .items = 1, .numbers = {{.real = how->scale}, {.real = fill}}};
    return us_map((const View[]){x, mask, y}, &call);
}

static KernelStatus forward(const View *views, const MaskedSoftmax *how, int64_t image, int64_t channel, View rows)
{
    const KernelStatus status = scale_unless(how, how->fill, plane_of(&views[0], image, channel),
                                             plane_of(&views[1], image, channel), rows);
    return status != KERNEL_OK ? status : us_softmax_forward((const View[]){rows, plane_of(&views[2], image, channel)},
                                                             &ALONG_ROWS);
}

static KernelStatus backward(const View *views, const MaskedSoftmax *how, int64_t image, int64_t channel, View rows)
{
    const View dy = plane_of(&views[0], image, channel), y = plane_of(&views[1], image, channel);
    const KernelStatus status = us_softmax_backward((const View[]){y, dy, rows}, &ALONG_ROWS);
    return status != KERNEL_OK ? status
                               : scale_unless(how, 0, rows, plane_of(&views[2], image, channel),
                                              plane_of(&views[3], image, channel));
}

typedef KernelStatus Step(const View *views, const MaskedSoftmax *how, int64_t image, int64_t channel, View rows);

/* Plane by plane, each by way of a plane of float32. */
static KernelStatus each_plane(const View *views, const void *attributes, Step *step)
{
    const int64_t *shape = views[0].shape;
    if (us_view_is_empty(&views[0])) {
        return KERNEL_OK;
    }
    float *scratch = us_scratch_array(us_scratch_count(shape[2], shape[3]), sizeof *scratch);
    const View rows = us_view_contiguous(scratch, DTYPE_FLOAT32, 2, shape + 2);
    KernelStatus status = scratch != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    for (int64_t plane = 0; plane < shape[0] * shape[1] && status == KERNEL_OK; plane++) {
        status = step(views, attributes, plane / shape[1], plane % shape[1], rows);
    }
    us_scratch_give_back(scratch);
    return status;
}

KernelStatus us_masked_softmax(const View *views, const void *attributes)
{
    return each_plane(views, attributes, forward);
}

KernelStatus us_masked_softmax_backward(const View *views, const void *attributes)
{
    return each_plane(views, attributes, backward);
}

/* What the view has of one batch of the first axis, of which one of one element stands for all. */
static View batch_of(const View *view, int64_t batch)
{
    if (us_view_is_absent(view)) {
        return *view;
    }
    View part = us_view_remove_axis(*view, 0);
    const int64_t offset = view->shape[0] > 1 ? batch * view->strides[0] : 0;
    part.data = (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
    return part;
}

/* rows = x * scale + mask + bias. */
static KernelStatus shift(View x, View mask, View bias, double scale, View rows)
{
    const MapCall call = {.formula = &us_map_add, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 2, .outputs = 1,
                          .items = 1, .numbers = {{.real = scale}}};
    const bool masked = !us_view_is_absent(&mask);
    const KernelStatus status = us_map((const View[]){masked ? mask : bias, x, rows}, &call);
    return status != KERNEL_OK || !masked ? status : us_map_floats(&us_map_sum, 2, (const View[]){rows, bias, rows});
}

/* Batch by batch, each by way of one of float32: windows have some dozen rows, a batch of them keeps all threads busy. */
KernelStatus us_shifted_softmax(const View *views, const void *attributes)
{
    const MaskedSoftmax *how = attributes;
    const View *y = &views[3];
    if (us_view_is_empty(y)) {
        return KERNEL_OK;
    }
    const Softmax along_rows = {.algorithm = SOFTMAX_ACCURATE, .first_axis = 3, .last_axis = 3, .alpha = 1};
    float *scratch = us_scratch_array(us_view_elements(y) / y->shape[0], sizeof *scratch);
    const View rows = us_view_contiguous(scratch, DTYPE_FLOAT32, 4, y->shape + 1);
    KernelStatus status = scratch != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    for (int64_t batch = 0; batch < y->shape[0] && status == KERNEL_OK; batch++) {
        status = shift(batch_of(&views[0], batch), batch_of(&views[1], batch), batch_of(&views[2], batch), how->scale, rows);
        status = status != KERNEL_OK ? status : us_softmax_forward((const View[]){rows, batch_of(y, batch)}, &along_rows);
    }
    us_scratch_give_back(scratch);
    return status;
}
