#include "ascend/opapi/rank_products.h"

#include "kernels/map/formulas.h"

int64_t op_row_count(const Operand *x)
{
    int64_t rows = 1;
    for (int32_t axis = 0; axis + 1 < x->view.rank; axis++) {
        rows = op_times(rows, x->view.shape[axis]);
    }
    return rows < 0 ? INT64_MAX : rows;
}

static void require_matrix(OpCall *op, const Operand *matrix, int64_t rows, int64_t columns)
{
    const Shape shape = op_shape_of(2, (const int64_t[]){rows, columns});
    op_require_shape(op, matrix, &shape);
}

void op_require_scattered(OpCall *op, const Room *room, const Operand *x1, const Operand *x2, const Operand *out)
{
    if (!op_refused(op)) {
        const int64_t rows = op_size(x1, 0), ranks = op_rank_count(room);
        require_matrix(op, out, rows % ranks == 0 ? rows / ranks : -1, op_size(x2, 1));
    }
}

void op_require_gathered(OpCall *op, const Room *room, const Operand *x1, const Operand *x2, const Operand *out,
                         const Operand *gathered)
{
    if (!op_refused(op)) {
        const int64_t rows = op_times(op_size(x1, 0), op_rank_count(room));
        require_matrix(op, out, rows, op_size(x2, 1));
        require_matrix(op, gathered, rows, op_size(x1, 1));
    }
}

static void multiply(OpCall *op, const RankProduct *of, const Operand *x1, const Operand *out)
{
    const bool biased = op_given(of->bias);
    op_matmul(op, x1, of->x2, biased ? of->bias : NULL, biased ? ONE : ZERO, ONE, out);
}

/* x1 @ x2 + bias + x3, rounded once. */
static const Operand *own_product(OpCall *op, const RankProduct *of, Shape shape)
{
    const Operand *product = op_temporary(op, of->out->dtype, shape);
    const Operand *sum = op_given(of->x3) ? op_temporary(op, ACL_FLOAT, shape) : product;
    multiply(op, of, of->x1, sum);
    if (sum != product) {
        op_map(op, &us_map_add, ACL_FLOAT, OPERANDS(sum, of->x3), OPERANDS(product), NUMBERS(ONE));
    }
    return product;
}

aclnnStatus op_matmul_all_reduce(OpCall *op, const RankProduct *of)
{
    op_begin_steps(op);
    op_all_reduce(op, of->room, own_product(op, of, op_shape(of->out)), of->out);
    return op_end_steps(op);
}

aclnnStatus op_matmul_reduce_scatter(OpCall *op, const RankProduct *of)
{
    op_begin_steps(op);
    const Shape shape = op_shape_of(2, (const int64_t[]){op_size(of->x1, 0), op_size(of->x2, 1)});
    op_reduce_scatter(op, of->room, own_product(op, of, shape), of->out);
    return op_end_steps(op);
}

aclnnStatus op_all_gather_matmul(OpCall *op, const RankProduct *of, const Operand *gathered)
{
    op_begin_steps(op);
    const int64_t shape[] = {op_times(op_size(of->x1, 0), op_rank_count(of->room)), op_size(of->x1, 1)};
    const Operand *all = op_given(gathered) ? gathered : op_temporary(op, of->x1->dtype, op_shape_of(2, shape));
    op_all_gather(op, of->room, of->x1, all);
    multiply(op, of, all, of->out);
    return op_end_steps(op);
}
