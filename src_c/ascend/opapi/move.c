/* Operators that move elements: a copy is the map `copy` on views that are slices, transposes or repetitions of the
 * operands (src_c/kernels/map), or `fill`. One launch for all pieces. */
#include "ascend/opapi/families.h"

#include "ascend/common/op_memory.h"
#include "kernels/map/formulas.h"
#include "kernels/move/move.h"

/* ---- views ---- */

static View slice(View view, int32_t axis, int64_t start, int64_t count, int64_t step)
{
    /* Modulo 2^64: of a tensor that no memory holds, which the device refuses to open. */
    const uintptr_t distance = (uintptr_t)start * (uintptr_t)view.strides[axis] * us_dtype_size(view.dtype);
    view.data = (void *)((uintptr_t)view.data + distance);
    view.shape[axis] = count;
    view.strides[axis] = (int64_t)((uint64_t)view.strides[axis] * (uint64_t)step);
    return view;
}

/* ---- a launch of several copies ---- */

typedef struct Moves {
    OpCall *op;
    MapCall call;
    int32_t count, limit;
    PlannedView *planned;
    View *views;
} Moves;

static Moves moves_begin(OpCall *op, aclDataType compute, int32_t limit)
{
    Moves moves = {.op = op, .limit = limit};
    moves.call = (MapCall){.formula = &us_map_copy, .compute = dtype_of_acl(compute), .result = dtype_of_acl(compute),
                           .inputs = 1, .outputs = 1};
    moves.planned = op_take(op, 2 * (size_t)limit * sizeof *moves.planned);
    moves.views = op_take(op, 2 * (size_t)limit * sizeof *moves.views);
    return moves;
}

static void moves_add(Moves *moves, const Operand *from, View source, const Operand *to, View target)
{
    if (op_refused(moves->op) || moves->count == moves->limit || us_view_is_empty(&target)) {
        return;
    }
    const int32_t at = 2 * moves->count++;
    moves->views[at] = source;
    moves->views[at + 1] = target;
    const bool fills = moves->call.formula == &us_map_fill; /* whose input only gives the shape, as in op_fill */
    moves->planned[at] = (PlannedView){from, fills ? VIEW_WRITE : VIEW_READ, &moves->views[at]};
    moves->planned[at + 1] = (PlannedView){to, VIEW_WRITE, &moves->views[at + 1]};
}

static aclnnStatus moves_end(Moves *moves)
{
    moves->call.items = moves->count;
    return moves->count == 0 ? op_plan_nothing(moves->op)
                             : op_plan_views(moves->op, us_map, &moves->call, sizeof moves->call, 2 * moves->count,
                                             moves->planned);
}

static aclnnStatus move_one(OpCall *op, const Operand *from, View source, const Operand *to)
{
    Moves moves = moves_begin(op, from->dtype, 1);
    moves_add(&moves, from, source, to, to->view);
    return moves_end(&moves);
}

/* ---- one copy ---- */

aclnnStatus op_copy(OpCall *op, const Operand *from, const Operand *to)
{
    return op_map(op, &us_map_copy, from->dtype, OPERANDS(from), OPERANDS(to), NO_NUMBERS);
}

aclnnStatus op_permute(OpCall *op, const Operand *from, IntArguments dims, const Operand *to)
{
    View view = from->view;
    for (int32_t axis = 0; axis < view.rank && axis < dims.count && !op_refused(op); axis++) {
        const int64_t source = dims.values[axis] < 0 ? dims.values[axis] + view.rank : dims.values[axis];
        view.shape[axis] = from->view.shape[source];
        view.strides[axis] = from->view.strides[source];
    }
    return move_one(op, from, view, to);
}

aclnnStatus op_flip(OpCall *op, const Operand *from, uint32_t axes, const Operand *to)
{
    View view = from->view;
    for (int32_t axis = 0; axis < view.rank; axis++) {
        if ((axes >> axis & 1) != 0 && view.shape[axis] > 0) {
            view = slice(view, axis, view.shape[axis] - 1, view.shape[axis], -1);
        }
    }
    return move_one(op, from, view, to);
}

int64_t op_slice_begin(int64_t size, int64_t start)
{
    return start < -size ? 0 : start >= size ? size : start < 0 ? start + size : start;
}

int64_t op_slice_size(int64_t size, int64_t start, int64_t end, int64_t step)
{
    const int64_t begin = op_slice_begin(size, start), stop = end >= size ? size : op_slice_begin(size, end);
    return stop > begin && step > 0 ? (stop - begin - 1) / step + 1 : 0;
}

aclnnStatus op_slice(OpCall *op, const Operand *from, int32_t axis, int64_t start, int64_t step, const Operand *to)
{
    View view = from->view;
    if (!op_refused(op) && !op_empty(to)) {
        view = slice(view, axis, op_slice_begin(view.shape[axis], start), to->view.shape[axis], step);
    }
    return move_one(op, from, view, to);
}

aclnnStatus op_reshape(OpCall *op, const Operand *from, const Operand *to)
{
    Reshape attributes = {0};
    return op_plan_operands(op, us_reshape, &attributes, sizeof attributes, OPERANDS(from), OPERANDS(to));
}

/* Each axis of out is `repeats` copies of self's: seen as two axes, the first of stride 0. */
bool op_repeats_fit(IntArguments repeats)
{
    int32_t axes = 0;
    for (int64_t i = 0; i < repeats.count; i++) {
        axes += repeats.values[i] != 1;
    }
    return axes <= (repeats.count > 0 && repeats.values[0] == 1 ? 3 : 4);
}

aclnnStatus op_repeat(OpCall *op, const Operand *from, IntArguments repeats, const Operand *to)
{
    View source = from->view, target = to->view;
    op_require(op, repeats.count + from->view.rank <= VIEW_RANK_LIMIT, "kernel", "missing",
               ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "repeating %d dimensions", (int)repeats.count);
    while (!op_refused(op) && source.rank < repeats.count) {
        source = us_view_insert_axis(source, 0, 1, 0);
    }
    for (int32_t axis = (int32_t)repeats.count - 1; axis >= 0 && !op_refused(op) && !op_empty(to); axis--) {
        const int64_t size = source.shape[axis], stride = target.strides[axis];
        target.shape[axis] = size;
        target = us_view_insert_axis(target, axis, repeats.values[axis], (int64_t)((uint64_t)stride * (uint64_t)size));
        source = us_view_insert_axis(source, axis, repeats.values[axis], 0);
    }
    Moves moves = moves_begin(op, from->dtype, 1);
    moves_add(&moves, from, source, to, target);
    return moves_end(&moves);
}

/* Every slice along the axis, `repeats` times in a row. */
aclnnStatus op_repeat_interleave(OpCall *op, const Operand *from, int64_t repeats, int32_t axis, const Operand *to)
{
    View source = from->view, target = to->view;
    if (!op_refused(op) && !op_empty(to)) {
        const int64_t stride = target.strides[axis];
        target.shape[axis] = source.shape[axis];
        target.strides[axis] = stride * repeats;
        target = us_view_insert_axis(target, axis + 1, repeats, stride);
        source = us_view_insert_axis(source, axis + 1, repeats, 0);
    }
    Moves moves = moves_begin(op, from->dtype, 1);
    moves_add(&moves, from, source, to, target);
    return moves_end(&moves);
}

aclnnStatus op_repeat_elements(OpCall *op, const Operand *from, int64_t repeats, const Operand *to)
{
    View source = from->view, target = to->view;
    if (!op_refused(op) && !op_empty(to)) {
        const int64_t step = to->view.strides[0];
        target = us_view_insert_axis((View){.data = to->view.data, .dtype = to->view.dtype}, 0, repeats, step);
        int64_t stride = step * repeats;
        for (int32_t axis = source.rank - 1; axis >= 0; stride *= source.shape[axis--]) {
            target = us_view_insert_axis(target, 0, source.shape[axis], stride);
        }
        source = us_view_insert_axis(source, source.rank, repeats, 0);
    }
    Moves moves = moves_begin(op, from->dtype, 1);
    moves_add(&moves, from, source, to, target);
    return moves_end(&moves);
}

/* ---- several copies ---- */

aclnnStatus op_concatenate(OpCall *op, Operands from, int32_t axis, aclDataType promoted, const Operand *to)
{
    Moves moves = moves_begin(op, promoted, from.count);
    int64_t at = 0;
    for (int32_t i = 0; i < from.count && !op_refused(op); i++) {
        if (from.items[i]->view.rank != to->view.rank) {
            continue; /* an empty tensor of rank 1, which checks let pass */
        }
        const int64_t size = from.items[i]->view.shape[axis];
        moves_add(&moves, from.items[i], from.items[i]->view, to, slice(to->view, axis, at, size, 1));
        at += size;
    }
    return moves_end(&moves);
}

aclnnStatus op_stack(OpCall *op, Operands from, int32_t axis, aclDataType promoted, const Operand *to)
{
    Moves moves = moves_begin(op, promoted, from.count);
    for (int32_t i = 0; i < from.count && !op_refused(op); i++) {
        moves_add(&moves, from.items[i], from.items[i]->view, to,
                  us_view_remove_axis(slice(to->view, axis, i, 1, 1), axis));
    }
    return moves_end(&moves);
}

aclnnStatus op_split(OpCall *op, const Operand *from, int32_t axis, Operands to)
{
    Moves moves = moves_begin(op, from->dtype, to.count);
    int64_t at = 0;
    for (int32_t i = 0; i < to.count && !op_refused(op); i++) {
        const int64_t size = to.items[i]->view.shape[axis];
        moves_add(&moves, from, slice(from->view, axis, at, size, 1), to.items[i], to.items[i]->view);
        at += size;
    }
    return moves_end(&moves);
}

bool op_has_axes(const Operand *operand, IntArguments dims)
{
    const int64_t limit = operand->view.rank > 0 ? operand->view.rank : 1;
    bool all = true;
    for (int64_t i = 0; i < dims.count; i++) {
        all &= dims.values[i] >= -limit && dims.values[i] < limit;
    }
    return all;
}

/* A number of elements as steps along each axis, those of the inner ones below their sizes. */
static void steps_along(const View *view, int64_t elements, int64_t *steps)
{
    for (int32_t axis = view->rank - 1; axis >= 0 && !us_view_is_empty(view); axis--) {
        steps[axis] = elements % view->shape[axis];
        elements /= view->shape[axis];
    }
}

/* From 0 to size - 1. */
static int64_t step_within(int64_t step, int64_t size)
{
    const int64_t rest = size <= 0 ? 0 : step % size;
    return rest < 0 ? rest + size : rest;
}

/* Up to two pieces per axis that is rolled. Without dims all elements are one row: what moves past the end of an axis moves
 * one step further along the axis before it. */
aclnnStatus op_roll(OpCall *op, const Operand *from, IntArguments shifts, IntArguments dims, const Operand *to)
{
    enum { AXES = 8 };
    int64_t by[VIEW_RANK_LIMIT] = {0};
    op_require(op, from->view.rank <= AXES, "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "rolling %d dimensions", (int)from->view.rank);
    const bool one_row = dims.count == 0;
    if (one_row && !op_refused(op)) {
        steps_along(&from->view, step_within(shifts.values[0], op_elements(from)), by);
    }
    for (int64_t i = 0; i < dims.count && from->view.rank > 0 && !op_refused(op); i++) {
        const int64_t axis = dims.values[i] < 0 ? dims.values[i] + from->view.rank : dims.values[i];
        const int64_t size = from->view.shape[axis];
        by[axis] = step_within(by[axis] + step_within(shifts.values[i], size), size);
    }
    const uint32_t pieces = UINT32_C(1) << (op_refused(op) ? 0 : from->view.rank);
    Moves moves = moves_begin(op, from->dtype, (int32_t)pieces);
    for (uint32_t piece = 0; piece < pieces && !op_refused(op); piece++) {
        View source = from->view, target = to->view;
        bool last = false;
        for (int32_t axis = from->view.rank - 1; axis >= 0; axis--) {
            /* The last `step` elements come first. */
            const int64_t size = from->view.shape[axis], step = by[axis] + (one_row && last), split = size - step;
            last = (piece >> axis & 1) != 0;
            source = slice(source, axis, last ? split : 0, last ? step : split, 1);
            target = slice(target, axis, last ? 0 : step, last ? step : split, 1);
        }
        moves_add(&moves, from, source, to, target);
    }
    return moves_end(&moves);
}

/* ---- constants ---- */

aclnnStatus op_fill(OpCall *op, const Operand *to, Number value)
{
    const DType dtype = dtype_of_acl(to->dtype);
    const MapCall call = {.formula = &us_map_fill, .compute = dtype, .result = dtype, .inputs = 1, .outputs = 1, .items = 1,
                          .numbers = {value}};
    /* The formula's input gives the shape, its elements do not count: UNDERSTUDY_CHECK=init must not miss them. */
    const PlannedView views[] = {{to, VIEW_WRITE, NULL}, {to, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_map, &call, sizeof call, 2, views);
}

aclnnStatus op_fill_all(OpCall *op, Operands outputs, Number value)
{
    Moves moves = moves_begin(op, ACL_DOUBLE, outputs.count);
    moves.call.formula = &us_map_fill;
    moves.call.numbers[0] = value;
    for (int32_t i = 0; i < outputs.count && !op_refused(op); i++) {
        if (outputs.items[i] != NULL && op_given(outputs.items[i])) {
            moves_add(&moves, outputs.items[i], outputs.items[i]->view, outputs.items[i], outputs.items[i]->view);
        }
    }
    return moves_end(&moves);
}

aclnnStatus op_constant_pad(OpCall *op, const Operand *from, IntArguments pad, Number value, const Operand *to)
{
    ConstantPad attributes = {.value = value};
    for (int64_t i = 0; 2 * i + 1 < pad.count && i < from->view.rank; i++) {
        attributes.before[from->view.rank - 1 - i] = pad.values[2 * i];
    }
    return op_plan_operands(op, us_constant_pad, &attributes, sizeof attributes, OPERANDS(from), OPERANDS(to));
}

aclnnStatus op_triangle(OpCall *op, const Operand *from, int64_t diagonal, bool lower, const Operand *to)
{
    const Triangle attributes = {.diagonal = diagonal, .lower = lower};
    View source = from->view, target = to->view;
    while (!op_refused(op) && source.rank < 2) {
        source = us_view_insert_axis(source, 0, 1, 0);
        target = us_view_insert_axis(target, 0, 1, 0);
    }
    const PlannedView views[] = {{from, VIEW_READ, &source}, {to, VIEW_WRITE, &target}};
    return op_plan_views(op, us_triangle, &attributes, sizeof attributes, 2, views);
}

aclnnStatus op_sequence(OpCall *op, const Operand *to, Number start, Number step, Number last, int64_t last_at,
                        aclDataType compute)
{
    Sequence attributes = {.compute = dtype_of_acl(compute), .start = start, .step = step, .last = last,
                           .last_at = last_at};
    return op_plan_operands(op, us_sequence, &attributes, sizeof attributes, NO_OPERANDS, OPERANDS(to));
}

aclnnStatus op_arange(OpCall *op, const ScalarArgument *start, const ScalarArgument *step, const Operand *to)
{
    const aclDataType compute = op_is_integer(to->dtype) ? ACL_INT64 : ACL_DOUBLE;
    return op_sequence(op, to, op_number(start, compute), op_number(step, compute), op_real(0, compute), -1, compute);
}

aclnnStatus op_linspace(OpCall *op, const ScalarArgument *start, const ScalarArgument *end, int64_t steps,
                        const Operand *to)
{
    const double gap = steps > 1 ? (end->value.real - start->value.real) / (double)(steps - 1) : 0;
    return op_sequence(op, to, start->value, op_real(gap, ACL_DOUBLE), end->value, steps > 1 ? steps - 1 : -1, ACL_DOUBLE);
}

aclnnStatus op_eye(OpCall *op, const Operand *to)
{
    return op_plan_operands(op, us_identity, NULL, 0, NO_OPERANDS, OPERANDS(to));
}

/* ---- checks ---- */

void require_alike_but(OpCall *op, Operands list, int32_t axis)
{
    for (int32_t i = 1; i < list.count && !op_refused(op); i++) {
        const View *first = &list.items[0]->view, *view = &list.items[i]->view;
        bool alike = first->rank == view->rank;
        for (int32_t k = 0; k < first->rank && alike; k++) {
            alike = k == axis || first->shape[k] == view->shape[k];
        }
        const bool empty = view->rank == 1 && view->shape[0] == 0;
        op_require(op, alike || empty, list.name, "shape", op->invalid, "tensor %d of %s is %s, the first is %s", (int)i,
                   list.name, op_shape_text(op, list.items[i]), op_shape_text(op, list.items[0]));
    }
}

void require_alike(OpCall *op, Operands list)
{
    require_alike_but(op, list, -1);
}

void require_pieces(OpCall *op, const Operand *from, int32_t axis, int64_t section, IntArguments sizes, Operands to)
{
    const int64_t whole = op_size(from, axis);
    int64_t at = 0;
    for (int32_t i = 0; i < to.count && !op_refused(op); i++) {
        const int64_t rest = whole - at;
        const int64_t size = sizes.given ? (i < sizes.count ? sizes.values[i] : -1) : section < rest ? section : rest;
        Shape expected = op_shape(from);
        expected.sizes[axis] = size;
        const View *view = &to.items[i]->view;
        bool fits = view->rank == expected.rank && size >= 0 && size <= rest;
        for (int32_t k = 0; k < expected.rank && fits; k++) {
            fits = view->shape[k] == expected.sizes[k];
        }
        op_require(op, fits, to.name, "split", op->invalid, "tensor %d of %s is %s, which is not piece %d of %s", (int)i,
                   to.name, op_shape_text(op, to.items[i]), (int)i, op_shape_text(op, from));
        at += fits ? size : 0;
    }
    op_require(op, at == whole && (!sizes.given || sizes.count == to.count), to.name, "split", op->invalid,
               "the tensors of %s hold %lld of %lld slices", to.name, (long long)at, (long long)whole);
}

bool op_is_flattened(const Operand *from, int64_t axis, const Operand *to)
{
    const int32_t rank = from->view.rank, split = (int32_t)(axis < 0 ? axis + rank : axis);
    return to->view.rank == 2 && to->view.shape[0] == us_shape_elements(split, from->view.shape) &&
           to->view.shape[1] == us_shape_elements(rank - split, from->view.shape + split);
}
