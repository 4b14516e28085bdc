#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/integers.h"
#include "kernels/routing/part.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { TILE = 512, PIECE_ELEMENTS = 16 * 1024 };
enum { TOKENS, PLACES, OUT, SCALE, BIAS, EXPERT, FIRST, SECOND, X, ALPHA1, ALPHA2, CONSTANT };
enum { COPY_PLACE = -2, CONSTANT_PLACE = -3 }; /* in the place of a place: of an expert without tokens of its own */

typedef struct Combination {
    const CombineTokens *call;
    const CombineWithExperts *special; /* NULL: all experts have tokens */
    const View *views;
    int64_t rows, width, piece_rows;
    int64_t places, token_rows;
    int64_t *place, *expert; /* in the order of their views; expert NULL: not needed */
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
        work->expert = is_given(work, BIAS) || work->special ? us_scratch_part(&cursor, size) : NULL;
    }
    return block;
}

static void read_numbers(const Combination *work, int view, int64_t *to)
{
    us_reshape((const View[]){work->views[view], us_view_contiguous(to, DTYPE_INT64, 1, &work->places)}, NULL);
}

static KernelStatus check_place(const Combination *work, int64_t i)
{
    const CombineTokens *call = work->call;
    const int64_t lowest = call->drops ? -1 : 0;
    const int64_t limit = call->part.given ? call->part.limit : call->drops ? work->token_rows : work->places;
    const bool fits = work->place[i] >= lowest && work->place[i] < limit;
    return fits ? KERNEL_OK : us_integer_fault("place", work->place, i, work->places, lowest, limit);
}

static KernelStatus check_expert(const Combination *work, int64_t f)
{
    const int64_t limit = is_given(work, BIAS) ? work->views[BIAS].shape[0] : INT64_MAX;
    const bool fits = !is_given(work, BIAS) || (work->expert[f] >= 0 && work->expert[f] < limit);
    return fits ? KERNEL_OK : us_integer_fault("expert number", work->expert, f, work->places, 0, limit);
}

static int64_t index_of_place(const Combination *work, int64_t row, int64_t k)
{
    return work->call->by_columns ? k * work->rows + row : row * work->call->choices + k;
}

static bool is_in(const ExpertRange *range, int64_t expert)
{
    return expert >= range->begin && expert < range->end;
}

static KernelStatus read_special(const Combination *work, int64_t row, int64_t k)
{
    const int64_t f = row * work->call->choices + k, i = index_of_place(work, row, k), expert = work->expert[f];
    if (is_in(&work->special->zero, expert)) {
        work->place[i] = INT64_MAX;
        return KERNEL_OK;
    }
    const bool copies = is_in(&work->special->copying, expert), is_constant = is_in(&work->special->constant, expert);
    const KernelStatus status = copies || is_constant ? KERNEL_OK : check_place(work, i);
    work->place[i] = copies ? COPY_PLACE : is_constant ? CONSTANT_PLACE : work->place[i];
    return status == KERNEL_OK ? check_expert(work, f) : status;
}

static KernelStatus read_all(const Combination *work)
{
    KernelStatus status = KERNEL_OK;
    read_numbers(work, PLACES, work->place);
    if (work->expert) {
        read_numbers(work, EXPERT, work->expert);
    }
    for (int64_t i = 0; i < work->places && status == KERNEL_OK && !work->special; i++) {
        status = check_place(work, i);
    }
    for (int64_t f = 0; f < work->places && status == KERNEL_OK; f++) {
        const int64_t choices = work->call->choices;
        status = work->special ? read_special(work, f / choices, f % choices) : work->expert ? check_expert(work, f) : KERNEL_OK;
    }
    us_take_part(&work->call->part, work->place, work->places);
    return status;
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
    return work->place[index_of_place(work, row, k)];
}

/* alpha1 * x + alpha2 * constant; `token` has x. */
static void form_constant(const Combination *work, int64_t number, int64_t begin, int64_t count, float *token)
{
    float alpha[TILE], constant[TILE];
    us_row_load(&work->views[ALPHA1], number, begin, count, alpha);
    for (int64_t i = 0; i < count; i++) {
        token[i] *= alpha[i];
    }
    us_row_load(&work->views[ALPHA2], number, begin, count, alpha);
    us_row_load(&work->views[CONSTANT], number, begin, count, constant);
    for (int64_t i = 0; i < count; i++) {
        const float term = alpha[i] * constant[i];
        token[i] += term;
    }
}

static void load_token(const Combination *work, int64_t row, int64_t k, int64_t begin, int64_t count, float *token)
{
    const int64_t place = place_of(work, row, k);
    if (place == -1) {
        memset(token, 0, (size_t)count * sizeof *token);
        return;
    }
    us_row_load(&work->views[place >= 0 ? TOKENS : X], place >= 0 ? place : row, begin, count, token);
    if (place == CONSTANT_PLACE) {
        form_constant(work, work->expert[row * work->call->choices + k] - work->special->constant.begin, begin, count, token);
    }
}

static void add_token(const Combination *work, int64_t row, int64_t k, int64_t begin, int64_t count, float *sums)
{
    const int64_t choices = work->call->choices;
    float token[TILE], line[TILE], scale = 1;
    if (place_of(work, row, k) >= work->token_rows) {
        return;
    }
    load_token(work, row, k, begin, count, token);
    if (is_given(work, BIAS)) {
        add_optional(work, BIAS, token, line, work->expert[row * choices + k], begin, count);
    }
    if (is_given(work, SCALE)) {
        us_row_load(&work->views[SCALE], row, k, 1, &scale);
    }
    add_scaled(sums, token, scale, count);
}

/* What the same columns of a row will need. Inline, or GCC takes it out. */
US_ALWAYS_INLINE void fetch(const Combination *work, int64_t row, int64_t begin, int64_t count)
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
    const int64_t begin = piece * work->piece_rows, end = smaller(begin + work->piece_rows, work->rows);
    float sums[TILE], line[TILE];
    for (int64_t row = begin; row < end; row++) {
        for (int64_t column = 0; column < work->width; column += TILE) {
            const int64_t count = smaller(work->width - column, TILE);
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

static KernelStatus combine(const View *views, const CombineTokens *call, const CombineWithExperts *special)
{
    const View *tokens = &views[TOKENS], *out = &views[OUT];
    Combination work = {.call = call, .special = special, .views = views, .rows = out->shape[0], .width = out->shape[1]};
    if (work.rows == 0) { /* of any width */
        return KERNEL_OK;
    }
    work.places = work.rows * work.call->choices;
    work.token_rows = us_shape_elements(tokens->rank - 1, tokens->shape);
    work.piece_rows = PIECE_ELEMENTS / (work.width * work.call->choices + 1) + 1;
    void *block = take_numbers(&work);
    const KernelStatus status = block ? read_all(&work) : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK && work.width > 0) { /* without columns there may be more rows than time */
        us_parallel(ceiling(work.rows, work.piece_rows), combine_piece, &work);
    }
    us_scratch_give_back(block);
    return status;
}

KernelStatus us_combine_tokens(const View *views, const void *attributes)
{
    return combine(views, attributes, NULL);
}

KernelStatus us_combine_with_experts(const View *views, const void *attributes)
{
    const CombineWithExperts *how = attributes;
    return combine(views, &how->call, how);
}
