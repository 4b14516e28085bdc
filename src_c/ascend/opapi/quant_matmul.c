/* Products of quantized matrices: from the pages' types, scales and packed integers to the kernels' views. */
#include "ascend/opapi/quant_matmul.h"

#include "ascend/opapi/matmul.h"
#include "ascend/opapi/packed_integers.h"
#include "kernels/map/formulas.h"
#include "kernels/matmul/activated.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quantize/product.h"
#include "kernels/quantize/sparse.h"
#include "kernels/quantize/sums.h"
#include "kernels/sizes.h"

enum { BLOCK = 128, DEPTH_GROUP = 256, TOKEN_LIMIT = 96, PADDED = 16 };

/* ---- operands ---- */

static View turned(View view)
{
    return op_swap_axes(view, view.rank - 2, view.rank - 1);
}

static void turn(Integers *integers)
{
    integers->view = turned(integers->view);
    if (integers->axis != NOT_PACKED) {
        integers->axis = 2 * integers->view.rank - 3 - integers->axis;
    }
}

static bool has_shape(const Operand *operand, int32_t rank, int64_t first, int64_t second)
{
    const View *view = &operand->view;
    return view->rank == rank && view->shape[0] == first && (rank == 1 || view->shape[1] == second);
}

/* A vector, of n or of one element, or a matrix of `rows` lines. */
static View as_lines(View view, int64_t rows, int64_t n)
{
    if (us_view_is_absent(&view)) {
        return view;
    }
    const bool vector = view.rank == 1;
    const int64_t across = vector ? view.strides[0] : view.strides[1], down = vector ? 0 : view.strides[0];
    const int64_t count = us_view_elements(&view);
    view.rank = 2;
    view.shape[0] = rows;
    view.shape[1] = n;
    view.strides[0] = rows == 1 ? 0 : down;
    view.strides[1] = count == 1 ? 0 : across;
    return view;
}

static View lines_of(const Operand *operand, int64_t rows, int64_t n)
{
    return as_lines(op_scale_view(operand), rows, n);
}

/* ---- products of integers ---- */

/* No groups; groups of the depth; blocks of the depth and of the columns. */
typedef enum Mode { PLAIN, DEPTH_GROUPS, BLOCKS } Mode;

static Mode mode_of(const QuantMatmulCall *call)
{
    const bool grouped = op_given(call->row_scale) && call->scale->view.rank >= 2;
    return !grouped ? PLAIN : call->x1->dtype == ACL_INT8 && call->x2->dtype == ACL_INT8 ? BLOCKS : DEPTH_GROUPS;
}

typedef struct Sizes {
    Integers a, b;
    int64_t m, n, k, depth_of_b;
    int64_t groups;
} Sizes;

static Sizes sizes_of(const QuantMatmulCall *call)
{
    Sizes of = {.a = op_integers_of(call->x1), .b = op_integers_of(call->x2)};
    if (call->transpose1) {
        turn(&of.a);
    }
    if (call->transpose2) {
        turn(&of.b);
    }
    of.m = op_integer_size(&of.a, 2);
    of.k = op_integer_size(&of.a, 1);
    of.depth_of_b = op_integer_size(&of.b, 2);
    of.n = op_integer_size(&of.b, 1);
    const Mode mode = mode_of(call);
    of.groups = mode == PLAIN ? 1 : ceiling(of.k, mode == BLOCKS ? BLOCK : DEPTH_GROUP);
    return of;
}

static bool joint_batch(const Sizes *of, Shape *batch)
{
    View a = of->a.view, b = of->b.view;
    a.rank -= 2;
    b.rank -= 2;
    return us_broadcast_shape((const View *const[]){&a, &b}, 2, &batch->rank, batch->sizes, NULL);
}

Shape op_shape_product_of_integers(OpCall *op, const Operand *x1, const Operand *x2, bool turned1, bool turned2)
{
    Shape shape = {0};
    if (!op_refused(op)) {
        const QuantMatmulCall call = {.x1 = x1, .x2 = x2, .transpose1 = turned1, .transpose2 = turned2, .scale = x1};
        const Sizes of = sizes_of(&call);
        joint_batch(&of, &shape);
        shape.sizes[shape.rank++] = of.m;
        shape.sizes[shape.rank++] = of.n;
    }
    return shape;
}

const Operand *op_second_factor(OpCall *op, const Operand *x1, bool turned1, const Operand *x2, bool turned2,
                                const Operand *out)
{
    if (op_refused(op)) {
        return x2;
    }
    const Integers a = op_integers_of(x1);
    const int64_t k = op_integer_size(&a, turned1 ? 2 : 1), n = op_size(out, -1);
    return op_weight_of(op, x2, 0, turned2 ? n : k, turned2 ? k : n);
}

const Operand *op_second_factor_of_either(OpCall *op, const Operand *x1, const Operand *x2, const Operand *out)
{
    const Operand *straight = op_second_factor(op, x1, false, x2, false, out);
    if (op_refused(op) || straight->blocks != NULL) {
        return straight;
    }
    const Operand *other = op_second_factor(op, x1, false, x2, true, out);
    return other->blocks != NULL ? op_turned(op, other, true) : straight;
}

const MapFormula *op_fused_formula(const char *name)
{
    return strcmp(name, "gelu_erf") == 0 ? &us_map_gelu : strcmp(name, "gelu_tanh") == 0 ? &us_map_gelu_tanh : NULL;
}

#define T_PACKED (T_I4 | T_I32)
#define T_BITS (T_U64 | T_I64)

typedef struct TypeRow {
    DTypeSet x1, x2, row_scale, scale, offset, shift, bias, out;
} TypeRow;

static const TypeRow plain_rows[] = {
    {T_I8, T_I8, T_NONE, T_BITS, T_NONE, T_NONE, T_NONE | T_I32, T_F16},
    {T_I8, T_I8, T_NONE, T_BITS, T_NONE | T_F32, T_NONE, T_NONE | T_I32, T_I8},
    {T_I8, T_I8, T_NONE | T_F32, T_F32 | T_BF16, T_NONE, T_NONE, T_NONE | T_I32 | T_BF16 | T_F32, T_BF16},
    {T_I8, T_I8, T_F32, T_F32, T_NONE, T_NONE, T_NONE | T_I32 | T_F16 | T_F32, T_F16},
    {T_I8, T_I8, T_NONE, T_F32 | T_BF16, T_NONE, T_NONE, T_NONE | T_I32, T_I32},
    {T_PACKED, T_PACKED, T_NONE, T_BITS, T_NONE, T_NONE, T_NONE | T_I32, T_F16},
    {T_PACKED, T_PACKED, T_F32, T_F32 | T_BF16, T_NONE, T_NONE, T_NONE | T_I32 | T_BF16 | T_F32, T_BF16},
    {T_PACKED, T_PACKED, T_F32, T_F32, T_NONE, T_NONE, T_NONE | T_I32 | T_F16 | T_F32, T_F16},
};

static const TypeRow grouped_rows[] = {
    {T_I8, T_I8, T_F32, T_F32, T_NONE, T_NONE, T_F32, T_BF16},
    {T_I8, T_I32, T_F32, T_BITS, T_NONE, T_F32, T_NONE, T_F16 | T_BF16},
    {T_I4, T_I4, T_F32, T_F32, T_F16, T_NONE, T_NONE, T_BF16},
};

/* Of the page whose weights lie in blocks. */
static const TypeRow blocked_rows[] = {
    {T_I4, T_I4, T_NONE, T_F32 | T_BF16, T_F32, T_NONE, T_NONE, T_BF16},
    {T_I4, T_I4, T_NONE | T_F32, T_F32 | T_BF16, T_NONE, T_NONE, T_NONE | T_BF16, T_BF16},
    {T_I4, T_I4, T_NONE, T_BITS | T_F32, T_F32, T_NONE, T_NONE | T_I32, T_F16},
    {T_I4, T_I4, T_NONE | T_F32, T_BITS | T_F32, T_NONE, T_NONE, T_NONE | T_I32, T_F16},
    {T_I8, T_I32, T_F32, T_BITS, T_NONE, T_F32, T_NONE, T_F16 | T_BF16},
};

static bool fits_row(const QuantMatmulCall *call, const TypeRow *row)
{
    return op_is_of(call->x1, row->x1) && op_is_of(call->x2, row->x2) && op_is_of(call->row_scale, row->row_scale) &&
           op_is_of(call->scale, row->scale) && op_is_of(call->offset, row->offset) && op_is_of(call->shift, row->shift) &&
           op_is_of(call->bias, row->bias) && op_is_of(call->out, row->out);
}

static const char *type_name(const Operand *operand)
{
    return op_given(operand) ? acl_dtype_name(operand->dtype) : "NULL";
}

static bool fits_rows(const QuantMatmulCall *call, size_t count, const TypeRow *rows)
{
    bool fits = false;
    for (size_t i = 0; i < count && !fits; i++) {
        fits = fits_row(call, &rows[i]);
    }
    return fits;
}

static bool types_fit(const QuantMatmulCall *call)
{
    const bool bytes = call->x1->dtype == ACL_INT8 && call->x2->dtype == ACL_INT8;
    return mode_of(call) != PLAIN    ? fits_rows(call, sizeof grouped_rows / sizeof *grouped_rows, grouped_rows)
           : call->blocked && !bytes ? fits_rows(call, sizeof blocked_rows / sizeof *blocked_rows, blocked_rows)
                                     : fits_rows(call, sizeof plain_rows / sizeof *plain_rows, plain_rows);
}

static void require_types(OpCall *op, const QuantMatmulCall *call)
{
    op_require(op, op_refused(op) || types_fit(call), "out", "types", op->invalid,
               "%s of %s is not made from x1 %s, x2 %s, scales %s and %s, offset %s, bias %s", call->out->name,
               type_name(call->out), type_name(call->x1), type_name(call->x2), type_name(call->row_scale),
               type_name(call->scale), type_name(call->offset), type_name(call->bias));
}

static void require_products(OpCall *op, const QuantMatmulCall *call, const Sizes *of)
{
    op_require(op, of->k == of->depth_of_b, call->x2->name, "shape", op->invalid,
               "x1 is %s, x2 is %s: they sum over %lld and %lld integers", op_shape_text(op, call->x1),
               op_shape_text(op, call->x2), (long long)of->k, (long long)of->depth_of_b);
    Shape batch;
    op_require(op, joint_batch(of, &batch), call->x2->name, "batch", op->invalid,
               "x1 is %s, x2 is %s: their batches do not broadcast", op_shape_text(op, call->x1),
               op_shape_text(op, call->x2));
}

static void require_size(OpCall *op, const Operand *operand, bool fits, const Sizes *of)
{
    op_require(op, !op_given(operand) || fits, op_given(operand) ? operand->name : "", "shape", op->invalid,
               "%s is %s; the product has m %lld, n %lld, k %lld", operand->name, op_shape_text(op, operand),
               (long long)of->m, (long long)of->n, (long long)of->k);
}

/* One number for all columns, or for each. */
static bool is_line(const Operand *operand, int64_t n)
{
    return has_shape(operand, 1, 1, 0) || has_shape(operand, 1, n, 0);
}

static bool is_padded_line(const Operand *operand, int64_t n)
{
    const int64_t size = op_size(operand, 0);
    return operand->view.rank == 1 && size % PADDED == 0 && size / PADDED == ceiling(n, PADDED);
}

static bool is_bias(const QuantMatmulCall *call, const Sizes *of)
{
    const View *bias = &call->bias->view, *out = &call->out->view;
    const bool of_batch = bias->rank == 3 && out->rank == 3 && of->a.axis == NOT_PACKED && of->groups == 1 &&
                          bias->shape[0] == out->shape[0] && bias->shape[1] == 1 && bias->shape[2] == of->n;
    return of_batch || has_shape(call->bias, 1, of->n, 0);
}

static void require_scales(OpCall *op, const QuantMatmulCall *call, const Sizes *of)
{
    const Mode mode = mode_of(call);
    const int64_t blocks = ceiling(of->n, BLOCK);
    if (op_refused(op)) {
        return;
    }
    if (op_given(call->row_scale)) {
        require_size(op, call->row_scale,
                     mode == PLAIN ? has_shape(call->row_scale, 1, of->m, 0)
                                   : has_shape(call->row_scale, 2, of->m, mode == BLOCKS ? of->groups : 1), of);
    }
    require_size(op, call->scale,
                 call->padded_scale ? is_padded_line(call->scale, of->n)
                 : mode == PLAIN    ? is_line(call->scale, of->n)
                 : mode == BLOCKS   ? has_shape(call->scale, 2, blocks, of->groups)
                                    : has_shape(call->scale, 2, of->groups, of->n), of);
    if (op_given(call->offset)) {
        require_size(op, call->offset, mode == PLAIN ? is_line(call->offset, of->n)
                                                     : has_shape(call->offset, 2, of->groups, of->n), of);
    }
    if (op_given(call->shift)) {
        require_size(op, call->shift, has_shape(call->shift, 1, of->n, 0), of);
    }
    require_size(op, call->bias, !op_given(call->bias) || is_bias(call, of), of);
}

static bool is_part(int64_t size, int shift, int64_t expected)
{
    const int64_t part = size >> shift & 0xffff;
    return part == 0 || part == expected;
}

/* The modes with groups stand on the page of QuantMatmulV5 with the sizes that they are made for. */
static void require_groups(OpCall *op, const QuantMatmulCall *call, const Sizes *of)
{
    const Mode mode = mode_of(call);
    const int64_t size = call->group_size, columns = mode == BLOCKS ? BLOCK : 1;
    const bool fits = mode == PLAIN ? (size & 0xffffffffffff) == 0 /* what is above does not count */
                                    : is_part(size, 32, 1) && is_part(size, 16, columns) &&
                                          is_part(size, 0, mode == BLOCKS ? BLOCK : DEPTH_GROUP);
    op_require(op, fits, "groupSize", "value", op->invalid,
               "groupSize is %lld, which is %lld rows, %lld columns and %lld of the depth", (long long)size,
               (long long)(size >> 32 & 0xffff), (long long)(size >> 16 & 0xffff), (long long)(size & 0xffff));
    const bool four = call->x1->dtype == ACL_INT4;
    const int64_t of_depth = mode == BLOCKS ? 512 : four ? 1024 : DEPTH_GROUP;
    const int64_t of_columns = four || mode == BLOCKS ? 256 : 1;
    const bool turns = mode == BLOCKS || four;
    op_require(op, mode == PLAIN || (of->k % of_depth == 0 && of->n % of_columns == 0 && !call->transpose1 &&
                                     call->transpose2 == turns && (turns || of->k < 29576)),
               "groupSize", "sizes", op->invalid,
               "n is %lld, k is %lld: with groups n is a multiple of %lld, k of %lld, x1 is not transposed, x2 is%s",
               (long long)of->n, (long long)of->k, (long long)of_columns, (long long)of_depth, turns ? "" : " not");
}

void op_require_quant_matmul(OpCall *op, const QuantMatmulCall *call)
{
    require_types(op, call);
    if (op_refused(op)) {
        return;
    }
    const Sizes of = sizes_of(call);
    op_require_packed(op, call->x1, &of.a);
    op_require_packed(op, call->x2, &of.b);
    op_require(op, of.a.axis == NOT_PACKED || !call->transpose1, "transposeX1", "packed", op->invalid,
               "transposeX1 is true, x1 is %s of %s", op_shape_text(op, call->x1), acl_dtype_name(call->x1->dtype));
    require_products(op, call, &of);
    require_groups(op, call, &of);
    require_scales(op, call, &of);
}

/* ---- plan ---- */

/* With the batch of the result in front; the packed axis moves along. */
static Integers of_batch(const Integers *integers, const View *out)
{
    const int32_t added = out->rank - integers->view.rank;
    return (Integers){op_with_batch(&integers->view, out->rank - 2, out->shape),
                      integers->axis == NOT_PACKED ? NOT_PACKED : integers->axis + added, true};
}

static View batched(View view, const View *out)
{
    return us_view_is_absent(&view) ? view : op_with_batch(&view, out->rank - 2, out->shape);
}

/* [1, n], or [batch, 1, n], for every row: with a stride of 0. */
static View bias_view(const QuantMatmulCall *call, int64_t n)
{
    if (!op_given(call->bias) || call->bias->view.rank != 3) {
        return lines_of(call->bias, 1, n);
    }
    View view = call->bias->view;
    view.strides[1] = 0;
    return view;
}

static aclnnStatus plan_integers(OpCall *op, const QuantMatmulCall *call, const View *a, const View *b, View bias)
{
    const View *out = &call->out->view;
    if (!us_view_is_absent(&bias)) {
        bias.shape[bias.rank - 2] = out->shape[out->rank - 2];
    }
    const ViewProduct product = {.compute = DTYPE_INT64, .alpha = {1}, .beta = {1}};
    const PlannedView views[] = {{call->x1, VIEW_READ, a},           {call->x2, VIEW_READ, b},
                                 {call->bias, VIEW_READ, &bias},     {call->out, VIEW_WRITE, NULL},
                                 {NULL, VIEW_READ, NULL},            {NULL, VIEW_READ, NULL}};
    return op_plan_views(op, us_product, &product, sizeof product, 6, views);
}

/* bias is of the batch, or absent. */
static aclnnStatus plan_numbers(OpCall *op, const QuantMatmulCall *call, const Sizes *of, const Integers *a,
                                const Integers *b, const View *bias)
{
    const View *out = &call->out->view, absent = us_view_absent();
    const Mode mode = mode_of(call);
    const bool adds_first = op_given(call->bias) && call->bias->dtype == ACL_INT32;
    const bool adds_last = op_given(call->bias) && !adds_first;
    const View row_scale = !op_given(call->row_scale) ? absent
                           : mode != PLAIN            ? call->row_scale->view
                                                      : turned(lines_of(call->row_scale, 1, of->m));
    const View scale = mode == BLOCKS ? turned(call->scale->view) : lines_of(call->scale, of->groups, of->n);
    const View offset = lines_of(call->offset, of->groups, of->n);
    const View of_rows = batched(row_scale, out), of_columns = batched(scale, out), shifts = batched(offset, out);
    const View shift = batched(lines_of(call->shift, 1, of->n), out);
    const QuantizedProduct how = {.group = mode == PLAIN ? INT64_MAX : mode == BLOCKS ? BLOCK : DEPTH_GROUP,
                                  .scale_columns = mode == BLOCKS ? BLOCK : 1, .packed_a = a->axis, .packed_b = b->axis};
    const PlannedView views[] = {
        {call->x1, VIEW_READ, &a->view},
        {call->x2, VIEW_READ, &b->view},
        {call->scale, VIEW_READ, &of_columns},
        {call->out, VIEW_WRITE, NULL},
        {call->bias, VIEW_READ, adds_first ? bias : &absent},
        {call->row_scale, VIEW_READ, &of_rows},
        {call->offset, VIEW_READ, mode == PLAIN ? &absent : &shifts},
        {call->shift, VIEW_READ, &shift},
        {adds_last ? call->bias : call->offset, VIEW_READ, adds_last ? bias : mode == PLAIN ? &shifts : &absent},
    };
    const size_t count = sizeof views / sizeof *views;
    if (call->activation != NULL) {
        const ActivatedProduct activated = {how, call->activation};
        return op_plan_views(op, us_activated_product, &activated, sizeof activated, count, views);
    }
    return op_plan_views(op, us_quantized_product, &how, sizeof how, count, views);
}

aclnnStatus op_quant_matmul(OpCall *op, const QuantMatmulCall *call)
{
    if (op_refused(op) || op_empty(call->out)) {
        return op_plan_nothing(op);
    }
    const Sizes of = sizes_of(call);
    const View *out = &call->out->view;
    const Integers a = of_batch(&of.a, out), b = of_batch(&of.b, out);
    const View bias = batched(bias_view(call, of.n), out);
    if (call->out->dtype == ACL_INT32) {
        return plan_integers(op, call, &a.view, &b.view, bias);
    }
    return plan_numbers(op, call, &of, &a, &b, &bias);
}

aclnnStatus op_scaled_matmul(OpCall *op, const Operand *x1, const Operand *x2, const Operand *bias, float scale,
                             const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View summand = batched(lines_of(bias, 1, op_size(out, -1)), &out->view);
    const ScaledProduct how = {scale};
    const PlannedView views[] = {{x1, VIEW_READ, NULL}, {x2, VIEW_READ, NULL}, {out, VIEW_WRITE, NULL},
                                 {bias, VIEW_READ, &summand}};
    return op_plan_views(op, us_scaled_product, &how, sizeof how, sizeof views / sizeof *views, views);
}

/* ---- sums of products ---- */

/* Whether an axis and the next one step like one. */
static bool merges(const View *view, int32_t axis)
{
    int64_t step;
    return view->shape[axis] == 1 ||
           (!__builtin_mul_overflow(view->shape[axis + 1], view->strides[axis + 1], &step) && view->strides[axis] == step);
}

static View merged(View view, int32_t axis)
{
    const int64_t size = view.shape[axis] * view.shape[axis + 1];
    view = us_view_remove_axis(view, axis);
    view.shape[axis] = size;
    return view;
}

/* Two axes as one: of a copy where they do not step so. */
static const Operand *with_merged(OpCall *op, const Operand *operand, const View *view, int32_t axis, View *shown)
{
    if (merges(view, axis)) {
        *shown = merged(*view, axis);
        return operand;
    }
    *shown = merged(us_view_contiguous(view->data, view->dtype, view->rank, view->shape), axis);
    return op_with_copy(op, operand, *view, *shown);
}

bool op_is_summed_factor(const Operand *x2)
{
    return x2->blocks == NULL || merges(&x2->view, 0);
}

aclnnStatus op_summed_quant_matmul(OpCall *op, const Operand *x1, const Operand *x2, const Operand *rows,
                                   const Operand *columns, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    View a, b;
    const QuantizedProduct how = {.group = op_size(x1, 2), .scale_columns = 1, .packed_a = NOT_PACKED,
                                  .packed_b = NOT_PACKED};
    const View of_rows = turned(rows->view), absent = us_view_absent();
    const View of_columns = us_view_insert_axis(columns->view, 0, op_size(x1, 0), 0);
    const View rows_first = op_swap_axes(x1->view, 0, 1);
    x1 = with_merged(op, x1, &rows_first, 1, &a);
    x2 = with_merged(op, x2, &x2->view, 0, &b);
    const PlannedView views[] = {{x1, VIEW_READ, &a}, {x2, VIEW_READ, &b}, {columns, VIEW_READ, &of_columns},
                                 {out, VIEW_WRITE, NULL}, {NULL, VIEW_READ, &absent}, {rows, VIEW_READ, &of_rows},
                                 {NULL, VIEW_READ, &absent}, {NULL, VIEW_READ, &absent}, {NULL, VIEW_READ, &absent}};
    return op_plan_views(op, us_quantized_product, &how, sizeof how, sizeof views / sizeof *views, views);
}

/* ---- sparse weights ---- */

const Operand *op_places(OpCall *op, const Operand *places, int64_t n, int64_t bytes)
{
    enum { BLOCK_ROWS = 16, BLOCK_BYTES = 8 };
    if (op_refused(op)) {
        return places;
    }
    const int64_t rows = ceiling(n, BLOCK_ROWS) * BLOCK_ROWS, parts = ceiling(bytes, BLOCK_BYTES);
    const int64_t blocks[] = {parts, rows / BLOCK_ROWS, BLOCK_ROWS, BLOCK_BYTES};
    const View *view = &places->view;
    const bool own = view->rank == 4 && memcmp(view->shape, blocks, sizeof blocks) == 0;
    const bool stored = places->storage->rank == 4 && memcmp(places->storage->sizes, blocks, sizeof blocks) == 0;
    const bool matrix = has_shape(places, 2, n, bytes);
    const bool in_blocks = us_view_is_contiguous(view) && places->offset == 0 && (own || (stored && matrix));
    op_require(op, in_blocks || matrix, places->name, "shape", op->invalid,
               "%s is %s: it is [%lld,%lld], or in blocks of them", places->name, op_shape_text(op, places),
               (long long)n, (long long)bytes);
    if (op_refused(op) || !in_blocks) {
        return places;
    }
    View lines = us_view_contiguous(view->data, view->dtype, 3, (const int64_t[]){n, parts, BLOCK_BYTES});
    lines.strides[0] = BLOCK_BYTES;
    lines.strides[1] = rows * BLOCK_BYTES;
    View shown = us_view_contiguous(view->data, view->dtype, 2, (const int64_t[]){n, parts * BLOCK_BYTES});
    shown.shape[1] = bytes;
    return op_with_copy(op, places, lines, shown);
}

aclnnStatus op_sparse_matmul(OpCall *op, const SparseCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const int64_t n = op_size(call->out, 1);
    const View column_scale = lines_of(call->column_scale, 1, n), bias = lines_of(call->bias, 1, n);
    const View row_scale = turned(lines_of(call->row_scale, 1, op_size(call->x, 0)));
    const PlannedView views[] = {{call->x, VIEW_READ, NULL}, {call->kept, VIEW_READ, NULL},
                                 {call->places, VIEW_READ, NULL}, {call->out, VIEW_WRITE, NULL},
                                 {call->column_scale, VIEW_READ, &column_scale},
                                 {call->row_scale, VIEW_READ, &row_scale}, {call->bias, VIEW_READ, &bias}};
    return op_plan_views(op, us_sparse_product, NULL, 0, sizeof views / sizeof *views, views);
}

/* ---- products with a quantized weight ---- */

static int64_t group_of(const WeightQuantCall *call, int64_t k)
{
    return call->group > 0 ? call->group : k;
}

static int64_t groups_of(const WeightQuantCall *call, int64_t k)
{
    return call->group > 0 ? ceiling(k, call->group) : 1;
}

/* Per tensor, per channel, or per group of the depth. */
static bool is_weight_scale(const WeightQuantCall *call, const Operand *scale, int64_t k, int64_t n)
{
    const bool alike = is_line(scale, n) || has_shape(scale, 2, 1, 1) || has_shape(scale, 2, 1, n);
    return call->group > 0 ? has_shape(scale, 2, groups_of(call, k), n) : alike;
}

static bool is_line_or_row(const Operand *operand, int64_t n)
{
    return is_line(operand, n) || has_shape(operand, 2, 1, n) || has_shape(operand, 2, 1, 1);
}

void op_require_weight_quant_shapes(OpCall *op, const WeightQuantCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Integers weight = op_integers_of(call->weight);
    const int64_t k = op_size(call->x, 1), m = op_size(call->x, 0), n = op_integer_size(&weight, 1);
    op_require_packed(op, call->weight, &weight);
    op_require(op, op_integer_size(&weight, 2) == k, "weight", "shape", op->invalid, "x is %s, weight is %s",
               op_shape_text(op, call->x), op_shape_text(op, call->weight));
    op_require(op, call->group == 0 || (call->group >= 32 && call->group < k && call->group % 32 == 0),
               "antiquantGroupSize", "value", op->invalid,
               "antiquantGroupSize is %lld; k is %lld: it is 0, or a multiple of 32 below k", (long long)call->group,
               (long long)k);
    const Sizes of = {.m = m, .n = n, .k = k};
    require_size(op, call->scale, op_refused(op) || is_weight_scale(call, call->scale, k, n), &of);
    op_require_same_shape(op, call->offset, call->scale);
    require_size(op, call->quant_scale, !op_given(call->quant_scale) || is_line_or_row(call->quant_scale, n), &of);
    op_require_same_shape(op, call->quant_offset, call->quant_scale);
    require_size(op, call->bias, !op_given(call->bias) || has_shape(call->bias, 1, n, 0) ||
                                     has_shape(call->bias, 2, 1, n), &of);
}

/* A scale of 64 bits has one case of its own. */
static void require_wide_scale(OpCall *op, const WeightQuantCall *call)
{
    const bool wide = dtype_in(call->scale->dtype, T_BITS);
    const int64_t m = op_size(call->x, 0), k = op_size(call->x, 1), n = op_size(call->weight, 1);
    const View *weight = &call->weight->view;
    const bool fits = call->x->dtype == ACL_FLOAT16 && !op_is_turned(&call->x->view) && call->weight->dtype == ACL_INT8 &&
                      weight->strides[0] == 1 && call->group == 0 && op_elements(call->scale) == n &&
                      !op_given(call->quant_scale) && m <= TOKEN_LIMIT && k % 64 == 0 && n % 64 == 0;
    op_require(op, !wide || fits, call->scale->name, "case", op->invalid,
               "%s is %s: x is ACL_FLOAT16 of at most %d rows, not transposed, weight a transposed ACL_INT8 whose sizes are "
               "multiples of 64, the scale is per channel and y is not quantized then",
               call->scale->name, acl_dtype_name(call->scale->dtype), TOKEN_LIMIT);
    op_require(op, !op_given(call->offset) || (call->offset->dtype == ACL_INT32) == wide, call->offset->name, "types",
               op->invalid, "%s is %s, %s is %s", call->offset->name, type_name(call->offset), call->scale->name,
               type_name(call->scale));
}

void op_require_weight_quant_types(OpCall *op, const WeightQuantCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const aclDataType x = call->x->dtype;
    op_require(op, dtype_in(call->scale->dtype, T_BITS) || call->scale->dtype == x, call->scale->name, "types",
               op->invalid, "%s is %s, x is %s", call->scale->name, type_name(call->scale), acl_dtype_name(x));
    require_wide_scale(op, call);
    op_require(op, !op_given(call->offset) || call->offset->dtype == ACL_INT32 || call->offset->dtype == x,
               call->offset->name, "same-dtype", op->invalid, "%s is %s, x is %s", call->offset->name,
               type_name(call->offset), acl_dtype_name(x));
    op_require(op, !op_given(call->bias) || call->bias->dtype == (x == ACL_BF16 ? ACL_FLOAT : ACL_FLOAT16),
               call->bias->name, "types", op->invalid, "%s is %s with x of %s", call->bias->name,
               type_name(call->bias), acl_dtype_name(x));
    op_require(op, call->y->dtype == (op_given(call->quant_scale) ? ACL_INT8 : x), call->y->name, "types", op->invalid,
               "%s is %s; x is %s and quantScaleOptional is %s", call->y->name, type_name(call->y), acl_dtype_name(x),
               type_name(call->quant_scale));
}

/* Where no offset is given, that in the 64 bits of the scale. */
static View quant_offset_of(const WeightQuantCall *call, int64_t n)
{
    if (op_given(call->quant_offset) || !op_given(call->quant_scale)) {
        return lines_of(call->quant_offset, 1, n);
    }
    View parameters = call->quant_scale->view;
    parameters.dtype = DTYPE_UINT64;
    return as_lines(parameters, 1, n);
}

/* A transposed weight and its scales: programs cut them out of those of many experts by an offset alone. */
static void unbind_transposed(const Operand *operand)
{
    if (op_given(operand) && operand->view.rank == 2 && operand->view.strides[0] == 1) {
        op_unbind(operand);
    }
}

aclnnStatus op_weight_quant_matmul(OpCall *op, const WeightQuantCall *call)
{
    if (op_refused(op) || op_empty(call->y)) {
        return op_plan_nothing(op);
    }
    unbind_transposed(call->weight);
    unbind_transposed(call->scale);
    unbind_transposed(call->offset);
    const Integers weight = op_integers_of(call->weight);
    const int64_t k = op_size(call->x, 1), n = op_size(call->y, 1);
    const int64_t group = group_of(call, k), groups = groups_of(call, k);
    const View scale = lines_of(call->scale, groups, n), offset = lines_of(call->offset, groups, n);
    const View bias = lines_of(call->bias, 1, n), quant_scale = lines_of(call->quant_scale, 1, n);
    const View quant_offset = quant_offset_of(call, n);
    const Operand *shift = op_given(call->quant_offset) ? call->quant_offset : call->quant_scale;
    const WeightProduct how = {group, weight.axis};
    const PlannedView views[] = {
        {call->x, VIEW_READ, NULL},          {call->weight, VIEW_READ, &weight.view},
        {call->scale, VIEW_READ, &scale},    {call->y, VIEW_WRITE, NULL},
        {call->offset, VIEW_READ, &offset},  {call->bias, VIEW_READ, &bias},
        {call->quant_scale, VIEW_READ, &quant_scale}, {shift, VIEW_READ, &quant_offset},
    };
    return op_plan_views(op, us_quantized_weight_product, &how, sizeof how, sizeof views / sizeof *views, views);
}
