#include "ascend/opapi/rank_products.h"

#include "ascend/opapi/quantize.h"
#include "kernels/map/formulas.h"

int64_t op_row_count(const Operand *x)
{
    int64_t rows = 1;
    for (int32_t axis = 0; axis + 1 < x->view.rank; axis++) {
        rows = op_times(rows, x->view.shape[axis]);
    }
    return rows < 0 ? INT64_MAX : rows;
}

void op_require_scattered(OpCall *op, const Room *room, const Operand *x1, const Operand *x2, const Operand *out)
{
    if (!op_refused(op)) {
        const int64_t rows = op_size(x1, 0), ranks = op_rank_count(room);
        op_require_matrix(op, out, rows % ranks == 0 ? rows / ranks : -1, op_size(x2, 1));
    }
}

void op_require_gathered(OpCall *op, const Room *room, const Operand *x1, const Operand *x2, const Operand *out,
                         const Operand *gathered)
{
    if (!op_refused(op)) {
        const int64_t rows = op_times(op_size(x1, 0), op_rank_count(room));
        op_require_matrix(op, out, rows, op_size(x2, 1));
        op_require_matrix(op, gathered, rows, op_size(x1, 1));
    }
}

void op_require_rows(OpCall *op, const Operand *out, const Operand *x1, int64_t n)
{
    if (!op_refused(op)) {
        Shape shape = op_shape(x1);
        shape.sizes[shape.rank - 1] = n;
        op_require_shape(op, out, &shape);
    }
}

void op_require_residual(OpCall *op, const Operand *residual, const Operand *x1, int64_t n)
{
    op_require(op, op_refused(op) || (op_row_count(residual) == op_row_count(x1) && op_size(residual, 2) == n), "residual",
               "shape", op->invalid, "residual is %s; the product has %lld rows of %lld", op_shape_text(op, residual),
               (long long)op_row_count(x1), (long long)n);
}

int64_t op_weight_columns(const Operand *weight)
{
    const Integers integers = op_integers_of(weight);
    return weight->view.rank == 2 ? op_integer_size(&integers, 1) : -1;
}

bool op_is_row(const Operand *line, int64_t n)
{
    return !op_given(line) || (op_elements(line) == n && op_size(line, -1) == n);
}

/* ---- a rank's product ---- */

static void multiply(OpCall *op, const RankProduct *of, const Operand *x1, const Operand *out)
{
    if (op_refused(op) || !op_given(of->scale)) {
        const bool biased = op_given(of->bias);
        op_matmul(op, x1, of->x2, biased ? of->bias : NULL, biased ? ONE : ZERO, ONE, out);
    } else if (op_size(x1, -1) == 0 && op_given(of->bias)) {
        op_copy(op, of->bias, out);
    } else if (op_size(x1, -1) == 0) {
        op_fill(op, out, ZERO);
    } else if (x1->dtype == ACL_INT8) {
        op_quant_matmul(op, &(QuantMatmulCall){.x1 = op_as_rows(op, x1), .x2 = of->x2, .row_scale = of->row_scale,
                                               .scale = op_as_line(op, of->scale), .bias = of->bias, .out = out});
    } else {
        op_weight_quant_matmul(op, &(WeightQuantCall){.x = op_as_rows(op, x1), .weight = of->x2, .scale = of->scale,
                                                      .offset = of->offset, .bias = of->bias, .group = of->group, .y = out});
    }
}

/* x1 @ x2 + bias + x3, in rows: rounded to the type, and again when x3 is added. */
static const Operand *own_product(OpCall *op, const RankProduct *of, aclDataType dtype, int64_t n)
{
    const Shape shape = op_shape_of(2, (const int64_t[]){op_row_count(of->x1), n});
    const Operand *product = op_temporary(op, dtype, shape);
    multiply(op, of, op_as_rows(op, of->x1), product);
    if (op_refused(op) || !op_given(of->x3)) {
        return product;
    }
    const Operand *sum = op_temporary(op, dtype, shape);
    op_map(op, &us_map_add, ACL_FLOAT, OPERANDS(product, op_as_rows(op, of->x3)), OPERANDS(sum), NUMBERS(ONE));
    return sum;
}

/* ---- products that are summed up ---- */

static const Operand *mapped(OpCall *op, const MapFormula *formula, Operands inputs, Shape shape)
{
    const Operand *result = op_temporary(op, ACL_FLOAT, shape);
    op_map(op, formula, ACL_FLOAT, inputs, OPERANDS(result), NO_NUMBERS);
    return result;
}

/* Integers of 8 bits are sent: those of the products in steps of sent_scale, those of the sums in steps of sum_scale. */
static void sum_integers(OpCall *op, const RankProduct *of, const Operand *product, const Operand *out)
{
    const Operand *sent_scale = op_as_line(op, of->sent_scale), *sum_scale = op_as_line(op, of->sum_scale);
    const Shape shape = op_shape(product), line = op_shape(sent_scale);
    const Operand *sent = op_temporary(op, ACL_INT8, shape), *wide = op_temporary(op, ACL_INT32, shape);
    const Operand *sums = op_temporary(op, ACL_INT32, shape), *result = op_temporary(op, out->dtype, shape);
    op_quantize_by(op, product, sent_scale, NULL, 1, sent);
    op_copy(op, sent, wide);
    op_all_reduce(op, of->room, wide, sums);
    const Operand *ratio = mapped(op, &us_map_div, OPERANDS(sent_scale, sum_scale), line);
    const Operand *scaled = mapped(op, &us_map_mul, OPERANDS(sums, ratio), shape);
    op_map(op, &us_map_round, ACL_FLOAT, OPERANDS(scaled), OPERANDS(sent), NO_NUMBERS); /* saturates */
    op_map(op, &us_map_mul, ACL_FLOAT, OPERANDS(sent, sum_scale), OPERANDS(result), NO_NUMBERS);
    op_reshape(op, result, out);
}

aclnnStatus op_matmul_all_reduce(OpCall *op, const RankProduct *of)
{
    op_begin_steps(op);
    const bool normed = of->norm != NULL;
    const Operand *out = normed ? op_temporary(op, of->y->dtype, op_shape(of->y)) : of->out;
    const Operand *product = own_product(op, of, out->dtype, op_size(out, -1));
    if (op_given(of->sent_scale)) {
        sum_integers(op, of, product, out);
    } else {
        op_all_reduce(op, of->room, product, out);
    }
    if (normed) {
        op_layer_norm(op, &(LayerNorm){.x = out, .added = of->residual, .scale = of->gamma, .sum = of->y, .y = of->norm,
                                       .dims = 1, .epsilon = of->epsilon, .factor = 1, .root_mean_square = true});
    }
    return op_end_steps(op);
}

aclnnStatus op_matmul_reduce_scatter(OpCall *op, const RankProduct *of)
{
    op_begin_steps(op);
    op_reduce_scatter(op, of->room, own_product(op, of, of->out->dtype, op_size(of->out, 1)), of->out);
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
