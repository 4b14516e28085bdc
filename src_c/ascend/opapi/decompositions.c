#include "ascend/opapi/decompositions.h"

#include "kernels/linear_algebra/decompose.h"

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

Shape op_shape_thin_q(OpCall *op, const Operand *self, bool thin)
{
    return op_shape_qr_q(op, self, !thin);
}

Shape op_shape_thin_r(OpCall *op, const Operand *self, bool thin)
{
    return op_shape_qr_r(op, self, !thin);
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

void require_triangular(OpCall *op, const Operand *self, const Operand *a)
{
    Shape batch = {0};
    const bool fits = !op_refused(op) && op_size(self, -2) == op_size(a, -1) && op_joint_batch(self, a, &batch);
    op_require(op, op_refused(op) || fits, self->name, "shape", op->invalid,
               "%s is %s, %s is %s: they do not fit together", self->name, op_shape_text(op, self), a->name,
               op_shape_text(op, a));
}

Shape op_shape_solved(OpCall *op, const Operand *self, const Operand *a)
{
    return op_shape_in_batch(op, self, a, op_size(self, -2), op_size(self, -1));
}

Shape op_shape_solved_matrix(OpCall *op, const Operand *self, const Operand *a)
{
    return op_shape_in_batch(op, self, a, op_size(a, -2), op_size(a, -1));
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
