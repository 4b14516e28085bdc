#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/part.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { TILE = 512, PIECE_ELEMENTS = 16 * 1024 };
enum { SLOPES, TOKENS, PLACES, TOKEN_GRADIENT, SCALE, SCALE_GRADIENT, BIAS, EXPERT };

typedef struct Gradients {
    const View *views;
    int64_t choices, count; /* count: rows * choices */
    bool drops;
    const PlacePart *part;
    int64_t width, token_rows, piece_rows;
    int64_t *places, *owners; /* owners: the last f whose place is this one, -1: none */
    int64_t *experts;         /* of each f; NULL: no bias */
} Gradients;

static int64_t tile_at(int64_t width, int64_t column)
{
    return width - column < TILE ? width - column : TILE;
}

static KernelStatus read_numbers(const Gradients *work, int view, int64_t *to, int64_t lowest, int64_t limit)
{
    us_reshape((const View[]){work->views[view], us_view_contiguous(to, DTYPE_INT64, 1, &work->count)}, NULL);
    for (int64_t f = 0; f < work->count; f++) {
        if (to[f] < lowest || to[f] >= limit) {
            return us_kernel_fault("%s %lld of %lld is %lld, which is not in %lld … %lld",
                                   view == PLACES ? "place" : "expert number", (long long)f, (long long)work->count,
                                   (long long)to[f], (long long)lowest, (long long)limit - 1);
        }
    }
    return KERNEL_OK;
}

static KernelStatus read_all(const Gradients *work)
{
    const int64_t limit = work->part->given ? work->part->limit : work->drops ? work->token_rows : work->count;
    const KernelStatus status = read_numbers(work, PLACES, work->places, work->drops ? -1 : 0, limit);
    us_take_part(work->part, work->places, work->count);
    return status != KERNEL_OK || !work->experts
               ? status
               : read_numbers(work, EXPERT, work->experts, 0, work->views[BIAS].shape[0]);
}

static void find_owners(const Gradients *work)
{
    memset(work->owners, -1, (size_t)work->token_rows * sizeof *work->owners);
    for (int64_t f = 0; f < work->count; f++) {
        const int64_t place = work->places[f];
        if (place >= 0 && place < work->token_rows) {
            work->owners[place] = f;
        }
    }
}

static void form_token(const Gradients *work, int64_t place)
{
    const int64_t f = work->owners[place];
    float scale = 1, line[TILE] = {0};
    if (f >= 0 && !us_view_is_absent(&work->views[SCALE])) {
        us_row_load(&work->views[SCALE], f / work->choices, f % work->choices, 1, &scale);
    }
    for (int64_t column = 0, count; column < work->width; column += count) {
        count = tile_at(work->width, column);
        if (f >= 0) {
            us_row_load(&work->views[SLOPES], f / work->choices, column, count, line);
            for (int64_t i = 0; i < count; i++) {
                line[i] *= scale;
            }
        }
        us_row_store(&work->views[TOKEN_GRADIENT], place, column, count, line);
    }
}

static void form_scale(const Gradients *work, int64_t f)
{
    double sum = 0;
    for (int64_t column = 0, count; column < work->width && work->places[f] < work->token_rows; column += count) {
        float slopes[TILE], token[TILE] = {0}, bias[TILE] = {0};
        count = tile_at(work->width, column);
        us_row_load(&work->views[SLOPES], f / work->choices, column, count, slopes);
        if (work->places[f] >= 0) {
            us_row_load(&work->views[TOKENS], work->places[f], column, count, token);
        }
        if (work->experts) {
            us_row_load(&work->views[BIAS], work->experts[f], column, count, bias);
        }
        for (int64_t i = 0; i < count; i++) {
            sum += (double)slopes[i] * ((double)token[i] + (double)bias[i]);
        }
    }
    const float rounded = (float)sum;
    us_row_store(&work->views[SCALE_GRADIENT], f / work->choices, f % work->choices, 1, &rounded);
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

static void form_all(Gradients *work)
{
    find_owners(work);
    us_parallel((work->token_rows + work->piece_rows - 1) / work->piece_rows, form_tokens, work);
    if (!us_view_is_absent(&work->views[SCALE_GRADIENT])) {
        us_parallel((work->count + work->piece_rows - 1) / work->piece_rows, form_scales, work);
    }
}

KernelStatus us_combine_tokens_backward(const View *views, const void *attributes)
{
    const CombineTokensBackward *call = attributes;
    const View *gradient = &views[TOKEN_GRADIENT];
    Gradients work = {.views = views, .choices = call->choices, .count = views[SLOPES].shape[0] * call->choices,
                      .drops = call->drops, .part = &call->part, .width = views[SLOPES].shape[1],
                      .token_rows = us_shape_elements(gradient->rank - 1, gradient->shape)};
    const size_t numbers = us_scratch_bytes(work.count, sizeof(int64_t));
    const size_t owners = us_scratch_bytes(work.token_rows, sizeof(int64_t));
    char *block = us_scratch_take(2 * numbers + owners + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.places = us_scratch_part(&cursor, numbers);
    work.owners = us_scratch_part(&cursor, owners);
    work.experts = us_view_is_absent(&views[BIAS]) ? NULL : us_scratch_part(&cursor, numbers);
    work.piece_rows = PIECE_ELEMENTS / (work.width + 1) + 1;
    const KernelStatus status = read_all(&work);
    if (status == KERNEL_OK) {
        form_all(&work);
    }
    us_scratch_give_back(block);
    return status;
}
