#include "kernels/routing/routing.h"

#include "kernels/routing/integers.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { LIMIT = US_GATE_EXPERTS, PIECE_ELEMENTS = 8 * 1024 };
enum { SCORES, SLOPES, CHOSEN, GRADIENT };

typedef struct Gradients {
    const GateGradient *call;
    const View *views;
    int64_t rows, experts, choices, piece_rows;
} Gradients;

static KernelStatus check_experts(const Gradients *work)
{
    for (int64_t row = 0; row < work->rows; row++) {
        for (int64_t i = 0; i < work->choices; i++) {
            const int64_t expert = us_integer_at(&work->views[CHOSEN], row, i);
            if (expert < 0 || expert >= work->experts) {
                return us_kernel_fault("expert %lld of row %lld is %lld, which is not in 0 … %lld", (long long)i, (long long)row,
                                       (long long)expert, (long long)work->experts - 1);
            }
        }
    }
    return KERNEL_OK;
}

static void form_row(const Gradients *work, int64_t row)
{
    float scores[LIMIT], slopes[LIMIT], line[LIMIT];
    double by_scores[LIMIT], sum = work->call->eps, share = 0;
    us_row_load(&work->views[SCORES], row, 0, work->experts, scores);
    us_row_load(&work->views[SLOPES], row, 0, work->choices, slopes);
    for (int64_t i = 0; i < work->choices; i++) {
        sum += (double)scores[us_integer_at(&work->views[CHOSEN], row, i)];
    }
    for (int64_t i = 0; i < work->choices; i++) {
        share += (double)scores[us_integer_at(&work->views[CHOSEN], row, i)] / sum * (work->call->factor * (double)slopes[i]);
    }
    memset(by_scores, 0, (size_t)work->experts * sizeof *by_scores);
    for (int64_t i = 0; i < work->choices; i++) {
        by_scores[us_integer_at(&work->views[CHOSEN], row, i)] += (work->call->factor * (double)slopes[i] - share) / sum;
    }
    for (int64_t e = 0; e < work->experts; e++) {
        line[e] = (float)((double)scores[e] * (1 - (double)scores[e]) * by_scores[e]);
    }
    us_row_store(&work->views[GRADIENT], row, 0, work->experts, line);
}

static void form_piece(void *context, int64_t piece)
{
    const Gradients *work = context;
    const int64_t begin = piece * work->piece_rows;
    for (int64_t row = begin; row < smaller(begin + work->piece_rows, work->rows); row++) {
        form_row(work, row);
    }
}

KernelStatus us_gate_tokens_backward(const View *views, const void *attributes)
{
    Gradients work = {.call = attributes, .views = views, .rows = views[SCORES].shape[0], .experts = views[SCORES].shape[1],
                      .choices = views[CHOSEN].shape[1]};
    work.piece_rows = PIECE_ELEMENTS / work.experts + 1;
    const KernelStatus status = check_experts(&work);
    if (status == KERNEL_OK) {
        us_parallel(ceiling(work.rows, work.piece_rows), form_piece, &work);
    }
    return status;
}
