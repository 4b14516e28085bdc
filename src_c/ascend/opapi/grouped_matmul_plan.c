/* Products of groups: the kernel's views of their tensors. */
#include "ascend/common/op_memory.h"
#include "ascend/opapi/grouped_matmul_cases.h"
#include "kernels/map/formulas.h"

typedef struct Planning {
    const GroupedCall *call;
    const GroupedCase *as;
    GroupedProduct *product;
    PlannedView *next;
    View *views; /* room for as many */
} Planning;

/* An ACL_INT32 is packed in operands only. */
static View matrix_of(const Operand *operand)
{
    return operand->output ? operand->view : op_integers_of(operand).view;
}

/* [n] as [1, n], [groups, n] as [groups, 1, n]; parts stay: rows of them. */
static View line_of(const Operand *operand, bool items)
{
    const View view = op_scale_view(operand);
    const int32_t axis = view.rank - 1;
    return view.rank == (items ? 2 : 1) ? us_view_insert_axis(view, axis, 1, 0) : view;
}

static View column_of(const Operand *operand)
{
    return us_view_insert_axis(operand->view, 1, 1, 0);
}

static void add_view(Planning *plan, const Operand *operand, ViewAccess access, View view)
{
    *plan->views = view;
    *plan->next++ = (PlannedView){operand, access, plan->views++};
}

typedef enum GroupedShape { AS_IT_IS, A_LINE, A_COLUMN } GroupedShape;

/* The next operand of the product. An empty list is an absent one. */
static void add_operand(Planning *plan, Operands list, GroupCut cut, GroupedShape shape)
{
    GroupedProduct *product = plan->product;
    const bool each = cut == GROUP_WHOLE && list.count > 0, items = plan->as->weight == GROUP_ITEM;
    product->operands[product->operand_count++] = (GroupedOperand){cut, each};
    for (int32_t i = 0; i < (each ? product->groups : 1); i++) {
        if (list.count == 0) {
            add_view(plan, NULL, VIEW_READ, us_view_absent());
            continue;
        }
        const Operand *operand = grouped_tensor(list, i);
        add_view(plan, operand, operand->output ? VIEW_WRITE : VIEW_READ,
                 shape == A_LINE     ? line_of(operand, items)
                 : shape == A_COLUMN ? column_of(operand)
                                     : matrix_of(operand));
    }
}

static void add_nothing(Planning *plan, int count)
{
    for (int i = 0; i < count; i++) {
        add_operand(plan, NO_OPERANDS, GROUP_ITEM, AS_IT_IS);
    }
}

static int64_t part_length(const Planning *plan, Operands scale)
{
    const int64_t parts = grouped_depth_parts(plan->as, scale);
    return parts > 0 ? grouped_sizes(plan->call, 0).k / parts : INT64_MAX;
}

static int32_t packed_axis(const Planning *plan, const Integers *integers)
{
    return integers->axis == NOT_PACKED ? NOT_PACKED : integers->axis - (plan->as->weight == GROUP_ITEM ? 1 : 0);
}

enum { ZERO_OF_SHIFTED = 8 };

/* The operands in the order that each kernel's header gives. */
static void add_operands(Planning *plan)
{
    const GroupedCall *call = plan->call;
    const GroupedCase *as = plan->as;
    const GroupCut of_weight = as->weight == GROUP_ITEM ? GROUP_ITEM : GROUP_WHOLE;
    const Scheme scheme = grouped_scheme(call);
    const Integers weight = op_integers_of(call->weight.items[0]), x = op_integers_of(call->x.items[0]);
    const bool sums = scheme == INTEGERS && call->scale.count == 0;
    add_operand(plan, call->x, as->x, AS_IT_IS);
    add_operand(plan, call->weight, as->weight, AS_IT_IS);
    if (scheme == PLAIN || sums) {
        add_operand(plan, call->bias, of_weight, A_LINE);
        add_operand(plan, call->out, as->out, AS_IT_IS);
        add_nothing(plan, 2);
        plan->product->kernel = us_product;
        plan->product->how.plain = (ViewProduct){.compute = sums ? DTYPE_INT64 : DTYPE_FLOAT32, .alpha = {1}, .beta = {1}};
    } else if (scheme == INTEGERS || scheme == SHIFTED) {
        const bool shifted = scheme == SHIFTED;
        add_operand(plan, call->scale, of_weight, A_LINE);
        add_operand(plan, call->out, as->out, AS_IT_IS);
        add_operand(plan, shifted ? NO_OPERANDS : call->bias, of_weight, A_LINE);
        add_operand(plan, call->row_scale, as->x, A_COLUMN); /* of one x */
        add_operand(plan, call->offset, of_weight, A_LINE);
        add_operand(plan, shifted ? call->bias : NO_OPERANDS, of_weight, A_LINE);
        add_nothing(plan, 1);
        plan->product->kernel = us_quantized_product;
        plan->product->how.integers = (QuantizedProduct){
            .group = part_length(plan, call->scale), .scale_columns = 1, .packed_a = x.axis,
            .packed_b = packed_axis(plan, &weight), .zero_a = shifted ? ZERO_OF_SHIFTED : 0, .scaled_zero = shifted};
    } else {
        add_operand(plan, call->antiquant_scale, of_weight, A_LINE);
        add_operand(plan, call->out, as->out, AS_IT_IS);
        add_operand(plan, call->antiquant_offset, of_weight, A_LINE);
        add_operand(plan, call->bias, of_weight, A_LINE);
        add_nothing(plan, 2);
        plan->product->kernel = us_quantized_weight_product;
        plan->product->how.weight = (WeightProduct){part_length(plan, call->antiquant_scale), packed_axis(plan, &weight)};
    }
}

static GroupList list_of(const GroupedCall *call)
{
    static const GroupList lists[] = {GROUPS_ENDS, GROUPS_SIZES, GROUPS_PAIRS};
    return call->list == NULL || !op_given(call->list) ? GROUPS_FIXED : lists[grouped_list_type(call)];
}

static void fill_sizes(const GroupedCall *call, const GroupedCase *as, GroupedProduct *product)
{
    product->list = list_of(call);
    product->groups = as->groups;
    product->length = as->x == GROUP_COLUMNS ? op_size(call->x.items[0], 1) : grouped_rows(call->x);
    product->sizes_known = grouped_known_size(call, as, 0) >= 0 || call->ends.given;
    for (int32_t i = 0; i < as->groups && product->sizes_known; i++) {
        const int64_t known = grouped_known_size(call, as, i);
        product->sizes[i] = known >= 0 ? known : call->ends.values[i] - (i == 0 ? 0 : call->ends.values[i - 1]);
    }
}

static const MapFormula *activation_of(int64_t type)
{
    static const MapFormula *const formulas[] = {NULL, &us_map_relu, &us_map_gelu_tanh, NULL, &us_map_fast_gelu,
                                                 &us_map_silu};
    return formulas[type];
}

aclnnStatus op_grouped_matmul(OpCall *op, const GroupedCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const GroupedCase as = grouped_case(call);
    const size_t size = sizeof(GroupedProduct) + (size_t)as.groups * sizeof(int64_t);
    const size_t most = 2 + GROUPED_OPERANDS * ((size_t)as.groups + 1);
    GroupedProduct *product = op_take(op, size);
    PlannedView *planned = op_take(op, most * sizeof *planned);
    View *views = op_take(op, most * sizeof *views);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    memset(product, 0, size);
    Planning plan = {call, &as, product, planned, views};
    fill_sizes(call, &as, product);
    product->activation = activation_of(call->activation);
    const Operand *list = op_given(call->list) ? call->list : NULL;
    add_view(&plan, list, VIEW_READ, list != NULL ? list->view : us_view_absent());
    add_operands(&plan);
    if (call->gated_scale != NULL) {
        add_view(&plan, call->gated_scale, VIEW_WRITE, call->gated_scale->view);
    }
    return op_plan_views(op, call->gated_scale != NULL ? us_grouped_gated : us_grouped_product, product, size,
                         (int32_t)(plan.next - planned), planned);
}

aclnnStatus op_grouped_matmul_add(OpCall *op, const Operand *x, const Operand *weight, const Operand *list,
                                  const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const GroupedProduct product = {
        .kernel = us_product, .how.plain = {.compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {1}},
        .operand_count = 6,
        .operands = {{GROUP_COLUMNS, false}, {GROUP_ROWS, false}, {GROUP_ITEM, false}, {GROUP_ITEM, false}},
        .list = GROUPS_ENDS, .length = op_size(x, 0), .groups = (int32_t)op_size(list, 0)};
    const View turned = op_swap_axes(x->view, 0, 1), none = us_view_absent();
    const View items = out->view.rank == 2 ? op_split_axis(out->view, 0, op_size(x, 1)) : out->view;
    const PlannedView views[] = {
        {list, VIEW_READ, NULL},  {x, VIEW_READ, &turned},   {weight, VIEW_READ, NULL}, {out, VIEW_READ, &items},
        {out, VIEW_WRITE, &items}, {NULL, VIEW_READ, &none}, {NULL, VIEW_READ, &none}};
    return op_plan_views(op, us_grouped_product, &product, sizeof product, sizeof views / sizeof *views, views);
}

aclnnStatus op_grouped_combined(OpCall *op, const CombinedCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Integers weight = op_integers_of(call->weight);
    const bool bytes = weight.axis == NOT_PACKED;
    const GroupedProduct product = {
        .kernel = us_quantized_product,
        .how.integers = {.group = op_size(call->x, 1), .scale_columns = 1, .packed_a = NOT_PACKED,
                         .packed_b = bytes ? NOT_PACKED : weight.axis - 1, .zero_a = bytes ? 0 : ZERO_OF_SHIFTED,
                         .scaled_zero = !bytes},
        .operand_count = 9,
        .operands = {{GROUP_ROWS, false}, {GROUP_ITEM, false}, {GROUP_ITEM, false}, {GROUP_ROWS, false}, {GROUP_ITEM, false},
                     {GROUP_ROWS, false}, {GROUP_ITEM, false}, {GROUP_ITEM, false}, {GROUP_ITEM, false}},
        .list = call->list_type == 0 ? GROUPS_ENDS : GROUPS_SIZES, .length = op_size(call->x, 0),
        .groups = (int32_t)op_size(call->weight, 0), .shared = {call->shared_begin, call->shared_factor}};
    const View rows = column_of(call->row_scale), none = us_view_absent();
    View scale = op_scale_view(call->scale);
    scale = scale.rank == 3 ? scale : us_view_insert_axis(scale, 1, 1, 0);
    const View bias = op_given(call->bias) ? us_view_insert_axis(call->bias->view, 1, 1, 0) : none;
    const View offset = op_given(call->offset) ? call->offset->view : none;
    const View shared = op_given(call->shared) ? call->shared->view : none;
    const View weights = op_given(call->weights) ? call->weights->view : none;
    const PlannedView views[] = {
        {call->list, VIEW_READ, NULL}, {call->x, VIEW_READ, NULL}, {call->weight, VIEW_READ, &weight.view},
        {call->scale, VIEW_READ, &scale}, {call->out, VIEW_WRITE, NULL}, {NULL, VIEW_READ, &none},
        {call->row_scale, VIEW_READ, &rows}, {call->offset, VIEW_READ, &offset}, {call->bias, VIEW_READ, &bias},
        {NULL, VIEW_READ, &none}, {call->weights, VIEW_READ, &weights}, {call->places, VIEW_READ, NULL},
        {call->shared, VIEW_READ, &shared}};
    return op_plan_views(op, us_grouped_combined, &product, sizeof product, sizeof views / sizeof *views, views);
}
