#include "kernels/move/weave.h"

#include "kernels/move/interleave.h"
#include "tensor/parallel.h"

/* The last axes are few elements, packed in `to`, that are alike in `from` for neighbours: they are rows of the axis before
 * them, which becomes the last. */
typedef struct Weave {
    Move move;
    Interleaved rows;
    int64_t blocks, columns; /* of a run: blocks of so many columns */
    int64_t units, units_of_piece; /* a unit: a block of a run */
} Weave;

static bool is_weave(Weave *weave, const Move *from)
{
    Move *move = &weave->move;
    Interleaved *rows = &weave->rows;
    *move = *from;
    *rows = (Interleaved){.rows = 1, .element = move->element};
    for (; move->rank > 0; move->rank--) {
        const Axis *axis = &move->axes[move->rank - 1];
        if (axis->to != rows->rows * move->element || axis->from == move->element ||
            rows->rows * axis->size > INTERLEAVED_ROWS) {
            break;
        }
        for (int64_t k = rows->rows; k < rows->rows * axis->size; k++) {
            rows->offsets[k] = rows->offsets[k - rows->rows] + axis->from;
        }
        rows->rows *= axis->size;
    }
    const Axis *last = move->rank > 0 ? &move->axes[move->rank - 1] : NULL;
    const bool is_power = rows->rows > 1 && (rows->rows & (rows->rows - 1)) == 0;
    if (!is_power || !last || move->element > 8 || last->to != rows->rows * move->element || last->from != move->element ||
        last->size * move->element < INTERLEAVED_BYTES) {
        return false;
    }
    const int64_t most = PIECE_BYTES / (rows->rows * move->element), runs = move->count / rows->rows / last->size;
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
