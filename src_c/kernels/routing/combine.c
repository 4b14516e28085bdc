#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/part.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { TILE = 512, PIECE_ELEMENTS = 16 * 1024 };
enum { TOKENS, PLACES, OUT, SCALE, BIAS, EXPERT, FIRST, SECOND };

typedef struct Combination {
    const CombineTokens *call;
    const View *views;
    int64_t rows, width, piece_rows;
    int64_t places, token_rows;
    int64_t *place, *expert; /* in the order of their views; expert NULL: no bias */
} Combination;

static bool is_given(const Combination *work, int view)
{
    return !us_view_is_absent(&work->views[view]);
}

/* ---- numbers ---- */

static void *take_numbers(Combination *work)
{
    const size_t size = us_scratch_bytes(work->places, sizeof(int64_t));
    char *block = us_scratch_take(2 * size + 64), *cursor = block;
    if (block) {
        work->place = us_scratch_part(&cursor, size);
        work->expert = is_given(work, BIAS) ? us_scratch_part(&cursor, size) : NULL;
    }
    return block;
}

static KernelStatus read_numbers(const Combination *work, const View *from, int64_t *to, int64_t lowest, int64_t limit)
{
    us_reshape((const View[]){*from, us_view_contiguous(to, DTYPE_INT64, 1, &work->places)}, NULL);
    for (int64_t i = 0; i < work->places; i++) {
        if (to[i] < lowest || to[i] >= limit) {
            return us_kernel_fault("%s %lld of %lld is %lld, which is not in %lld … %lld",
                                   to == work->place ? "place" : "expert number", (long long)i,
                                   (long long)work->places, (long long)to[i], (long long)lowest, (long long)limit - 1);
        }
    }
    return KERNEL_OK;
}

static KernelStatus read_all(const Combination *work)
{
    const bool drops = work->call->drops;
    const PlacePart *part = &work->call->part;
    const KernelStatus status = read_numbers(work, &work->views[PLACES], work->place, drops ? -1 : 0,
                                             part->given ? part->limit : drops ? work->token_rows : work->places);
    us_take_part(part, work->place, work->places);
    return status != KERNEL_OK || !work->expert
               ? status
               : read_numbers(work, &work->views[EXPERT], work->expert, 0, work->views[BIAS].shape[0]);
}

/* ---- sums ---- */

static void add(float *sums, const float *addend, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += addend[i];
    }
}

static void add_scaled(float *sums, const float *token, float scale, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float term = scale * token[i];
        sums[i] += term;
    }
}

static void add_optional(const Combination *work, int view, float *sums, float *line, int64_t row, int64_t begin,
                         int64_t count)
{
    if (is_given(work, view)) {
        us_row_load(&work->views[view], row, begin, count, line);
        add(sums, line, count);
    }
}

static int64_t place_of(const Combination *work, int64_t row, int64_t k)
{
    return work->place[work->call->by_columns ? k * work->rows + row : row * work->call->choices + k];
}

static void add_token(const Combination *work, int64_t row, int64_t k, int64_t begin, int64_t count, float *sums)
{
    const int64_t choices = work->call->choices, place = place_of(work, row, k);
    float token[TILE], line[TILE], scale = 1;
    if (place >= work->token_rows) {
        return;
    }
    if (place >= 0) {
        us_row_load(&work->views[TOKENS], place, begin, count, token);
    } else {
        memset(token, 0, (size_t)count * sizeof *token);
    }
    if (work->expert) {
        add_optional(work, BIAS, token, line, work->expert[row * choices + k], begin, count);
    }
    if (is_given(work, SCALE)) {
        us_row_load(&work->views[SCALE], row, k, 1, &scale);
    }
    add_scaled(sums, token, scale, count);
}

/* What the same columns of a row will need. */
static void fetch(const Combination *work, int64_t row, int64_t begin, int64_t count)
{
    if (row >= work->rows) {
        return;
    }
    for (int64_t k = 0; k < work->call->choices; k++) {
        const int64_t place = place_of(work, row, k);
        if (place >= 0 && place < work->token_rows) {
            us_row_fetch(&work->views[TOKENS], place, begin, count);
        }
    }
    us_row_fetch(&work->views[FIRST], row, begin, count);
    us_row_fetch(&work->views[SECOND], row, begin, count);
}

static void combine_piece(void *context, int64_t piece)
{
    const Combination *work = context;
    const int64_t begin = piece * work->piece_rows, rest = work->rows - begin;
    const int64_t end = begin + (rest < work->piece_rows ? rest : work->piece_rows);
    float sums[TILE], line[TILE];
    for (int64_t row = begin; row < end; row++) {
        for (int64_t column = 0; column < work->width; column += TILE) {
            const int64_t count = work->width - column < TILE ? work->width - column : TILE;
            fetch(work, row + 1, column, count);
            memset(sums, 0, (size_t)count * sizeof *sums);
            add_optional(work, FIRST, sums, line, row, column, count);
            add_optional(work, SECOND, sums, line, row, column, count);
            for (int64_t k = 0; k < work->call->choices; k++) {
                add_token(work, row, k, column, count, sums);
            }
            const Line out = us_line_of(&work->views[OUT], 1, row);
            us_store_float(us_line_element(&out, column), out.dtype, out.stride, sums, count);
        }
    }
}

KernelStatus us_combine_tokens(const View *views, const void *attributes)
{
    const View *tokens = &views[TOKENS], *out = &views[OUT];
    Combination work = {.call = attributes, .views = views, .rows = out->shape[0], .width = out->shape[1]};
    if (work.rows == 0) { /* of any width */
        return KERNEL_OK;
    }
    work.places = work.rows * work.call->choices;
    work.token_rows = us_shape_elements(tokens->rank - 1, tokens->shape);
    work.piece_rows = PIECE_ELEMENTS / (work.width * work.call->choices + 1) + 1;
    void *block = take_numbers(&work);
    const KernelStatus status = block ? read_all(&work) : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        us_parallel((work.rows + work.piece_rows - 1) / work.piece_rows, combine_piece, &work);
    }
    us_scratch_give_back(block);
    return status;
}
