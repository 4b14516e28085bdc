/* Matrices beside their products. */
#include "ascend/opapi/linear_algebra.h"

#include "kernels/conv/unfold.h"
#include "kernels/linear_algebra/decompose.h"
#include "kernels/linear_algebra/distance.h"
#include "kernels/map/formulas.h"
#include "kernels/matmul/summed.h"
#include "kernels/reduce/reductions.h"

/* ---- products ---- */

/* views: a, b, addend, c. */
static aclnnStatus plan_product(OpCall *op, Kernel *kernel, DType compute, Number beta, Number alpha,
                                const PlannedView *four)
{
    const ViewProduct product = {.compute = compute, .alpha = {alpha.real}, .beta = {beta.real}};
    const PlannedView views[] = {four[0], four[1], four[2], four[3], {NULL, VIEW_READ, NULL}, {NULL, VIEW_READ, NULL}};
    return op_plan_views(op, kernel, &product, sizeof product, kernel == us_product ? 6 : 4, views);
}

Shape op_shape_outer(OpCall *op, const Operand *a, const Operand *b)
{
    (void)op;
    return op_shape_of(2, (const int64_t[]){op_size(a, 0), op_size(b, 0)});
}

aclnnStatus op_outer(OpCall *op, const Operand *a, const Operand *b, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View column = us_view_insert_axis(a->view, 1, 1, 0), row = us_view_insert_axis(b->view, 0, 1, 0);
    const PlannedView views[] = {{a, VIEW_READ, &column}, {b, VIEW_READ, &row}, {NULL, VIEW_READ, NULL},
                                 {out, VIEW_WRITE, NULL}};
    const DType compute = op_product_type(dtype_of_acl(op_promote(op, OPERANDS(a, b))));
    return plan_product(op, us_product, compute, ZERO, ONE, views);
}

Shape op_shape_summed_product(OpCall *op, const Operand *a, const Operand *b)
{
    const int64_t batch = op_size(a, 0), other = op_size(b, 0);
    op_require(op, batch == other || batch == 1 || other == 1, b->name, "batch", op->invalid,
               "%s is %s, %s is %s: their batches differ", a->name, op_shape_text(op, a), b->name, op_shape_text(op,
                   b));
    op_require(op, op_size(a, 2) == op_size(b, 1), b->name, "shape", op->invalid,
               "%s is %s, %s is %s: they cannot be multiplied", a->name, op_shape_text(op, a), b->name,
               op_shape_text(op, b));
    return op_shape_of(2, (const int64_t[]){op_size(a, 1), op_size(b, 2)});
}

/* A batch of 1 stands for any batch. */
static View with_first(const View *view, int64_t batch)
{
    View result = *view;
    result.strides[0] = view->shape[0] == batch ? view->strides[0] : 0;
    result.shape[0] = batch;
    return result;
}

aclnnStatus op_addbmm(OpCall *op, const Operand *self, const Operand *a, const Operand *b, Number beta, Number alpha,
                      const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const int64_t batch = op_size(a, 0) == 1 ? op_size(b, 0) : op_size(a, 0);
    const View left = with_first(&a->view, batch), right = with_first(&b->view, batch);
    const View added = us_view_broadcast(&self->view, 2, out->view.shape);
    const PlannedView views[] = {{a, VIEW_READ, &left}, {b, VIEW_READ, &right}, {self, VIEW_READ, &added},
                                 {out, VIEW_WRITE, NULL}};
    return plan_product(op, us_product_summed, DTYPE_FLOAT32, beta, alpha, views);
}

/* ---- Einstein sums ---- */

static const char outer_equation[] = "a,b->ab", inner_equation[] = "abcd,abced->abce";

void require_einsum(OpCall *op, Operands tensors, const char *equation)
{
    const bool outer = strcmp(equation, outer_equation) == 0, inner = strcmp(equation, inner_equation) == 0;
    op_require(op, outer || inner, "equation", "known", op->invalid, "equation is \"%s\"; it needs \"%s\" or \"%s\"",
               equation, outer_equation, inner_equation);
    op_require_length(op, tensors.name, tensors.count, 2, 2);
    if (op_refused(op)) {
        return;
    }
    const Operand *a = tensors.items[0], *b = tensors.items[1];
    bool fits = a->view.rank == (outer ? 1 : 4) && b->view.rank == (outer ? 1 : 5);
    for (int32_t axis = 0; fits && inner && axis < 4; axis++) {
        fits = op_size(a, axis) == op_size(b, axis < 3 ? axis : 4);
    }
    op_require(op, fits, tensors.name, "shape", op->invalid, "%s are %s and %s, which do not fit \"%s\"", tensors.name,
               op_shape_text(op, a), op_shape_text(op, b), equation);
}

Shape op_shape_einsum(OpCall *op, Operands tensors, const char *equation)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    const Operand *a = tensors.items[0], *b = tensors.items[1];
    if (strcmp(equation, outer_equation) == 0) {
        return op_shape_of(2, (const int64_t[]){op_size(a, 0), op_size(b, 0)});
    }
    Shape shape = op_shape(b);
    shape.rank = 4;
    return shape;
}

aclnnStatus op_einsum(OpCall *op, Operands tensors, const Operand *output)
{
    if (op_refused(op) || op_empty(output)) {
        return op_plan_nothing(op);
    }
    const Operand *a = tensors.items[0], *b = tensors.items[1];
    if (a->view.rank == 1) {
        return op_outer(op, a, b, output);
    }
    View column = a->view, result = output->view;
    column.rank = result.rank = 5;
    column.shape[4] = result.shape[4] = 1;
    column.strides[4] = result.strides[4] = 0;
    const PlannedView views[] = {{b, VIEW_READ, NULL}, {a, VIEW_READ, &column}, {NULL, VIEW_READ, NULL},
                                 {output, VIEW_WRITE, &result}};
    return plan_product(op, us_product, op_product_type(dtype_of_acl(a->dtype)), ZERO, ONE, views);
}

/* ---- elements ---- */

aclnnStatus op_trace(OpCall *op, const Operand *self, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    View diagonal = self->view, sum = out->view;
    diagonal.rank = sum.rank = 1;
    diagonal.shape[0] = self->view.shape[0] < self->view.shape[1] ? self->view.shape[0] : self->view.shape[1];
    diagonal.strides[0] = self->view.strides[0] + self->view.strides[1];
    sum.shape[0] = 1;
    sum.strides[0] = 0;
    const DType compute = dtype_of_acl(op_is_integer(self->dtype) ? ACL_INT64 : self->dtype);
    const ReduceCall call = {.reduction = &us_reduce_sum, .compute = compute, .result = compute, .axes = 1,
        .outputs = 1};
    const PlannedView views[] = {{self, VIEW_READ, &diagonal}, {out, VIEW_WRITE, &sum}};
    return op_plan_views(op, us_reduce, &call, sizeof call, 2, views);
}

/* One place of an axis. */
static View place_of(View view, int32_t axis, int64_t place)
{
    const int64_t bytes = (int64_t)us_dtype_size(view.dtype);
    view.data = (void *)((uintptr_t)view.data + (uintptr_t)(place * view.strides[axis] * bytes));
    view.shape[axis] = 1;
    return view;
}

aclnnStatus op_cross(OpCall *op, const Operand *self, const Operand *other, int32_t axis, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const DType dtype = dtype_of_acl(self->dtype);
    const MapCall call = {.formula = &us_map_difference_of_products, .compute = dtype, .result = dtype, .inputs = 4,
                          .outputs = 1, .items = 3};
    const View a = us_view_broadcast(&self->view, out->view.rank, out->view.shape);
    const View b = us_view_broadcast(&other->view, out->view.rank, out->view.shape);
    View views[15];
    PlannedView planned[15];
    for (int32_t i = 0; i < 3; i++) {
        const int64_t next = (i + 1) % 3, last = (i + 2) % 3;
        const View item[] = {place_of(a, axis, next), place_of(b, axis, last), place_of(a, axis, last),
                             place_of(b, axis, next), place_of(out->view, axis, i)};
        const Operand *const operands[] = {self, other, self, other, out};
        for (int32_t k = 0; k < 5; k++) {
            views[5 * i + k] = item[k];
            planned[5 * i + k] = (PlannedView){operands[k], k == 4 ? VIEW_WRITE : VIEW_READ, &views[5 * i + k]};
        }
    }
    return op_plan_views(op, us_map, &call, sizeof call, 15, planned);
}

/* The real or the imaginary parts of a complex tensor. */
static View parts_of(const Operand *operand, bool imaginary)
{
    View view = operand->view;
    view.dtype = operand->dtype == ACL_COMPLEX128 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    for (int32_t axis = 0; axis < view.rank; axis++) {
        view.strides[axis] *= 2;
    }
    view.data = (void *)((uintptr_t)view.data + (imaginary ? us_dtype_size(view.dtype) : 0));
    return view;
}

aclnnStatus op_complex(OpCall *op, const Operand *real, const Operand *imaginary, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const DType dtype = dtype_of_acl(real->dtype);
    const MapCall call = {.formula = &us_map_copy, .compute = dtype, .result = dtype, .inputs = 1, .outputs = 1,
                          .items = 2};
    const View parts[] = {parts_of(out, false), parts_of(out, true)};
    const PlannedView views[] = {{real, VIEW_READ, NULL}, {out, VIEW_WRITE, &parts[0]}, {imaginary, VIEW_READ, NULL},
                                 {out, VIEW_WRITE, &parts[1]}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}

aclDataType op_angle_type(aclDataType dtype)
{
    return dtype == ACL_COMPLEX128                              ? ACL_DOUBLE
           : dtype == ACL_COMPLEX64 || op_is_integer(dtype) ? ACL_FLOAT
                                                                : dtype;
}

aclnnStatus op_angle(OpCall *op, const Operand *x, const Operand *out)
{
    const bool is_complex = x->dtype == ACL_COMPLEX64 || x->dtype == ACL_COMPLEX128;
    if (!is_complex) {
        return op_map(op, &us_map_angle, op_angle_type(x->dtype), OPERANDS(x), OPERANDS(out), NO_NUMBERS);
    }
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View parts[] = {parts_of(x, true), parts_of(x, false)};
    const MapCall call = {.formula = &us_map_atan2, .compute = parts[0].dtype, .result = parts[0].dtype, .inputs = 2,
                          .outputs = 1, .items = 1};
    const PlannedView views[] = {{x, VIEW_READ, &parts[0]}, {x, VIEW_READ, &parts[1]}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 3, views);
}

aclnnStatus op_polar(OpCall *op, const Operand *modulus, const Operand *angle, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const MapCall call = {.formula = &us_map_polar, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 2,
                          .outputs = 2, .items = 1};
    const View parts[] = {parts_of(out, false), parts_of(out, true)};
    const PlannedView views[] = {{modulus, VIEW_READ, NULL}, {angle, VIEW_READ, NULL}, {out, VIEW_WRITE, &parts[0]},
                                 {out, VIEW_WRITE, &parts[1]}};
    return op_plan_views(op, us_map, &call, sizeof call, 4, views);
}

/* ---- windows as columns ---- */

void require_unfold_settings(OpCall *op, UnfoldSettings settings)
{
    const IntArguments arrays[] = {settings.kernel, settings.dilation, settings.padding, settings.stride};
    for (int i = 0; i < 4; i++) {
        op_require_length(op, arrays[i].name, arrays[i].count, 2, 2);
        op_require_each(op, arrays[i], i == 2 ? 0 : 1, INT32_MAX);
    }
}

/* The windows on an axis; less than 1 if there are none. */
static int64_t positions(UnfoldSettings settings, int32_t axis, int64_t size)
{
    const int64_t reach = settings.dilation.values[axis] * (settings.kernel.values[axis] - 1) + 1;
    const int64_t room = size + 2 * settings.padding.values[axis] - reach;
    return room < 0 ? 0 : room / settings.stride.values[axis] + 1;
}

static int64_t taps(IntArguments kernel)
{
    return kernel.values[0] * kernel.values[1];
}

static Shape columns_of(int32_t rank, int64_t images, int64_t channels, int64_t height, int64_t width,
                        UnfoldSettings settings)
{
    int64_t count, rows;
    if (__builtin_mul_overflow(positions(settings, 0, height), positions(settings, 1, width), &count) ||
        __builtin_mul_overflow(channels, taps(settings.kernel), &rows)) {
        count = rows = -1;
    }
    Shape shape = {.rank = rank - 1};
    const int64_t sizes[] = {images, rows, count};
    for (int32_t axis = 0; axis < shape.rank; axis++) {
        shape.sizes[axis] = sizes[3 - shape.rank + axis];
    }
    return shape;
}

Shape op_shape_unfolded(OpCall *op, const Operand *self, IntArguments kernel, IntArguments dilation,
                        IntArguments padding, IntArguments stride)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    return columns_of(self->view.rank, op_size(self, 0), op_size(self, -3), op_size(self, -2), op_size(self, -1),
                      (UnfoldSettings){kernel, dilation, padding, stride});
}

Shape op_shape_folded(OpCall *op, const Operand *columns, IntArguments size, IntArguments kernel)
{
    op_require(op, op_refused(op) || op_size(columns, -2) % taps(kernel) == 0, columns->name, "taps", op->invalid,
               "%s is %s; its rows are not a multiple of the elements of a window", columns->name,
               op_shape_text(op, columns));
    if (op_refused(op)) {
        return (Shape){0};
    }
    const int64_t sizes[] = {op_size(columns, 0), op_size(columns, -2) / taps(kernel), size.values[0], size.values[1]};
    const int32_t rank = columns->view.rank + 1;
    return op_shape_of(rank, sizes + 4 - rank);
}

/* With a batch in front. */
static View with_images(const Operand *operand, int32_t rank)
{
    View view = operand->view;
    for (int32_t axis = view.rank; view.rank < rank && axis > 0; axis--) {
        view.shape[axis] = view.shape[axis - 1];
        view.strides[axis] = view.strides[axis - 1];
    }
    if (view.rank < rank) {
        view.rank = rank;
        view.shape[0] = 1;
        view.strides[0] = 0;
    }
    return view;
}

static ConvColumns conv_columns(UnfoldSettings settings, const View *images)
{
    ConvColumns columns = {.conv = {.axes = 2, .groups = 1, .alpha = 1}};
    for (int32_t axis = 0; axis < 2; axis++) {
        columns.conv.stride[axis] = settings.stride.values[axis];
        columns.conv.padding[axis] = settings.padding.values[axis];
        columns.conv.dilation[axis] = settings.dilation.values[axis];
        columns.taps[axis] = settings.kernel.values[axis];
        columns.positions[axis] = positions(settings, axis, images->shape[2 + axis]);
    }
    return columns;
}

aclnnStatus op_im2col(OpCall *op, const Operand *self, UnfoldSettings settings, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View images = with_images(self, 4), columns = with_images(out, 3);
    const ConvColumns attributes = conv_columns(settings, &images);
    const PlannedView views[] = {{self, VIEW_READ, &images}, {out, VIEW_WRITE, &columns}};
    return op_plan_views(op, us_conv_unfold, &attributes, sizeof attributes, 2, views);
}

aclnnStatus op_col2im(OpCall *op, const Operand *columns, UnfoldSettings settings, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View images = with_images(out, 4), given = with_images(columns, 3);
    const ConvColumns attributes = conv_columns(settings, &images);
    const PlannedView views[] = {{columns, VIEW_READ, &given}, {out, VIEW_WRITE, &images}};
    return op_plan_views(op, us_conv_fold, &attributes, sizeof attributes, 2, views);
}

/* ---- decompositions ---- */

/* 16-bit types are computed in float32. */
static DType decomposed_type(const Operand *operand)
{
    const DType dtype = dtype_of_acl(operand->dtype);
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16 ? DTYPE_FLOAT32 : dtype;
}

void require_lapack(OpCall *op, const Operand *self, const char *routine)
{
    op_require(op, op_refused(op) || op_empty(self) || us_has_routine(decomposed_type(self), routine), self->name,
        "library",
               ACLNN_ERR_INNER, "no library with the LAPACK was found: see UNDERSTUDY_BLAS");
}

void require_square(OpCall *op, const Operand *self)
{
    op_require(op, op_size(self, -1) == op_size(self, -2), self->name, "square", op->invalid,
               "%s is %s; its last two sizes must be equal", self->name, op_shape_text(op, self));
}

Shape op_shape_matrix_batch(OpCall *op, const Operand *self)
{
    Shape shape = op_shape(self);
    shape.rank = op_refused(op) || shape.rank < 2 ? 0 : shape.rank - 2;
    return shape;
}

static Shape with_sizes(const Operand *self, int64_t rows, int64_t columns)
{
    Shape shape = op_shape(self);
    if (shape.rank >= 2) {
        shape.sizes[shape.rank - 2] = rows;
        shape.sizes[shape.rank - 1] = columns;
    }
    return shape;
}

static int64_t kept(const Operand *self, int64_t mode)
{
    const int64_t rows = op_size(self, -2), columns = op_size(self, -1);
    return mode == 1 || rows < columns ? rows : columns;
}

Shape op_shape_qr_q(OpCall *op, const Operand *self, int64_t mode)
{
    (void)op;
    return mode == 2 ? (Shape){.rank = 1} : with_sizes(self, op_size(self, -2), kept(self, mode));
}

Shape op_shape_qr_r(OpCall *op, const Operand *self, int64_t mode)
{
    (void)op;
    return with_sizes(self, kept(self, mode), op_size(self, -1));
}

aclnnStatus op_cholesky(OpCall *op, const Operand *self, bool upper, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Cholesky attributes = {decomposed_type(self), upper};
    return op_plan_operands(op, us_cholesky, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(out));
}

Shape op_shape_singular_values(OpCall *op, const Operand *self)
{
    Shape shape = op_shape(self);
    if (!op_refused(op) && shape.rank >= 2) {
        shape.rank--;
        shape.sizes[shape.rank - 1] = kept(self, 0);
    }
    return shape;
}

Shape op_shape_singular_vectors(OpCall *op, const Operand *self, bool of_rows, bool full)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    const int64_t order = op_size(self, of_rows ? -2 : -1);
    return with_sizes(self, order, full ? order : kept(self, 0));
}

void require_vectors(OpCall *op, const Operand *self, bool full, bool wanted, const Operand *u, const Operand *v)
{
    if (wanted && !op_refused(op)) {
        const Shape of_rows = op_shape_singular_vectors(op, self, true, full);
        const Shape of_columns = op_shape_singular_vectors(op, self, false, full);
        op_require_shape(op, u, &of_rows);
        op_require_shape(op, v, &of_columns);
    }
}

aclnnStatus op_svd(OpCall *op, const Operand *self, bool vectors, const Operand *values, const Operand *u,
                   const Operand *v)
{
    if (op_refused(op) || (op_empty(values) && (!vectors || (op_empty(u) && op_empty(v))))) {
        return op_plan_nothing(op);
    }
    const Decomposition attributes = {decomposed_type(self)};
    const View absent = us_view_absent();
    const PlannedView none = {NULL, VIEW_READ, &absent};
    const PlannedView views[] = {{self, VIEW_READ, NULL}, {values, VIEW_WRITE, NULL},
                                 vectors ? (PlannedView){u, VIEW_WRITE, NULL} : none,
                                 vectors ? (PlannedView){v, VIEW_WRITE, NULL} : none};
    return op_plan_views(op, us_svd, &attributes, sizeof attributes, 4, views);
}

aclnnStatus op_inverse(OpCall *op, const Operand *self, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Decomposition attributes = {decomposed_type(self)};
    return op_plan_operands(op, us_inverse, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(out));
}

aclnnStatus op_log_determinant(OpCall *op, const Operand *self, const Operand *sign, const Operand *logarithm)
{
    if (op_refused(op) || op_empty(logarithm)) {
        return op_plan_nothing(op);
    }
    const Decomposition attributes = {decomposed_type(self)};
    const View absent = us_view_absent();
    const PlannedView views[] = {{self, VIEW_READ, NULL},
                                 sign != NULL ? (PlannedView){sign, VIEW_WRITE, NULL}
                                              : (PlannedView){NULL, VIEW_READ, &absent},
                                 {logarithm, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_log_determinant, &attributes, sizeof attributes, 3, views);
}

aclnnStatus op_qr(OpCall *op, const Operand *self, int64_t mode, const Operand *q, const Operand *r)
{
    if (op_refused(op) || (op_empty(r) && op_empty(q))) {
        return op_plan_nothing(op);
    }
    const Decomposition attributes = {decomposed_type(self)};
    const View absent = us_view_absent();
    const PlannedView views[] = {{self, VIEW_READ, NULL},
                                 mode != 2 ? (PlannedView){q, VIEW_WRITE, NULL} : (PlannedView){NULL, VIEW_READ,
                                     &absent},
                                 {r, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_qr, &attributes, sizeof attributes, 3, views);
}

/* The joint batch of matrices; false: there is none. */
static bool joint_batch(const Operand *a, const Operand *b, Shape *shape)
{
    View batches[] = {a->view, b->view};
    const View *const pointers[] = {&batches[0], &batches[1]};
    batches[0].rank -= 2;
    batches[1].rank -= 2;
    return us_broadcast_shape(pointers, 2, &shape->rank, shape->sizes, NULL);
}

void require_triangular(OpCall *op, const Operand *self, const Operand *a)
{
    Shape batch = {0};
    const bool fits = !op_refused(op) && op_size(self, -2) == op_size(a, -1) && joint_batch(self, a, &batch);
    op_require(op, op_refused(op) || fits, self->name, "shape", op->invalid,
               "%s is %s, %s is %s: they do not fit together", self->name, op_shape_text(op, self), a->name,
               op_shape_text(op, a));
}

static Shape in_batch(const OpCall *op, const Operand *a, const Operand *b, int64_t rows, int64_t columns)
{
    Shape shape = {0};
    if (op_refused(op) || !joint_batch(a, b, &shape)) {
        return (Shape){0};
    }
    shape.sizes[shape.rank++] = rows;
    shape.sizes[shape.rank++] = columns;
    return shape;
}

Shape op_shape_solved(OpCall *op, const Operand *self, const Operand *a)
{
    return in_batch(op, self, a, op_size(self, -2), op_size(self, -1));
}

Shape op_shape_solved_matrix(OpCall *op, const Operand *self, const Operand *a)
{
    return in_batch(op, self, a, op_size(a, -2), op_size(a, -1));
}

aclnnStatus op_triangular_solve(OpCall *op, const Operand *self, const Operand *a, bool upper, bool transposed,
                                bool unit, const Operand *x, const Operand *m)
{
    if (op_refused(op) || op_empty(m)) {
        return op_plan_nothing(op);
    }
    const TriangularSolve attributes = {decomposed_type(self), upper, transposed, unit};
    const int32_t batch = m->view.rank - 2;
    const View b = op_with_batch(&self->view, batch, m->view.shape), matrix = op_with_batch(&a->view, batch,
        m->view.shape);
    const PlannedView views[] = {{self, VIEW_READ, &b}, {a, VIEW_READ, &matrix}, {x, VIEW_WRITE, NULL},
                                 {m, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_triangular_solve, &attributes, sizeof attributes, 4, views);
}

/* ---- distances ---- */

Shape op_shape_distances(OpCall *op, const Operand *x1, const Operand *x2)
{
    Shape batch = {0};
    op_require(op, op_refused(op) || joint_batch(x1, x2, &batch), x2->name, "broadcast", op->invalid,
               "%s is %s, %s is %s: their batches do not broadcast", x1->name, op_shape_text(op, x1), x2->name,
               op_shape_text(op, x2));
    return in_batch(op, x1, x2, op_size(x1, -2), op_size(x2, -2));
}

aclnnStatus op_distances(OpCall *op, const Operand *x1, const Operand *x2, double power, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Distance attributes = {power};
    const int32_t batch = out->view.rank - 2;
    const View a = op_with_batch(&x1->view, batch, out->view.shape), b = op_with_batch(&x2->view, batch,
        out->view.shape);
    const PlannedView views[] = {{x1, VIEW_READ, &a}, {x2, VIEW_READ, &b}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_distance, &attributes, sizeof attributes, 3, views);
}

Shape op_shape_distance_slopes(OpCall *op, const Operand *grad, const Operand *x1)
{
    Shape shape = op_shape(grad);
    if (!op_refused(op)) {
        shape.sizes[shape.rank - 1] = op_size(x1, -1);
    }
    return shape;
}

aclnnStatus op_distances_backward(OpCall *op, const Operand *grad, const Operand *x1, const Operand *x2,
                                  const Operand *distances, double power, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Distance attributes = {power};
    const int32_t batch = grad->view.rank - 2;
    const View a = op_with_batch(&x1->view, batch, grad->view.shape);
    const View b = op_with_batch(&x2->view, batch, grad->view.shape);
    const PlannedView views[] = {{grad, VIEW_READ, NULL}, {x1, VIEW_READ, &a}, {x2, VIEW_READ, &b},
                                 {distances, VIEW_READ, NULL}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_distance_gradient, &attributes, sizeof attributes, 5, views);
}

Shape op_shape_pairs(OpCall *op, const Operand *self)
{
    const int64_t rows = op_refused(op) ? 0 : op_size(self, 0);
    int64_t pairs = -1;
    if (!__builtin_mul_overflow(rows, rows > 0 ? rows - 1 : 0, &pairs)) {
        pairs /= 2;
    }
    return op_shape_of(1, &pairs);
}

aclnnStatus op_pair_distances(OpCall *op, const Operand *self, double power, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Distance attributes = {power};
    return op_plan_operands(op, us_pair_distance, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(out));
}
