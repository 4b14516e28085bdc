/* Experts by softmax: all by other kernels. */
#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "kernels/sort/sort.h"

enum { X, FINISHED, WEIGHTS, CHOSEN, ROWS, SCORES };

static KernelStatus soften(const View *from, const View *to)
{
    const int32_t axis = from->rank - 1;
    return us_softmax_forward((const View[]){*from, *to},
                              &(Softmax){.algorithm = SOFTMAX_ACCURATE, .first_axis = axis, .last_axis = axis, .alpha = 1});
}

static KernelStatus choose(const View *from, const View *values, const View *chosen)
{
    return us_topk((const View[]){*from, *values, *chosen}, &(SortLines){.axis = from->rank - 1, .descending = true});
}

/* `scores`, a view of float32, has room for all; `best`, of what is chosen from, for what is chosen. */
static KernelStatus weigh(const View *views, bool late, const View *scores, const View *best)
{
    KernelStatus status = late ? KERNEL_OK : soften(&views[X], scores);
    status = status == KERNEL_OK ? choose(late ? &views[X] : scores, best, &views[CHOSEN]) : status;
    if (status == KERNEL_OK && late) {
        return soften(best, &views[WEIGHTS]);
    }
    return status == KERNEL_OK ? us_reshape((const View[]){*best, views[WEIGHTS]}, NULL) : status;
}

static KernelStatus weigh_in_scratch(const View *views, bool late)
{
    const View *x = &views[X], *weights = &views[WEIGHTS];
    const bool has_scores = late || !us_view_is_absent(&views[SCORES]);
    const DType type = late ? x->dtype : DTYPE_FLOAT32;
    const size_t all = has_scores ? 0 : us_scratch_bytes(us_view_elements(x), sizeof(float));
    const size_t few = us_scratch_bytes(us_view_elements(weights), us_dtype_size(type));
    char *block = us_scratch_take(all + few + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View made = us_view_contiguous(us_scratch_part(&cursor, all), DTYPE_FLOAT32, x->rank, x->shape);
    const View best = us_view_contiguous(us_scratch_part(&cursor, few), type, weights->rank, weights->shape);
    const KernelStatus status = weigh(views, late, has_scores ? &views[SCORES] : &made, &best);
    us_scratch_give_back(block);
    return status;
}

/* Number `number` of `chosen`'s lines. */
static void put_line(const View *view, int64_t number, int64_t first, int64_t step)
{
    const Line line = us_line_of(view, view->rank - 1, number);
    for (int64_t k = 0; k < line.size; k++) {
        *(int32_t *)us_line_element(&line, k) = (int32_t)(uint32_t)((uint64_t)first + (uint64_t)k * (uint64_t)step);
    }
}

static bool is_finished(const View *finished, int64_t row)
{
    View rows = us_view_insert_axis(*finished, finished->rank, 1, 0);
    return *us_line_of(&rows, finished->rank, row).data != 0;
}

KernelStatus us_gate_by_softmax(const View *views, const void *attributes)
{
    const View *x = &views[X], *chosen = &views[CHOSEN];
    const int64_t rows = us_shape_elements(x->rank - 1, x->shape);
    const KernelStatus status = weigh_in_scratch(views, ((const GateBySoftmax *)attributes)->late);
    for (int64_t row = 0; row < rows && status == KERNEL_OK && !us_view_is_empty(chosen); row++) {
        if (!us_view_is_absent(&views[FINISHED]) && is_finished(&views[FINISHED], row)) {
            put_line(chosen, row, x->shape[x->rank - 1], 0);
        }
        if (!us_view_is_absent(&views[ROWS])) {
            put_line(&views[ROWS], row, row, rows);
        }
    }
    return status;
}
