#include "kernels/norm/normalized.h"

#include "kernels/linear.h"
#include "kernels/map/formulas.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"
#include "tensor/parallel.h"

enum { X, ADDED, BIAS, SCALE, OFFSET, SUM, Y, MEAN, INVERSE, COPY };

KernelStatus us_normalize_and_copy(const View *views, const void *attributes)
{
    const KernelStatus status = us_normalize(views, attributes);
    return status == KERNEL_OK ? us_map_floats(&us_map_copy, 1, (const View[]){views[Y], views[COPY]}) : status;
}

/* A float32 for each element of x; without memory its data is NULL. */
static View scratch_of(const View *x)
{
    return us_view_contiguous(us_scratch_array(us_view_elements(x), sizeof(float)), DTYPE_FLOAT32, x->rank, x->shape);
}

KernelStatus us_normalize_and_modulate(const View *views, const void *attributes)
{
    const View *x = &views[0], absent = us_view_absent(), v = scratch_of(x);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = us_normalize(
        (const View[]){*x, absent, absent, views[1], views[2], absent, v, views[6], views[7]}, attributes);
    if (status == KERNEL_OK) {
        status = us_map_floats(&us_map_modulate, 3, (const View[]){v, views[3], views[4], views[5]});
    }
    us_scratch_give_back(v.data);
    return status;
}

enum { TILE = 256 };
enum { DY, OF_X, BY_WEIGHT, BY_BIAS, FACTOR, LINE_MEAN, LINE_INVERSE, DX, DFACTOR, DSUMMAND, DWEIGHT, DBIAS };

typedef struct SampleSums {
    const View *views;
    int64_t lines, width, tiles; /* lines of a sample */
} SampleSums;

/* numbers[i] where the view is given; else all are `value`. */
static void load_or(const View *view, int64_t begin, int64_t count, float value, float *numbers)
{
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = value;
    }
    if (!us_view_is_absent(view)) {
        us_linear_load_float(view, begin, count, numbers);
    }
}

static void store_sums(const View *view, int64_t begin, int64_t count, const double *sums)
{
    if (!us_view_is_absent(view)) {
        us_linear_store_double(view, begin, count, sums);
    }
}

/* Some columns of a sample. */
static void sum_sample(void *context, int64_t piece)
{
    const SampleSums *work = context;
    const View *views = work->views;
    const int64_t sample = piece / work->tiles, column = piece % work->tiles * TILE;
    const int64_t count = work->width - column < TILE ? work->width - column : TILE;
    float dy[TILE], x[TILE], weight[TILE], bias[TILE], mean, inverse;
    double products[TILE] = {0}, sums[TILE] = {0};
    load_or(&views[BY_WEIGHT], column, count, 1, weight);
    load_or(&views[BY_BIAS], column, count, 0, bias);
    for (int64_t line = sample * work->lines; line < (sample + 1) * work->lines; line++) {
        us_linear_load_float(&views[DY], line * work->width + column, count, dy);
        us_linear_load_float(&views[OF_X], line * work->width + column, count, x);
        us_linear_load_float(&views[LINE_MEAN], line, 1, &mean);
        us_linear_load_float(&views[LINE_INVERSE], line, 1, &inverse);
        for (int64_t i = 0; i < count; i++) {
            products[i] += (double)dy[i] * ((x[i] - mean) * inverse * weight[i] + bias[i]);
            sums[i] += dy[i];
        }
    }
    store_sums(&views[DFACTOR], sample * work->width + column, count, products);
    store_sums(&views[DSUMMAND], sample * work->width + column, count, sums);
}

KernelStatus us_normalize_and_modulate_backward(const View *views, const void *attributes)
{
    const View *x = &views[OF_X], absent = us_view_absent(), g = scratch_of(x);
    if (g.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    float zero = 0;
    const View nothing = us_view_contiguous(&zero, DTYPE_FLOAT32, 1, (const int64_t[]){1});
    KernelStatus status = us_map_floats(&us_map_modulate, 3, (const View[]){views[DY], views[FACTOR],
                                                                           us_view_broadcast(&nothing, x->rank, x->shape), g});
    const int64_t width = x->shape[x->rank - 1];
    SampleSums work = {views, x->shape[x->rank - 2], width, (width + TILE - 1) / TILE};
    if (status == KERNEL_OK && !(us_view_is_absent(&views[DFACTOR]) && us_view_is_absent(&views[DSUMMAND]))) {
        us_parallel(us_shape_elements(x->rank - 2, x->shape) * work.tiles, sum_sample, &work);
    }
    if (status == KERNEL_OK) { /* last: dx may be dy or x */
        status = us_normalize_backward((const View[]){g, *x, absent, absent, views[BY_WEIGHT], absent, views[LINE_MEAN],
                                                      views[LINE_INVERSE], views[DX], absent, views[DWEIGHT], views[DBIAS]},
                                       attributes);
    }
    us_scratch_give_back(g.data);
    return status;
}

KernelStatus us_normalize_modulate_and_quantize(const View *views, const void *attributes)
{
    const View absent = us_view_absent(), v = scratch_of(&views[0]);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = us_normalize_and_modulate(
        (const View[]){views[0], views[1], views[2], views[3], views[4], v, absent, absent}, attributes);
    if (status == KERNEL_OK) {
        status = us_quantize_rows((const View[]){v, views[5], views[6], views[7], absent, absent}, &(QuantizeRows){0});
    }
    us_scratch_give_back(v.data);
    return status;
}

KernelStatus us_normalize_groups_and_quantize(const View *views, const void *attributes)
{
    const View *x = &views[0], absent = us_view_absent();
    const View v = scratch_of(x);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = us_normalize(
        (const View[]){*x, absent, absent, views[1], views[2], absent, v, views[3], views[4]}, attributes);
    if (status == KERNEL_OK) {
        status = us_quantize((const View[]){v, views[5], absent, views[6]}, &(Quantize){.rounding = ROUND_EVEN, .divides = true});
    }
    us_scratch_give_back(v.data);
    return status;
}

enum { PLAIN = SUM + 1, OUTPUTS, BY_SCALE = 0, BY_ZERO, TO, STEP, OUTPUT_VIEWS };

static KernelStatus quantize(const NormalizeAndQuantize *how, const View *v, const View *output)
{
    const View absent = us_view_absent();
    if (us_view_is_absent(&output[TO]) || us_view_is_empty(&output[TO])) {
        return KERNEL_OK;
    }
    if (how->by_rows) {
        return us_quantize_rows((const View[]){*v, output[BY_SCALE], output[TO], output[STEP], absent, absent},
                                &(QuantizeRows){.packed = how->packed});
    }
    return us_quantize((const View[]){*v, output[BY_SCALE], output[BY_ZERO], output[TO]},
                       &(Quantize){.rounding = ROUND_EVEN, .divides = how->divides, .packed = how->packed});
}

KernelStatus us_normalize_and_quantize(const View *views, const void *attributes)
{
    const NormalizeAndQuantize *how = attributes;
    const View *x = &views[X], absent = us_view_absent();
    const bool apart = !us_view_is_absent(&views[PLAIN]) && !us_view_is_absent(&views[OFFSET]) && !how->whole;
    const View v = scratch_of(x);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = us_normalize((const View[]){*x, views[ADDED], views[BIAS], views[SCALE], apart ? absent : views[OFFSET],
                                                      views[SUM], v, absent, absent}, &how->norm);
    if (status == KERNEL_OK && !us_view_is_absent(&views[PLAIN])) {
        status = us_map_floats(&us_map_copy, 1, (const View[]){v, views[PLAIN]});
    }
    if (status == KERNEL_OK && apart) {
        status = us_map_floats(&us_map_add, 2, (const View[]){v, us_view_broadcast(&views[OFFSET], v.rank, v.shape), v});
    }
    for (int i = 0; i < 2 && status == KERNEL_OK; i++) {
        status = quantize(how, &v, &views[OUTPUTS + i * OUTPUT_VIEWS]);
    }
    us_scratch_give_back(v.data);
    return status;
}
