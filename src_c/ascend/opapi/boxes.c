#include "ascend/opapi/boxes.h"

#include "kernels/map/formulas.h"

Shape op_shape_overlaps(OpCall *op, const Operand *boxes, const Operand *others, bool aligned)
{
    (void)op;
    return op_shape_of(2, (const int64_t[]){op_size(boxes, 0), aligned ? 1 : op_size(others, 0)});
}

/* One number of every box, along the rows or the columns of the result. */
static View coordinate(const Operand *boxes, int64_t number, bool by_columns, const View *out)
{
    View view = boxes->view;
    const int32_t own = by_columns ? 1 : 0, other = 1 - own;
    const int64_t step = view.strides[0], count = view.shape[0];
    view.data = (char *)view.data + number * view.strides[1] * (int64_t)us_dtype_size(view.dtype);
    view.shape[own] = count;
    view.strides[own] = step;
    view.shape[other] = out->shape[other];
    view.strides[other] = 0;
    return view;
}

aclnnStatus op_box_overlaps(OpCall *op, const Operand *boxes, const Operand *others, bool aligned, bool of_second,
                            double margin, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const MapCall call = {.formula = &us_map_box_overlap, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 8,
                          .outputs = 1, .items = 1, .numbers = {op_real(margin, ACL_FLOAT), op_real(of_second, ACL_FLOAT)}};
    View views[8];
    PlannedView planned[9];
    for (int i = 0; i < 8; i++) {
        const Operand *from = i < 4 ? boxes : others;
        views[i] = coordinate(from, i % 4, i >= 4 && !aligned, &out->view);
        planned[i] = (PlannedView){from, VIEW_READ, &views[i]};
    }
    planned[8] = (PlannedView){out, VIEW_WRITE, NULL};
    return op_plan_views(op, us_map, &call, sizeof call, 9, planned);
}
