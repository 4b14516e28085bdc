#include "kernels/matmul/epilogue.h"

#include "kernels/maths/maths.h"
#include "kernels/matmul/e4m3.h"
#include "kernels/matmul/lines.h"
#include "kernels/scratch.h"

typedef struct Epilogue {
    ProductActivation activation;
    DType compute;
    const View *bias, *aux;
} Epilogue;

static void activate_float(ProductActivation activation, float *values, int64_t count)
{
    for (int64_t i = 0; i < count && activation == ACTIVATION_RELU; i++) {
        values[i] = values[i] < 0 ? 0 : values[i];
    }
    for (int64_t i = 0; i < count && activation == ACTIVATION_GELU_TANH; i++) {
        values[i] = gelu_tanh_float(values[i]);
    }
}

static void activate_double(ProductActivation activation, double *values, int64_t count)
{
    for (int64_t i = 0; i < count && activation == ACTIVATION_RELU; i++) {
        values[i] = values[i] < 0 ? 0 : values[i];
    }
    for (int64_t i = 0; i < count && activation == ACTIVATION_GELU_TANH; i++) {
        values[i] = gelu_tanh_double(values[i]);
    }
}

/* values *= the slope of GELU at the numbers of `at`. */
static void multiply_by_slope(DType compute, void *values, const void *at, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (compute == DTYPE_FLOAT32) {
            ((float *)values)[i] *= gelu_tanh_slope_float(((const float *)at)[i]);
        } else {
            ((double *)values)[i] *= gelu_tanh_slope_double(((const double *)at)[i]);
        }
    }
}

/* Elements of a view of the result's shape that lie under a line of a tile. */
typedef struct Under {
    char *data; /* NULL: there is no view */
    DType dtype;
    int64_t step;
} Under;

static Under under_line(const View *view, const MatmulTile *tile, int64_t row, int64_t column, bool along_rows)
{
    Under under = {.dtype = view->dtype};
    if (!us_view_is_absent(view)) {
        under.step = view->strides[along_rows ? 2 : 1];
        under.data = (char *)view->data + (tile->batch * view->strides[0] + (tile->row + row) * view->strides[1] +
                                           (tile->column + column) * view->strides[2]) *
                                              (int64_t)us_dtype_size(view->dtype);
    }
    return under;
}

static char *element_under(const Under *under, int64_t index)
{
    return under->data + index * under->step * (int64_t)us_dtype_size(under->dtype);
}

/* A line of the tile, along the axis whose stride is 1. */
static void finish_line(const Epilogue *epilogue, char *values, const Under *bias, const Under *aux, int64_t count)
{
    static const double one[2] = {1, 0};
    char line[LINE_ELEMENTS * LARGEST_ELEMENT];
    const DType compute = epilogue->compute;
    for (int64_t first = 0; first < count; first += LINE_ELEMENTS) {
        const int64_t length = least(count - first, LINE_ELEMENTS);
        char *place = values + first * (int64_t)us_dtype_size(compute);
        if (bias->data != NULL) {
            us_line_load(compute, line, element_under(bias, first), bias->dtype, bias->step, length, false);
            us_line_blend(compute, place, one, line, one, length);
        }
        if (epilogue->activation == ACTIVATION_GELU_TANH_SLOPE) {
            us_line_load(compute, line, element_under(aux, first), aux->dtype, aux->step, length, false);
            multiply_by_slope(compute, place, line, length);
            continue;
        }
        if (aux->data != NULL) {
            us_line_store(compute, element_under(aux, first), aux->dtype, aux->step, place, length);
        }
        if (compute == DTYPE_FLOAT32) {
            activate_float(epilogue->activation, (float *)place, length);
        } else {
            activate_double(epilogue->activation, (double *)place, length);
        }
    }
}

static void finish(const void *context, const MatmulTile *tile)
{
    const Epilogue *epilogue = context;
    const bool along_rows = tile->column_stride == 1;
    const int64_t lines = along_rows ? tile->rows : tile->columns, count = along_rows ? tile->columns : tile->rows;
    for (int64_t line = 0; line < lines; line++) {
        const int64_t row = along_rows ? line : 0, column = along_rows ? 0 : line;
        const int64_t offset = row * tile->row_stride + column * tile->column_stride;
        const Under bias = under_line(epilogue->bias, tile, row, column, along_rows);
        const Under aux = under_line(epilogue->aux, tile, row, column, along_rows);
        finish_line(epilogue, (char *)tile->values + offset * (int64_t)us_dtype_size(epilogue->compute), &bias, &aux, count);
    }
}

static double factor_of(const View *view)
{
    double factor = 1;
    if (!us_view_is_absent(view)) {
        us_line_load(DTYPE_FLOAT64, &factor, view->data, view->dtype, 1, 1, false);
    }
    return factor;
}

enum { A, B, BIAS = 6, FACTOR_A, FACTOR_B, FACTOR_OF_ADDEND, AUX, VIEWS };

/* Along `axis` of an operand, in double, whose sums are rounded once. */
static void sum_operand(const View *operand, int axis, const View *sums)
{
    const int kept = 3 - axis;
    const int64_t size = (int64_t)us_dtype_size(operand->dtype), sum_size = (int64_t)us_dtype_size(sums->dtype);
    double line[LINE_ELEMENTS];
    for (int64_t at = 0; at < operand->shape[0] * operand->shape[kept]; at++) {
        const int64_t batch = at / operand->shape[kept], index = at % operand->shape[kept];
        const char *from = (const char *)operand->data +
                           (batch * operand->strides[0] + index * operand->strides[kept]) * size;
        double sum = 0;
        for (int64_t first = 0; first < operand->shape[axis]; first += LINE_ELEMENTS) {
            const int64_t length = least(operand->shape[axis] - first, LINE_ELEMENTS);
            us_line_load(DTYPE_FLOAT64, line, from + first * operand->strides[axis] * size, operand->dtype,
                         operand->strides[axis], length, false);
            for (int64_t i = 0; i < length; i++) {
                sum += line[i];
            }
        }
        us_line_store(DTYPE_FLOAT64, (char *)sums->data + (batch * sums->strides[0] + index * sums->strides[1]) * sum_size,
                      sums->dtype, 1, &sum, 1);
    }
}

static KernelStatus multiply(const View *views, const ProductWithEpilogue *given)
{
    Matmul product = us_matmul_of_views(views, &given->product);
    const double factor = factor_of(&views[FACTOR_A]) * factor_of(&views[FACTOR_B]);
    const double addend_factor = factor_of(&views[FACTOR_OF_ADDEND]);
    const Epilogue epilogue = {given->activation, product.compute, &views[BIAS], &views[AUX]};
    for (int part = 0; part < 2; part++) {
        product.alpha[part] *= factor;
        product.beta[part] *= product.beta[part] != 0 ? addend_factor : 1; /* 0: there may be no addend */
    }
    if (given->gradient == BIAS_GRADIENT_OF_A) {
        sum_operand(&views[A], 2, &views[BIAS]);
    } else if (given->gradient == BIAS_GRADIENT_OF_B) {
        sum_operand(&views[B], 1, &views[BIAS]);
    } else if (given->activation != ACTIVATION_NONE || !us_view_is_absent(&views[BIAS])) {
        product.finish = finish;
        product.finish_context = &epilogue;
    }
    return us_matmul(&product);
}

KernelStatus us_product_with_epilogue(const View *views, const void *attributes)
{
    const ProductWithEpilogue *given = attributes;
    if (!given->e4m3) {
        return multiply(views, given);
    }
    View widened[VIEWS];
    memcpy(widened, views, sizeof widened);
    float *a = us_e4m3_widen(&widened[A]), *b = a != NULL ? us_e4m3_widen(&widened[B]) : NULL;
    const KernelStatus status = b != NULL ? multiply(widened, given) : KERNEL_NO_MEMORY;
    us_scratch_give_back(b);
    us_scratch_give_back(a);
    return status;
}
