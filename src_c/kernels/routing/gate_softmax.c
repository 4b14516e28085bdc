/* Experts by softmax: all by other kernels. */
#include "kernels/routing/routing.h"

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

/* First the softmax, into scratch where nobody wants it. */
static KernelStatus weigh_first(const View *views)
{
    const View *x = &views[X];
    View scores = views[SCORES];
    void *block = NULL;
    if (us_view_is_absent(&scores)) {
        block = us_scratch_array(us_view_elements(x), sizeof(float));
        if (block == NULL) {
            return KERNEL_NO_MEMORY;
        }
        scores = us_view_contiguous(block, DTYPE_FLOAT32, x->rank, x->shape);
    }
    const KernelStatus status = soften(x, &scores);
    const KernelStatus chosen = status == KERNEL_OK ? choose(&scores, &views[WEIGHTS], &views[CHOSEN]) : status;
    us_scratch_give_back(block);
    return chosen;
}

static KernelStatus choose_first(const View *views)
{
    const View *x = &views[X], *weights = &views[WEIGHTS];
    void *block = us_scratch_array(us_view_elements(weights), us_dtype_size(x->dtype));
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View best = us_view_contiguous(block, x->dtype, weights->rank, weights->shape);
    const KernelStatus status = choose(x, &best, &views[CHOSEN]);
    const KernelStatus weighed = status == KERNEL_OK ? soften(&best, weights) : status;
    us_scratch_give_back(block);
    return weighed;
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
    const KernelStatus status = ((const GateBySoftmax *)attributes)->late ? choose_first(views) : weigh_first(views);
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
