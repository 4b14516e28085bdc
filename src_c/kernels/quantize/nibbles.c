#include "kernels/quantize/nibbles.h"

#include "kernels/pieces.h"

enum { PIECE_BYTES = 16384 };

typedef struct Unpacking {
    const View *bytes;
    int8_t *to;
    int32_t axis;
    int64_t lines, piece_lines;
} Unpacking;

static void unpack_line(const uint8_t *from, int64_t step, int64_t count, int8_t *to)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t byte = from[i * step];
        to[2 * i] = (int8_t)((byte & 15) ^ 8) - 8;
        to[2 * i + 1] = (int8_t)((byte >> 4) ^ 8) - 8;
    }
}

static void unpack_lines(void *context, int64_t piece)
{
    const Unpacking *work = context;
    const View *bytes = work->bytes;
    const int64_t count = bytes->shape[work->axis], first = piece * work->piece_lines;
    for (int64_t line = first; line < first + work->piece_lines && line < work->lines; line++) {
        int64_t rest = line, offset = 0;
        for (int32_t axis = bytes->rank - 1; axis >= 0; axis--) {
            if (axis != work->axis) {
                offset += rest % bytes->shape[axis] * bytes->strides[axis];
                rest /= bytes->shape[axis];
            }
        }
        unpack_line((const uint8_t *)bytes->data + offset, bytes->strides[work->axis], count,
                    work->to + 2 * line * count);
    }
}

View us_unpack_nibbles(const View *bytes, int32_t axis, int8_t *space)
{
    View result = *bytes;
    result.data = space;
    result.dtype = DTYPE_INT8;
    result.shape[axis] *= 2;
    result.strides[axis] = 1;
    int64_t stride = result.shape[axis];
    for (int32_t other = bytes->rank - 1; other >= 0; other--) {
        if (other != axis) {
            result.strides[other] = stride;
            stride *= result.shape[other];
        }
    }
    const int64_t count = us_view_elements(bytes), length = bytes->shape[axis];
    if (count > 0) {
        Unpacking work = {bytes, space, axis, count / length, length < PIECE_BYTES ? PIECE_BYTES / length : 1};
        run_pieces((work.lines + work.piece_lines - 1) / work.piece_lines, count, unpack_lines, &work);
    }
    return result;
}

static int32_t nearest_nibble(float number)
{
    return number >= 7 ? 7 : number > -8 ? (int32_t)number : number <= -8 ? -8 : 0;
}

void us_nibbles_to_bytes(const float *numbers, int64_t count, float *bytes)
{
    for (int64_t i = 0; i < count; i++) {
        const int32_t low = nearest_nibble(numbers[2 * i]), high = nearest_nibble(numbers[2 * i + 1]);
        bytes[i] = (float)((low & 15) | (high & 15) << 4);
    }
}

/* From the end, so that no byte is overwritten before it is read. */
void us_bytes_to_nibbles(const float *bytes, int64_t count, float *numbers)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        const int32_t byte = (int32_t)bytes[i];
        numbers[2 * i] = (float)(((byte & 15) ^ 8) - 8);
        numbers[2 * i + 1] = (float)(((byte >> 4) ^ 8) - 8);
    }
}
