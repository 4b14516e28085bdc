#include "ascend/opapi/grouped_matmul_cases.h"

#include "kernels/sizes.h"

/* ---- types ---- */

typedef struct TypeRow {
    Scheme scheme;
    DTypeSet x, weight, bias, scale, row_scale, antiquant_scale, antiquant_offset, out, offset;
    bool gated;
} TypeRow;

/* As the tables of the pages of V4 and V5 have them, and, gated, that of GroupedMatmulSwigluQuant. */
static const TypeRow rows[] = {
    {PLAIN, T_F32, T_F32, T_NONE | T_F32, T_NONE, T_NONE, T_NONE, T_NONE, T_F32, T_NONE, false},
    {PLAIN, T_F16, T_F16, T_NONE | T_F16, T_NONE, T_NONE, T_NONE, T_NONE, T_F16, T_NONE, false},
    {PLAIN, T_BF16, T_BF16, T_NONE | T_F32, T_NONE, T_NONE, T_NONE, T_NONE, T_BF16, T_NONE, false},
    {INTEGERS, T_I8, T_I8, T_NONE | T_I32, T_U64 | T_I64, T_NONE, T_NONE, T_NONE, T_I8, T_NONE, false},
    {INTEGERS, T_I8, T_I8, T_NONE | T_I32, T_BF16, T_NONE | T_F32, T_NONE, T_NONE, T_BF16, T_NONE, false},
    {INTEGERS, T_I8, T_I8, T_NONE | T_I32, T_F32, T_NONE | T_F32, T_NONE, T_NONE, T_F16, T_NONE, false},
    {INTEGERS, T_I8, T_I8, T_NONE | T_I32, T_NONE, T_NONE, T_NONE, T_NONE, T_I32, T_NONE, false},
    {INTEGERS, T_I4 | T_I32, T_I4 | T_I32, T_NONE, T_U64 | T_I64, T_NONE | T_F32, T_NONE, T_NONE, T_F16 | T_BF16, T_NONE, false},
    {SHIFTED, T_I8, T_I4 | T_I32, T_F32, T_U64 | T_I64, T_F32, T_NONE, T_NONE, T_F16 | T_BF16, T_NONE, false},
    {SHIFTED, T_I8, T_I4 | T_I32, T_F32, T_U64 | T_I64, T_F32, T_NONE, T_NONE, T_F16, T_F32, false},
    {INTEGERS, T_I8, T_I8, T_NONE, T_F32 | T_F16 | T_BF16, T_F32, T_NONE, T_NONE, T_I8, T_NONE, true},
    {SHIFTED, T_I8, T_I4 | T_I32, T_F32, T_U64 | T_F32 | T_F16 | T_BF16, T_F32, T_NONE, T_NONE, T_I8, T_NONE, true},
    {WEIGHT, T_F16, T_I8 | T_I4 | T_I32, T_NONE | T_F16, T_NONE, T_NONE, T_F16, T_NONE | T_F16, T_F16, T_NONE, false},
    {WEIGHT, T_BF16, T_I8 | T_I4 | T_I32, T_NONE | T_F32, T_NONE, T_NONE, T_BF16, T_NONE | T_BF16, T_BF16, T_NONE, false},
};

static bool is_of(Operands list, DTypeSet types)
{
    return op_is_of(list.count > 0 ? list.items[0] : NULL, types);
}

/* The first version has neither float32 nor 4 bits, and no scales but those to ACL_INT8. */
static bool is_of_page(const GroupedCall *call, const TypeRow *row)
{
    const bool first = call->type == GROUP_BY_LISTS;
    const bool has_scales = row->scheme == INTEGERS && (row->out & (T_I8 | T_I32)) == 0;
    return row->gated == (call->gated_scale != NULL) &&
           (!first || ((row->x & (T_F32 | T_I4)) == 0 && op_list_dtype(call->weight) != ACL_INT4 && !has_scales));
}

Scheme grouped_scheme(const GroupedCall *call)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const TypeRow *row = &rows[i];
        if (is_of(call->x, row->x) && is_of(call->weight, row->weight) && is_of(call->bias, row->bias) &&
            is_of(call->scale, row->scale) && is_of(call->row_scale, row->row_scale) &&
            is_of(call->antiquant_scale, row->antiquant_scale) &&
            is_of(call->antiquant_offset, row->antiquant_offset) && is_of(call->out, row->out) &&
            is_of(call->offset, row->offset) && is_of_page(call, row)) {
            return row->scheme;
        }
    }
    return NO_SCHEME;
}

bool grouped_takes_activation(const GroupedCall *call)
{
    return call->activation != 3 && grouped_scheme(call) == INTEGERS && op_list_dtype(call->x) == ACL_INT8 &&
           dtype_in(op_list_dtype(call->out), T_F16 | T_BF16);
}

int64_t grouped_list_type(const GroupedCall *call)
{
    return grouped_scheme(call) == SHIFTED && call->offset.count == 0 && call->gated_scale == NULL ? 1 : call->list_type;
}

/* ---- how lists belong together ---- */

GroupType grouped_type(const GroupedCall *call)
{
    const bool one = call->x.count == 1 && (call->split >= 2 || call->weight.count > 1);
    return call->type != GROUP_BY_LISTS ? (GroupType)call->type
           : call->split < 2 && !one    ? GROUP_NONE
                                        : GROUP_M;
}

static bool has_list(const GroupedCall *call)
{
    return call->list != NULL ? op_given(call->list) : call->ends.given;
}

/* One for each item of axis 0, more than any page takes where there are too many to count. */
static int32_t items_of(const Operand *operand)
{
    return (int32_t)smaller(op_size(operand, 0), INT32_MAX);
}

GroupedCase grouped_case(const GroupedCall *call)
{
    const int32_t x = call->x.count, weight = call->weight.count, out = call->out.count;
    const bool has_array = call->list == NULL; /* the first two versions */
    const bool one_out = call->split >= 2, items = weight == 1 && call->weight.items[0]->view.rank == 3;
    GroupedCase as = {.groups = weight};
    switch (grouped_type(call)) {
    case GROUP_NONE:
        as.fits = !one_out && x == weight && out == weight;
        break;
    case GROUP_M:
        as.x = x == 1 && (weight > 1 || items || has_list(call)) ? GROUP_ROWS : GROUP_WHOLE;
        as.weight = items ? GROUP_ITEM : GROUP_WHOLE;
        as.out = one_out ? GROUP_ROWS : GROUP_WHOLE;
        as.groups = items ? items_of(call->weight.items[0]) : weight;
        as.fits = (x == 1 || x == weight) && (one_out ? out == 1 : has_array && x == 1 && weight > 1 && out == weight);
        break;
    default:
        as.x = GROUP_COLUMNS;
        as.weight = one_out ? GROUP_ROWS : GROUP_WHOLE;
        as.out = one_out ? GROUP_ITEM : GROUP_WHOLE;
        as.groups = one_out && out == 1 ? items_of(call->out.items[0]) : weight;
        as.fits = x == 1 && (one_out ? weight == 1 && out == 1 : !has_array && out == weight);
        break;
    }
    return as;
}

const Operand *grouped_tensor(Operands list, int32_t group)
{
    return list.items[list.count == 1 ? 0 : group];
}

/* ---- sizes ---- */

GroupSizes grouped_sizes(const GroupedCall *call, int32_t group)
{
    GroupSizes of = {.x = op_integers_of(grouped_tensor(call->x, group)),
                     .weight = op_integers_of(grouped_tensor(call->weight, group))};
    of.k = op_integer_size(&of.x, 1);
    of.depth = op_integer_size(&of.weight, 2);
    of.n = op_integer_size(&of.weight, 1);
    return of;
}

int64_t grouped_rows(Operands x)
{
    int64_t rows = 0;
    for (int32_t i = 0; i < x.count; i++) {
        rows = __builtin_add_overflow(rows, op_size(x.items[i], 0), &rows) ? INT64_MAX : rows;
    }
    return rows;
}

int64_t grouped_known_size(const GroupedCall *call, const GroupedCase *as, int32_t group)
{
    return as->x == GROUP_WHOLE                               ? op_size(call->x.items[group], 0)
           : as->x == GROUP_COLUMNS && as->weight == GROUP_WHOLE ? op_size(call->weight.items[group], 0)
           : as->x == GROUP_ROWS && as->out == GROUP_WHOLE       ? op_size(call->out.items[group], 0)
                                                                 : -1;
}

int64_t grouped_depth_parts(const GroupedCase *as, Operands list)
{
    const int32_t items = as->weight == GROUP_ITEM ? 1 : 0;
    const View *view = list.count > 0 ? &list.items[0]->view : NULL;
    return view != NULL && view->rank == items + 2 ? view->shape[items] : 0;
}
