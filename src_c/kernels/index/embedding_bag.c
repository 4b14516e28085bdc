#include "kernels/index/embedding_bag.h"

#include "tensor/convert.h"
#include "tensor/lane.h"
#include "tensor/parallel.h"

enum { TILE = 256 }; /* columns */

typedef struct Work {
    const View *table, *indices, *offsets, *scales, *output, *bag_of, *size_of, *maxima;
    EmbeddingBag call;
    int64_t count; /* of the indices */
} Work;

static int64_t get_integer(const View *view, int64_t index)
{
    int64_t value;
    us_convert(&value, DTYPE_INT64,
               (const char *)view->data + index * view->strides[0] * (int64_t)us_dtype_size(view->dtype),
               view->dtype, 1);
    return value;
}

static void put_integer(const View *view, int64_t place, int64_t value)
{
    us_convert((char *)view->data + place * (int64_t)us_dtype_size(view->dtype), view->dtype, &value, DTYPE_INT64, 1);
}

/* Where a bag begins; the number behind the last one: where it ends. */
static int64_t begin_of(const Work *work, int64_t bag)
{
    if (bag >= work->offsets->shape[0]) {
        return work->count;
    }
    const int64_t offset = get_integer(work->offsets, bag);
    return offset < 0 ? 0 : offset > work->count ? work->count : offset;
}

/* The table's row; -1: the index takes no part. */
static int64_t row_of(const Work *work, int64_t index)
{
    const int64_t row = get_integer(work->indices, index);
    return row == work->call.padding || row < 0 || row >= work->table->shape[0] ? -1 : row;
}

static double scale_of(const Work *work, int64_t index)
{
    double scale = 1;
    if (!us_view_is_absent(work->scales)) {
        us_load_double(&scale, (const char *)work->scales->data +
                                   index * work->scales->strides[0] * (int64_t)us_dtype_size(work->scales->dtype),
                       work->scales->dtype, 1, 1);
    }
    return scale;
}

static char *at(const View *view, int64_t row, int64_t column)
{
    return (char *)view->data +
        (row * view->strides[0] + column * view->strides[1]) * (int64_t)us_dtype_size(view->dtype);
}

/* Some columns of a bag. */
static void run_columns(const Work *work, int64_t bag, int64_t first, int64_t columns)
{
    const bool is_max = work->call.mode == BAG_MAX;
    double sums[TILE] = {0}, row[TILE];
    int64_t rows[TILE] = {0}, count = 0;
    for (int64_t i = begin_of(work, bag), end = begin_of(work, bag + 1); i < end; i++) {
        const int64_t number = row_of(work, i);
        if (number < 0) {
            continue;
        }
        const double scale = scale_of(work, i);
        us_load_double(row, at(work->table, number, first), work->table->dtype, work->table->strides[1], columns);
        for (int64_t k = 0; k < columns; k++) {
            const bool wins = is_max && (count == 0 || row[k] > sums[k]);
            sums[k] = wins ? row[k] : is_max ? sums[k] : sums[k] + scale * row[k];
            rows[k] = wins ? number : rows[k];
        }
        count++;
    }
    for (int64_t k = 0; k < columns && work->call.mode == BAG_MEAN && count > 0; k++) {
        sums[k] /= (double)count;
    }
    us_store_double(at(work->output, bag, first), work->output->dtype, work->output->strides[1], sums, columns);
    for (int64_t k = 0; k < columns && is_max; k++) {
        put_integer(work->maxima, bag * work->maxima->strides[0] + (first + k) * work->maxima->strides[1], rows[k]);
    }
}

static void run_bag(void *context, int64_t bag)
{
    const Work *work = context;
    const int64_t width = work->table->shape[1];
    int64_t count = 0;
    for (int64_t i = begin_of(work, bag), end = begin_of(work, bag + 1); i < end; i++) {
        count += row_of(work, i) >= 0;
    }
    for (int64_t first = 0; first < width; first += TILE) {
        run_columns(work, bag, first, width - first < TILE ? width - first : TILE);
    }
    put_integer(work->size_of, bag * work->size_of->strides[0], count);
    if (work->call.mode != BAG_MAX) {
        put_integer(work->maxima, bag * work->maxima->strides[0], 0);
    }
}

/* One bag after the other: where offsets decrease, several have an index, and the last one stays. */
static void number_bags(const Work *work)
{
    const int64_t wanted = work->bag_of->shape[0];
    for (int64_t i = 0; i < wanted; i++) {
        put_integer(work->bag_of, i * work->bag_of->strides[0], -1);
    }
    for (int64_t bag = 0; bag < work->output->shape[0] && wanted > 0; bag++) {
        for (int64_t i = begin_of(work, bag), end = begin_of(work, bag + 1); i < end; i++) {
            put_integer(work->bag_of, i * work->bag_of->strides[0], bag);
        }
    }
}

KernelStatus us_embedding_bag(const View *views, const void *attributes)
{
    Work work = {.table = &views[0], .indices = &views[1], .offsets = &views[2], .scales = &views[3],
                 .output = &views[4], .bag_of = &views[5], .size_of = &views[6], .maxima = &views[7],
                 .call = *(const EmbeddingBag *)attributes, .count = views[1].shape[0]};
    us_parallel(work.output->shape[0], run_bag, &work);
    number_bags(&work);
    return KERNEL_OK;
}
