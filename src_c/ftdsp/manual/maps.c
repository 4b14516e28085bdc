/* Element-wise operators of the manual: quantisation, dropout, draws (ft-dsp-manual 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/manual.h"
#include "kernels/quantize/levels.h"
#include "kernels/random/draws.h"
#include "tensor/convert.h"

/* `count` elements, of which `length` that follow each other share a scale and a zero point. */
typedef struct Quantisation {
    const void *x;
    int8_t *out;
    DType dtype;
    int64_t count, length;
    const void *scales; /* NULL: one of all, */
    const int *zero_points;
    double scale;       /* … these */
    int zero_point;
} Quantisation;

static void quantise_slice(void *context, int64_t begin, int64_t end)
{
    const Quantisation *q = context;
    double scale = q->scale;
    for (int64_t at = begin, stop; at < end; at = stop) {
        const int64_t k = at / q->length;
        stop = (k + 1) * q->length < end ? (k + 1) * q->length : end;
        if (q->scales) {
            us_load_double(&scale, (const char *)q->scales + ft_bytes(k, q->dtype), q->dtype, 1, 1);
        }
        us_quantise_levels((const char *)q->x + ft_bytes(at, q->dtype), q->out + at, stop - at, q->count - at, q->dtype,
                           (float)scale, (float)(q->scales ? q->zero_points[k] : q->zero_point));
    }
}

void ft_op_quant(FtCall *call, const FtQuant *a)
{
    Quantisation work = {.x = a->input, .out = a->output, .dtype = call->dtype, .count = a->length, .length = a->length,
                         .scale = a->scale, .zero_point = a->zp};
    ft_split(call, a->length, FT_GRAIN, quantise_slice, &work);
}

void ft_op_dequant(FtCall *call, const FtDequant *a)
{
    const double numbers[ELEMENTWISE_NUMBERS] = {a->scale, a->zp};
    ArrayMap map;
    ft_array_map(&map, &us_map_dequantise, numbers, DTYPE_INT8, (const void *const[]){a->input}, call->dtype,
                 (void *const[]){a->output}, a->length);
    ft_split(call, a->length, FT_GRAIN, ft_run_array_map, &map);
}

void ft_op_QuantData(FtCall *call, const FtQuantData *a)
{
    const int64_t segments = a->axis_num == 0 ? 1 : a->segment_num;
    ft_operand(call, "scale", a->scale, segments, call->dtype);
    ft_operand(call, "zp", a->zp, segments, DTYPE_INT32);
    ft_apart(call, "quant_values", a->quant_values, a->element_num, "scale", a->scale, ft_bytes(segments, call->dtype));
    ft_apart(call, "quant_values", a->quant_values, a->element_num, "zp", a->zp, ft_bytes(segments, DTYPE_INT32));
    Quantisation work = {.x = a->real_values, .out = a->quant_values, .dtype = call->dtype, .scales = a->scale,
                         .count = a->element_num, .length = (a->element_num + segments - 1) / segments, .zero_points = a->zp};
    if (ft_ok(call)) {
        ft_split(call, a->element_num, FT_GRAIN, quantise_slice, &work);
    }
}

void ft_op_dropout(FtCall *call, const FtDropout *a)
{
    const double numbers[ELEMENTWISE_NUMBERS] = {a->scale};
    ArrayMap map;
    ft_array_map(&map, &us_map_scaled_product, numbers, call->dtype, (const void *const[]){a->input, a->mask}, call->dtype,
                 (void *const[]){a->output}, a->length);
    ft_split(call, a->length, FT_GRAIN, ft_run_array_map, &map);
}

static void draw(FtCall *call, void *output, int64_t length, unsigned seed, double mean, double deviation)
{
    const Draws draws = {.distribution = DRAW_NORMAL, .stream = {.seed = seed}, .a = mean, .b = deviation};
    const View out = us_view_contiguous(output, call->dtype, 1, &length), absent = us_view_absent();
    if (ft_ok(call)) {
        ft_finish(call, us_draws((const View[]){out, absent, absent, absent, absent}, &draws));
    }
}

void ft_op_random_standard_normal(FtCall *call, const FtRandomStandardNormal *a)
{
    draw(call, a->output, a->length, a->seed, 0, 1);
}

void ft_op_random_normal(FtCall *call, const FtRandomNormal *a)
{
    draw(call, a->output, a->length, a->seed, a->mean, a->scale);
}
