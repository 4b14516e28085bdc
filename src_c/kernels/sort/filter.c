#include "kernels/sort/filter.h"

#include "kernels/maths/maths.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "kernels/sort/sort.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { SCORES, P, K, OUT };

typedef struct Filter {
    const View *views;
    int64_t columns;
    const char *sorted; /* the rows in ascending order, of the scores' type */
    int64_t *order;
    float *numbers; /* a row for each row */
} Filter;

/* How many of the smallest are left out for the row's k. */
static int64_t below_k(const Filter *work, int64_t row, const float *sorted)
{
    const double k = us_view_is_absent(&work->views[K]) ? 0 : us_line_number(&work->views[K], row);
    if (k < 1 || k > (double)work->columns) {
        return 0;
    }
    int64_t first = work->columns - (int64_t)k;
    while (first > 0 && !(sorted[first - 1] < sorted[first])) {
        first--;
    }
    return first;
}

/* How many are left out for the row's p, of which `first` are already. */
static int64_t below_p(const Filter *work, int64_t row, float *sorted, int64_t first)
{
    if (us_view_is_absent(&work->views[P])) {
        return first;
    }
    const float largest = sorted[work->columns - 1];
    const double rest = 1 - us_line_number(&work->views[P], row);
    double total = 0, sum = 0;
    for (int64_t i = first; i < work->columns; i++) {
        sorted[i] = exp_float(sorted[i] - largest);
        total += (double)sorted[i];
    }
    for (; first < work->columns - 1; first++) {
        sum += (double)sorted[first] / total;
        if (!(sum <= rest)) {
            break;
        }
    }
    return first;
}

static void filter_row(void *context, int64_t row)
{
    const Filter *work = context;
    const Line out = us_line_of(&work->views[OUT], 1, row);
    const DType dtype = work->views[SCORES].dtype;
    float *sorted = work->numbers + row * work->columns;
    us_load_float(sorted, work->sorted + row * work->columns * (int64_t)us_dtype_size(dtype), dtype, 1, work->columns);
    const int64_t left_out = below_p(work, row, sorted, below_k(work, row, sorted));
    const float nothing = -INFINITY;
    for (int64_t i = 0; i < left_out; i++) {
        us_store_float(us_line_element(&out, work->order[row * work->columns + i]), out.dtype, 1, &nothing, 1);
    }
}

KernelStatus us_filter_scores(const View *views, const void *attributes)
{
    (void)attributes;
    const int64_t rows = views[SCORES].shape[0], columns = views[SCORES].shape[1];
    Filter work = {.views = views, .columns = columns};
    if (us_view_is_empty(&views[SCORES])) {
        return KERNEL_OK;
    }
    const int64_t count = us_view_elements(&views[SCORES]);
    const size_t values = us_scratch_bytes(count, us_dtype_size(views[SCORES].dtype));
    const size_t order = us_scratch_bytes(count, sizeof *work.order), numbers = us_scratch_bytes(count, sizeof *work.numbers);
    char *block = us_scratch_take(values + order + numbers + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    char *sorted = us_scratch_part(&cursor, values);
    work.sorted = sorted;
    work.order = us_scratch_part(&cursor, order);
    work.numbers = us_scratch_part(&cursor, numbers);
    const int64_t *shape = views[SCORES].shape;
    const View results[] = {views[SCORES], us_view_contiguous(sorted, views[SCORES].dtype, 2, shape),
                            us_view_contiguous(work.order, DTYPE_INT64, 2, shape)};
    const KernelStatus status = us_sort(results, &(SortLines){.axis = 1});
    if (status == KERNEL_OK) {
        us_copy_view(&views[OUT], &views[SCORES]);
        us_parallel(rows, filter_row, &work);
    }
    us_scratch_give_back(block);
    return status;
}
