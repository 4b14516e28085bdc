#include "kernels/linear_algebra/vectors.h"

#include "kernels/maths/maths.h"
#include "kernels/matmul/lines.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <float.h>
#include <math.h>

enum { BLOCK = 8192, TILE = LINE_ELEMENTS };

static int64_t length_of(const View *view)
{
    return view->rank == 0 ? 1 : view->shape[0];
}

static int64_t stride_of(const View *view)
{
    return view->rank == 0 ? 1 : view->strides[0];
}

static char *element(const View *view, int64_t index)
{
    return (char *)view->data + index * stride_of(view) * (int64_t)us_dtype_size(view->dtype);
}

/* Elements as pairs of float64, real numbers with an imaginary part of 0. */
static void load_pairs(const View *view, int64_t first, int64_t count, double (*pairs)[2])
{
    if (is_complex(view->dtype)) {
        us_line_load(DTYPE_COMPLEX128, pairs, element(view, first), view->dtype, stride_of(view), count, false);
        return;
    }
    double reals[TILE];
    us_load_double(reals, element(view, first), view->dtype, stride_of(view), count);
    for (int64_t i = 0; i < count; i++) {
        pairs[i][0] = reals[i];
        pairs[i][1] = 0;
    }
}

static void store_pairs(const View *view, int64_t first, int64_t count, double (*pairs)[2])
{
    if (is_complex(view->dtype)) {
        us_line_store(DTYPE_COMPLEX128, element(view, first), view->dtype, stride_of(view), pairs, count);
        return;
    }
    double reals[TILE];
    for (int64_t i = 0; i < count; i++) {
        reals[i] = pairs[i][0];
    }
    us_store_double(element(view, first), view->dtype, stride_of(view), reals, count);
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

typedef struct Update {
    VectorOperation operation;
    double scalars[VECTOR_SCALARS][2];
    const View *x, *y;
} Update;

static void move_elements(const Update *update, int64_t first, int64_t end)
{
    const size_t size = us_dtype_size(update->x->dtype);
    char kept[LARGEST_ELEMENT];
    for (; first < end; first++) {
        char *x = element(update->x, first), *y = element(update->y, first);
        memcpy(kept, y, size);
        memcpy(y, x, size);
        if (update->operation == VECTOR_SWAP) {
            memcpy(x, kept, size);
        }
    }
}

US_SCALAR static void add_product(double *sum, const double *a, const double *b)
{
    const double real = a[0] * b[0] - a[1] * b[1], imaginary = a[0] * b[1] + a[1] * b[0];
    sum[0] += real;
    sum[1] += imaginary;
}

US_SCALAR static void scale_pairs(const double *factor, double (*x)[2], int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double product[2] = {0, 0};
        add_product(product, factor, x[i]);
        memcpy(x[i], product, sizeof product);
    }
}

US_SCALAR static void add_scaled_pairs(const double *factor, double (*x)[2], double (*y)[2], int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        add_product(y[i], factor, x[i]);
    }
}

/* x = a * x + b * y, y = c * x + d * y. */
US_SCALAR static void transform_pairs(const double (*matrix)[2], double (*x)[2], double (*y)[2], int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double first[2] = {0, 0}, second[2] = {0, 0};
        add_product(first, matrix[0], x[i]);
        add_product(first, matrix[1], y[i]);
        add_product(second, matrix[2], x[i]);
        add_product(second, matrix[3], y[i]);
        memcpy(x[i], first, sizeof first);
        memcpy(y[i], second, sizeof second);
    }
}

/* The matrix of a modified rotation: which elements are given follows from the flag. False: nothing is to be done. */
static bool modified_rotation(const double (*param)[2], double (*matrix)[2])
{
    const double flag = param[0][0];
    if (flag == -2) {
        return false;
    }
    memset(matrix, 0, 4 * sizeof *matrix);
    matrix[0][0] = flag == 0 ? 1 : param[1][0];
    matrix[1][0] = flag == 1 ? 1 : param[3][0];
    matrix[2][0] = flag == 1 ? -1 : param[2][0];
    matrix[3][0] = flag == 0 ? 1 : param[4][0];
    return true;
}

static void rotate(const Update *update, double (*x)[2], double (*y)[2], int64_t count)
{
    const double (*s)[2] = update->scalars;
    double matrix[4][2] = {{s[0][0], s[0][1]}, {s[1][0], s[1][1]}, {-s[1][0], s[1][1]}, {s[0][0], s[0][1]}};
    if (update->operation == VECTOR_ROTATE || modified_rotation(s, matrix)) {
        transform_pairs((const double (*)[2])matrix, x, y, count);
    }
}

static void update_block(void *context, int64_t block)
{
    const Update *update = context;
    const int64_t end = smaller(length_of(update->x), (block + 1) * BLOCK);
    if (update->operation == VECTOR_COPY || update->operation == VECTOR_SWAP) {
        move_elements(update, block * BLOCK, end);
        return;
    }
    double x[TILE][2], y[TILE][2];
    for (int64_t first = block * BLOCK; first < end; first += TILE) {
        const int64_t count = smaller(end - first, TILE);
        load_pairs(update->x, first, count, x);
        if (update->operation == VECTOR_SCALE) {
            scale_pairs(update->scalars[0], x, count);
            store_pairs(update->x, first, count, x);
            continue;
        }
        load_pairs(update->y, first, count, y);
        if (update->operation == VECTOR_AXPY) {
            add_scaled_pairs(update->scalars[0], x, y, count);
        } else {
            rotate(update, x, y, count);
            store_pairs(update->x, first, count, x);
        }
        store_pairs(update->y, first, count, y);
    }
}

KernelStatus us_vector_update(const View *views, const void *attributes)
{
    const VectorUpdate *given = attributes;
    Update update = {.operation = given->operation, .x = &views[0], .y = &views[1]};
    memcpy(update.scalars, given->scalars, sizeof update.scalars);
    for (int i = 0; i < 2; i++) {
        const View *scalar = &views[2 + i];
        if (!us_view_is_absent(scalar)) {
            load_pairs(scalar, 0, length_of(scalar), update.scalars + i);
        }
    }
    us_parallel((length_of(update.x) + BLOCK - 1) / BLOCK, update_block, &update);
    return KERNEL_OK;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

typedef struct Part {
    double value;
    int64_t index; /* of the largest or smallest; -1: there is none */
} Part;

typedef struct Reduction {
    VectorReduction reduction;
    const View *x;
    double scale; /* what elements of a norm are divided by */
    Part *parts;
} Reduction;

static void reduce_block(void *context, int64_t block)
{
    const Reduction *work = context;
    const int64_t end = smaller(length_of(work->x), (block + 1) * BLOCK);
    const bool smallest = work->reduction == VECTOR_SMALLEST;
    Part part = {work->reduction == VECTOR_LARGEST ? -INFINITY : smallest ? INFINITY : 0, -1};
    double x[TILE][2];
    for (int64_t first = block * BLOCK; first < end; first += TILE) {
        const int64_t count = smaller(end - first, TILE);
        load_pairs(work->x, first, count, x);
        for (int64_t i = 0; i < count; i++) {
            const double size = fabs(x[i][0]) + fabs(x[i][1]);
            if (work->reduction == VECTOR_ABSOLUTE_SUM) {
                part.value += size;
            } else if (work->reduction == VECTOR_NORM) {
                const double real = x[i][0] / work->scale, imaginary = x[i][1] / work->scale;
                part.value += real * real + imaginary * imaginary;
            } else if (smallest ? size < part.value : size > part.value) {
                part = (Part){size, first + i};
            } else if (part.index < 0 && size == part.value) {
                part.index = first + i; /* infinity can be the smallest */
            }
        }
    }
    work->parts[block] = part;
}

static Part reduce(VectorReduction reduction, const View *x, double scale, Part *parts)
{
    Reduction work = {reduction, x, scale, parts};
    const int64_t blocks = (length_of(x) + BLOCK - 1) / BLOCK;
    us_parallel(blocks, reduce_block, &work);
    Part whole = parts[0];
    for (int64_t block = 1; block < blocks; block++) {
        const Part *part = &parts[block];
        if (reduction == VECTOR_ABSOLUTE_SUM || reduction == VECTOR_NORM) {
            whole.value += part->value;
            continue;
        }
        const bool better = reduction == VECTOR_SMALLEST ? part->value < whole.value : part->value > whole.value;
        if (part->index >= 0 && (whole.index < 0 || better)) {
            whole = *part;
        }
    }
    return whole;
}

/* Squares of float64 can leave its range: elements are divided by a power of 2 near the largest first. */
static double norm(const View *x, Part *parts)
{
    const DType dtype = x->dtype;
    if (dtype != DTYPE_FLOAT64 && dtype != DTYPE_COMPLEX128) {
        return sqrt(reduce(VECTOR_NORM, x, 1, parts).value);
    }
    const double largest = reduce(VECTOR_LARGEST, x, 1, parts).value;
    /* a complex number's parts may add up to infinity where its length does not */
    const double scale = largest > 0 ? ldexp(1, isfinite(largest) ? ilogb(largest) : DBL_MAX_EXP - 1) : 1;
    return scale * sqrt(reduce(VECTOR_NORM, x, scale, parts).value);
}

static double index_of(VectorReduction reduction, const View *x, Part *parts)
{
    double first[1][2];
    load_pairs(x, 0, 1, first);
    if (isnan(first[0][0]) || isnan(first[0][1])) {
        return 1;
    }
    return (double)reduce(reduction, x, 1, parts).index + 1;
}

static KernelStatus dot(const View *views, const VectorSum *sum, double *result)
{
    const int64_t count = length_of(&views[0]);
    const Matmul product = {
        .m = 1, .n = 1, .k = count,
        .a = {.data = views[0].data, .dtype = views[0].dtype, .row = 1, .column = stride_of(&views[0]),
              .conjugated = sum->reduction == VECTOR_DOT_CONJUGATED},
        .b = {.data = views[1].data, .dtype = views[1].dtype, .row = stride_of(&views[1]), .column = 1},
        .c = {.data = result, .dtype = is_complex(sum->compute) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, .row = 1,
              .column = 1},
        .compute = sum->compute, .alpha = {1},
    };
    return us_matmul(&product);
}

KernelStatus us_vector_sum(const View *views, const void *attributes)
{
    const VectorSum *sum = attributes;
    const View *x = &views[0];
    const int64_t count = us_view_is_absent(x) ? 0 : length_of(x);
    double result[1][2] = {{0, 0}};
    KernelStatus status = KERNEL_OK;
    if (count > 0 && sum->reduction <= VECTOR_DOT_CONJUGATED) {
        status = dot(views, sum, result[0]);
    } else if (count > 0) {
        Part *parts = us_scratch_array((count + BLOCK - 1) / BLOCK, sizeof *parts);
        if (parts == NULL) {
            return KERNEL_NO_MEMORY;
        }
        result[0][0] = sum->reduction == VECTOR_ABSOLUTE_SUM ? reduce(sum->reduction, x, 1, parts).value
                       : sum->reduction == VECTOR_NORM       ? norm(x, parts)
                                                             : index_of(sum->reduction, x, parts);
        us_scratch_give_back(parts);
    }
    if (status == KERNEL_OK) {
        const View host = {.data = sum->host, .dtype = sum->result};
        store_pairs(us_view_is_absent(&views[2]) ? &host : &views[2], 0, 1, result);
    }
    return status;
}

/* ---- rotations from scalars -------------------------------------------------------------------------------------- */

typedef double Pair[2];

/* r, c, s with r = c * a + s * b, 0 = -s * a + c * b, and z from which c and s follow (BLAS, drotg). */
static void real_rotation(double *a, double *b, double *c, double *s)
{
    const double scale = fabs(*a) + fabs(*b);
    if (scale == 0) {
        *c = 1;
        *s = *a = *b = 0;
        return;
    }
    const double sign = fabs(*a) > fabs(*b) ? copysign(1, *a) : copysign(1, *b);
    const double r = sign * scale * sqrt(*a / scale * (*a / scale) + *b / scale * (*b / scale));
    *c = *a / r;
    *s = *b / r;
    const double z = fabs(*a) > fabs(*b) ? *s : *c != 0 ? 1 / *c : 1;
    *a = r;
    *b = z;
}

/* c is real, s = conj(b) * (a / |a|) / norm, a becomes (a / |a|) * norm. */
static void complex_rotation(Pair a, const Pair b, double *c, Pair s)
{
    const double size = complex_abs_double(complex_of(a[0], a[1]));
    if (size == 0) {
        *c = 0;
        s[0] = 1;
        s[1] = 0;
        memcpy(a, b, sizeof(Pair));
        return;
    }
    const double length = complex_abs_double(complex_of(size, complex_abs_double(complex_of(b[0], b[1]))));
    const Pair direction = {a[0] / size, a[1] / size}, conjugate = {b[0] / length, -b[1] / length};
    *c = size / length;
    s[0] = s[1] = 0;
    add_product(s, direction, conjugate);
    a[0] = direction[0] * length;
    a[1] = direction[1] * length;
}

/* Keeps the squared scales d1 and d2 between 4096^-2 and 4096^2, as BLAS does. */
static void rescale(double *d, double *x, double *first, double *second, double *flag)
{
    enum { STEP = 4096 };
    while (*d != 0 && isfinite(*d) && (fabs(*d) <= 1.0 / STEP / STEP || fabs(*d) >= (double)STEP * STEP)) {
        const bool small = fabs(*d) <= 1.0 / STEP / STEP;
        *flag = -1;
        *d *= small ? (double)STEP * STEP : 1.0 / STEP / STEP;
        const double factor = small ? 1.0 / STEP : STEP;
        if (x != NULL) {
            *x *= factor;
        }
        *first *= factor;
        *second *= factor;
    }
}

/* drotmg. param: flag, h11, h21, h12, h22; what the flag implies is not stored. */
static void modified_setup(double *d1, double *d2, double *x1, double y1, double *param)
{
    double flag = -1, h11 = 0, h12 = 0, h21 = 0, h22 = 0;
    const double p2 = *d2 * y1;
    if (*d1 >= 0 && p2 == 0) {
        param[0] = -2;
        return;
    }
    const double p1 = *d1 * *x1, q2 = p2 * y1, q1 = p1 * *x1;
    bool done = *d1 < 0;
    if (!done && fabs(q1) > fabs(q2)) {
        h21 = -y1 / *x1;
        h12 = p2 / p1;
        const double u = 1 - h12 * h21;
        done = u <= 0;
        if (!done) {
            flag = 0;
            h11 = h22 = 1;
            *d1 /= u;
            *d2 /= u;
            *x1 *= u;
        }
    } else if (!done) {
        done = q2 < 0;
        if (!done) {
            flag = 1;
            h11 = p1 / p2;
            h22 = *x1 / y1;
            h12 = 1;
            h21 = -1;
            const double u = 1 + h11 * h22, kept = *d2 / u;
            *d2 = *d1 / u;
            *d1 = kept;
            *x1 = y1 * u;
        }
    }
    if (done) {
        h11 = h12 = h21 = h22 = 0;
        *d1 = *d2 = *x1 = 0;
    } else {
        rescale(d1, x1, &h11, &h12, &flag);
        rescale(d2, NULL, &h21, &h22, &flag);
    }
    param[0] = flag;
    if (flag != 0) {
        param[1] = h11;
        param[4] = h22;
    }
    if (flag != 1) {
        param[2] = h21;
        param[3] = h12;
    }
}

KernelStatus us_rotation_setup(const View *views, const void *attributes)
{
    const RotationSetup *setup = attributes;
    const bool complex_numbers = is_complex(setup->dtype);
    const DType real = setup->dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32
                       : setup->dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : setup->dtype;
    View operands[5];
    Pair values[5][5];
    for (int i = 0; i < 4 + setup->modified; i++) {
        const bool vector = i == 4;
        const int64_t count = vector ? 5 : 1;
        operands[i] = views[i];
        if (us_view_is_absent(&views[i])) {
            operands[i] = us_view_contiguous(setup->host[i], i == 2 && !setup->modified ? real : setup->dtype, 1,
                                             &count);
        }
        load_pairs(&operands[i], 0, count, values[i]);
    }
    if (setup->modified) {
        double param[5];
        for (int i = 0; i < 5; i++) {
            param[i] = values[4][i][0];
        }
        modified_setup(values[0][0], values[1][0], values[2][0], values[3][0][0], param);
        for (int i = 0; i < 5; i++) {
            values[4][i][0] = param[i];
        }
    } else if (complex_numbers) {
        complex_rotation(values[0][0], values[1][0], values[2][0], values[3][0]);
    } else {
        real_rotation(values[0][0], values[1][0], values[2][0], values[3][0]);
    }
    for (int i = 0; i < 4 + setup->modified; i++) {
        const bool only_read = setup->modified ? i == 3 : complex_numbers && i == 1;
        if (!only_read) {
            store_pairs(&operands[i], 0, i == 4 ? 5 : 1, values[i]);
        }
    }
    return KERNEL_OK;
}
