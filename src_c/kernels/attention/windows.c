#include "kernels/attention/windows.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

typedef struct Windows {
    const View *slopes, *x, *y, *slopes_of_x, *slopes_of_weight; /* those that the kernel has */
    const View *slots, *pages; /* NULL: none */
    const int64_t *first;
    float *weights; /* [L, N] */
    int64_t length, heads, depth, count;
    bool out_of_memory;
} Windows;

/* `rows` rows of all heads; NULL: no memory. */
static float *take_rows(Windows *work, int64_t rows)
{
    float *taken = us_scratch_array(us_scratch_count(rows, work->heads * work->depth), sizeof *taken);
    if (taken == NULL) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
    }
    return taken;
}

static void load_row(const Windows *work, const View *view, int64_t row, float *values)
{
    const int64_t size = work->heads * work->depth;
    us_linear_load_float(view, row * size, size, values);
}

/* sums += the row by the weights of place j. */
static void add_weighted(const Windows *work, int64_t j, const float *row, float *sums)
{
    const float *weights = work->weights + j * work->heads;
    for (int64_t n = 0; n < work->heads; n++) {
        for (int64_t d = n * work->depth; d < (n + 1) * work->depth; d++) {
            sums[d] += weights[n] * row[d];
        }
    }
}

/* The row of x that is row j of the window. */
static int64_t row_of(const Windows *work, int64_t window, int64_t j)
{
    const int64_t row = work->first[window] + j;
    if (work->pages == NULL) {
        return row;
    }
    const int64_t rows = work->x->shape[1];
    return attention_page_at(work->pages, window, row / rows) * rows + row % rows;
}

static int64_t slot_of(const Windows *work, int64_t window)
{
    return work->slots == NULL ? window : ((const int32_t *)work->slots->data)[window * work->slots->strides[0]];
}

static void sum_window(void *context, int64_t window)
{
    Windows *work = context;
    const int64_t size = work->heads * work->depth;
    float *sums = work->first[window] < 0 ? NULL : take_rows(work, 2);
    if (sums == NULL) {
        return;
    }
    memset(sums, 0, (size_t)size * sizeof *sums);
    for (int64_t j = 0; j < work->length; j++) {
        load_row(work, work->x, row_of(work, window, j), sums + size);
        add_weighted(work, j, sums + size, sums);
    }
    us_linear_store_float(work->y, slot_of(work, window) * size, size, sums);
    us_scratch_give_back(sums);
}

/* The first window that begins at the row or behind it. */
static int64_t window_from(const Windows *work, int64_t row)
{
    int64_t low = 0, high = work->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (work->first[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The slopes of a row: of all windows that it lies in, in their order. */
static void differentiate_row(void *context, int64_t row)
{
    Windows *work = context;
    const int64_t size = work->heads * work->depth;
    float *sums = take_rows(work, 2);
    if (sums == NULL) {
        return;
    }
    memset(sums, 0, (size_t)size * sizeof *sums);
    for (int64_t o = window_from(work, row - work->length + 1); o < work->count && work->first[o] <= row; o++) {
        load_row(work, work->slopes, o, sums + size);
        add_weighted(work, row - work->first[o], sums + size, sums);
    }
    us_linear_store_float(work->slopes_of_x, row * size, size, sums);
    us_scratch_give_back(sums);
}

/* The slopes of the weights of a place: rows' products in float, their sum in double. */
static void differentiate_place(void *context, int64_t j)
{
    Windows *work = context;
    const int64_t size = work->heads * work->depth;
    float *rows = take_rows(work, 2);
    double *sums = us_scratch_array(work->heads, sizeof *sums);
    if (rows != NULL && sums != NULL) {
        memset(sums, 0, (size_t)work->heads * sizeof *sums);
        for (int64_t o = 0; o < work->count; o++) {
            load_row(work, work->slopes, o, rows);
            load_row(work, work->x, work->first[o] + j, rows + size);
            for (int64_t n = 0; n < work->heads; n++) {
                sums[n] += inner_product(rows + n * work->depth, rows + size + n * work->depth, work->depth);
            }
        }
        us_linear_store_double(work->slopes_of_weight, j * work->heads, work->heads, sums);
    } else {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
    }
    us_scratch_give_back(sums);
    us_scratch_give_back(rows);
}

/* Windows of x; the weights are loaded until us_scratch_give_back(work->weights). */
static void begin(Windows *work, const View *x, const View *weight)
{
    work->x = x;
    work->length = weight->shape[0];
    work->heads = x->shape[x->rank - 2];
    work->depth = x->shape[x->rank - 1];
    const int64_t count = work->length * work->heads;
    work->weights = us_scratch_array(count, sizeof *work->weights);
    work->out_of_memory = work->weights == NULL;
    if (work->weights != NULL) {
        us_linear_load_float(weight, 0, count, work->weights);
    }
}

/* pieces of so many rows each. */
static void run(Windows *work, int64_t pieces, int64_t rows, ParallelBody *body)
{
    if (!work->out_of_memory) {
        run_pieces(pieces, pieces * rows * work->heads * work->depth, body, work);
    }
}

static KernelStatus end(Windows *work)
{
    us_scratch_give_back(work->weights);
    return work->out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_windows(const View *views, const void *attributes)
{
    Windows work = {.y = &views[2], .first = attributes, .count = views[2].shape[0]};
    begin(&work, &views[0], &views[1]);
    run(&work, work.count, work.length, sum_window);
    return end(&work);
}

KernelStatus us_windows_backward(const View *views, const void *attributes)
{
    Windows work = {.slopes = &views[0], .slopes_of_x = &views[3], .slopes_of_weight = &views[4], .first = attributes,
                    .count = views[0].shape[0]};
    begin(&work, &views[1], &views[2]);
    run(&work, work.x->shape[0], 1, differentiate_row);
    run(&work, work.length, work.count, differentiate_place);
    return end(&work);
}

/* Whether what the windows name is there. */
static KernelStatus check_places(const Windows *work)
{
    const int64_t slots = work->y->shape[0], pages = work->x->shape[0], rows = work->x->shape[1];
    for (int64_t window = 0; window < work->count; window++) {
        const int64_t first = work->first[window], slot = slot_of(work, window);
        if (first >= 0 && (slot < 0 || slot >= slots)) {
            return us_kernel_fault("slot %lld of sequence %lld is outside a cache of %lld rows", (long long)slot,
                                   (long long)window,
                                   (long long)slots);
        }
        for (int64_t i = first / rows; work->pages != NULL && first >= 0 && i <= (first + work->length - 1) / rows; i++) {
            const int64_t page = attention_page_at(work->pages, window, i);
            if (page < 0 || page >= pages) {
                return us_kernel_fault("page %lld of sequence %lld is number %lld of %lld", (long long)i, (long long)window,
                                       (long long)page, (long long)pages);
            }
        }
    }
    return KERNEL_OK;
}

KernelStatus us_cached_windows(const View *views, const void *attributes)
{
    Windows work = {.y = &views[4], .slots = &views[2], .pages = us_view_is_absent(&views[3]) ? NULL : &views[3],
                    .first = attributes, .count = views[2].shape[0]};
    begin(&work, &views[0], &views[1]);
    const KernelStatus found = check_places(&work);
    run(&work, found == KERNEL_OK ? work.count : 0, work.length, sum_window);
    const KernelStatus status = end(&work);
    return found != KERNEL_OK ? found : status;
}
