#include "kernels/quantize/packing.h"

#include "kernels/pieces.h"

enum { NUMBERS, BYTES, BITS = 15 };

static uint8_t pair_of(const int32_t *row, int64_t step, int64_t at, int64_t columns)
{
    const int32_t low = at < columns ? row[at * step] & BITS : 0, high = at + 1 < columns ? row[(at + 1) * step] & BITS : 0;
    return (uint8_t)(low | high << 4);
}

static void pack_part(const int32_t *row, int64_t step, int64_t columns, uint8_t *to, int64_t to_step, int64_t count)
{
    const int64_t whole = columns / 2 < count ? columns / 2 : count;
    for (int64_t i = 0; i < whole; i++) {
        to[i * to_step] = (uint8_t)((row[2 * i * step] & BITS) | (row[(2 * i + 1) * step] & BITS) << 4);
    }
    for (int64_t i = whole; i < count; i++) {
        to[i * to_step] = pair_of(row, step, 2 * i, columns);
    }
}

static void pack_line(void *context, int64_t line)
{
    const View *numbers = (const View *)context + NUMBERS, *bytes = (const View *)context + BYTES;
    const int64_t item = line / bytes->shape[1], row = line % bytes->shape[1];
    const int64_t columns = row < numbers->shape[1] ? numbers->shape[2] : 0, count = bytes->shape[3];
    const int32_t *from = numbers->data;
    from += columns > 0 ? item * numbers->strides[0] + row * numbers->strides[1] : 0;
    uint8_t *to = (uint8_t *)bytes->data + item * bytes->strides[0] + row * bytes->strides[1];
    for (int64_t part = 0; part < bytes->shape[2]; part++) {
        const int64_t begin = 2 * part * count, rest = columns > begin ? columns - begin : 0;
        pack_part(rest > 0 ? from + begin * numbers->strides[2] : from, numbers->strides[2], rest,
                  to + part * bytes->strides[2], bytes->strides[3], count);
    }
}

KernelStatus us_pack_integers(const View *views, const void *attributes)
{
    (void)attributes;
    View both[] = {views[NUMBERS], views[BYTES]};
    run_pieces(both[BYTES].shape[0] * both[BYTES].shape[1], us_view_elements(&both[BYTES]), pack_line, both);
    return KERNEL_OK;
}
