#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/integers.h"
#include "kernels/scratch.h"

enum { EXPERTS, TABLE, PLACED, SCALES, THRESHOLD, ACTIVE, MASK };

/* Which of an expert's places it has, from 1 on, as in its row of the table. */
static int64_t place_of(const BalanceExperts *call, int64_t row, int64_t count)
{
    const int64_t ranks = (call->ranks + count - 1) / count; /* that share a place */
    return call->by_rows ? row % count + 1 : call->rank / ranks + 1;
}

static KernelStatus place_expert(const View *views, const BalanceExperts *call, int64_t row, int64_t i, int64_t *placed)
{
    const View *table = &views[TABLE];
    const int64_t expert = us_integer_at(&views[EXPERTS], row, i), limit = table->shape[1] - 1;
    if (expert < 0 || expert >= table->shape[0]) {
        return us_kernel_fault("expert %lld of row %lld is %lld, which is not in 0 … %lld", (long long)i, (long long)row,
                               (long long)expert, (long long)table->shape[0] - 1);
    }
    const int64_t count = us_integer_at(table, expert, 0);
    if (count < 1 || count > limit) {
        return us_kernel_fault("expert %lld has %lld places, which is not in 1 … %lld", (long long)expert, (long long)count,
                               (long long)limit);
    }
    *placed = us_integer_at(table, expert, count == 1 ? 1 : place_of(call, row, count));
    return KERNEL_OK;
}

static KernelStatus place_experts(const View *views, const BalanceExperts *call, int64_t *placed)
{
    const int64_t choices = views[EXPERTS].shape[1], count = us_view_elements(&views[EXPERTS]);
    KernelStatus status = KERNEL_OK;
    for (int64_t f = 0; f < count && status == KERNEL_OK; f++) {
        status = place_expert(views, call, f / choices, f % choices, &placed[f]);
    }
    if (status == KERNEL_OK) {
        us_reshape((const View[]){us_view_contiguous(placed, DTYPE_INT64, 1, &count), views[PLACED]}, NULL);
    }
    return status;
}

static float number_at(const View *view, int64_t row, int64_t column)
{
    float number;
    us_row_load(view, row, column, 1, &number);
    return number;
}

static bool is_active(const View *active, int64_t row)
{
    const Line line = us_line_of(active, 0, 0);
    return line.data == NULL || *us_line_element(&line, row) != 0;
}

static void prune_row(const View *views, int64_t row)
{
    const Line mask = us_line_of(&views[MASK], 1, row);
    float sum = 0;
    for (int64_t i = 0; i < mask.size; i++) {
        sum += number_at(&views[SCALES], row, i);
    }
    for (int64_t i = 0; i < mask.size; i++) {
        const float least = sum * number_at(&views[THRESHOLD], 0, i);
        *us_line_element(&mask, i) = is_active(&views[ACTIVE], row) && number_at(&views[SCALES], row, i) >= least;
    }
}

KernelStatus us_balance_experts(const View *views, const void *attributes)
{
    int64_t *placed = us_scratch_array(us_view_elements(&views[EXPERTS]), sizeof(int64_t));
    if (placed == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const KernelStatus status = place_experts(views, attributes, placed);
    us_scratch_give_back(placed);
    const bool prunes = status == KERNEL_OK && !us_view_is_absent(&views[SCALES]);
    for (int64_t row = 0; prunes && row < views[MASK].shape[0]; row++) {
        prune_row(views, row);
    }
    return status;
}
