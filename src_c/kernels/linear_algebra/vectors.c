#include "kernels/linear_algebra/vectors.h"

#include "kernels/maths/maths.h"
#include "kernels/matmul/lines.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
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

typedef double Pair[2];

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
    VectorUpdate given;
    const View *x, *y;
} Update;

static bool is_packed(const View *view)
{
    return stride_of(view) == 1;
}

#define MOVE_LOOP(type) \
    for (int64_t i = 0; i < count && swaps; i++) { \
        type source, kept; \
        memcpy(&source, x + i * x_step, sizeof source); \
        memcpy(&kept, y + i * y_step, sizeof kept); \
        memcpy(y + i * y_step, &source, sizeof source); \
        memcpy(x + i * x_step, &kept, sizeof kept); \
    } \
    for (int64_t i = 0; i < count && !swaps; i++) { \
        memcpy(y + i * y_step, x + i * x_step, sizeof(type)); \
    }

static void move_packed(char *x, char *y, size_t bytes, bool swaps)
{
    char kept[TILE];
    if (!swaps) {
        memmove(y, x, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += sizeof kept) {
        const size_t part = bytes - at < sizeof kept ? bytes - at : sizeof kept;
        memcpy(kept, y + at, part);
        memcpy(y + at, x + at, part);
        memcpy(x + at, kept, part);
    }
}

static void move_elements(const Update *update, int64_t first, int64_t end)
{
    const bool swaps = update->given.operation == VECTOR_SWAP;
    const size_t size = us_dtype_size(update->x->dtype);
    if (is_packed(update->x) && is_packed(update->y)) {
        move_packed(element(update->x, first), element(update->y, first), (size_t)(end - first) * size, swaps);
        return;
    }
    char *const x = element(update->x, first), *const y = element(update->y, first);
    const int64_t count = end - first, x_step = element(update->x, first + 1) - x, y_step = element(update->y, first + 1) - y;
    switch (size) {
    case 2: MOVE_LOOP(uint16_t) break;
    case 4: MOVE_LOOP(uint32_t) break;
    case 8: MOVE_LOOP(uint64_t) break;
    default: MOVE_LOOP(Sixteen) break;
    }
}

/* The matrix of a rotation, x = m0 * x + m1 * y, y = m2 * x + m3 * y. Of a modified one, which elements are given follows
 * from the flag. False: nothing is to be done. */
static bool rotation_of(const VectorUpdate *update, double (*matrix)[2])
{
    const double (*s)[2] = update->scalars;
    const double flag = s[0][0];
    memset(matrix, 0, 4 * sizeof *matrix);
    if (update->operation == VECTOR_ROTATE) {
        memcpy(matrix[0], s[0], sizeof *matrix);
        memcpy(matrix[1], s[1], sizeof *matrix);
        matrix[2][0] = -s[1][0];
        matrix[2][1] = s[1][1];
        memcpy(matrix[3], s[0], sizeof *matrix);
        return true;
    }
    matrix[0][0] = flag == 0 ? 1 : s[1][0];
    matrix[1][0] = flag == 1 ? 1 : s[3][0];
    matrix[2][0] = flag == 1 ? -1 : s[2][0];
    matrix[3][0] = flag == 0 ? 1 : s[4][0];
    return flag != -2;
}

static void rotate_reals(const VectorUpdate *update, double *x, double *y, int64_t count)
{
    double m[4][2];
    if (!rotation_of(update, m)) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const double first = m[0][0] * x[i] + m[1][0] * y[i], second = m[2][0] * x[i] + m[3][0] * y[i];
        x[i] = first;
        y[i] = second;
    }
}

static void update_reals(const Update *update, int64_t first, int64_t count)
{
    const VectorOperation operation = update->given.operation;
    const double factor = update->given.scalars[0][0];
    double x[TILE], y[TILE];
    us_load_double(x, element(update->x, first), update->x->dtype, stride_of(update->x), count);
    if (operation == VECTOR_SCALE) {
        for (int64_t i = 0; i < count; i++) {
            x[i] *= factor;
        }
        us_store_double(element(update->x, first), update->x->dtype, stride_of(update->x), x, count);
        return;
    }
    us_load_double(y, element(update->y, first), update->y->dtype, stride_of(update->y), count);
    if (operation == VECTOR_AXPY) {
        for (int64_t i = 0; i < count; i++) {
            y[i] += factor * x[i];
        }
    } else {
        rotate_reals(&update->given, x, y, count);
        us_store_double(element(update->x, first), update->x->dtype, stride_of(update->x), x, count);
    }
    us_store_double(element(update->y, first), update->y->dtype, stride_of(update->y), y, count);
}

/* A real factor multiplies both parts: as a complex one it would make infinity in one of them not a number in the other. */
US_SCALAR static void multiply(const Pair a, bool is_real, const Pair b, Pair product)
{
    product[0] = is_real ? a[0] * b[0] : a[0] * b[0] - a[1] * b[1];
    product[1] = is_real ? a[0] * b[1] : a[0] * b[1] + a[1] * b[0];
}

/* a * x + b * y */
US_SCALAR static void combine(const Pair a, bool a_is_real, const Pair x, const Pair b, bool b_is_real, const Pair y,
                              Pair sum)
{
    Pair first, second;
    multiply(a, a_is_real, x, first);
    multiply(b, b_is_real, y, second);
    sum[0] = first[0] + second[0];
    sum[1] = first[1] + second[1];
}

static void update_pairs(const Update *update, int64_t first, int64_t count)
{
    const VectorOperation operation = update->given.operation;
    const bool *real = update->given.real;
    const Pair *factor = &update->given.scalars[0];
    Pair x[TILE], y[TILE], matrix[4], made;
    load_pairs(update->x, first, count, x);
    if (operation != VECTOR_SCALE) {
        load_pairs(update->y, first, count, y);
    }
    if (operation == VECTOR_ROTATE) {
        rotation_of(&update->given, matrix);
    }
    for (int64_t i = 0; i < count; i++) {
        if (operation == VECTOR_SCALE) {
            multiply(*factor, real[0], x[i], made);
            memcpy(x[i], made, sizeof made);
        } else if (operation == VECTOR_AXPY) {
            multiply(*factor, real[0], x[i], made);
            y[i][0] += made[0];
            y[i][1] += made[1];
        } else {
            combine(matrix[0], real[0], x[i], matrix[1], real[1], y[i], made);
            combine(matrix[2], real[1], x[i], matrix[3], real[0], y[i], y[i]);
            memcpy(x[i], made, sizeof made);
        }
    }
    if (operation != VECTOR_AXPY) {
        store_pairs(update->x, first, count, x);
    }
    if (operation != VECTOR_SCALE) {
        store_pairs(update->y, first, count, y);
    }
}

static void update_range(const Update *update, int64_t first, int64_t end)
{
    const VectorOperation operation = update->given.operation;
    if (operation == VECTOR_COPY || operation == VECTOR_SWAP) {
        move_elements(update, first, end);
        return;
    }
    for (; first < end; first += TILE) {
        (is_complex(update->x->dtype) ? update_pairs : update_reals)(update, first, smaller(end - first, TILE));
    }
}

static void update_block(void *context, int64_t block)
{
    const Update *update = context;
    update_range(update, block * BLOCK, smaller(length_of(update->x), (block + 1) * BLOCK));
}

/* A written vector with a step of 0 is one element, which every step changes: one after the other, as the BLAS does. */
static bool goes_in_order(const Update *update)
{
    const bool writes_x = update->given.operation != VECTOR_COPY && update->given.operation != VECTOR_AXPY;
    return (writes_x && stride_of(update->x) == 0) || (!us_view_is_absent(update->y) && stride_of(update->y) == 0);
}

KernelStatus us_vector_update(const View *views, const void *attributes)
{
    Update update = {.given = *(const VectorUpdate *)attributes, .x = &views[0], .y = &views[1]};
    for (int i = 0; i < 2; i++) {
        const View *scalar = &views[2 + i];
        if (!us_view_is_absent(scalar)) {
            load_pairs(scalar, 0, length_of(scalar), update.given.scalars + i);
        }
    }
    const int64_t length = length_of(update.x);
    if (update.given.operation == VECTOR_AXPY && is_zero(update.given.scalars[0])) {
        return KERNEL_OK; /* x is not read */
    }
    if (goes_in_order(&update)) {
        for (int64_t i = 0; i < length; i++) {
            update_range(&update, i, i + 1);
        }
        return KERNEL_OK;
    }
    us_parallel((length + BLOCK - 1) / BLOCK, update_block, &update);
    return KERNEL_OK;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

typedef struct Part {
    double value;
    int64_t index; /* of the largest term; -1: there is none */
} Part;

typedef struct Reduction {
    VectorReduction reduction;
    const View *x;
    double scale; /* what elements of a norm are divided by */
    Part *parts;
} Reduction;

/* Sizes of elements, with a minus sign where the smallest is sought, or squares. */
static void terms_of(const Reduction *work, int64_t first, int64_t count, double *terms)
{
    const bool squares = work->reduction == VECTOR_NORM;
    const double scale = work->scale, sign = work->reduction == VECTOR_SMALLEST ? -1 : 1;
    Pair pairs[TILE];
    if (!is_complex(work->x->dtype)) {
        us_load_double(terms, element(work->x, first), work->x->dtype, stride_of(work->x), count);
        for (int64_t i = 0; i < count; i++) {
            terms[i] = squares ? terms[i] / scale * (terms[i] / scale) : sign * fabs(terms[i]);
        }
        return;
    }
    load_pairs(work->x, first, count, pairs);
    for (int64_t i = 0; i < count; i++) {
        const double real = pairs[i][0] / scale, imaginary = pairs[i][1] / scale;
        terms[i] = squares ? real * real + imaginary * imaginary : sign * (fabs(real) + fabs(imaginary));
    }
}

/* Lanes have sums of their own, so that additions need not wait for each other. */
static void add_terms(const double *terms, int64_t count, double *sums)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            sums[lane] += terms[i + lane];
        }
    }
    for (int lane = 0; i < count; i++, lane++) {
        sums[lane] += terms[i];
    }
}

static double larger_term(double term, double best)
{
    return term > best ? term : best; /* not where it is NaN */
}

/* The first of the largest. */
static void take_terms(const double *terms, int64_t count, int64_t index, Part *part)
{
    double lanes[LANES], best = part->value;
    int64_t i = 0;
    for (int lane = 0; lane < LANES; lane++) {
        lanes[lane] = best;
    }
    for (; i + LANES <= count; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            lanes[lane] = larger_term(terms[i + lane], lanes[lane]);
        }
    }
    for (; i < count; i++) {
        best = larger_term(terms[i], best);
    }
    for (int lane = 0; lane < LANES; lane++) {
        best = larger_term(lanes[lane], best);
    }
    const bool found = best > part->value || part->index < 0; /* minus infinity can be the largest */
    for (i = 0; found && i < count; i++) {
        if (terms[i] == best) {
            *part = (Part){best, index + i};
            break;
        }
    }
}

static void reduce_block(void *context, int64_t block)
{
    const Reduction *work = context;
    const int64_t end = smaller(length_of(work->x), (block + 1) * BLOCK);
    const bool adds = work->reduction < VECTOR_LARGEST;
    Part part = {adds ? 0 : -INFINITY, -1};
    double terms[TILE], sums[LANES] = {0};
    for (int64_t first = block * BLOCK; first < end; first += TILE) {
        const int64_t count = smaller(end - first, TILE);
        terms_of(work, first, count, terms);
        if (adds) {
            add_terms(terms, count, sums);
        } else {
            take_terms(terms, count, first, &part);
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        part.value += sums[lane];
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
        if (part->index >= 0 && (whole.index < 0 || part->value > whole.value)) {
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

/* r, c, s with r = c * a + s * b, 0 = -s * a + c * b, and z from which c and s follow (BLAS, drotg). */
static void real_rotation(double *a, double *b, double *c, double *s)
{
    const double scale = fabs(*a) > fabs(*b) ? fabs(*a) : fabs(*b); /* their sum could overflow */
    if (*a == 0 && *b == 0) {
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
    multiply(direction, false, conjugate, s);
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
