#include "kernels/routing/routing.h"

#include "kernels/routing/integers.h"
#include "kernels/routing/part.h"
#include "kernels/routing/slopes.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { PIECE_ELEMENTS = 16 * 1024 };
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

static KernelStatus read_all(const Gradients *work)
{
    const View *views = work->views;
    const int64_t limit = work->part->given ? work->part->limit : work->drops ? work->token_rows : work->count;
    KernelStatus status = us_read_integers(&views[PLACES], "place", work->drops ? -1 : 0, limit, work->count, work->places);
    us_take_part(work->part, work->places, work->count);
    if (status == KERNEL_OK && work->experts) {
        status = us_read_integers(&views[EXPERT], "expert number", 0, views[BIAS].shape[0], work->count, work->experts);
    }
    return status;
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
    float scale = 1;
    if (f >= 0 && !us_view_is_absent(&work->views[SCALE])) {
        us_row_load(&work->views[SCALE], f / work->choices, f % work->choices, 1, &scale);
    }
    us_put_slopes(&work->views[SLOPES], f < 0 ? -1 : f / work->choices, scale, &work->views[TOKEN_GRADIENT], place);
}

static void form_scale(const Gradients *work, int64_t f)
{
    const View *views = work->views;
    const int64_t row = f / work->choices, place = work->places[f], expert = work->experts ? work->experts[f] : -1;
    const bool is_there = place < work->token_rows;
    const float sum = is_there ? us_dot_slopes(&views[SLOPES], row, &views[TOKENS], place, &views[BIAS], expert) : 0;
    us_row_store(&views[SCALE_GRADIENT], row, f % work->choices, 1, &sum);
}

static void form_tokens(void *context, int64_t piece)
{
    const Gradients *work = context;
    const int64_t begin = piece * work->piece_rows;
    for (int64_t place = begin; place < smaller(begin + work->piece_rows, work->token_rows); place++) {
        form_token(work, place);
    }
}

static void form_scales(void *context, int64_t piece)
{
    const Gradients *work = context;
    const int64_t begin = piece * work->piece_rows;
    for (int64_t f = begin; f < smaller(begin + work->piece_rows, work->count); f++) {
        form_scale(work, f);
    }
}

static void form_all(Gradients *work)
{
    find_owners(work);
    us_parallel(ceiling(work->token_rows, work->piece_rows), form_tokens, work);
    if (!us_view_is_absent(&work->views[SCALE_GRADIENT])) {
        us_parallel(ceiling(work->count, work->piece_rows), form_scales, work);
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
