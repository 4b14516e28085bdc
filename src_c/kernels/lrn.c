#include "kernels/detach.h"
#include "kernels/lrn.h"
#include "kernels/pieces.h"
#include "kernels/power.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Positions handled together: all channels of them fit into a core's cache. */
enum { BLOCK_ELEMENTS = 8 * 1024, BLOCK_LEAST = 16, BLOCK_LIMIT = 1024 };

/* One call. A row is one channel at a block of positions, as doubles. */
typedef struct Lrn {
    const LocalNorm *norm;
    View x, y, dy, dx;
    int64_t images, channels, positions, block, blocks;
    atomic_int out_of_memory;
} Lrn;

/* Elements of one channel from position `begin` on; the spatial axes are walked in row-major order. */
typedef void Transfer(const View *view, char *data, int64_t stride, int64_t count, double *values);

static void walk(const View *view, int64_t image, int64_t channel, int64_t begin, int64_t count, double *values,
                 Transfer *transfer)
{
    const int32_t last = view->rank - 1;
    const int64_t size = (int64_t)us_dtype_size(view->dtype);
    const int64_t base = image * view->strides[0] + channel * view->strides[1];
    const int64_t width = last > 1 ? view->shape[last] : 1;
    for (int64_t done = 0; done < count;) {
        int64_t offset = base, rest = begin + done;
        int64_t run = width - rest % width;
        run = run < count - done ? run : count - done;
        for (int32_t axis = last; axis > 1; axis--) {
            offset += rest % view->shape[axis] * view->strides[axis];
            rest /= view->shape[axis];
        }
        transfer(view, (char *)view->data + offset * size, last > 1 ? view->strides[last] : 1, run, values + done);
        done += run;
    }
}

static void load(const View *view, char *data, int64_t stride, int64_t count, double *values)
{
    us_load_double(values, data, view->dtype, stride, count);
}

static void store(const View *view, char *data, int64_t stride, int64_t count, double *values)
{
    us_store_double(data, view->dtype, stride, values, count);
}

/* Neighbouring spatial axes that are packed become one: longer runs. */
static View merged(const View *view)
{
    View result = *view;
    while (result.rank > 3 && result.strides[result.rank - 2] ==
                                  result.strides[result.rank - 1] * result.shape[result.rank - 1]) {
        result.shape[result.rank - 2] *= result.shape[result.rank - 1];
        result.strides[result.rank - 2] = result.strides[result.rank - 1];
        result.rank--;
    }
    return result;
}

static void load_block(const Lrn *lrn, const View *view, int64_t piece, int64_t count, double *rows)
{
    const int64_t image = piece / lrn->blocks, begin = piece % lrn->blocks * lrn->block;
    for (int64_t channel = 0; channel < lrn->channels; channel++) {
        walk(view, image, channel, begin, count, rows + channel * count, load);
    }
}

static void store_row(const Lrn *lrn, const View *view, int64_t piece, int64_t channel, int64_t count, double *row,
                      double *prior)
{
    const int64_t image = piece / lrn->blocks, begin = piece % lrn->blocks * lrn->block;
    const double alpha = lrn->norm->alpha, beta = lrn->norm->beta;
    for (int64_t i = 0; i < count; i++) {
        row[i] *= alpha;
    }
    if (beta != 0) {
        walk(view, image, channel, begin, count, prior, load);
        for (int64_t i = 0; i < count; i++) {
            row[i] += beta * prior[i];
        }
    }
    walk(view, image, channel, begin, count, row, store);
}

/* sum = factor * (the rows first … last, clipped to the channels, each product of a and b) + offset */
KERNEL_CLONES static void add_rows(const Lrn *lrn, int64_t first, int64_t last, double factor, double offset,
                                   int64_t count, const double *a, const double *b, double *sum)
{
    for (int64_t i = 0; i < count; i++) {
        sum[i] = 0;
    }
    first = first < 0 ? 0 : first;
    last = last < lrn->channels ? last : lrn->channels - 1;
    for (int64_t row = first; row <= last; row++) {
        const double *from_a = a + row * count, *from_b = b + row * count;
        for (int64_t i = 0; i < count; i++) {
            sum[i] += from_a[i] * from_b[i];
        }
    }
    for (int64_t i = 0; i < count; i++) {
        sum[i] = factor * sum[i] + offset;
    }
}

KERNEL_CLONES static void raise(double exponent, int64_t count, double *values)
{
    negative_powers(exponent, count, values);
}

static int64_t count_of(const Lrn *lrn, int64_t piece)
{
    const int64_t begin = piece % lrn->blocks * lrn->block;
    return lrn->positions - begin < lrn->block ? lrn->positions - begin : lrn->block;
}

static double *scratch(Lrn *lrn, int64_t doubles)
{
    double *memory = malloc((size_t)doubles * sizeof *memory);
    if (memory == NULL) {
        atomic_store(&lrn->out_of_memory, 1);
    }
    return memory;
}

static void forward_block(void *context, int64_t piece)
{
    Lrn *lrn = context;
    const LocalNorm *norm = lrn->norm;
    const int64_t count = count_of(lrn, piece), back = (norm->window - 1) / 2, ahead = norm->window - 1 - back;
    double *x = scratch(lrn, (lrn->channels + 2) * count);
    if (x == NULL) {
        return;
    }
    double *row = x + lrn->channels * count, *prior = row + count;
    load_block(lrn, &lrn->x, piece, count, x);
    for (int64_t c = 0; c < lrn->channels; c++) {
        add_rows(lrn, c - back, c + ahead, norm->norm_alpha / norm->window, norm->norm_k, count, x, x, row);
        raise(norm->norm_beta, count, row);
        for (int64_t i = 0; i < count; i++) {
            row[i] *= x[c * count + i];
        }
        store_row(lrn, &lrn->y, piece, c, count, row, prior);
    }
    free(x);
}

static void backward_block(void *context, int64_t piece)
{
    Lrn *lrn = context;
    const LocalNorm *norm = lrn->norm;
    const int64_t count = count_of(lrn, piece), back = (norm->window - 1) / 2, ahead = norm->window - 1 - back;
    const int64_t elements = lrn->channels * count;
    double *x = scratch(lrn, 4 * elements + 2 * count);
    if (x == NULL) {
        return;
    }
    double *dy = x + elements, *y = dy + elements, *sums = y + elements, *row = sums + elements, *prior = row + count;
    load_block(lrn, &lrn->x, piece, count, x);
    load_block(lrn, &lrn->y, piece, count, y);
    load_block(lrn, &lrn->dy, piece, count, dy);
    for (int64_t c = 0; c < lrn->channels; c++) {
        add_rows(lrn, c - back, c + ahead, norm->norm_alpha / norm->window, norm->norm_k, count, x, x,
                 sums + c * count);
    }
    for (int64_t i = 0; i < elements; i++) {
        y[i] /= sums[i];
    }
    raise(norm->norm_beta, elements, sums);
    const double factor = -2 * norm->norm_alpha * norm->norm_beta / norm->window;
    for (int64_t c = 0; c < lrn->channels; c++) {
        add_rows(lrn, c - ahead, c + back, factor, 0, count, dy, y, row);
        for (int64_t i = 0; i < count; i++) {
            row[i] = dy[c * count + i] * sums[c * count + i] + x[c * count + i] * row[i];
        }
        store_row(lrn, &lrn->dx, piece, c, count, row, prior);
    }
    free(x);
}

static KernelStatus run(Lrn *lrn, const LocalNorm *norm, ParallelBody *body)
{
    lrn->norm = norm;
    lrn->images = lrn->x.shape[0];
    lrn->channels = lrn->x.shape[1];
    lrn->positions = us_view_elements(&lrn->x) / (lrn->images * lrn->channels);
    int64_t block = BLOCK_ELEMENTS / lrn->channels;
    block = block < BLOCK_LEAST ? BLOCK_LEAST : block > BLOCK_LIMIT ? BLOCK_LIMIT : block;
    lrn->block = block < lrn->positions ? block : lrn->positions;
    lrn->blocks = (lrn->positions + lrn->block - 1) / lrn->block;
    atomic_init(&lrn->out_of_memory, 0);
    run_pieces(lrn->images * lrn->blocks, us_view_elements(&lrn->x), body, lrn);
    return atomic_load(&lrn->out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_lrn_forward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 1, views, 1, &views[1]);
    if (status == KERNEL_OK) {
        Lrn lrn = {.x = merged(&detached.inputs[0]), .y = merged(&views[1])};
        status = run(&lrn, attributes, forward_block);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_lrn_backward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 3, views, 1, &views[3]);
    if (status == KERNEL_OK) {
        Lrn lrn = {.x = merged(&detached.inputs[0]),
                   .y = merged(&detached.inputs[1]),
                   .dy = merged(&detached.inputs[2]),
                   .dx = merged(&views[3])};
        status = run(&lrn, attributes, backward_block);
    }
    us_detach_end(&detached);
    return status;
}
