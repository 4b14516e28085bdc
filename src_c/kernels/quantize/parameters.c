#include "kernels/quantize/parameters.h"

#include "tensor/axes.h"

#include <string.h>

enum { SCALE, OFFSET, OUT, OPERANDS, TILE = 256, LOWEST = -256, HIGHEST = 255, OFFSET_BIT = 37, OFFSET_BITS = 0x1ff };
#define SCALE_BITS UINT32_C(0xffffe000)
#define ALWAYS (UINT64_C(1) << 46)

static int64_t nearest(float offset)
{
    const float whole = __builtin_truncf(offset), rest = offset - whole; /* exact */
    const float result = whole + (rest >= 0.5f) - (rest <= -0.5f);
    return result >= HIGHEST ? HIGHEST : result >= LOWEST ? (int64_t)result : result < LOWEST ? LOWEST : 0;
}

uint64_t us_quantize_parameter(float scale, float offset)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    return (bits & SCALE_BITS) | ALWAYS | ((uint64_t)nearest(offset) & OFFSET_BITS) << OFFSET_BIT;
}

int64_t us_parameter_offset(uint64_t parameter)
{
    const int64_t bits = (int64_t)(parameter >> OFFSET_BIT & OFFSET_BITS);
    return bits > HIGHEST ? bits - OFFSET_BITS - 1 : bits;
}

/* Half of what the last 13 bits are short of; a carry goes into the exponent. */
static void round_scales(float *scales, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &scales[i], sizeof bits);
        bits += (~SCALE_BITS + 1) / 2;
        memcpy(&scales[i], &bits, sizeof bits);
    }
}

KernelStatus us_quantize_parameters(const View *views, const void *attributes)
{
    const QuantizeParameters *how = attributes;
    const View *out = &views[OUT];
    const bool shifts = !us_view_is_absent(&views[OFFSET]);
    const int64_t count = us_view_elements(out);
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){&views[SCALE], shifts ? &views[OFFSET] : out, out}, OPERANDS, 0, out->rank);
    for (int64_t begin = 0; begin < count; begin += TILE) {
        const int64_t size = count - begin < TILE ? count - begin : TILE;
        float scale[TILE], offset[TILE] = {0};
        uint64_t result[TILE];
        us_axes_load(&axes, SCALE, views[SCALE].data, views[SCALE].dtype, begin, size, LANE_FLOAT, scale);
        if (how->rounded) {
            round_scales(scale, size);
        }
        if (shifts) {
            us_axes_load(&axes, OFFSET, views[OFFSET].data, views[OFFSET].dtype, begin, size, LANE_FLOAT, offset);
        }
        for (int64_t i = 0; i < size; i++) {
            result[i] = us_quantize_parameter(scale[i], offset[i]);
        }
        us_axes_store(&axes, OUT, out->data, out->dtype, begin, size, LANE_UINT64, result);
    }
    return KERNEL_OK;
}
