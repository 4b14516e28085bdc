#include "ascend/opapi/embedding_bag.h"

#include "kernels/index/embedding_bag.h"

static int64_t bag_count(const Operand *offsets, bool has_last)
{
    return op_size(offsets, 0) - (has_last ? 1 : 0);
}

Shape op_shape_bag_numbers(OpCall *op, const Operand *indices, const Operand *numbers)
{
    const bool unwanted = !op_refused(op) && numbers->view.rank == 1 && op_empty(numbers);
    return op_shape(unwanted ? numbers : indices);
}

Shape op_shape_bag_sizes(OpCall *op, const Operand *offsets, bool has_last)
{
    (void)op;
    const int64_t bags = bag_count(offsets, has_last);
    return op_shape_of(1, &bags);
}

Shape op_shape_bags(OpCall *op, const Operand *offsets, bool has_last, const Operand *weight)
{
    (void)op;
    return op_shape_of(2, (const int64_t[]){bag_count(offsets, has_last), op_size(weight, 1)});
}

Shape op_shape_bag_maxima(OpCall *op, const Operand *offsets, bool has_last, const Operand *weight, int64_t mode)
{
    return mode == 0 || mode == 1 ? op_shape_bag_sizes(op, offsets, has_last)
                                  : op_shape_bags(op, offsets, has_last, weight);
}

void op_require_bag_type(OpCall *op, const Operand *indices, const Operand *offsets, const Operand *operand)
{
    op_require_same_dtype(op, operand, indices->dtype == ACL_INT64 ? indices : offsets);
}

aclnnStatus op_embedding_bag(OpCall *op, const Operand *weight, const Operand *indices, const Operand *offsets,
                             const Operand *scales, int64_t mode, int64_t padding, const Operand *output,
                             const Operand *bag_of, const Operand *size_of, const Operand *maxima)
{
    const EmbeddingBag call = {.mode = mode == 0 ? BAG_SUM : mode == 1 ? BAG_MEAN : BAG_MAX,
                               .padding = padding < -1 ? padding + op_size(weight, 0) : padding};
    return op_plan_operands(op, us_embedding_bag, &call, sizeof call, OPERANDS(weight, indices, offsets, scales),
                            OPERANDS(output, bag_of, size_of, maxima));
}
