#include "kernels/matmul/epilogue.h"

#include "kernels/maths/maths.h"
#include "kernels/matmul/e4m3.h"
#include "kernels/matmul/lines.h"
#include "kernels/scratch.h"
#include "tensor/parallel.h"

#include <stdlib.h>

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

/* values *= the slope at the numbers of `at`: of GELU, or of ReLU, whose marks these are. */
static void multiply_by_slope(ProductActivation activation, DType compute, void *values, const void *at, int64_t count)
{
    float *floats = values;
    double *doubles = values;
    for (int64_t i = 0; i < count && compute == DTYPE_FLOAT32; i++) {
        const float place = ((const float *)at)[i];
        floats[i] = activation == ACTIVATION_GELU_TANH_SLOPE ? floats[i] * gelu_tanh_slope_float(place)
                                                             : place != 0 ? floats[i] : 0;
    }
    for (int64_t i = 0; i < count && compute == DTYPE_FLOAT64; i++) {
        const double place = ((const double *)at)[i];
        doubles[i] = activation == ACTIVATION_GELU_TANH_SLOPE ? doubles[i] * gelu_tanh_slope_double(place)
                                                              : place != 0 ? doubles[i] : 0;
    }
}

/* What is kept of the numbers that an activation takes: themselves, or of ReLU whether it lets them through. */
static const void *kept_of(ProductActivation activation, DType compute, const void *values, void *line, int64_t count)
{
    for (int64_t i = 0; i < count && activation == ACTIVATION_RELU; i++) {
        if (compute == DTYPE_FLOAT32) {
            ((float *)line)[i] = !(((const float *)values)[i] <= 0);
        } else {
            ((double *)line)[i] = !(((const double *)values)[i] <= 0);
        }
    }
    return activation == ACTIVATION_RELU ? line : values;
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
        const int64_t length = smaller(count - first, LINE_ELEMENTS);
        char *place = values + first * (int64_t)us_dtype_size(compute);
        if (bias->data != NULL) {
            us_line_load(compute, line, element_under(bias, first), bias->dtype, bias->step, length, false);
            us_line_blend(compute, place, one, line, one, length);
        }
        if (epilogue->activation >= ACTIVATION_RELU_SLOPE) {
            us_line_load(compute, line, element_under(aux, first), aux->dtype, aux->step, length, false);
            multiply_by_slope(epilogue->activation, compute, place, line, length);
            continue;
        }
        if (aux->data != NULL) {
            us_line_store(compute, element_under(aux, first), aux->dtype, aux->step,
                          kept_of(epilogue->activation, compute, place, line, length), length);
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

enum { A, B, RESULT = 3, BIAS = 6, FACTOR_A, FACTOR_B, FACTOR_OF_ADDEND, AUX, VIEWS };

/* Along `axis` of an operand, in double, whose sums are rounded once. */
typedef struct OperandSums {
    const View *operand, *sums;
    int axis, kept;
    int64_t blocks; /* of LINE_ELEMENTS sums, in a matrix */
} OperandSums;

static const char *element_of(const View *view, int64_t batch, int kept, int64_t index, int axis, int64_t place)
{
    const int64_t offset = batch * view->strides[0] + index * view->strides[kept] + place * view->strides[axis];
    return (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* In the order in which the numbers lie in memory: each sum has its own in one order. */
static void sum_block(void *context, int64_t piece)
{
    const OperandSums *of = context;
    const View *from = of->operand;
    const int axis = of->axis, kept = of->kept;
    const int64_t batch = piece / of->blocks, first = piece % of->blocks * LINE_ELEMENTS, size = from->shape[axis];
    const int64_t count = smaller(LINE_ELEMENTS, from->shape[kept] - first);
    double sums[LINE_ELEMENTS] = {0}, line[LINE_ELEMENTS];
    const bool along = llabs(from->strides[axis]) < llabs(from->strides[kept]);
    for (int64_t place = 0; !along && place < size; place++) {
        us_line_load(DTYPE_FLOAT64, line, element_of(from, batch, kept, first, axis, place), from->dtype, from->strides[kept],
                     count, false);
        for (int64_t i = 0; i < count; i++) {
            sums[i] += line[i];
        }
    }
    for (int64_t i = 0; along && i < count; i++) {
        for (int64_t place = 0; place < size; place += LINE_ELEMENTS) {
            const int64_t length = smaller(size - place, LINE_ELEMENTS);
            us_line_load(DTYPE_FLOAT64, line, element_of(from, batch, kept, first + i, axis, place), from->dtype,
                         from->strides[axis], length, false);
            for (int64_t k = 0; k < length; k++) {
                sums[i] += line[k];
            }
        }
    }
    const int64_t to = batch * of->sums->strides[0] + first * of->sums->strides[1];
    us_line_store(DTYPE_FLOAT64, (char *)of->sums->data + to * (int64_t)us_dtype_size(of->sums->dtype), of->sums->dtype,
                  of->sums->strides[1], sums, count);
}

static void sum_operand(const View *operand, int axis, const View *sums)
{
    const int kept = 3 - axis;
    OperandSums of = {operand, sums, axis, kept, ceiling(operand->shape[kept], LINE_ELEMENTS)};
    us_parallel(operand->shape[0] * of.blocks, sum_block, &of);
}

/* A bit for each element of a matrix, and the same as a byte each: tiles may share a byte of bits. */
typedef struct Marks {
    const View *bits; /* [batch, bytes, n] */
    View bytes;       /* [batch, m, n] */
} Marks;

enum { BITS = 8 };

static uint8_t *bits_of(const Marks *marks, int64_t piece)
{
    const View *bits = marks->bits;
    return (uint8_t *)bits->data + piece / bits->shape[2] * bits->strides[0] + piece % bits->shape[2] * bits->strides[2];
}

static void pack_column(void *context, int64_t piece)
{
    const Marks *marks = context;
    const int64_t rows = marks->bytes.shape[1];
    const uint8_t *from = (const uint8_t *)marks->bytes.data + piece * rows;
    uint8_t *to = bits_of(marks, piece);
    for (int64_t row = 0; row < rows; row++) {
        const uint8_t before = row % BITS == 0 ? 0 : to[row / BITS];
        to[row / BITS] = (uint8_t)(before | from[row] << row % BITS);
    }
}

static void unpack_column(void *context, int64_t piece)
{
    const Marks *marks = context;
    const int64_t rows = marks->bytes.shape[1];
    const uint8_t *from = bits_of(marks, piece);
    uint8_t *to = (uint8_t *)marks->bytes.data + piece * rows;
    for (int64_t row = 0; row < rows; row++) {
        to[row] = from[row / BITS] >> row % BITS & 1;
    }
}

static void sum_gradient(const View *views, BiasGradient gradient)
{
    if (gradient == BIAS_GRADIENT_OF_A) {
        sum_operand(&views[A], 2, &views[BIAS]);
    } else if (gradient == BIAS_GRADIENT_OF_B) {
        sum_operand(&views[B], 1, &views[BIAS]);
    } else if (gradient == BIAS_GRADIENT_OF_RESULT) {
        sum_operand(&views[RESULT], 2, &views[BIAS]);
    }
}

static KernelStatus multiply(const View *views, const ProductWithEpilogue *given, const View *aux)
{
    Matmul product = us_matmul_of_views(views, &given->product);
    const double factor = factor_of(&views[FACTOR_A]) * factor_of(&views[FACTOR_B]);
    const double addend_factor = factor_of(&views[FACTOR_OF_ADDEND]);
    const View absent = us_view_absent(), *bias = given->gradient == BIAS_GRADIENT_NONE ? &views[BIAS] : &absent;
    const Epilogue epilogue = {given->activation, product.compute, bias, aux};
    for (int part = 0; part < 2; part++) {
        product.alpha[part] *= factor;
        product.beta[part] *= product.beta[part] != 0 ? addend_factor : 1; /* 0: there may be no addend */
    }
    if (given->activation != ACTIVATION_NONE || !us_view_is_absent(bias)) {
        product.finish = finish;
        product.finish_context = &epilogue;
    }
    const KernelStatus status = us_matmul(&product);
    if (status == KERNEL_OK) {
        sum_gradient(views, given->gradient);
    }
    return status;
}

/* ReLU's auxiliary matrix has bits. */
static KernelStatus multiply_with_bits(const View *views, const ProductWithEpilogue *given)
{
    const int64_t *shape = views[RESULT].shape;
    Marks marks = {&views[AUX], us_view_contiguous(NULL, DTYPE_UINT8, 3, shape)};
    marks.bytes.strides[0] = shape[1] * shape[2];
    marks.bytes.strides[1] = 1;
    marks.bytes.strides[2] = shape[1];
    marks.bytes.data = us_scratch_array(us_view_elements(&marks.bytes), 1);
    if (marks.bytes.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t columns = shape[0] * shape[2];
    if (given->activation == ACTIVATION_RELU_SLOPE) {
        us_parallel(columns, unpack_column, &marks);
    }
    const KernelStatus status = multiply(views, given, &marks.bytes);
    if (status == KERNEL_OK && given->activation == ACTIVATION_RELU) {
        us_parallel(columns, pack_column, &marks);
    }
    us_scratch_give_back(marks.bytes.data);
    return status;
}

static KernelStatus multiply_either_way(const View *views, const ProductWithEpilogue *given)
{
    const bool is_relu = given->activation == ACTIVATION_RELU || given->activation == ACTIVATION_RELU_SLOPE;
    return is_relu && !us_view_is_absent(&views[AUX]) ? multiply_with_bits(views, given) : multiply(views, given, &views[AUX]);
}

KernelStatus us_product_with_epilogue(const View *views, const void *attributes)
{
    const ProductWithEpilogue *given = attributes;
    if (!given->e4m3) {
        return multiply_either_way(views, given);
    }
    View widened[VIEWS];
    memcpy(widened, views, sizeof widened);
    float *a = us_e4m3_widen(&widened[A]), *b = a != NULL ? us_e4m3_widen(&widened[B]) : NULL;
    const KernelStatus status = b != NULL ? multiply_either_way(widened, given) : KERNEL_NO_MEMORY;
    us_scratch_give_back(b);
    us_scratch_give_back(a);
    return status;
}
