#include "kernels/matmul/e4m3.h"

#include "kernels/scratch.h"
#include "tensor/parallel.h"

#include <math.h>
#include <string.h>

typedef struct Widening {
    const unsigned char *from;
    float *to;
    int64_t batch_stride, line_stride, lines, count; /* of bytes: numbers of a line are neighbours */
    float values[256];
} Widening;

static float value_of(unsigned byte)
{
    const uint32_t magnitude = byte & 0x7fu, bits = (magnitude << 20) + (120u << 23); /* exponents count from 7 and 127 */
    float value = (float)magnitude * 0x1p-9f; /* without an exponent, eighths of 2^-6 */
    if (magnitude >= 8) {
        memcpy(&value, &bits, sizeof value);
    }
    value = magnitude == 0x7f ? NAN : value;
    return byte >= 0x80 ? -value : value;
}

static void widen_line(void *context, int64_t line)
{
    const Widening *widening = context;
    const unsigned char *from = widening->from + line / widening->lines * widening->batch_stride +
                                line % widening->lines * widening->line_stride;
    float *to = widening->to + line * widening->count;
    for (int64_t i = 0; i < widening->count; i++) {
        to[i] = widening->values[from[i]];
    }
}

float *us_e4m3_widen(View *view)
{
    const int along = view->strides[2] == 1 ? 2 : 1, across = 3 - along;
    const int64_t batch = view->strides[0] == 0 ? 1 : view->shape[0];
    Widening widening = {.from = view->data, .batch_stride = view->strides[0], .line_stride = view->strides[across],
                         .lines = view->shape[across], .count = view->shape[along]};
    const int64_t elements = batch * widening.lines * widening.count;
    widening.to = us_scratch_array(elements, sizeof(float));
    if (widening.to == NULL) {
        return NULL;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        widening.values[byte] = value_of(byte);
    }
    us_parallel(elements == 0 ? 0 : batch * widening.lines, widen_line, &widening);
    view->data = widening.to;
    view->dtype = DTYPE_FLOAT32;
    view->strides[0] = batch == 1 ? 0 : widening.lines * widening.count;
    view->strides[across] = widening.count;
    view->strides[along] = 1;
    return widening.to;
}
