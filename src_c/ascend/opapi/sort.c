#include "ascend/opapi/sort.h"

#include "kernels/map/formulas.h"
#include "kernels/sort/filter.h"
#include "kernels/sort/sample.h"
#include "kernels/sort/search.h"
#include "kernels/sort/sort.h"
#include "kernels/sort/unique.h"

static aclnnStatus plan_lines(OpCall *op, Kernel *kernel, const Operand *self, int32_t axis, bool descending,
                              const Operand *values, const Operand *indices)
{
    const SortLines attributes = {.axis = axis, .descending = descending};
    return op_plan_operands(op, kernel, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(values, indices));
}

aclnnStatus op_sort(OpCall *op, const Operand *self, int32_t axis, bool descending, const Operand *values,
                    const Operand *indices)
{
    return plan_lines(op, us_sort, self, axis, descending, values, indices);
}

aclnnStatus op_topk(OpCall *op, const Operand *self, int32_t axis, bool largest, const Operand *values,
                    const Operand *indices)
{
    return plan_lines(op, us_topk, self, axis, largest, values, indices);
}

Shape op_shape_first(OpCall *op, const Operand *self, int32_t axis, int64_t count)
{
    Shape shape = op_shape(self);
    if (!op_refused(op) && axis < shape.rank) {
        shape.sizes[axis] = count;
    }
    return shape;
}

/* A result that does not keep the steps of its room lies row-major from the room's first element on. */
static void require_row_major_room(OpCall *op, const Operand *room, Shape items, int32_t axis)
{
    int64_t lowest = 0, highest = 0;
    if (op_refused(op) || room == NULL || us_view_is_contiguous(&room->view) ||
        !us_unique_packs(&room->view, items.rank, items.sizes, axis)) {
        return;
    }
    const bool fits = us_view_extent(&room->view, &lowest, &highest) && highest + 1 >= op_elements(room);
    op_require(op, fits, room->name, "view", ACLNN_ERR_INNER_NULLPTR,
               "%s is a view %s whose result would be laid out behind its storage", room->name, op_shape_text(op, room));
}

aclnnStatus op_unique(OpCall *op, const Operand *self, int32_t axis, bool consecutive, const Operand *values,
                      const Operand *inverse, const Operand *counts)
{
    const UniqueItems attributes = {.consecutive = consecutive, .axis = axis};
    const Shape line = {.rank = 1, .sizes = {axis < 0 ? op_elements(self) : op_size(self, axis)}};
    require_row_major_room(op, values, axis < 0 ? line : op_shape(self), axis < 0 ? 0 : axis);
    require_row_major_room(op, counts, line, 0);
    op_plan_shape_of(op, values);
    if (counts != NULL) {
        op_plan_shape_of(op, counts);
    }
    return op_plan_operands(op, us_unique, &attributes, sizeof attributes, OPERANDS(self),
                            OPERANDS(values, inverse, counts));
}

bool op_has_room(const Operand *operand, int64_t elements)
{
    return op_elements(operand) >= elements;
}

bool op_has_axis(const Operand *operand, int64_t dim)
{
    const int64_t rank = operand->view.rank == 0 ? 1 : operand->view.rank;
    return dim >= -rank && dim < rank;
}

int64_t op_items(const Operand *operand, int64_t dim)
{
    const bool is_axis = op_has_axis(operand, dim) && operand->view.rank > 0;
    return is_axis ? op_size(operand, dim) : op_elements(operand);
}

bool op_searches_lines(const Operand *sequence, const Operand *values)
{
    bool alike = sequence->view.rank == values->view.rank;
    for (int32_t axis = 0; axis + 1 < sequence->view.rank && alike; axis++) {
        alike = sequence->view.shape[axis] == values->view.shape[axis];
    }
    return alike || sequence->view.rank == 1;
}

aclnnStatus op_sorted_search(OpCall *op, const Operand *sequence, const Operand *sorter, const Operand *values,
                             Number value, aclDataType compute, bool right, const Operand *out)
{
    const SortedSearch attributes = {.right = right, .whole = op_is_integer(compute), .value = value};
    return op_plan_operands(op, us_sorted_search, &attributes, sizeof attributes, OPERANDS(sequence, sorter, values),
                            OPERANDS(out));
}

aclnnStatus op_histogram(OpCall *op, const Operand *self, double least, double greatest, const Operand *out)
{
    const Histogram attributes = {.least = least, .greatest = greatest};
    return op_plan_operands(op, us_histogram, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(out));
}

aclnnStatus op_is_in(OpCall *op, const Operand *self, const ScalarArgument *scalar, aclDataType compute, bool invert,
                     const Operand *out)
{
    return op_map(op, invert ? &us_map_ne : &us_map_eq, compute, OPERANDS(self, NULL), OPERANDS(out),
                  NUMBERS(op_number(scalar, compute)));
}

aclnnStatus op_filter_scores(OpCall *op, const Operand *scores, const Operand *p, const Operand *k, const Operand *out)
{
    return op_plan_operands(op, us_filter_scores, NULL, 0, OPERANDS(scores, p, k), OPERANDS(out));
}

aclnnStatus op_sample_tokens(OpCall *op, const SampleCall *call)
{
    const SampleTokens attributes = {.most = call->most, .eps = call->eps, .normalized = call->normalized};
    return op_plan_operands(op, us_sample_tokens, &attributes, sizeof attributes,
                            OPERANDS(call->scores, call->k, call->p, call->q, call->least),
                            OPERANDS(call->chosen, call->left, call->columns, call->probs));
}
