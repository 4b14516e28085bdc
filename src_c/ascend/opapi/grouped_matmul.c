/* Products of groups: the checks. */
#include "ascend/opapi/grouped_matmul_cases.h"

#include "ascend/common/op_memory.h"

/* ---- weights in blocks ---- */

static const Operand *grouped_weight(OpCall *op, const Operand *weight, const Operand *x, const Operand *out)
{
    if (op_refused(op) || x->view.rank == 0 || out->view.rank == 0) {
        return weight;
    }
    const Integers of_x = op_integers_of(x);
    return op_weight_of(op, op_as_blocked(op, weight), 0, op_integer_size(&of_x, 1), op_size(out, -1));
}

Operands op_grouped_weights(OpCall *op, Operands weight, Operands x, Operands out)
{
    const Operand **items = op_take(op, (size_t)(weight.count > 0 ? weight.count : 1) * sizeof *items);
    for (int32_t i = 0; i < weight.count && !op_refused(op); i++) {
        items[i] = grouped_weight(op, weight.items[i], x.items[i < x.count ? i : 0], out.items[i < out.count ? i : 0]);
    }
    if (!op_refused(op)) {
        weight.items = items;
    }
    return weight;
}

/* ---- types ---- */

static Operands given_lists(const GroupedCall *call, int i)
{
    const Operands lists[] = {call->x, call->weight, call->bias, call->scale, call->offset,
                              call->antiquant_scale, call->antiquant_offset, call->row_scale, call->out};
    return lists[i];
}
enum { LISTS_OF_CALL = 9, LISTS_OF_WEIGHT = 7 /* bias … antiquant_offset are as long as weight */ };

static bool has_four_bits(Operands list)
{
    return dtype_in(op_list_dtype(list), T_I4 | T_I32);
}

static bool of_integers(Scheme scheme)
{
    return scheme == INTEGERS || scheme == SHIFTED;
}

static void require_lists(OpCall *op, const GroupedCall *call)
{
    for (int i = 0; i < LISTS_OF_CALL; i++) {
        const Operands list = given_lists(call, i);
        if (i >= 2 && i < LISTS_OF_WEIGHT && list.count > 0) {
            op_require_list_length(op, list.name, list.count, call->weight);
        }
        op_require_uniform(op, list, list);
    }
    op_require(op, call->row_scale.count <= 1, call->row_scale.name, "length", op->invalid,
               "%s has %d entries: there is one", call->row_scale.name, (int)call->row_scale.count);
}

void op_require_grouped_lists(OpCall *op, const GroupedCall *call)
{
    require_lists(op, call);
    if (op_refused(op)) {
        return;
    }
    const GroupedCase as = grouped_case(call);
    op_require(op, as.fits, "x", "case", op->invalid,
               "x has %d tensors, weight %d, %s %d: these do not go together with splitItem %lld", (int)call->x.count,
               (int)call->weight.count, call->out.name, (int)call->out.count, (long long)call->split);
    const Scheme scheme = grouped_scheme(call);
    op_require(op, scheme != NO_SCHEME, call->out.name, "types", op->invalid,
               "%s of %s is not made from x %s, weight %s and the lists that are given", call->out.name,
               acl_dtype_name(op_list_dtype(call->out)), acl_dtype_name(op_list_dtype(call->x)),
               acl_dtype_name(op_list_dtype(call->weight)));
    const GroupType type = grouped_type(call);
    const bool single = type == GROUP_M && as.x == GROUP_ROWS && as.weight == GROUP_ITEM;
    const bool several = scheme == SHIFTED && call->fifth && type == GROUP_M && as.x == GROUP_ROWS;
    op_require(op, !of_integers(scheme) || single || several || (call->list == NULL && type != GROUP_K), "x", "quantized",
               op->invalid, "x of %s goes with groups of m and one tensor in each of x, weight and %s",
               acl_dtype_name(op_list_dtype(call->x)), call->out.name);
    op_require(op, scheme != WEIGHT || type != GROUP_K, "weight", "quantized", op->invalid,
               "weight of %s has no groups of k", acl_dtype_name(op_list_dtype(call->weight)));
    op_require(op, call->bias.count == 0 || type != GROUP_K, call->bias.name, "grouping", op->invalid,
               "%s is given; groups of k have none", call->bias.name);
    op_require(op, call->activation == 0 || grouped_takes_activation(call), "actType", "case", op->invalid,
               "actType is %lld; an activation (but 3) needs x of ACL_INT8 and %s of 16 bits",
               (long long)call->activation, call->out.name);
}

/* ---- shapes ---- */

static void require_ranks(OpCall *op, const GroupedCall *call, const GroupedCase *as)
{
    const bool batches = call->list == NULL && grouped_type(call) == GROUP_NONE && !call->ends.given;
    const int32_t rank = batches ? call->x.items[0]->view.rank : 2;
    op_require_ranks(op, call->x, batches && rank >= 2 ? rank : 2, batches && rank >= 2 && rank <= 6 ? rank : 2);
    op_require_ranks(op, call->weight, as->weight == GROUP_ITEM ? 3 : 2, as->weight == GROUP_ITEM ? 3 : 2);
    const int32_t of_out = as->out == GROUP_ITEM ? 3 : rank;
    op_require_ranks(op, call->out, of_out, of_out);
}

enum { SIZE_LIMIT = 65536 };

static void require_operands(OpCall *op, const GroupedCall *call, const GroupedCase *as)
{
    const bool of_k = as->x == GROUP_COLUMNS;
    const GroupSizes first = grouped_sizes(call, 0);
    int64_t depth = 0;
    for (int32_t group = 0; group < (as->weight == GROUP_WHOLE ? as->groups : 1) && !op_refused(op); group++) {
        const Operand *x = grouped_tensor(call->x, group), *weight = grouped_tensor(call->weight, group);
        const GroupSizes of = grouped_sizes(call, group);
        depth = __builtin_add_overflow(depth, of.depth, &depth) ? INT64_MAX : depth;
        op_require_packed(op, x, &of.x);
        op_require_packed(op, weight, &of.weight);
        const View *view = &x->view;
        op_require(op, !of_k || call->list == NULL || op_is_turned(view) || view->shape[0] <= 1 || view->shape[1] <= 1, "x",
                   "transposed",
                   op->invalid, "x is %s and not transposed, which groups of k need", op_shape_text(op, x));
        const int64_t last = op_is_turned(view) ? op_integer_size(&of.x, 2) : of.k;
        op_require(op, last < SIZE_LIMIT && (of.k > 0 || grouped_scheme(call) == PLAIN), "x", "size", op->invalid,
                   "x is %s: its last dimension must be below 65536, and not 0 where integers are multiplied",
                   op_shape_text(op, x));
        op_require(op, (op_is_turned(&of.weight.view) ? of.depth : of.n) < SIZE_LIMIT, "weight", "size", op->invalid,
                   "weight is %s: its last dimension must be below 65536", op_shape_text(op, weight));
        const bool fits = (of_k || of.depth == of.k) && (as->out == GROUP_WHOLE || of.n == first.n) &&
                          of.weight.axis == first.weight.axis;
        op_require(op, fits, "weight", "shape", op->invalid,
                   "weight is %s, x is %s, the first weight is %s: k, or the n of one result, differ",
                   op_shape_text(op, weight), op_shape_text(op, x), op_shape_text(op, call->weight.items[0]));
    }
    op_require(op, !of_k || (as->weight == GROUP_ROWS ? depth == first.k : depth <= first.k), "weight", "shape",
               op->invalid, "the weights sum over %lld, x, %s, has a k of %lld", (long long)depth,
               op_shape_text(op, call->x.items[0]), (long long)first.k);
}

static void require_out(OpCall *op, const GroupedCall *call, const GroupedCase *as)
{
    const int64_t n = grouped_sizes(call, 0).n, m = op_size(call->x.items[0], 0);
    for (int32_t i = 0; i < call->out.count && !op_refused(op); i++) {
        const Operand *out = call->out.items[i];
        Shape shape = op_shape(grouped_tensor(call->x, i));
        if (as->out == GROUP_ITEM) {
            shape = op_shape_of(3, (const int64_t[]){as->groups, m, n});
        } else {
            shape.sizes[0] = as->out == GROUP_ROWS ? grouped_rows(call->x)
                             : as->x == GROUP_ROWS ? op_size(out, 0) /* the list says */
                                                   : shape.sizes[0];
            shape.sizes[shape.rank - 1] = grouped_sizes(call, i).n;
        }
        op_require_shape(op, out, &shape);
    }
}

/* [n], or [groups, n] beside a weight of items; `parts` of the depth: [parts, n], [groups, parts, n]. */
static bool is_of_weight(const GroupedCall *call, const GroupedCase *as, Operands list, int32_t group, int32_t parts)
{
    const View *view = &list.items[group]->view;
    const int32_t items = as->weight == GROUP_ITEM ? 1 : 0;
    return view->rank == items + (parts > 0 ? 2 : 1) && (items == 0 || view->shape[0] == as->groups) &&
           view->shape[view->rank - 1] == grouped_sizes(call, group).n;
}

/* The parts are of one length in all groups, which is even where two numbers of a part share a byte. */
static bool are_parts(const GroupedCall *call, const GroupedCase *as, Operands list, int32_t group)
{
    const GroupSizes of = grouped_sizes(call, group), first = grouped_sizes(call, 0);
    const View *view = &list.items[group]->view;
    const int64_t parts = view->rank < 2 ? 0 : view->shape[view->rank - 2], of_first = grouped_depth_parts(as, list);
    const bool even = has_four_bits(call->x) || of.weight.axis == of.weight.view.rank - 2;
    return parts > 0 && of.k % parts == 0 && of.k / parts == first.k / of_first &&
           (!even || of.k / parts % 2 == 0);
}

static void require_of_weight(OpCall *op, const GroupedCall *call, const GroupedCase *as, Operands list, bool parts)
{
    for (int32_t group = 0; group < list.count && !op_refused(op); group++) {
        const bool has_parts = parts && grouped_depth_parts(as, list) > 0;
        op_require(op, is_of_weight(call, as, list, group, has_parts) &&
                           (!has_parts || are_parts(call, as, list, group)), list.name, "shape", op->invalid,
                   "tensor %d of %s is %s: weight is %s, x is %s", (int)group, list.name,
                   op_shape_text(op, list.items[group]), op_shape_text(op, call->weight.items[group]),
                   op_shape_text(op, grouped_tensor(call->x, group)));
    }
}

enum { SHIFTED_PART = 256, MOST_SHIFTED_DEPTH = 18432, COLUMNS_OF_FOUR_BITS = 8, TURNED_DEPTH = 64, TURNED_COLUMNS = 16 };

/* Only beside 4 bits in x is a weight in blocks taken transposed. */
static bool may_turn(const GroupedCall *call, const GroupedCase *as, const Operand *weight, const GroupSizes *of)
{
    const int64_t parts = grouped_depth_parts(as, call->scale);
    return call->fifth && has_four_bits(call->x) && weight->format == ACL_FORMAT_FRACTAL_NZ &&
           of->k % TURNED_DEPTH == 0 && (parts == 0 || of->k / parts % TURNED_DEPTH == 0) && of->n % TURNED_COLUMNS == 0;
}

/* Both operands hold integers, those of the weight 4 bits: it lies as rows; without an offset scales are of 256 rows. */
static void require_shifted(OpCall *op, const GroupedCall *call, const GroupedCase *as)
{
    const bool shifted = grouped_scheme(call) == SHIFTED, parts = shifted && call->offset.count == 0;
    if (op_refused(op) || (!shifted && !has_four_bits(call->x))) {
        return;
    }
    for (int32_t group = 0; group < call->weight.count && !op_refused(op); group++) {
        const GroupSizes of = grouped_sizes(call, group);
        const Operand *weight = call->weight.items[group];
        op_require(op, of.weight.axis == of.weight.view.rank - 1 || may_turn(call, as, weight, &of), "weight", "transposed",
                   op->invalid, "weight is %s and transposed: beside integers in x its integers of 4 bits lie along n",
                   op_shape_text(op, weight));
        const bool any = shifted ? !parts : weight->format == ACL_FORMAT_FRACTAL_NZ;
        op_require(op, any || of.n % COLUMNS_OF_FOUR_BITS == 0, "weight", "columns", op->invalid,
                   "weight has %lld columns of 4 bits, which must be a multiple of 8", (long long)of.n);
        op_require(op, !parts || (of.k % SHIFTED_PART == 0 && of.k <= MOST_SHIFTED_DEPTH), "weight", "depth",
                   op->invalid, "k is %lld: without an offset it is a multiple of 256 up to 18432", (long long)of.k);
        const int64_t count = parts ? of.k / SHIFTED_PART : 1;
        op_require(op, !shifted || grouped_depth_parts(as, call->scale) == count, call->scale.name, "parts",
                   op->invalid, "%s is %s: there are %lld parts of k, each with scales", call->scale.name,
                   op_shape_text(op, call->scale.items[group]), (long long)count);
    }
    if (call->offset.count > 0) {
        op_require_same_shapes(op, call->offset, call->scale);
    }
}

void op_require_grouped_shapes(OpCall *op, const GroupedCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const GroupedCase as = grouped_case(call);
    const bool packed = has_four_bits(call->weight);
    require_ranks(op, call, &as);
    if (op_refused(op)) {
        return;
    }
    require_operands(op, call, &as);
    require_out(op, call, &as);
    require_of_weight(op, call, &as, call->bias, false);
    require_of_weight(op, call, &as, call->scale, packed);
    require_shifted(op, call, &as);
    require_of_weight(op, call, &as, call->antiquant_scale, packed);
    if (call->antiquant_offset.count > 0) {
        op_require_same_shapes(op, call->antiquant_offset, call->antiquant_scale);
    }
    if (call->row_scale.count > 0 && !op_refused(op)) {
        const int64_t rows = grouped_rows(call->x);
        const Shape shape = op_shape_of(1, &rows);
        op_require_shape(op, call->row_scale.items[0], &shape);
    }
}

/* ---- the list of groups ---- */

enum { MOST_ITEMS = 1024, MOST_TENSORS = 128 };

static void require_list_tensor(OpCall *op, const GroupedCall *call, const GroupedCase *as)
{
    const Operand *list = call->list;
    const bool needed = as->x != GROUP_WHOLE && (as->x == GROUP_ROWS || as->out == GROUP_ITEM);
    const bool taken = needed || as->out == GROUP_ROWS;
    op_require(op, !needed || op_given(list), list->name, "missing", op->invalid,
               "%s is NULL: one tensor in x has the rows, or columns, of all groups", list->name);
    op_require(op, taken || !op_given(list), list->name, "given", op->invalid,
               "%s is given: each group has tensors of its own", list->name);
    op_require(op, !op_given(list) || (list->view.rank == (grouped_list_type(call) == 2 ? 2 : 1) &&
                                       list->view.shape[0] == as->groups &&
                                       (grouped_list_type(call) != 2 || list->view.shape[1] == 2)),
               list->name, "shape", op->invalid, "%s is %s; there are %d groups and groupListType is %lld", list->name,
               op_shape_text(op, list), (int)as->groups, (long long)grouped_list_type(call));
    const bool single = as->weight == GROUP_ITEM || as->out == GROUP_ITEM;
    op_require(op, as->groups <= (single ? MOST_ITEMS : MOST_TENSORS), list->name, "groups", op->invalid,
               "there are %d groups, at most %d are taken", (int)as->groups, single ? MOST_ITEMS : MOST_TENSORS);
}

static void require_ends(OpCall *op, const GroupedCall *call, const GroupedCase *as)
{
    const IntArguments ends = call->ends;
    const bool of_k = as->x == GROUP_COLUMNS;
    op_require(op, as->x == GROUP_WHOLE || ends.given, ends.name, "missing", op->invalid,
               "%s is NULL: one tensor in x has the rows, or columns, of all groups", ends.name);
    op_require(op, !ends.given || call->type != GROUP_NONE, ends.name, "given", op->invalid,
               "%s is given: each group has tensors of its own", ends.name);
    op_require(op, !ends.given || (ends.count == as->groups && ends.count > 1), ends.name, "length", op->invalid,
               "%s has %lld numbers: there are %d groups, and more than one with a list", ends.name,
               (long long)ends.count, (int)as->groups);
    int64_t before = 0;
    for (int64_t i = 0; i < ends.count && ends.given && !op_refused(op); i++) {
        const int64_t size = ends.values[i] < before ? -1 : ends.values[i] - before;
        const int64_t known = grouped_known_size(call, as, (int32_t)i);
        op_require(op, size >= 0, ends.name, "order", op->invalid, "%s has %lld behind %lld", ends.name,
                   (long long)ends.values[i], (long long)before);
        op_require(op, known < 0 || size == known, ends.name, "rows", op->invalid,
                   "%s gives group %lld %lld rows, its tensor has %lld", ends.name, (long long)i, (long long)size,
                   (long long)known);
        before = ends.values[i];
    }
    const int64_t whole = op_refused(op) ? 0 : of_k ? grouped_sizes(call, 0).k : grouped_rows(call->x);
    op_require(op, !ends.given || before == whole, ends.name, "sum", op->invalid, "%s ends with %lld, x has %lld %s", ends.name,
               (long long)before, (long long)whole, of_k ? "columns" : "rows");
}

void op_require_group_list(OpCall *op, const GroupedCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const GroupedCase as = grouped_case(call);
    if (call->list != NULL) {
        require_list_tensor(op, call, &as);
    } else {
        require_ends(op, call, &as);
    }
}

/* ---- added ---- */

void op_require_grouped_add(OpCall *op, const Operand *x, const Operand *weight, const Operand *list, const Operand *out)
{
    if (op_refused(op)) {
        return;
    }
    const int64_t groups = op_size(list, 0), m = op_size(x, 1), n = op_size(weight, 1);
    op_require(op, m < SIZE_LIMIT, x->name, "size", op->invalid, "x is %s: its last dimension must be below 65536",
               op_shape_text(op, x));
    op_require(op, n < SIZE_LIMIT, weight->name, "size", op->invalid,
               "weight is %s: its last dimension must be below 65536", op_shape_text(op, weight));
    op_require(op, groups <= MOST_ITEMS, list->name, "groups", op->invalid,
               "there are %lld groups, at most %d are taken", (long long)groups, MOST_ITEMS);
    op_require(op, op_size(weight, 0) == op_size(x, 0), weight->name, "shape", op->invalid,
               "weight is %s, x is %s: they have different numbers of rows", op_shape_text(op, weight),
               op_shape_text(op, x));
    if (op_refused(op)) {
        return;
    }
    const Shape shape = out->view.rank == 3
                            ? op_shape_of(3, (const int64_t[]){groups, m, n})
                            : op_shape_of(2, (const int64_t[]){groups * m, n});
    op_require_shape(op, out, &shape);
}

/* ---- gated ---- */

enum { MOST_COLUMNS = 10240, GATED_DEPTH = 20000 };

static void require_sizes(OpCall *op, const Operand *operand, int32_t rank, const int64_t *sizes)
{
    const Shape shape = op_shape_of(rank, sizes);
    op_require_shape(op, operand, &shape);
}

void op_require_grouped_gated(OpCall *op, const GroupedCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Operand *x = call->x.items[0], *weight = call->weight.items[0];
    const Operand *scale = call->scale.items[0], *out = call->out.items[0];
    const Scheme scheme = grouped_scheme(call);
    op_require(op, scheme != NO_SCHEME, out->name, "types", op->invalid,
               "weight of %s, bias and weightScale of %s do not go together",
               acl_dtype_name(weight->dtype), acl_dtype_name(scale->dtype));
    if (op_refused(op)) {
        return;
    }
    const GroupSizes of = grouped_sizes(call, 0);
    const int64_t rows = op_size(x, 0), groups = op_size(weight, 0), parts = scale->view.rank == 3 ? op_size(scale, 1) : 1;
    op_require(op, groups <= MOST_ITEMS, call->list->name, "groups", op->invalid, "there are %lld groups, at most %d are taken",
               (long long)groups, MOST_ITEMS);
    op_require_packed(op, weight, &of.weight);
    op_require(op, of.k < (scheme == SHIFTED ? GATED_DEPTH : SIZE_LIMIT), x->name, "size", op->invalid,
               "x is %s: its last dimension is too long", op_shape_text(op, x));
    op_require(op, of.depth == of.k, weight->name, "shape", op->invalid,
               "weight is %s, x is %s: they sum over %lld and %lld integers",
               op_shape_text(op, weight), op_shape_text(op, x), (long long)of.depth, (long long)of.k);
    op_require(op, of.n % 2 == 0 && of.n <= MOST_COLUMNS, weight->name, "size", op->invalid,
               "weight is %s: it has an even number of columns, 10240 at most", op_shape_text(op, weight));
    op_require(op, parts > 0 && of.k % parts == 0 && (scheme == SHIFTED || scale->view.rank == 2), scale->name, "parts",
               op->invalid,
               "%s is %s: parts of the depth go with integers of 4 bits, and divide it", scale->name, op_shape_text(op, scale));
    require_sizes(op, scale, scale->view.rank,
                  scale->view.rank == 3 ? (const int64_t[]){groups, parts, of.n} : (const int64_t[]){groups, of.n});
    if (call->bias.count > 0) {
        require_sizes(op, call->bias.items[0], 2, (const int64_t[]){groups, of.n});
    }
    require_sizes(op, call->row_scale.items[0], 1, &rows);
    require_sizes(op, call->list, 1, &groups);
    require_sizes(op, out, 2, (const int64_t[]){rows, of.n / 2});
    require_sizes(op, call->gated_scale, 1, &rows);
}

/* ---- combined ---- */

enum { MOST_TOKENS = 16 * 1024 * 8, MOST_EXPERTS = 256, COMBINED_DEPTH = 2048, COMBINED_COLUMNS = 7168 };

/* The sizes that weights of ACL_INT8 may have; those of 4 bits have one. */
static bool is_combined_depth(int64_t k, bool bytes)
{
    return k == COMBINED_DEPTH || (bytes && (k == 256 || k == 512 || k == 1024 || k == 1408));
}

static bool is_combined_width(int64_t n, bool bytes)
{
    return n == COMBINED_COLUMNS || (bytes && (n == 2048 || n == 7680));
}

static void require_combined_weight(OpCall *op, const CombinedCall *call, const Integers *weight)
{
    const bool bytes = weight->axis == NOT_PACKED;
    const int64_t rows = op_size(call->x, 0), k = op_size(call->x, 1), groups = op_size(call->weight, 0);
    op_require(op, rows >= 1 && rows <= MOST_TOKENS, call->x->name, "rows", op->invalid,
               "%s is %s: it has 1 to 131072 rows", call->x->name, op_shape_text(op, call->x));
    op_require(op, is_combined_depth(k, bytes), call->x->name, "depth", op->invalid, "%s is %s: it has 2048 columns%s",
               call->x->name, op_shape_text(op, call->x), bytes ? ", or 256, 512, 1024, 1408" : "");
    op_require_packed(op, call->weight, weight);
    op_require(op, bytes || weight->axis == 2, call->weight->name, "transposed", op->invalid,
               "%s is %s and transposed: its integers of 4 bits lie along n", call->weight->name,
               op_shape_text(op, call->weight));
    op_require(op, groups >= 1 && groups <= MOST_EXPERTS, call->weight->name, "groups", op->invalid,
               "%s is %s: there are 1 to 256 experts", call->weight->name, op_shape_text(op, call->weight));
    op_require(op, op_integer_size(weight, 2) == k && is_combined_width(op_integer_size(weight, 1), bytes),
               call->weight->name, "shape", op->invalid, "%s is %s: a weight has %lld rows and 7168 columns%s",
               call->weight->name, op_shape_text(op, call->weight), (long long)k, bytes ? ", or 2048, 7680" : "");
}

void op_require_combined(OpCall *op, const CombinedCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Integers weight = op_integers_of(call->weight);
    const int64_t rows = op_size(call->x, 0), groups = op_size(call->weight, 0), n = op_integer_size(&weight, 1);
    require_combined_weight(op, call, &weight);
    const bool matrix = weight.axis == NOT_PACKED && call->scale->view.rank == 2;
    require_sizes(op, call->scale, matrix ? 2 : 3, matrix ? (const int64_t[]){groups, n} : (const int64_t[]){groups, 1, n});
    if (op_given(call->bias)) {
        require_sizes(op, call->bias, 2, (const int64_t[]){groups, n});
    }
    if (op_given(call->offset)) {
        require_sizes(op, call->offset, 3, (const int64_t[]){groups, 1, n});
    }
    require_sizes(op, call->row_scale, 1, &rows);
    require_sizes(op, call->list, 1, &groups);
    if (op_given(call->weights)) {
        require_sizes(op, call->weights, 1, &rows);
    }
    require_sizes(op, call->places, 1, &rows);
    if (op_given(call->shared)) {
        require_sizes(op, call->shared, 2, (const int64_t[]){op_size(call->shared, 0), n});
    }
    require_sizes(op, call->out, 2, (const int64_t[]){op_size(call->out, 0), n});
}

void op_require_quant_group(OpCall *op, const GroupedCall *call, int64_t size)
{
    if (op_refused(op) || size == 0) {
        return;
    }
    const GroupedCase as = grouped_case(call);
    const int64_t k = grouped_sizes(call, 0).k;
    const int64_t parts = grouped_depth_parts(&as, call->antiquant_scale.count > 0 ? call->antiquant_scale : call->scale);
    op_require(op, parts > 0 && k / parts == size, "quantGroupSize", "value", op->invalid,
               "quantGroupSize is %lld; k is %lld, with scales for %lld parts", (long long)size, (long long)k,
               (long long)parts);
}

void op_require_tuning(OpCall *op, IntArguments tuning, Operands x)
{
    const int64_t first = tuning.given && tuning.count > 0 ? tuning.values[0] : 0;
    const int64_t rows = op_refused(op) ? 0 : grouped_rows(x);
    op_require(op, first >= 0 && first <= rows, tuning.name, "value", op->invalid,
               "%s begins with %lld, x has %lld rows", tuning.name, (long long)first, (long long)rows);
}
