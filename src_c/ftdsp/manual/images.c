/* Operators on images: gradients of pooling and resizing, regions, crops (ft-dsp-manual 4). */
#include "ftdsp/manual.h"
#include "kernels/pool/pooling.h"
#include "kernels/resample/image.h"
#include "kernels/resample/resize_gradient.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

/* [batch, channels, height, width] over memory with the channels last */
static View channels_last(const FtCall *call, const void *data, int64_t batch, int64_t height, int64_t width,
                          int64_t channels)
{
    View view = us_view_contiguous((void *)data, call->dtype, 4, (int64_t[]){batch, channels, height, width});
    const int64_t strides[] = {height * width * channels, 1, width * channels, channels};
    memcpy(view.strides, strides, sizeof strides);
    return view;
}

void ft_op_avgpoolinggrad(FtCall *call, const FtAvgpoolinggrad *a)
{
    const int64_t sizes[] = {a->batch, a->channel, a->output_h, a->output_w, a->input_h, a->input_w};
    if (us_shape_elements(6, sizes) == 0) { /* the sizes beside an empty axis may multiply to anything */
        return;
    }
    const View slopes = channels_last(call, a->input, a->batch, a->output_h, a->output_w, a->channel);
    const View output = channels_last(call, a->output, a->batch, a->input_h, a->input_w, a->channel);
    const Pooling pooling = {.mode = POOLING_AVERAGE, .window = {1, a->window_h, a->window_w},
                             .padding = {0, a->pad_u, a->pad_l}, .stride = {1, a->stride_h, a->stride_w},
                             .alpha = 1, .beta = 1};
    ft_finish(call, us_pooling_backward((View[]){us_view_absent(), slopes, us_view_absent(), output}, &pooling));
}

enum { FORMAT_NHWC, FORMAT_NCHW }; /* the page's own numbers */

static void resize(FtCall *call, const FtResizebilineargrad *a, ResizeKind kind)
{
    const double highest = a->height_scale > a->width_scale ? a->height_scale : a->width_scale;
    ft_require(call, a->height_scale >= 0 && a->width_scale >= 0 && isfinite(highest), "height_scale", "range",
               FT_BAD_ATTRIBUTE, "the scales are %g and %g", a->height_scale, a->width_scale);
    const ResizeGradient work = {a->in_addr, a->out_addr, call->dtype, kind, a->format == FORMAT_NCHW, a->batch_size,
                                 a->channel, {a->in_height, a->in_width}, {a->out_height, a->out_width},
                                 {a->height_scale, a->width_scale}};
    if (ft_ok(call) && a->channel > 0) {
        ft_finish(call, us_resize_gradient(&work));
    }
}

void ft_op_resizebilineargrad(FtCall *call, const FtResizebilineargrad *a)
{
    resize(call, a, RESIZE_BILINEAR);
}

void ft_op_resizenearestneighborgrad(FtCall *call, const FtResizenearestneighborgrad *a)
{
    const FtResizebilineargrad same = {a->in_addr, a->out_addr, a->batch_size, a->channel, a->format, a->align_corners,
                                       a->in_height, a->in_width, a->out_height, a->out_width, a->height_scale,
                                       a->width_scale};
    resize(call, &same, a->align_corners ? RESIZE_NEAREST_ROUNDED : RESIZE_NEAREST);
}

void ft_op_roipooling(FtCall *call, const FtRoipooling *a)
{
    for (int64_t k = 0; ft_ok(call) && k < 5 * (int64_t)a->num_rois; k++) {
        double value;
        us_load_double(&value, (const char *)a->roi + ft_bytes(k, a->S), a->S, 1, 1);
        ft_require(call, isfinite(value * a->scale) && (k % 5 != 0 || (value > -1 && value < a->input_n)), "roi", "range",
                   FT_BAD_ATTRIBUTE, "number %lld of region %lld is %g; there are %d images", (long long)(k % 5),
                   (long long)(k / 5), value, a->input_n);
    }
    if (ft_ok(call) && a->input_c > 0) {
        us_region_maximum(&(RegionMaximum){
            .image = a->in_ptr, .regions = a->roi, .out = a->out_ptr, .dtype = call->dtype, .region_dtype = a->S,
            .size = {a->input_h, a->input_w}, .channels = a->input_c, .count = a->num_rois,
            .pooled = {a->pooled_height, a->pooled_width}, .scale = a->scale});
    }
}

void ft_op_crop_and_resize(FtCall *call, const FtCropAndResize *a)
{
    ft_require(call, a->param, "param", "null", FT_BAD_POINTER, "param is NULL");
    const Shape from = ft_ok(call) ? ft_shape(call, "input_shape_", a->param->input_shape_, 4) : (Shape){0};
    const Shape to = ft_ok(call) ? ft_shape(call, "output_shape_", a->param->output_shape_, 4) : (Shape){0};
    ft_require(call, from.size[3] == to.size[3], "output_shape_", "mismatch", FT_BAD_SIZE,
               "the image has %lld channels, the output %lld", (long long)from.size[3], (long long)to.size[3]);
    ft_require(call, to.elements == 0 || (from.size[1] > 0 && from.size[2] > 0), "input_shape_", "empty", FT_BAD_SIZE,
               "an image has no elements");
    const int64_t boxes = ft_ok(call) ? to.size[0] : 0, bytes = ft_bytes(to.elements, call->dtype);
    ft_operand(call, "src", a->src, from.elements, call->dtype);
    ft_operand(call, "dst", a->dst, to.elements, call->dtype);
    ft_operand(call, "box_idx", a->box_idx, boxes, DTYPE_INT32);
    ft_operand(call, "boxes", a->boxes, 4 * boxes, DTYPE_FLOAT32);
    ft_apart(call, "dst", a->dst, bytes, "src", a->src, ft_bytes(from.elements, call->dtype));
    ft_apart(call, "dst", a->dst, bytes, "box_idx", a->box_idx, ft_bytes(boxes, DTYPE_INT32));
    ft_apart(call, "dst", a->dst, bytes, "boxes", a->boxes, ft_bytes(4 * boxes, DTYPE_FLOAT32));
    for (int64_t k = 0; ft_ok(call) && k < boxes; k++) {
        const int image = ((const int *)a->box_idx)[k];
        ft_require(call, image >= 0 && image < from.size[0], "box_idx", "range", FT_BAD_ATTRIBUTE,
                   "box %lld is of image %d of %lld", (long long)k, image, (long long)from.size[0]);
    }
    if (ft_ok(call) && to.elements > 0) {
        us_box_crop(&(BoxCrop){.images = a->src, .box_image = a->box_idx, .boxes = a->boxes, .out = a->dst,
                               .dtype = call->dtype, .size = {from.size[1], from.size[2]}, .channels = from.size[3],
                               .count = boxes, .crop = {to.size[1], to.size[2]}, .outside = a->extrapolation_value});
    }
}
