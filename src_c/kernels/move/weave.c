#include "kernels/move/weave.h"

#include "kernels/move/interleave.h"
#include "tensor/parallel.h"

#include <string.h>

/* Elements of a few rows take turns: in `to`, in whose last axes they are packed, while the axis before those are neighbours in
 * `from`, and becomes the last; or in `from`, apart, packed in axes before the last one. */
typedef struct Weave {
    Move move;
    Interleaved rows;
    int64_t blocks, columns; /* of a run: blocks of so many columns */
    int64_t units, units_of_piece; /* a unit: a block of a run */
} Weave;

/* Axis d is one more of the rows. False: there are too many. */
static bool add_rows(Weave *weave, int d)
{
    Move *move = &weave->move;
    Interleaved *rows = &weave->rows;
    const Axis axis = move->axes[d];
    if (axis.size > INTERLEAVED_ROWS / rows->rows) {
        return false;
    }
    for (int64_t k = rows->rows; k < rows->rows * axis.size; k++) {
        rows->offsets[k] = rows->offsets[k - rows->rows] + (rows->apart ? axis.to : axis.from);
    }
    rows->rows *= axis.size;
    move->rank--;
    memmove(&move->axes[d], &move->axes[d + 1], (size_t)(move->rank - d) * sizeof *move->axes);
    return true;
}

/* The axis along which `from` has packed what follows the rows that there are; not the last. -1: none. */
static int next_apart(const Weave *weave)
{
    const Move *move = &weave->move;
    int d = move->rank - 2;
    while (d >= 0 && move->axes[d].from != weave->rows.rows * move->element) {
        d--;
    }
    return d;
}

static void find_rows(Weave *weave, const Move *from)
{
    Move *move = &weave->move;
    Interleaved *rows = &weave->rows;
    *move = *from;
    *rows = (Interleaved){.rows = 1, .element = move->element};
    while (move->rank > 0 && move->axes[move->rank - 1].to == rows->rows * move->element &&
           move->axes[move->rank - 1].from != move->element && add_rows(weave, move->rank - 1)) {
    }
    if (rows->rows == 1) {
        rows->apart = true;
        for (int d = next_apart(weave); d >= 0 && add_rows(weave, d); d = next_apart(weave)) {
        }
    }
}

static bool is_weave(Weave *weave, const Move *from)
{
    find_rows(weave, from);
    const Move *move = &weave->move;
    const int64_t rows = weave->rows.rows, size = move->element;
    const Axis *last = move->rank > 0 ? &move->axes[move->rank - 1] : NULL;
    const bool fits = rows > 1 && ((rows & (rows - 1)) == 0 || rows == 3) && size <= 8;
    if (!fits || !last || (weave->rows.apart ? last->from : last->to) != rows * size ||
        (weave->rows.apart ? last->to : last->from) != size || last->size * size < INTERLEAVED_BYTES) {
        return false;
    }
    const int64_t most = PIECE_BYTES / (rows * size), runs = move->count / rows / last->size;
    weave->columns = smaller(last->size, most);
    weave->blocks = (last->size + weave->columns - 1) / weave->columns;
    weave->units = runs * weave->blocks;
    weave->units_of_piece = (most + weave->columns - 1) / weave->columns;
    return true;
}

static void copy_blocks(const Weave *weave, int64_t unit)
{
    const Move *move = &weave->move;
    const Axis *last = &move->axes[move->rank - 1];
    const Place place = place_of(move, unit / weave->blocks);
    const int64_t first = unit % weave->blocks * weave->columns;
    Interleaved rows = weave->rows;
    rows.columns = smaller(last->size - first, weave->columns);
    us_interleave(&rows, move->to + place.to + first * last->to, 0, move->from + place.from + first * last->from, 0, 1);
}

static void weave_piece(void *context, int64_t piece)
{
    const Weave *weave = context;
    const Move *move = &weave->move;
    const int inner = move->rank - 2;
    int64_t unit = piece * weave->units_of_piece;
    const int64_t end = smaller(unit + weave->units_of_piece, weave->units);
    if (weave->blocks > 1 || inner < 0) {
        for (; unit < end; unit++) {
            copy_blocks(weave, unit);
        }
        return;
    }
    Interleaved rows = weave->rows;
    rows.columns = weave->columns;
    Place place = place_of(move, unit);
    for (int64_t count; unit < end; unit += count) {
        count = smaller(end - unit, move->axes[inner].size - place.index[inner]);
        us_interleave(&rows, move->to + place.to, move->axes[inner].to, move->from + place.from, move->axes[inner].from, count);
        advance(move, &place, inner, count);
    }
}

bool us_weave(const Move *move)
{
    Weave weave;
    if (!is_weave(&weave, move)) {
        return false;
    }
    us_parallel((weave.units + weave.units_of_piece - 1) / weave.units_of_piece, weave_piece, &weave);
    return true;
}
