#include "ascend/opapi/rank_groups.h"

#include "ascend/common/op_memory.h"

enum { SIZE_LIMIT = 65536, SHARED_LIMIT = 12288, ROW_LIMIT = 52428800 };

/* ---- checks ---- */

static int64_t depth_of(const Operand *weight, bool turned)
{
    return op_size(weight, turned ? -1 : -2);
}

static int64_t width_of(const Operand *weight, bool turned)
{
    return op_size(weight, turned ? -2 : -1);
}

static void require_counts(OpCall *op, IntArguments counts, int64_t length, const Operand *rows)
{
    op_require(op, counts.count == length, counts.name, "length", op->invalid, "%s has %lld numbers; it has one for each of "
               "%lld experts", counts.name, (long long)counts.count, (long long)length);
    int64_t sum = 0;
    for (int64_t i = 0; !op_refused(op) && i < counts.count; i++) {
        const bool fits = counts.values[i] >= 0 && !__builtin_add_overflow(sum, counts.values[i], &sum);
        op_require(op, fits, counts.name, "value", op->invalid, "%s[%lld] is %lld", counts.name, (long long)i,
                   (long long)counts.values[i]);
    }
    op_require(op, sum == op_size(rows, 0), counts.name, "sum", op->invalid, "%s are %lld rows; %s is %s", counts.name,
               (long long)sum, rows->name, op_shape_text(op, rows));
}

static void require_size(OpCall *op, const Operand *operand, bool fits, const char *rule, const char *expected)
{
    op_require(op, fits, operand->name, rule, op->invalid, "%s is %s: %s", operand->name, op_shape_text(op, operand), expected);
}

static void require_shared(OpCall *op, const RankGroups *of)
{
    const bool given = op_given(of->mm_x);
    op_require(op, op_given(of->mm_weight) == given && op_given(of->mm_y) == given, "mmWeightOptional", "pair", op->invalid,
               "of mmXOptional, mmWeightOptional and mmYOptional some are NULL and some are not");
    if (op_refused(op) || !given) {
        return;
    }
    require_size(op, of->mm_x, op_size(of->mm_x, 1) > 0 && op_size(of->mm_x, 1) <= SHARED_LIMIT, "size",
                 "it has 1 to 12288 columns");
    require_size(op, of->mm_weight, depth_of(of->mm_weight, of->mm_turned) == op_size(of->mm_x, 1), "shape",
                 "it has not as many rows as mmXOptional has columns");
    const int64_t width = width_of(of->mm_weight, of->mm_turned);
    require_size(op, of->mm_weight, width > 0 && width < SIZE_LIMIT, "size", "it has 1 to 65535 columns");
    op_require_matrix(op, of->mm_y, op_size(of->mm_x, 0), width);
}

void op_require_rank_groups(OpCall *op, const RankGroups *of, int64_t ranks, int64_t experts, int64_t all,
                            const Operand *tokens)
{
    if (op_refused(op)) {
        return;
    }
    const int64_t own = op_size(of->weight, 0), depth = op_size(of->x, 1), width = width_of(of->weight, of->turned);
    op_require(op, ranks == op_rank_count(of->room), "epWorldSize", "value", op->invalid,
               "epWorldSize is %lld; group has %lld ranks", (long long)ranks, (long long)op_rank_count(of->room));
    require_size(op, of->weight, own > 0 && own <= experts && own * op_rank_count(of->room) <= all, "experts",
                 "there are no experts, or too many of this rank or of all");
    require_size(op, tokens, op_size(tokens, 0) > 0 && op_size(tokens, 0) < ROW_LIMIT, "rows",
                 "it has 1 to 52428799 rows");
    require_size(op, of->x, depth > 0 && depth < SIZE_LIMIT, "size", "it has 1 to 65535 columns");
    require_size(op, of->weight, depth_of(of->weight, of->turned) == depth, "shape",
                 "an expert has not as many rows as gmmX has columns");
    require_size(op, of->weight, width > 0 && width < SIZE_LIMIT, "size", "an expert has 1 to 65535 columns");
    require_size(op, of->y, op_size(of->y, 1) == width, "shape", "it has not the columns of the experts");
    require_counts(op, of->sent, own * op_rank_count(of->room), of->x);
    require_counts(op, of->received, own * op_rank_count(of->room), of->y);
    if (op_given(of->grouped)) {
        op_require_matrix(op, of->grouped, op_size(of->y, 0), depth);
    }
    require_shared(op, of);
}

/* ---- plan ---- */

static const Operand *rows_of(OpCall *op, const Operand *matrix, int64_t begin, int64_t count)
{
    View view = matrix->view;
    view.data = (char *)view.data + begin * view.strides[0] * (int64_t)us_dtype_size(view.dtype);
    view.shape[0] = count;
    return op_shown_as(op, matrix, view);
}

static const Operand *weight_of(OpCall *op, const RankGroups *of, int64_t expert)
{
    View view = rows_of(op, of->weight, expert, 1)->view;
    return op_turned(op, op_shown_as(op, of->weight, us_view_remove_axis(view, 0)), of->turned);
}

/* Rows of every rank, from the counts of its experts. */
static const int64_t *sums_of(OpCall *op, const RankGroups *of, IntArguments counts)
{
    const int64_t experts = op_size(of->weight, 0);
    int64_t *sums = op_take(op, (size_t)of->room->ranks * sizeof *sums);
    for (int64_t i = 0; sums != NULL && i < counts.count; i++) {
        sums[i / experts] += counts.values[i];
    }
    return sums;
}

/* `to`: the pieces of `from` in another order. They are by rank, then by expert, and become by expert, then by rank, or the
 * other way round. */
static void reorder(OpCall *op, const RankGroups *of, IntArguments counts, const Operand *from, bool by_experts,
                    const Operand *to)
{
    const int64_t experts = op_size(of->weight, 0), ranks = of->room->ranks, count = experts * ranks;
    const Operand **pieces = op_take(op, (size_t)count * sizeof *pieces);
    int64_t begin = 0;
    for (int64_t i = 0; !op_refused(op) && i < count; i++) {
        const int64_t rank = by_experts ? i / experts : i % ranks, expert = by_experts ? i % experts : i / ranks;
        const int64_t rows = counts.values[rank * experts + expert];
        pieces[by_experts ? expert * ranks + rank : rank * experts + expert] = rows_of(op, from, begin, rows);
        begin += rows;
    }
    if (!op_refused(op) && begin > 0) {
        op_concatenate(op, (Operands){.name = "", .given = true, .count = (int32_t)count, .items = pieces}, 0, from->dtype, to);
    }
}

static void multiply_groups(OpCall *op, const RankGroups *of, IntArguments counts, const Operand *x, const Operand *y)
{
    const int64_t experts = op_size(of->weight, 0);
    int64_t begin = 0;
    for (int64_t expert = 0; !op_refused(op) && expert < experts; expert++) {
        int64_t rows = 0;
        for (int32_t rank = 0; rank < of->room->ranks; rank++) {
            rows += counts.values[rank * experts + expert];
        }
        op_matmul(op, rows_of(op, x, begin, rows), weight_of(op, of, expert), NULL, ZERO, ONE, rows_of(op, y, begin, rows));
        begin += rows;
    }
}

static aclnnStatus multiply_shared(OpCall *op, const RankGroups *of)
{
    if (!op_refused(op) && op_given(of->mm_x)) {
        op_matmul(op, of->mm_x, op_turned(op, of->mm_weight, of->mm_turned), NULL, ZERO, ONE, of->mm_y);
    }
    return op_end_steps(op);
}

aclnnStatus op_all_to_all_grouped_matmul(OpCall *op, const RankGroups *of)
{
    op_begin_steps(op);
    if (!op_refused(op)) {
        const Shape shape = op_shape_of(2, (const int64_t[]){op_size(of->y, 0), op_size(of->x, 1)});
        const Operand *arrived = op_temporary(op, of->x->dtype, shape);
        const Operand *grouped = op_given(of->grouped) ? of->grouped : op_temporary(op, of->x->dtype, shape);
        op_all_to_all(op, of->room, of->x, sums_of(op, of, of->sent), arrived, sums_of(op, of, of->received));
        reorder(op, of, of->received, arrived, true, grouped);
        multiply_groups(op, of, of->received, grouped, of->y);
    }
    return multiply_shared(op, of);
}

aclnnStatus op_grouped_matmul_all_to_all(OpCall *op, const RankGroups *of)
{
    op_begin_steps(op);
    if (!op_refused(op)) {
        const Shape shape = op_shape_of(2, (const int64_t[]){op_size(of->x, 0), op_size(of->y, 1)});
        const Operand *product = op_temporary(op, of->y->dtype, shape), *leaving = op_temporary(op, of->y->dtype, shape);
        multiply_groups(op, of, of->sent, of->x, product);
        reorder(op, of, of->sent, product, false, leaving);
        op_all_to_all(op, of->room, leaving, sums_of(op, of, of->sent), of->y, sums_of(op, of, of->received));
    }
    return multiply_shared(op, of);
}
