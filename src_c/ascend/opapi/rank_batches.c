#include "ascend/opapi/rank_batches.h"

#include "ascend/common/op_memory.h"
#include "kernels/map/formulas.h"

enum { SIZE_LIMIT = 65535, EXPERT_LIMIT = 512, OWN_LIMIT = 32 };

/* ---- checks ---- */

static void require(OpCall *op, bool fits, const Operand *operand, const char *rule, const char *expected)
{
    op_require(op, op_refused(op) || fits, operand->name, rule, op->invalid, "%s is %s: %s", operand->name,
               op_shape_text(op, operand), expected);
}

static void require_shape(OpCall *op, const Operand *operand, int64_t a, int64_t b, int64_t c)
{
    const Shape shape = op_shape_of(3, (const int64_t[]){a, b, c});
    op_require_shape(op, operand, &shape);
}

static void require_ranks(OpCall *op, const RankBatches *of, int64_t experts, int64_t parts)
{
    op_require(op, op_refused(op) || of->experts != of->parts, "groupTp", "same", op->invalid,
               "groupTp is the communicator that groupEp is");
    op_require(op, op_refused(op) || experts == of->experts->ranks, "epWorldSize", "value", op->invalid,
               "epWorldSize is %lld; groupEp has %lld ranks", (long long)experts, (long long)op_rank_count(of->experts));
    op_require(op, op_refused(op) || parts == of->parts->ranks, "tpWorldSize", "value", op->invalid,
               "tpWorldSize is %lld; groupTp has %lld ranks", (long long)parts, (long long)op_rank_count(of->parts));
}

/* The weights of this rank and what is added to their products. */
static void require_weight(OpCall *op, const RankBatches *of, int64_t depth, int64_t width)
{
    const int64_t own = op_size(of->weight, 0), *sizes = of->weight->view.shape;
    require(op, own >= 1 && own <= OWN_LIMIT && own * op_rank_count(of->experts) >= 2 &&
                    own * op_rank_count(of->experts) <= EXPERT_LIMIT,
            of->weight, "experts", "there are 1 to 32 experts, and 2 to 512 of all ranks");
    require(op, sizes[1] == depth, of->weight, "shape", "an expert has not as many rows as x has columns");
    require(op, sizes[1] >= 1 && sizes[1] <= SIZE_LIMIT && sizes[2] >= 1 && sizes[2] <= SIZE_LIMIT, of->weight, "size",
            "an expert has 1 to 65535 rows and columns");
    const bool fits = !op_given(of->bias) || (op_size(of->bias, 0) == own && op_size(of->bias, -1) == width &&
                                              op_elements(of->bias) == own * width);
    require(op, fits, of->bias, "shape", "there is not one for each column of each expert");
}

/* Parts of columns of the whole. */
static int64_t column_parts(const RankBatches *of)
{
    return of->by_rows ? 1 : op_rank_count(of->parts);
}

void op_require_gathered_batches(OpCall *op, const RankBatches *of, int64_t experts, int64_t parts)
{
    require_ranks(op, of, experts, parts);
    if (op_refused(op)) {
        return;
    }
    const int64_t depth = op_times(op_size(of->x, 2), column_parts(of)), own = op_size(of->weight, 0);
    const int64_t rows = op_times(op_size(of->x, 1), experts * (of->by_rows ? parts : 1)), width = op_size(of->weight, 2);
    require_weight(op, of, depth, width);
    require(op, op_size(of->x, 0) == own * experts && op_size(of->x, 1) > 0, of->x, "shape",
            "it has not the experts of all ranks, or no rows");
    require_shape(op, of->out, own, rows, width);
    require_shape(op, of->gathered, own, rows, depth);
    require_shape(op, of->product, own, rows, width);
    require(op, !op_given(of->product) || of->activation != 0, of->product, "activation", "without an activation there is none");
}

void op_require_scattered_batches(OpCall *op, const RankBatches *of, int64_t experts, int64_t parts)
{
    require_ranks(op, of, experts, parts);
    if (op_refused(op)) {
        return;
    }
    const int64_t own = op_size(of->weight, 0), width = op_size(of->weight, 2), columns = column_parts(of);
    const int64_t pieces = experts * (of->by_rows ? parts : 1), rows = op_size(of->x, 1);
    require_weight(op, of, op_size(of->x, 2), width / columns);
    require(op, op_size(of->x, 0) == own && rows > 0 && rows % pieces == 0, of->x, "shape",
            "it has not the experts of this rank, or its rows are not those of all ranks");
    require_shape(op, of->out, own * experts, rows / pieces, width % columns == 0 ? width / columns : -1);
}

/* ---- plan ---- */

/* Numbers of a batch: experts of this rank, ranks with other experts and with other parts, rows and columns of a part. */
typedef struct Pieces {
    int64_t own, experts, parts, rows, columns;
} Pieces;

/* A batch of whole rows or columns as [parts, ranks with experts, experts, rows, columns]. */
static const Operand *in_pieces(OpCall *op, const RankBatches *of, const Pieces *pieces, const Operand *batch)
{
    if (op_refused(op)) {
        return batch;
    }
    View view = batch->view;
    if (of->by_rows) { /* own, experts, parts, rows, columns */
        view = op_split_axis(op_split_axis(view, 1, pieces->parts * pieces->rows), 2, pieces->rows);
        view = op_swap_axes(view, 0, 2);
    } else { /* own, experts, rows, parts, columns */
        view = op_split_axis(op_split_axis(view, 1, pieces->rows), 3, pieces->columns);
        view = op_swap_axes(op_swap_axes(view, 0, 3), 2, 3);
    }
    return op_shown_as(op, batch, view);
}

static Shape piece_shape(const Pieces *pieces)
{
    return op_shape_of(5, (const int64_t[]){pieces->parts, pieces->experts, pieces->own, pieces->rows, pieces->columns});
}

/* As many rows for each rank. */
static const int64_t *each(OpCall *op, const Room *room, int64_t rows)
{
    int64_t *counts = op_take(op, (size_t)room->ranks * sizeof *counts);
    for (int32_t rank = 0; counts != NULL && rank < room->ranks; rank++) {
        counts[rank] = rows;
    }
    return counts;
}

/* [own, n] as [own, 1, n]. */
static const Operand *bias_of(OpCall *op, const Operand *bias)
{
    return !op_given(bias) ? NULL : bias->view.rank == 3 ? bias : op_shown_as(op, bias, us_view_insert_axis(bias->view, 1, 1, 0));
}

static void activate(OpCall *op, int64_t activation, const Operand *from, const Operand *to)
{
    static const MapFormula *const formulas[] = {&us_map_gelu, &us_map_silu, &us_map_relu, &us_map_fast_gelu};
    op_map(op, formulas[activation - 1], ACL_FLOAT, OPERANDS(from), OPERANDS(to), NO_NUMBERS);
}

/* Rows of experts, rank by rank. */
static void change_ranks(OpCall *op, const RankBatches *of, const Pieces *pieces, const Operand *from, const Operand *to)
{
    const int64_t rows = pieces->own * pieces->experts, columns = pieces->rows * pieces->columns;
    const Operand *packed = op_packed(op, from);
    if (!op_refused(op)) {
        const View flat = us_view_contiguous(packed->view.data, packed->view.dtype, 2, (const int64_t[]){rows, columns});
        const int64_t *counts = each(op, of->experts, pieces->own);
        op_all_to_all(op, of->experts, op_shown_as(op, packed, flat), counts, to, counts);
    }
}

aclnnStatus op_gather_batches(OpCall *op, const RankBatches *of)
{
    op_begin_steps(op);
    if (op_refused(op)) {
        return op_end_steps(op);
    }
    const Pieces pieces = {op_size(of->weight, 0), of->experts->ranks, of->parts->ranks, op_size(of->x, 1), op_size(of->x, 2)};
    const aclDataType dtype = of->x->dtype;
    const int64_t whole[] = {pieces.own, op_size(of->out, 1), op_size(of->weight, 1)};
    const Operand *arrived = op_temporary(op, dtype, op_shape(of->x)), *parts = op_temporary(op, dtype, piece_shape(&pieces));
    const Operand *gathered = op_given(of->gathered) ? of->gathered : op_temporary(op, dtype, op_shape_of(3, whole));
    change_ranks(op, of, &pieces, of->x, arrived);
    op_all_gather(op, of->parts, arrived, parts);
    op_copy(op, parts, in_pieces(op, of, &pieces, gathered));
    const Operand *product = of->activation == 0       ? of->out
                             : op_given(of->product) ? of->product
                                                     : op_temporary(op, dtype, op_shape(of->out));
    const Operand *bias = bias_of(op, of->bias);
    op_matmul(op, gathered, of->weight, bias, bias != NULL ? ONE : ZERO, ONE, product);
    if (of->activation != 0) {
        activate(op, of->activation, product, of->out);
    }
    return op_end_steps(op);
}

aclnnStatus op_scatter_batches(OpCall *op, const RankBatches *of)
{
    op_begin_steps(op);
    if (op_refused(op)) {
        return op_end_steps(op);
    }
    const Pieces pieces = {op_size(of->weight, 0), of->experts->ranks, of->parts->ranks, op_size(of->out, 1), op_size(of->out, 2)};
    const aclDataType dtype = of->x->dtype;
    const int64_t whole[] = {pieces.own, op_size(of->x, 1), op_size(of->weight, 2)};
    const int64_t part[] = {pieces.experts, pieces.own, pieces.rows, pieces.columns};
    const Operand *product = op_temporary(op, dtype, op_shape_of(3, whole));
    const Operand *parts = op_temporary(op, dtype, piece_shape(&pieces)), *sum = op_temporary(op, dtype, op_shape_of(4, part));
    const Operand *bias = bias_of(op, of->bias), *leaving = bias != NULL ? op_temporary(op, dtype, op_shape_of(4, part)) : sum;
    op_matmul(op, of->x, of->weight, NULL, ZERO, ONE, product);
    op_copy(op, in_pieces(op, of, &pieces, product), parts);
    op_reduce_scatter(op, of->parts, parts, sum);
    if (bias != NULL) {
        op_map(op, &us_map_add, ACL_FLOAT, OPERANDS(sum, bias), OPERANDS(leaving), NUMBERS(ONE));
    }
    change_ranks(op, of, &pieces, leaving, of->out);
    return op_end_steps(op);
}
