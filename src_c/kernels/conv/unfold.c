#include "kernels/conv/unfold.h"

#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <stdatomic.h>
#include <string.h>

/* Image `n` of a view, of which the first axis is left out. */
static View part_of(const View *view, int64_t n)
{
    View part = *view;
    part.data = (char *)view->data + n * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
    part.rank--;
    for (int32_t axis = 0; axis < part.rank; axis++) {
        part.shape[axis] = view->shape[axis + 1];
        part.strides[axis] = view->strides[axis + 1];
    }
    return part;
}

KernelStatus us_conv_unfold(const View *views, const void *attributes)
{
    KernelStatus status = KERNEL_OK;
    for (int64_t n = 0; n < views[0].shape[0] && status == KERNEL_OK; n++) {
        View image = views[0];
        image.data = part_of(&views[0], n).data;
        image.shape[0] = 1;
        const View operands[] = {image, part_of(&views[1], n)};
        status = us_conv_columns(operands, attributes);
    }
    return status;
}

typedef struct Folding {
    const ConvColumns *columns;
    View from, to;
    atomic_bool no_memory;
} Folding;

/* Adds a row of columns to a plane, tap (y, x) of its windows. */
static void add_tap(const Folding *folding, int64_t y, int64_t x, const float *row, float *plane)
{
    const ConvColumns *columns = folding->columns;
    const Convolution *conv = &columns->conv;
    const int64_t height = folding->to.shape[2], width = folding->to.shape[3];
    for (int64_t i = 0; i < columns->positions[0]; i++) {
        const int64_t h = i * conv->stride[0] - conv->padding[0] + y * conv->dilation[0];
        for (int64_t j = 0; h >= 0 && h < height && j < columns->positions[1]; j++) {
            const int64_t w = j * conv->stride[1] - conv->padding[1] + x * conv->dilation[1];
            if (w >= 0 && w < width) {
                plane[h * width + w] += row[i * columns->positions[1] + j];
            }
        }
    }
}

static void fold_plane(void *context, int64_t index)
{
    Folding *folding = context;
    const View *to = &folding->to;
    const int64_t *taps = folding->columns->taps, *positions = folding->columns->positions;
    const int64_t count = positions[0] * positions[1], height = to->shape[2], width = to->shape[3];
    const int64_t n = index / to->shape[1], channel = index % to->shape[1];
    const View columns = part_of(&folding->from, n), image = part_of(to, n);
    float *plane = us_scratch_array(height * width + count, sizeof *plane);
    if (plane == NULL) {
        atomic_store(&folding->no_memory, true);
        return;
    }
    float *row = plane + height * width;
    memset(plane, 0, (size_t)(height * width) * sizeof *plane);
    for (int64_t tap = 0; tap < taps[0] * taps[1]; tap++) {
        const int64_t at = (channel * taps[0] * taps[1] + tap) * columns.strides[0];
        us_load_float(row, (const char *)columns.data + at * (int64_t)us_dtype_size(columns.dtype), columns.dtype,
                      columns.strides[1], count);
        add_tap(folding, tap / taps[1], tap % taps[1], row, plane);
    }
    for (int64_t h = 0; h < height; h++) {
        const int64_t at = channel * image.strides[0] + h * image.strides[1];
        us_store_float((char *)image.data + at * (int64_t)us_dtype_size(image.dtype), image.dtype, image.strides[2],
                       plane + h * width, width);
    }
    us_scratch_give_back(plane);
}

KernelStatus us_conv_fold(const View *views, const void *attributes)
{
    Folding folding = {.columns = attributes, .from = views[0], .to = views[1]};
    atomic_init(&folding.no_memory, false);
    run_pieces(views[1].shape[0] * views[1].shape[1], us_view_elements(&views[0]), fold_plane, &folding);
    return atomic_load(&folding.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
