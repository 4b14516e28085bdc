/* Outputs of lists that have more elements than their inputs, another shape or another type: families.h. */
#include "ascend/common/op_memory.h"
#include "ascend/common/op_steps.h"
#include "ascend/opapi/families.h"

#include "kernels/map/formulas.h"

bool op_copies_to(aclDataType from, aclDataType to)
{
    return from == to || (from == ACL_FLOAT && (to == ACL_FLOAT16 || to == ACL_BF16)) ||
           (from == ACL_FLOAT16 && to == ACL_FLOAT);
}

PlannedView op_list_output(OpCall *op, const Operand *output, const Operand *partner)
{
    const View *own = &output->view, *wanted = &partner->view;
    if (us_view_same_shape(own, wanted)) {
        return (PlannedView){output, VIEW_WRITE, NULL};
    }
    if (us_view_is_contiguous(own)) {
        View *first = op_take(op, sizeof *first);
        if (first != NULL) {
            *first = us_view_contiguous(own->data, own->dtype, wanted->rank, wanted->shape);
        }
        return (PlannedView){output, VIEW_WRITE, first};
    }
    if (!op->steps.begun) {
        op_begin_steps(op);
    }
    return (PlannedView){op_temporary(op, output->dtype, op_shape(partner)), VIEW_WRITE, NULL};
}

static void *behind(void *data, DType dtype, int64_t elements)
{
    return (void *)((uintptr_t)data + (uintptr_t)(elements * (int64_t)us_dtype_size(dtype)));
}

/* The first `elements` elements in order are boxes, at most as many as there are axes: whole rows, then whole rows of the row
 * that is left, and so on. A box's elements follow those of the box before it. */
static int32_t first_elements(View rest, int64_t elements, View *boxes)
{
    int32_t count = 0;
    for (int32_t axis = 0; axis < rest.rank && elements > 0; axis++) {
        const int64_t row = us_shape_elements(rest.rank - axis - 1, rest.shape + axis + 1), rows = elements / row;
        rest.shape[axis] = rows;
        if (rows > 0) {
            boxes[count++] = rest;
        }
        rest.data = behind(rest.data, rest.dtype, rows * rest.strides[axis]);
        rest.shape[axis] = 1;
        elements -= rows * row;
    }
    return count;
}

/* Copies a temporary to the first elements of an output. */
static void plan_copies(OpCall *op, const Operand *temporary, const Operand *output)
{
    View boxes[VIEW_RANK_LIMIT], sources[VIEW_RANK_LIMIT];
    PlannedView views[2 * VIEW_RANK_LIMIT];
    const int32_t count = first_elements(output->view, us_view_elements(&temporary->view), boxes);
    const DType dtype = output->view.dtype;
    void *data = temporary->view.data;
    for (int32_t i = 0; i < count; i++) {
        sources[i] = us_view_contiguous(data, dtype, boxes[i].rank, boxes[i].shape);
        data = behind(data, dtype, us_view_elements(&boxes[i]));
        views[2 * i] = (PlannedView){temporary, VIEW_READ, &sources[i]};
        views[2 * i + 1] = (PlannedView){output, VIEW_WRITE, &boxes[i]};
    }
    const MapCall copy = {.formula = &us_map_copy, .compute = dtype, .result = dtype, .inputs = 1, .outputs = 1,
                          .items = count};
    if (count > 0) {
        op_plan_views(op, us_map, &copy, sizeof copy, 2 * count, views);
    }
}

aclnnStatus op_plan_lists(OpCall *op, Kernel *kernel, const void *attributes, size_t size, int32_t count,
                          const PlannedView *views, int32_t output_count, const Operands *outputs)
{
    const aclnnStatus status = op_plan_views(op, kernel, attributes, size, count, views);
    if (!op->steps.begun) {
        return status;
    }
    int32_t written = 0;
    for (int32_t i = 0; i < count && !op_refused(op); i++) {
        if (views[i].access != VIEW_WRITE) {
            continue;
        }
        if (views[i].operand->temporary) {
            plan_copies(op, views[i].operand, outputs[written % output_count].items[written / output_count]);
        }
        written++;
    }
    return op_end_steps(op);
}
