#include "kernels/norm/line_gradient.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Ranges of lines have sums of their own for the parameters' gradients. Elements of 16 bits are computed in float32, of
 * which the sums over LINES_IN_FLOAT lines are added in float64. */
enum { RANGE_LIMIT = 32, LINES_IN_FLOAT = 32, AHEAD = 128 };

static void *element(const void *data, DType dtype, int64_t index)
{
    return (char *)data + index * (int64_t)us_dtype_size(dtype);
}

/* The processor by itself does not read beyond a page, which a line often is, and waits for what it writes. */
static void fetch_ahead(const LineGradient *work, int64_t at, int64_t count)
{
    const char *x = element(work->x, work->dtype, at), *dy = element(work->dy, work->dtype, at);
    const char *dx = element(work->dx, work->dtype, at);
    const int64_t bytes = count * (int64_t)us_dtype_size(work->dtype);
    for (int64_t k = 0; k < bytes; k += CACHE_LINE_BYTES) {
        __builtin_prefetch(x + k);
        __builtin_prefetch(dy + k);
        __builtin_prefetch(dx + k, 1);
    }
}

#include "kernels/norm/gradient_types.inc"

typedef struct Work {
    const LineGradient *gradient;
    const float *scale;   /* of elements of 16 bits */
    double *sums;         /* of a range: for the scale, then for the offset */
    int64_t ranges, range_lines;
    atomic_bool out_of_memory;
} Work;

static void add_floats(double *restrict sums, float *restrict floats, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += (double)floats[i];
        floats[i] = 0;
    }
}

static void run_wide(const LineGradient *work, int64_t begin, int64_t end, double *sums)
{
    for (int64_t line = begin; line < end; line++) {
        run_line_float(work, line, work->scale, sums, sums + work->parameters);
    }
}

/* `floats`: sums of float32 for the parameters. */
static void run_narrow(const LineGradient *work, const float *scale, int64_t begin, int64_t end, double *sums,
                       float *floats)
{
    memset(floats, 0, 2 * (size_t)work->parameters * sizeof *floats);
    for (int64_t line = begin; line < end; line++) {
        if (work->dtype == DTYPE_FLOAT16) {
            run_line_half(work, line, scale, floats, floats + work->parameters);
        } else {
            run_line_bfloat(work, line, scale, floats, floats + work->parameters);
        }
        if ((line + 1 - begin) % LINES_IN_FLOAT == 0 || line + 1 == end) {
            add_floats(sums, floats, 2 * work->parameters);
        }
    }
}

static void run_range(void *context, int64_t range)
{
    Work *work = context;
    const LineGradient *gradient = work->gradient;
    const int64_t begin = range * work->range_lines, end = smaller(begin + work->range_lines, gradient->lines);
    double *sums = work->sums + range * 2 * gradient->parameters;
    memset(sums, 0, 2 * (size_t)gradient->parameters * sizeof *sums);
    if (gradient->dtype == DTYPE_FLOAT32) {
        run_wide(gradient, begin, end, sums);
        return;
    }
    float *floats = us_scratch_array(gradient->parameters, 2 * sizeof *floats);
    if (floats == NULL) {
        atomic_store(&work->out_of_memory, true);
        return;
    }
    run_narrow(gradient, work->scale, begin, end, sums, floats);
    us_scratch_give_back(floats);
}

/* The ranges' sums, one after the other. */
static void add_ranges(double *sums, int64_t count, int64_t ranges)
{
    for (int64_t range = 1; range < ranges; range++) {
        const double *more = sums + range * count;
        for (int64_t i = 0; i < count; i++) {
            sums[i] += more[i];
        }
    }
}

KernelStatus us_line_gradient(const LineGradient *gradient)
{
    const int64_t parameters = gradient->parameters, elements = gradient->lines * gradient->length;
    Work work = {.gradient = gradient};
    /* so many that the sums take no more memory than the tensors do */
    const int64_t repetitions = parameters > 0 ? elements / parameters : 0;
    work.ranges = smaller(smaller(repetitions / 2 + 1, gradient->lines), RANGE_LIMIT);
    work.ranges = work.ranges > 0 ? work.ranges : 1;
    work.range_lines = (gradient->lines + work.ranges - 1) / work.ranges;
    work.ranges = work.range_lines > 0 ? (gradient->lines + work.range_lines - 1) / work.range_lines : 1;
    const size_t sums = us_scratch_bytes(us_scratch_count(work.ranges, parameters), 2 * sizeof *work.sums);
    char *memory = us_scratch_take(sums + us_scratch_bytes(parameters, sizeof *work.scale));
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.sums = (double *)(void *)memory;
    float *scale = (float *)(void *)(memory + sums);
    for (int64_t i = 0; i < parameters; i++) {
        scale[i] = (float)gradient->scale[i];
    }
    work.scale = scale;
    run_pieces(work.ranges, elements, run_range, &work);
    const bool finished = !atomic_load(&work.out_of_memory);
    if (finished) {
        add_ranges(work.sums, 2 * parameters, work.ranges);
        us_store_double(gradient->dscale, gradient->dtype, 1, work.sums, parameters);
        us_store_double(gradient->doffset, gradient->dtype, 1, work.sums + parameters, parameters);
    }
    us_scratch_give_back(memory);
    return finished ? KERNEL_OK : KERNEL_NO_MEMORY;
}
