/* Several arithmetic sequences, one behind the other (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/number.h"
#include "ftdsp/operators.h"
#include "ftdsp/shape.h"

#include <limits.h>
#include <math.h>

typedef struct Work {
    const void *starts, *limits, *deltas;
    void *values;
    const int *splits;
    DType dtype;
} Work;

/* In float32 for its numbers and narrower ones: from 0 to 0.3 there are 3 steps of 0.1, although the nearest float32 is less. */
static double range_length(const Work *work, int64_t range)
{
    const double start = ft_number(work->starts, work->dtype, range);
    const double limit = ft_number(work->limits, work->dtype, range);
    const double delta = ft_number(work->deltas, work->dtype, range);
    const bool narrow = work->dtype == DTYPE_FLOAT32 || work->dtype == DTYPE_FLOAT16;
    const double steps = narrow ? (double)(((float)limit - (float)start) / (float)delta) : (limit - start) / delta;
    const double length = ceil(steps);
    return length < 0 ? 0 : length; /* NaN stays: start == limit with a step of 0 was refused before */
}

static void run_ranges(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;
    for (; begin < end; begin++) {
        const int64_t first = work->splits[begin], count = work->splits[begin + 1] - first;
        us_array_sequence(ft_number(work->starts, work->dtype, begin), ft_number(work->deltas, work->dtype, begin),
                       (char *)work->values + first * (int64_t)us_dtype_size(work->dtype), work->dtype, 0, count);
    }
}

/* The number of values of all ranges. */
static int64_t check_lengths(FtCall *call, const Work *work, int range_count)
{
    double total = 0;
    for (int range = 0; ft_ok(call) && range < range_count; range++) {
        ft_require(call, ft_number(work->deltas, work->dtype, range) != 0, "deltas", "zero", FT_BAD_ATTRIBUTE,
                   "deltas[%d] is 0", range);
        total += range_length(work, range);
        ft_require(call, total <= INT_MAX, "splits", "overflow", FT_BAD_SIZE,
                   "ranges 0 to %d have %g values, more than splits can count", range, total);
    }
    return ft_ok(call) ? (int64_t)total : 0;
}

static void check_outputs(FtCall *call, const Work *work, int range_count, int64_t total)
{
    const int64_t size = (int64_t)us_dtype_size(call->dtype);
    const int64_t splits_bytes = (range_count + INT64_C(1)) * (int64_t)sizeof(int);
    const Operand inputs[] = {{"starts", work->starts}, {"limits", work->limits}, {"deltas", work->deltas}};
    ft_operand(call, "values", work->values, total, call->dtype);
    ft_operand(call, "splits", work->splits, range_count + INT64_C(1), DTYPE_INT32);
    for (int k = 0; k < 3; k++) {
        ft_apart(call, "values", work->values, total * size, inputs[k].name, inputs[k].data,
                 range_count * size);
        ft_apart(call, "splits", work->splits, splits_bytes, inputs[k].name, inputs[k].data,
                 range_count * size);
    }
    ft_apart(call, "splits", work->splits, splits_bytes, "values", work->values, total * size);
}

void ft_raggedrange(FtCall *call, const void *starts, const void *limits, const void *deltas, int range_count,
                    void *values, int *splits)
{
    Work work = {starts, limits, deltas, values, splits, call->dtype};
    ft_length(call, "range_count", range_count);
    ft_operand(call, "starts", starts, range_count, call->dtype);
    ft_operand(call, "limits", limits, range_count, call->dtype);
    ft_operand(call, "deltas", deltas, range_count, call->dtype);
    const int64_t total = check_lengths(call, &work, range_count);
    check_outputs(call, &work, range_count, total);
    if (!ft_ok(call)) {
        return;
    }
    splits[0] = 0;
    for (int range = 0; range < range_count; range++) {
        splits[range + 1] = splits[range] + (int)range_length(&work, range);
    }
    ft_split(call, range_count, 1, run_ranges, &work);
}
