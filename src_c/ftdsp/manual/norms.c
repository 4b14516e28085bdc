/* Normalizations, softmax and their gradients (ft-dsp-manual 3, 4). */
#include "ftdsp/broadcast.h"
#include "ftdsp/manual.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/norm/line_gradient.h"
#include "kernels/norm/line_norm.h"
#include "kernels/norm/lrn.h"
#include "kernels/norm/wide_lrn.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

static View matrix(const void *data, DType dtype, int64_t rows, int64_t columns)
{
    return us_view_contiguous((void *)data, dtype, 2, (int64_t[]){rows, columns});
}

/* Runs work(context, from, to), on float copies where the elements are integers; the result is truncated. */
typedef KernelStatus FloatWork(const void *context, const void *from, void *to, DType dtype);

static void run_in_float(FtCall *call, const void *from, void *to, int64_t count, FloatWork *work, const void *context)
{
    if (us_dtype_is_float(call->dtype)) {
        ft_finish(call, work(context, from, to, call->dtype));
        return;
    }
    float *copy = us_scratch_array(count, sizeof *copy);
    KernelStatus status = KERNEL_NO_MEMORY;
    if (copy) {
        us_load_float(copy, from, call->dtype, 1, count);
        status = work(context, copy, copy, DTYPE_FLOAT32);
    }
    if (status == KERNEL_OK) {
        us_store_float(to, call->dtype, 1, copy, count);
    }
    us_scratch_give_back(copy);
    ft_finish(call, status);
}

static KernelStatus run_softmax(const void *context, const void *from, void *to, DType dtype)
{
    const FtSoftmax *a = context;
    const int64_t shape[] = {a->outter_size, a->axis_size, a->inner_size};
    const View views[] = {us_view_contiguous((void *)from, dtype, 3, shape), us_view_contiguous(to, dtype, 3, shape)};
    const Softmax attributes = {.algorithm = SOFTMAX_ACCURATE, .first_axis = 1, .last_axis = 1, .alpha = 1};
    return us_view_is_empty(&views[0]) ? KERNEL_OK : us_softmax_forward(views, &attributes);
}

void ft_op_softmax(FtCall *call, const FtSoftmax *a)
{
    const int64_t count = (int64_t)a->outter_size * a->axis_size * a->inner_size;
    run_in_float(call, a->input_ptr, a->output_ptr, count, run_softmax, a);
}

static float float_at(long long address)
{
    return *(const float *)(intptr_t)address;
}

void ft_op_lrn(FtCall *call, const FtLrn *a)
{
    const long long *p = a->params;
    for (int k = 0; k < 3; k++) {
        ft_require(call, p[k] >= 0 && p[k] <= INT32_MAX, "params", "range", FT_BAD_SIZE,
                   "out_size, channel, depth_radius are %lld, %lld, %lld", p[0], p[1], p[2]);
    }
    ft_require(call, p[3] && p[4] && p[5], "params", "numbers", FT_BAD_POINTER,
               "the address of alpha, beta or bias is NULL");
    const int64_t count = ft_count(call, "input", 2, (int64_t[]){p[0], p[1]});
    ft_operand(call, "input", a->input, count, call->dtype);
    ft_operand(call, "output", a->output, count, call->dtype);
    ft_same_or_apart(call, "output", a->output, "input", a->input, count, call->dtype);
    if (!ft_ok(call) || count == 0) {
        return;
    }
    const int64_t radius = p[2] < p[1] ? p[2] : p[1], window = 2 * radius + 1; /* more reaches no further */
    const LocalNorm norm = {(int32_t)window, float_at(p[3]) * (double)window, float_at(p[4]), float_at(p[5]), 1, 0};
    if (window > LRN_WINDOW_LIMIT) {
        const WideLrn wide = {a->input, a->output, call->dtype, p[0], p[1], radius, float_at(p[3]), float_at(p[4]),
                              float_at(p[5])};
        ft_finish(call, us_wide_lrn(&wide));
        return;
    }
    View views[] = {matrix(a->input, call->dtype, p[0], p[1]), matrix(a->output, call->dtype, p[0], p[1])};
    for (int k = 0; k < 2; k++) { /* [1, channel, out_size] */
        views[k].rank = 3;
        memcpy(views[k].shape, (int64_t[]){1, p[1], p[0]}, 3 * sizeof(int64_t));
        memcpy(views[k].strides, (int64_t[]){count, 1, p[1]}, 3 * sizeof(int64_t));
    }
    ft_finish(call, us_lrn_forward(views, &norm));
}

/* ---- with given statistics ---- */

typedef struct Inference {
    const void *scale, *offset, *mean, *variance; /* scale and offset NULL: 1 and 0 */
    DType dtype;
    int64_t unit, channel;
    double epsilon;
} Inference;

static View parameter(const Inference *work, const void *data, const float *instead)
{
    View view = matrix(data ? data : instead, data ? work->dtype : DTYPE_FLOAT32, 1, work->channel);
    view.strides[1] = data ? 1 : 0;
    return view;
}

static KernelStatus run_inference(const void *context, const void *from, void *to, DType dtype)
{
    static const float one = 1, zero = 0;
    const Inference *work = context;
    const BatchNorm norm = {.alpha = 1, .epsilon = work->epsilon};
    const View views[] = {
        matrix(from, dtype, work->unit, work->channel), us_view_absent(), matrix(to, dtype, work->unit, work->channel),
        parameter(work, work->scale, &one), parameter(work, work->offset, &zero), parameter(work, work->mean, NULL),
        parameter(work, work->variance, NULL),
    };
    return us_view_is_empty(&views[0]) ? KERNEL_OK : us_batch_norm_inference(views, &norm);
}

void ft_op_batchnorm(FtCall *call, const FtBatchnorm *a)
{
    const Inference work = {NULL, NULL, a->mean, a->variance, DTYPE_FLOAT32, a->unit, a->channel, a->epsilon};
    run_in_float(call, a->input, a->output, work.unit * work.channel, run_inference, &work);
}

void ft_op_fusedbatchnorm(FtCall *call, const FtFusedbatchnorm *a)
{
    const Inference work = {a->scale, a->offset, a->mean, a->variance, call->dtype, a->unit, a->channel, a->epsilon};
    run_in_float(call, a->input, a->output, work.unit * work.channel, run_inference, &work);
}

/* ---- lines ---- */

static LineNorm channel_lines(const FtCall *call, const void *x, void *y, int64_t batch, int64_t channel, int64_t inner)
{
    return (LineNorm){.x = x, .y = y, .dtype = call->dtype, .lines = batch * channel, .block_lines = 1, .block_step = inner,
                      .rows = 1, .run = inner, .line_divisor = 1, .period = channel, .stride = 1};
}

void ft_op_instancenorm(FtCall *call, const FtInstancenorm *a)
{
    LineNorm norm = channel_lines(call, a->input, a->output, a->batch, a->channel, a->inner_size);
    norm.scale = a->gamma;
    norm.offset = a->beta;
    norm.epsilon = a->epsilon;
    ft_finish(call, us_line_norm(&norm));
}

void ft_op_lpnorm(FtCall *call, const FtLpnorm *a)
{
    LineNorm norm = channel_lines(call, a->input, a->output, a->batch, a->channel, a->inner_size);
    ft_require(call, a->p > 0 && isfinite(a->p), "p", "range", FT_BAD_ATTRIBUTE, "p is %g; it is more than 0", a->p);
    norm.scale = a->gamma;
    norm.offset = a->beta;
    norm.epsilon = a->epsilon;
    norm.power = a->p;
    if (ft_ok(call)) {
        ft_finish(call, us_line_norm(&norm));
    }
}

/* A norm of lines with statistics; those of lines without an element are no numbers. */
static void norm_with_statistics(FtCall *call, const LineNorm *norm)
{
    const bool empty = norm->rows * norm->run == 0;
    const double none = NAN;
    void *const statistics[] = {norm->means, norm->variances};
    for (int k = 0; empty && k < 2; k++) {
        for (int64_t line = 0; statistics[k] && line < norm->lines; line++) {
            us_store_double((char *)statistics[k] + ft_bytes(line, norm->statistics), norm->statistics, 1, &none, 1);
        }
    }
    ft_finish(call, us_line_norm(norm));
}

void ft_op_groupnormfusion(FtCall *call, const FtGroupnormfusion *a)
{
    ft_require(call, a->channel % a->num_groups == 0, "num_groups", "mismatch", FT_BAD_ATTRIBUTE,
               "%d channels cannot be cut into %d groups", a->channel, a->num_groups);
    if (!ft_ok(call)) {
        return;
    }
    const int64_t width = a->channel / a->num_groups;
    const LineNorm norm = {
        .x = a->input, .y = a->output, .dtype = call->dtype,
        .lines = (int64_t)a->batch * a->num_groups, .block_lines = a->num_groups,
        .block_step = (int64_t)a->unit * a->channel, .line_step = width,
        .rows = a->unit, .row_step = a->channel, .run = width,
        .epsilon = a->epsilon, .scale = a->scale, .offset = a->offset,
        .line_divisor = 1, .period = a->num_groups, .stride = width, .by_element = true,
        .means = a->mean, .variances = a->variance, .statistics = call->dtype,
    };
    norm_with_statistics(call, &norm);
}

/* What the two lists of layernormfusion have in common. */
typedef struct LayerNorm {
    const char *y_name;
    const void *x, *gamma, *beta;
    void *y, *mean, *variance;
    int64_t param_inner, param_outer, inner, outer;
    double epsilon;
    DType statistics;
} LayerNorm;

static void apart_from_parameters(FtCall *call, const char *name, const void *output, int64_t bytes, const LayerNorm *a,
                                  int64_t count)
{
    ft_apart(call, name, output, bytes, "gamma_data", a->gamma, ft_bytes(count, call->dtype));
    ft_apart(call, name, output, bytes, "beta_data", a->beta, ft_bytes(count, call->dtype));
}

static void layer_norm(FtCall *call, const LayerNorm *a)
{
    const bool repeats = a->outer <= a->param_outer;
    ft_require(call, !repeats || a->inner % a->param_inner == 0, "param_inner_size", "mismatch", FT_BAD_SIZE,
               "rows of %lld elements are not whole repetitions of %lld parameters", (long long)a->inner,
               (long long)a->param_inner);
    const int64_t rows = (a->outer + a->param_outer - 1) / a->param_outer;
    const int64_t count = a->outer == 0 ? 0 : repeats ? a->param_inner : rows * a->inner;
    ft_operand(call, "gamma_data", a->gamma, count, call->dtype);
    ft_operand(call, "beta_data", a->beta, count, call->dtype);
    apart_from_parameters(call, a->y_name, a->y, ft_bytes(a->outer * a->inner, call->dtype), a, count);
    apart_from_parameters(call, "out_mean", a->mean, ft_bytes(a->outer, a->statistics), a, count);
    apart_from_parameters(call, "out_variance", a->variance, ft_bytes(a->outer, a->statistics), a, count);
    if (!ft_ok(call) || a->outer == 0) {
        return;
    }
    const int64_t run = repeats ? a->param_inner : a->inner;
    const LineNorm norm = {
        .x = a->x, .y = a->y, .dtype = call->dtype, .lines = a->outer, .block_lines = 1, .block_step = a->inner,
        .rows = run > 0 ? a->inner / run : 0, .row_step = run, .run = run, .epsilon = a->epsilon, .scale = a->gamma,
        .offset = a->beta,
        .line_divisor = a->param_outer, .period = repeats ? 1 : rows, .stride = repeats ? 0 : a->inner, .by_element = true,
        .means = a->mean, .variances = a->variance, .statistics = a->statistics,
    };
    norm_with_statistics(call, &norm);
}

void ft_op_layernormfusion(FtCall *call, const FtLayernormfusion *a)
{
    layer_norm(call, &(LayerNorm){"output", a->Input0, a->gamma_data, a->beta_data, a->output, a->out_mean, a->out_variance,
                                  a->param_inner_size, a->param_outer_size, a->norm_inner_size, a->norm_outer_size,
                                  a->epsilon, DTYPE_FLOAT32});
}

void ft_op_layernormfusion_of_pairs(FtCall *call, const FtLayernormfusionOfPairs *a)
{
    layer_norm(call, &(LayerNorm){"dst_data", a->src_data, a->gamma_data, a->beta_data, a->dst_data, a->out_mean, a->out_variance,
                                  a->param_inner_size, a->param_outer_size, a->norm_inner_size, a->norm_outer_size,
                                  a->epsilon, a->S});
}

/* ---- gradients ---- */

/* dx = scale * invar * dy, rounded once; `factors` has room for two numbers per channel. */
static void scale_gradient(FtCall *call, const FtBatchnormgrad *a, double *factors)
{
    double *inverse = factors + a->channel;
    us_load_double(factors, a->scale, call->dtype, 1, a->channel);
    us_load_double(inverse, a->invar, call->dtype, 1, a->channel);
    for (int64_t c = 0; c < a->channel; c++) {
        factors[c] *= inverse[c];
    }
    ft_map(call, &us_map_mul, DTYPE_FLOAT64, 2, (const View[]){matrix(a->dy, call->dtype, a->batch, a->channel),
                                                               matrix(factors, DTYPE_FLOAT64, 1, a->channel),
                                                               matrix(a->dx, call->dtype, a->batch, a->channel)});
}

void ft_op_batchnormgrad(FtCall *call, const FtBatchnormgrad *a)
{
    const DType dtype = call->dtype;
    if (a->batch == 0 || a->channel == 0) {
        ft_clear(a->dbias, a->channel, dtype);
        ft_clear(a->dscale, a->channel, dtype);
        return;
    }
    double *factors = us_scratch_array(a->channel, 2 * sizeof *factors);
    if (!factors) {
        ft_finish(call, KERNEL_NO_MEMORY);
        return;
    }
    const View parameters = matrix(NULL, dtype, 1, a->channel);
    View views[10] = {matrix(a->x, dtype, a->batch, a->channel), matrix(a->dy, dtype, a->batch, a->channel),
                      us_view_absent(), matrix(a->dx, dtype, a->batch, a->channel)};
    const void *const data[] = {a->scale, a->dscale, a->dbias, a->mean, a->invar};
    for (int k = 0; k < 5; k++) {
        views[4 + k] = parameters;
        views[4 + k].data = (void *)data[k];
    }
    views[9] = us_view_absent();
    const BatchNorm norm = {.alpha = 1, .alpha_param = 1};
    ft_finish(call, us_batch_norm_backward(views, &norm));
    if (ft_ok(call) && !a->is_train) {
        scale_gradient(call, a, factors);
    }
    us_scratch_give_back(factors);
}

#define LAYER_EPSILON 1e-12

void ft_op_layernormgrad(FtCall *call, const FtLayernormgrad *a)
{
    const int64_t lines = a->block_num, parameters = a->param_num;
    ft_require(call, parameters * a->param_size == lines * a->block_size, "param_size", "mismatch", FT_BAD_SIZE,
               "%d * %d elements by parameters, %d * %d by rows", a->param_num, a->param_size, a->block_num, a->block_size);
    double *numbers = ft_ok(call) ? us_scratch_array(2 * lines + parameters, sizeof *numbers) : NULL;
    if (ft_ok(call) && !numbers) {
        ft_finish(call, KERNEL_NO_MEMORY);
    }
    if (!ft_ok(call)) {
        return;
    }
    double *mean = numbers, *inverse = mean + lines, *scale = inverse + lines;
    us_load_double(mean, a->mean, call->dtype, 1, lines);
    us_load_double(inverse, a->var, call->dtype, 1, lines);
    us_load_double(scale, a->gamma, call->dtype, 1, parameters);
    for (int64_t line = 0; line < lines; line++) {
        inverse[line] = 1 / sqrt(inverse[line] + LAYER_EPSILON);
    }
    const LineGradient work = {.x = a->x, .dy = a->dy, .dx = a->dx, .dscale = a->dg, .doffset = a->db, .dtype = call->dtype,
                               .mean = mean, .inverse = inverse, .scale = scale, .lines = lines, .length = a->block_size,
                               .parameters = parameters};
    ft_finish(call, us_line_gradient(&work));
    us_scratch_give_back(numbers);
}
