/* Shapes of results, for the checks of pages; python/understudy/ascend/array_shapes.py has the same for the NumPy layer. */
#include "ascend/opapi/shapes.h"

#include "ascend/common/op_memory.h"

/* After a refusal the axes and lengths may fit nothing. */
static bool fits(const OpCall *op, const Operand *operand, int32_t axis)
{
    return !op_refused(op) && axis >= 0 && axis < operand->view.rank;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

Shape op_shape_concatenated(OpCall *op, Operands tensors, int32_t axis)
{
    Shape shape = {0};
    bool found = false;
    for (int32_t i = 0; i < tensors.count && !op_refused(op); i++) {
        const Operand *operand = tensors.items[i];
        if (operand->view.rank == 1 && operand->view.shape[0] == 0) {
            continue; /* an empty tensor of rank 1 goes with any shape */
        }
        if (!found) {
            shape = op_shape(operand);
            found = true;
        } else if (fits(op, operand, axis) && axis < shape.rank) {
            shape.sizes[axis] = plus(shape.sizes[axis], operand->view.shape[axis]);
        }
    }
    return found || tensors.count == 0 ? shape : op_shape(tensors.items[0]);
}

Shape op_shape_stacked(OpCall *op, Operands tensors, int32_t axis)
{
    Shape shape = {0};
    if (op_refused(op) || tensors.count == 0 || tensors.items[0]->view.rank >= VIEW_RANK_LIMIT) {
        return shape;
    }
    const View *first = &tensors.items[0]->view;
    shape.rank = first->rank + 1;
    for (int32_t i = 0; i < shape.rank; i++) {
        shape.sizes[i] = i == axis ? tensors.count : first->shape[i < axis ? i : i - 1];
    }
    return shape;
}

const Operand *op_shown_as(OpCall *op, const Operand *operand, View view)
{
    Operand *result = op_take(op, sizeof *result);
    if (result == NULL) {
        return operand;
    }
    *result = *operand;
    result->view = view;
    result->given = operand->given != NULL ? operand->given : operand;
    return result;
}

View op_swap_axes(View view, int32_t a, int32_t b)
{
    const int64_t size = view.shape[a], stride = view.strides[a];
    view.shape[a] = view.shape[b];
    view.strides[a] = view.strides[b];
    view.shape[b] = size;
    view.strides[b] = stride;
    return view;
}

View op_split_axis(View view, int32_t axis, int64_t inner)
{
    for (int32_t i = view.rank; i > axis + 1; i--) {
        view.shape[i] = view.shape[i - 1];
        view.strides[i] = view.strides[i - 1];
    }
    view.shape[axis + 1] = inner;
    view.strides[axis + 1] = view.strides[axis];
    view.shape[axis] /= inner;
    view.strides[axis] *= inner;
    view.rank++;
    return view;
}

Shape op_shape_permuted(OpCall *op, const Operand *operand, IntArguments dims)
{
    Shape shape = op_shape(operand);
    for (int32_t i = 0; i < shape.rank && i < dims.count && !op_refused(op); i++) {
        shape.sizes[i] = op_size(operand, dims.values[i]);
    }
    return shape;
}

Shape op_shape_sliced(OpCall *op, const Operand *operand, int32_t axis, int64_t start, int64_t end, int64_t step)
{
    Shape shape = op_shape(operand);
    if (fits(op, operand, axis)) {
        shape.sizes[axis] = op_slice_size(shape.sizes[axis], start, end, step);
    }
    return shape;
}

Shape op_shape_repeated(OpCall *op, const Operand *operand, IntArguments repeats)
{
    Shape shape = {0};
    const int64_t leading = repeats.count - operand->view.rank;
    for (int64_t i = 0; i < repeats.count && i < VIEW_RANK_LIMIT && !op_refused(op); i++) {
        const int64_t size = i < leading ? 1 : operand->view.shape[i - leading];
        shape.sizes[shape.rank++] = times(size, repeats.values[i]);
    }
    return shape;
}

Shape op_shape_interleaved(OpCall *op, const Operand *operand, int32_t axis, int64_t repeats)
{
    Shape shape = op_shape(operand);
    if (fits(op, operand, axis)) {
        shape.sizes[axis] = times(shape.sizes[axis], repeats);
    }
    return shape;
}

Shape op_shape_padded(OpCall *op, const Operand *operand, IntArguments pad)
{
    Shape shape = op_shape(operand);
    for (int64_t i = 0; 2 * i + 1 < pad.count && i < shape.rank && !op_refused(op); i++) {
        int64_t *size = &shape.sizes[shape.rank - 1 - i];
        *size = plus(*size, plus(pad.values[2 * i], pad.values[2 * i + 1]));
    }
    return shape;
}

Shape op_shape_selected(OpCall *op, const Operand *operand, int32_t axis, const Operand *index)
{
    Shape shape = {0};
    if (!fits(op, operand, axis) || operand->view.rank + index->view.rank > VIEW_RANK_LIMIT) {
        return op_shape(operand);
    }
    for (int32_t i = 0; i < axis; i++) {
        shape.sizes[shape.rank++] = operand->view.shape[i];
    }
    for (int32_t i = 0; i < index->view.rank; i++) {
        shape.sizes[shape.rank++] = index->view.shape[i];
    }
    for (int32_t i = axis + 1; i < operand->view.rank; i++) {
        shape.sizes[shape.rank++] = operand->view.shape[i];
    }
    return shape;
}

Shape op_shape_halved(OpCall *op, const Operand *operand, int32_t axis)
{
    Shape shape = op_shape(operand);
    axis += axis < 0 ? shape.rank : 0;
    if (fits(op, operand, axis)) {
        shape.sizes[axis] /= 2;
    }
    return shape;
}

Shape op_shape_product(OpCall *op, const Operand *a, const Operand *b)
{
    const int32_t rank_a = a->view.rank, rank_b = b->view.rank;
    const int64_t inner = op_size(b, rank_b == 1 ? -1 : -2);
    op_require(op, rank_a > 0 && rank_b > 0 && op_size(a, -1) == inner, b->name, "shape", op->invalid,
               "%s is %s, %s is %s: they cannot be multiplied", a->name, op_shape_text(op, a), b->name,
               op_shape_text(op, b));
    Shape shape = {0};
    if (op_refused(op)) {
        return shape;
    }
    View batches[2] = {a->view, b->view};
    batches[0].rank = rank_a > 2 ? rank_a - 2 : 0;
    batches[1].rank = rank_b > 2 ? rank_b - 2 : 0;
    const View *views[] = {&batches[0], &batches[1]};
    op_require(op, us_broadcast_shape(views, 2, &shape.rank, shape.sizes, NULL), b->name, "shape", op->invalid,
               "%s is %s, %s is %s: their batches do not broadcast", a->name, op_shape_text(op, a), b->name,
               op_shape_text(op, b));
    if (op_refused(op)) {
        return (Shape){0};
    }
    if (rank_a > 1) {
        shape.sizes[shape.rank++] = op_size(a, -2);
    }
    if (rank_b > 1) {
        shape.sizes[shape.rank++] = op_size(b, -1);
    }
    return shape;
}

Shape op_shape_listed(OpCall *op, IntArguments sizes)
{
    (void)op;
    Shape shape = {.rank = sizes.count < VIEW_RANK_LIMIT ? (int32_t)sizes.count : VIEW_RANK_LIMIT};
    for (int32_t i = 0; i < shape.rank; i++) {
        shape.sizes[i] = sizes.values[i];
    }
    return shape;
}

Shape op_shape_resized(OpCall *op, const Operand *self, IntArguments size)
{
    Shape shape = op_shape(self);
    for (int64_t i = 0; i < size.count && !op_refused(op); i++) {
        shape.sizes[shape.rank - size.count + i] = size.values[i];
    }
    return shape;
}

bool op_has_channels_last(const Operand *operand)
{
    const int32_t rank = operand->view.rank;
    return (operand->format == ACL_FORMAT_NHWC && rank == 4) || (operand->format == ACL_FORMAT_NDHWC && rank == 5);
}

Shape op_shape_upsampled(OpCall *op, const Operand *self, IntArguments size)
{
    Shape shape = op_shape(self);
    const int64_t first = shape.rank - size.count - op_has_channels_last(self);
    for (int64_t i = 0; i < size.count && first >= 0 && !op_refused(op); i++) {
        shape.sizes[first + i] = size.values[i];
    }
    return shape;
}

Shape op_shape_rows(OpCall *op, const Operand *x)
{
    Shape shape = op_shape(x);
    shape.rank -= !op_refused(op) && shape.rank > 0;
    return shape;
}

int32_t op_axis(int64_t dim, const Operand *operand)
{
    const int64_t axis = dim < 0 ? dim + operand->view.rank : dim;
    return axis >= 0 && axis < operand->view.rank ? (int32_t)axis : -1;
}

bool op_sizes_below(const Operand *operand, int64_t limit)
{
    for (int32_t d = 0; d < operand->view.rank; d++) {
        if (operand->view.shape[d] > limit) {
            return false;
        }
    }
    return true;
}

bool op_is_complex(aclDataType dtype)
{
    return dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128 || dtype == ACL_COMPLEX32;
}

bool op_has_shape(const Operand *operand, const Shape *shape)
{
    return operand->view.rank == shape->rank &&
           memcmp(operand->view.shape, shape->sizes, (size_t)shape->rank * sizeof *shape->sizes) == 0;
}
