/* What products of quantized matrices refuse: types that do not go together, shapes, groups. */
#include "ascend/opapi/quant_matmul_parts.h"

enum { PADDED = 16 };

#define T_PACKED (T_I4 | T_I32)

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
    return quant_mode_of(call) != PLAIN    ? fits_rows(call, sizeof grouped_rows / sizeof *grouped_rows, grouped_rows)
           : call->blocked && !bytes ? fits_rows(call, sizeof blocked_rows / sizeof *blocked_rows, blocked_rows)
                                     : fits_rows(call, sizeof plain_rows / sizeof *plain_rows, plain_rows);
}

static void require_types(OpCall *op, const QuantMatmulCall *call)
{
    op_require(op, op_refused(op) || types_fit(call), call->out->name, "types", op->invalid,
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
    op_require(op, quant_joint_batch(of, &batch), call->x2->name, "batch", op->invalid,
               "x1 is %s, x2 is %s: their batches do not broadcast", op_shape_text(op, call->x1),
               op_shape_text(op, call->x2));
}

void require_quant_size(OpCall *op, const Operand *operand, bool fits, const Sizes *of)
{
    op_require(op, !op_given(operand) || fits, op_given(operand) ? operand->name : "", "shape", op->invalid,
               "%s is %s; the product has m %lld, n %lld, k %lld", operand->name, op_shape_text(op, operand),
               (long long)of->m, (long long)of->n, (long long)of->k);
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
    const Mode mode = quant_mode_of(call);
    const int64_t blocks = ceiling(of->n, BLOCK);
    if (op_refused(op)) {
        return;
    }
    if (op_given(call->row_scale)) {
        require_quant_size(op, call->row_scale,
                     mode == PLAIN ? has_shape(call->row_scale, 1, of->m, 0)
                                   : has_shape(call->row_scale, 2, of->m, mode == BLOCKS ? of->groups : 1), of);
    }
    require_quant_size(op, call->scale,
                 call->padded_scale ? is_padded_line(call->scale, of->n)
                 : mode == PLAIN    ? is_line(call->scale, of->n)
                 : mode == BLOCKS   ? has_shape(call->scale, 2, blocks, of->groups)
                                    : has_shape(call->scale, 2, of->groups, of->n), of);
    if (op_given(call->offset)) {
        require_quant_size(op, call->offset, mode == PLAIN ? is_line(call->offset, of->n)
                                                     : has_shape(call->offset, 2, of->groups, of->n), of);
    }
    if (op_given(call->shift)) {
        require_quant_size(op, call->shift, has_shape(call->shift, 1, of->n, 0), of);
    }
    require_quant_size(op, call->bias, !op_given(call->bias) || is_bias(call, of), of);
}

static bool is_part(int64_t size, int shift, int64_t expected)
{
    const int64_t part = size >> shift & 0xffff;
    return part == 0 || part == expected;
}

/* The modes with groups stand on the page of QuantMatmulV5 with the sizes that they are made for. */
static void require_groups(OpCall *op, const QuantMatmulCall *call, const Sizes *of)
{
    const Mode mode = quant_mode_of(call);
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
    const Sizes of = quant_sizes_of(call);
    op_require_packed(op, call->x1, &of.a);
    op_require_packed(op, call->x2, &of.b);
    op_require(op, of.a.axis == NOT_PACKED || !call->transpose1, "transposeX1", "packed", op->invalid,
               "transposeX1 is true, x1 is %s of %s", op_shape_text(op, call->x1), acl_dtype_name(call->x1->dtype));
    require_products(op, call, &of);
    require_groups(op, call, &of);
    require_scales(op, call, &of);
}
