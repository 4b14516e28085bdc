#include "kernels/move/copy_view.h"

#include "tensor/parallel.h"

#include <string.h>

enum { PIECE_BYTES = 64 * 1024 };

typedef struct Axis {
    int64_t size, to, from; /* strides */
} Axis;

/* The axes, outermost of `to` first; at least one. */
typedef struct Move {
    char *to;
    const char *from;
    int64_t element; /* bytes */
    int rank;
    Axis axes[VIEW_RANK_LIMIT];
    int64_t count, piece; /* elements */
} Move;

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Axes of size 1 dropped, sorted by the distance of their elements in `to`, merged where both views allow it. */
static void arrange(Move *move, const View *to, const View *from)
{
    Axis sorted[VIEW_RANK_LIMIT];
    int count = 0;
    for (int d = 0; d < to->rank; d++) {
        if (to->shape[d] == 1) {
            continue;
        }
        int place = count++;
        for (; place > 0 && magnitude(sorted[place - 1].to) < magnitude(to->strides[d]); place--) {
            sorted[place] = sorted[place - 1];
        }
        sorted[place] = (Axis){to->shape[d], to->strides[d], from->strides[d]};
    }
    for (int k = 0; k < count; k++) {
        Axis *last = &move->axes[move->rank - 1];
        const Axis *next = &sorted[k];
        if (move->rank > 0 && last->to == next->size * next->to && last->from == next->size * next->from) {
            *last = (Axis){last->size * next->size, next->to, next->from};
        } else {
            move->axes[move->rank++] = *next;
        }
    }
    if (move->rank == 0) {
        move->axes[move->rank++] = (Axis){1, 1, 1};
    }
}

#define STRIDED_RUN(type) \
    for (int64_t i = 0; i < count; i++) { \
        memcpy((type *)(void *)to + i * to_stride, (const type *)(const void *)from + i * from_stride, sizeof(type)); \
    }

typedef struct Pair {
    uint64_t halves[2];
} Pair;

static void copy_run(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t count, int64_t element)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)(count * element));
        return;
    }
    switch (element) {
    case 1:
        STRIDED_RUN(uint8_t)
        break;
    case 2:
        STRIDED_RUN(uint16_t)
        break;
    case 4:
        STRIDED_RUN(uint32_t)
        break;
    case 8:
        STRIDED_RUN(uint64_t)
        break;
    default:
        STRIDED_RUN(Pair)
        break;
    }
}

/* Elements in the order of the axes, a run along the last one at a time. */
static void copy_piece(void *context, int64_t piece)
{
    const Move *move = context;
    const Axis *last = &move->axes[move->rank - 1];
    int64_t at = piece * move->piece, rest = at / last->size, first = at % last->size;
    const int64_t end = move->count - at < move->piece ? move->count : at + move->piece;
    int64_t index[VIEW_RANK_LIMIT], to = 0, from = 0;
    for (int d = move->rank - 2; d >= 0; d--) {
        index[d] = rest % move->axes[d].size;
        rest /= move->axes[d].size;
        to += index[d] * move->axes[d].to;
        from += index[d] * move->axes[d].from;
    }
    while (at < end) {
        const int64_t count = end - at < last->size - first ? end - at : last->size - first;
        copy_run(move->to + (to + first * last->to) * move->element, last->to,
                 move->from + (from + first * last->from) * move->element, last->from, count, move->element);
        at += count;
        first = 0;
        for (int d = move->rank - 2; d >= 0; d--) {
            const Axis *axis = &move->axes[d];
            to += axis->to;
            from += axis->from;
            if (++index[d] < axis->size) {
                break;
            }
            index[d] = 0;
            to -= axis->size * axis->to;
            from -= axis->size * axis->from;
        }
    }
}

void us_copy_view(const View *to, const View *from)
{
    Move move = {.to = to->data, .from = from->data, .element = (int64_t)us_dtype_size(to->dtype)};
    move.count = us_view_elements(to);
    if (move.count <= 0) {
        return;
    }
    arrange(&move, to, from);
    move.piece = PIECE_BYTES / move.element;
    us_parallel((move.count + move.piece - 1) / move.piece, copy_piece, &move);
}
