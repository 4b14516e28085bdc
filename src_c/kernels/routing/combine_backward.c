#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { TILE = 512, PIECE_ELEMENTS = 16 * 1024 };
enum { SLOPES, TOKENS, PLACES, TOKEN_GRADIENT, SCALE, SCALE_GRADIENT };

typedef struct Gradients {
    const View *views;
    int64_t choices, count; /* count: rows * choices */
    int64_t width, token_rows, piece_rows;
    int64_t *places, *owners; /* owners: the last f whose place is this one, -1: none */
} Gradients;

static int64_t tile_at(int64_t width, int64_t column)
{
    return width - column < TILE ? width - column : TILE;
}

static void load(float *to, const View *view, int64_t row, int64_t begin, int64_t count)
{
    const Line line = us_line_of(view, 1, row);
    us_load_float(to, us_line_element(&line, begin), line.dtype, line.stride, count);
}

static void store(const View *view, int64_t row, int64_t begin, const float *from, int64_t count)
{
    const Line line = us_line_of(view, 1, row);
    us_store_float(us_line_element(&line, begin), line.dtype, line.stride, from, count);
}

static KernelStatus find_owners(const Gradients *work)
{
    us_reshape((const View[]){work->views[PLACES], us_view_contiguous(work->places, DTYPE_INT64, 1, &work->count)}, NULL);
    memset(work->owners, -1, (size_t)work->token_rows * sizeof *work->owners);
    for (int64_t f = 0; f < work->count; f++) {
        const int64_t place = work->places[f];
        if (place < 0 || place >= work->count) {
            return us_kernel_fault("place %lld of %lld is %lld, which is not in 0 … %lld", (long long)f, (long long)work->count,
                                   (long long)place, (long long)work->count - 1);
        }
        if (place < work->token_rows) {
            work->owners[place] = f;
        }
    }
    return KERNEL_OK;
}

static void form_token(const Gradients *work, int64_t place)
{
    const int64_t f = work->owners[place];
    float scale = 1, line[TILE] = {0};
    if (f >= 0 && !us_view_is_absent(&work->views[SCALE])) {
        load(&scale, &work->views[SCALE], f / work->choices, f % work->choices, 1);
    }
    for (int64_t column = 0, count; column < work->width; column += count) {
        count = tile_at(work->width, column);
        if (f >= 0) {
            load(line, &work->views[SLOPES], f / work->choices, column, count);
            for (int64_t i = 0; i < count; i++) {
                line[i] *= scale;
            }
        }
        store(&work->views[TOKEN_GRADIENT], place, column, line, count);
    }
}

static void form_scale(const Gradients *work, int64_t f)
{
    double sum = 0;
    for (int64_t column = 0, count; column < work->width && work->places[f] < work->token_rows; column += count) {
        float slopes[TILE], token[TILE];
        count = tile_at(work->width, column);
        load(slopes, &work->views[SLOPES], f / work->choices, column, count);
        load(token, &work->views[TOKENS], work->places[f], column, count);
        for (int64_t i = 0; i < count; i++) {
            sum += (double)slopes[i] * token[i];
        }
    }
    const float rounded = (float)sum;
    store(&work->views[SCALE_GRADIENT], f / work->choices, f % work->choices, &rounded, 1);
}

static void form_tokens(void *context, int64_t piece)
{
    const Gradients *work = context;
    const int64_t begin = piece * work->piece_rows, rest = work->token_rows - begin;
    for (int64_t place = begin; place < begin + (rest < work->piece_rows ? rest : work->piece_rows); place++) {
        form_token(work, place);
    }
}

static void form_scales(void *context, int64_t piece)
{
    const Gradients *work = context;
    const int64_t begin = piece * work->piece_rows, rest = work->count - begin;
    for (int64_t f = begin; f < begin + (rest < work->piece_rows ? rest : work->piece_rows); f++) {
        form_scale(work, f);
    }
}

KernelStatus us_combine_tokens_backward(const View *views, const void *attributes)
{
    const CombineTokensBackward *call = attributes;
    Gradients work = {.views = views, .choices = call->choices, .count = views[SLOPES].shape[0] * call->choices,
                      .width = views[SLOPES].shape[1], .token_rows = views[TOKEN_GRADIENT].shape[0]};
    const size_t places = us_scratch_round((size_t)work.count * sizeof(int64_t));
    const size_t owners = us_scratch_round((size_t)work.token_rows * sizeof(int64_t));
    char *block = us_scratch_take(places + owners + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.places = us_scratch_part(&cursor, places);
    work.owners = us_scratch_part(&cursor, owners);
    work.piece_rows = PIECE_ELEMENTS / (work.width + 1) + 1;
    const KernelStatus status = find_owners(&work);
    if (status == KERNEL_OK) {
        us_parallel((work.token_rows + work.piece_rows - 1) / work.piece_rows, form_tokens, &work);
    }
    if (status == KERNEL_OK && !us_view_is_absent(&views[SCALE_GRADIENT])) {
        us_parallel((work.count + work.piece_rows - 1) / work.piece_rows, form_scales, &work);
    }
    us_scratch_give_back(block);
    return status;
}
