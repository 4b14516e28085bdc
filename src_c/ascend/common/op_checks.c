/* The checks of operator calls: each a rule of the same name. An operand that was not given passes them all. */
#include "ascend/common/op_call.h"

#include "ascend/common/promotion.h"
#include "tensor/convert.h"

#include <stdio.h>
#include <string.h>

enum { BOUNDS_TEXT_SIZE = 48 };

/* "2", "1 or more", "1 to 3" */
static const char *bounds_text(int64_t lowest, int64_t highest, char *text)
{
    if (lowest == highest) {
        snprintf(text, BOUNDS_TEXT_SIZE, "%lld", (long long)lowest);
    } else if (highest == INT64_MAX) {
        snprintf(text, BOUNDS_TEXT_SIZE, "%lld or more", (long long)lowest);
    } else {
        snprintf(text, BOUNDS_TEXT_SIZE, "%lld to %lld", (long long)lowest, (long long)highest);
    }
    return text;
}

DTypeSet op_float_dtypes(const OpCall *op)
{
    DTypeSet floats = DTYPE_BIT(ACL_FLOAT) | DTYPE_BIT(ACL_FLOAT16);
    return op->product->product == PRODUCT_910A ? floats : floats | DTYPE_BIT(ACL_BF16);
}

void op_require_dtype(OpCall *op, const Operand *operand, DTypeSet allowed)
{
    char text[DTYPE_SET_TEXT_SIZE];
    op_require(op, !op_given(operand) || dtype_in(operand->dtype, allowed), operand->name, "dtype", op->invalid,
               "%s has type %s (%d); on %s it may be %s", operand->name, acl_dtype_name(operand->dtype),
               (int)operand->dtype, op->product->series, dtype_set_text(allowed, text));
}

void op_require_same_dtype(OpCall *op, const Operand *operand, const Operand *model)
{
    op_require(op, !op_given(operand) || !op_given(model) || operand->dtype == model->dtype, operand->name, "same-dtype",
               op->invalid,
               "%s has type %s, %s has %s", operand->name, acl_dtype_name(operand->dtype), model->name,
               acl_dtype_name(model->dtype));
}

void op_require_rank(OpCall *op, const Operand *operand, int32_t lowest, int32_t highest)
{
    char text[SHAPE_TEXT_SIZE], bounds[BOUNDS_TEXT_SIZE];
    const View *view = &operand->view;
    op_require(op, !op_given(operand) || (view->rank >= lowest && view->rank <= highest), operand->name, "rank", op->invalid,
               "%s is %s, %d dimensions; it needs %s", operand->name,
               us_shape_text(view->rank, view->shape, text, sizeof text), (int)view->rank,
               bounds_text(lowest, highest, bounds));
}

int64_t op_elements(const Operand *operand)
{
    return us_view_elements(&operand->view);
}

int64_t op_storage_elements(const Operand *operand)
{
    return us_shape_elements(operand->storage->rank, operand->storage->sizes);
}

/* Not of a shape with negative sizes, which stand for none: a tensor can be made with the same. */
static bool same_sizes(const View *view, const Shape *shape)
{
    bool same = view->rank == shape->rank;
    for (int32_t d = 0; d < shape->rank; d++) {
        same = same && shape->sizes[d] >= 0 && view->shape[d] == shape->sizes[d];
    }
    return same;
}

void op_require_shape(OpCall *op, const Operand *operand, const Shape *expected)
{
    char actual_text[SHAPE_TEXT_SIZE];
    char expected_text[SHAPE_TEXT_SIZE];
    const View *view = &operand->view;
    op_require(op, !op_given(operand) || same_sizes(view, expected), operand->name, "shape", op->invalid, "%s is %s, expected %s",
               operand->name, us_shape_text(view->rank, view->shape, actual_text, sizeof actual_text),
               us_shape_text(expected->rank, expected->sizes, expected_text, sizeof expected_text));
}

void op_require_public_format(OpCall *op, const Operand *operand)
{
    op_require(op, !acl_format_is_private(operand->format), operand->name, "format", op->invalid,
               "%s has private format %d", operand->name, (int)operand->format);
}

void op_require_nd(OpCall *op, const Operand *operand)
{
    op_require(op, operand->format == ACL_FORMAT_ND, operand->name, "format", op->invalid,
               "%s has format %d; only ACL_FORMAT_ND (%d) is allowed", operand->name, (int)operand->format,
               (int)ACL_FORMAT_ND);
}

void op_require_broadcast(OpCall *op, const Operand *operand, Shape *shape)
{
    if (op_refused(op)) {
        return;
    }
    View sizes = {.rank = shape->rank};
    memcpy(sizes.shape, shape->sizes, (size_t)shape->rank * sizeof *shape->sizes);
    const View *views[] = {&sizes, &operand->view};
    Shape joint = {0};
    bool fits = us_broadcast_shape(views, 2, &joint.rank, joint.sizes, NULL) &&
                us_shape_elements(joint.rank, joint.sizes) >= 0;
    char operand_text[SHAPE_TEXT_SIZE];
    char shape_text[SHAPE_TEXT_SIZE];
    op_require(op, fits, operand->name, "broadcast", op->invalid,
               "%s is %s, which does not broadcast with %s of the parameters before it", operand->name,
               us_shape_text(operand->view.rank, operand->view.shape, operand_text, sizeof operand_text),
               us_shape_text(shape->rank, shape->sizes, shape_text, sizeof shape_text));
    if (fits) {
        *shape = joint;
    }
}

void op_require_expands(OpCall *op, const Operand *operand, Shape shape)
{
    if (op_refused(op) || !op_given(operand)) {
        return;
    }
    View model = {.rank = shape.rank};
    memcpy(model.shape, shape.sizes, (size_t)shape.rank * sizeof *shape.sizes);
    const View *const pointers[] = {&model, &operand->view};
    Shape joint = {0};
    char text[SHAPE_TEXT_SIZE];
    const bool fits = us_broadcast_shape(pointers, 2, &joint.rank, joint.sizes, NULL) && joint.rank == shape.rank &&
                      memcmp(joint.sizes, shape.sizes, (size_t)shape.rank * sizeof *joint.sizes) == 0;
    op_require(op, fits, operand->name, "broadcast", op->invalid, "%s is %s, which does not broadcast to %s",
               operand->name, op_shape_text(op, operand), us_shape_text(shape.rank, shape.sizes, text, sizeof text));
}

Shape op_shape(const Operand *operand)
{
    Shape shape = {.rank = operand->view.rank};
    memcpy(shape.sizes, operand->view.shape, (size_t)shape.rank * sizeof *shape.sizes);
    return shape;
}

/* ---- types ---- */

DTypeSet op_dtypes(const OpCall *op, const DTypeSet *of_products)
{
    switch (op->product->product) {
    case PRODUCT_910A:
        return of_products[0];
    case PRODUCT_A3:
        return of_products[2];
    default:
        return of_products[1];
    }
}

void op_require_dtypes(OpCall *op, Operands operands, DTypeSet allowed)
{
    if (operands.alike.known && dtype_in(operands.items[0]->dtype, allowed)) {
        return;
    }
    for (int32_t i = 0; i < operands.count; i++) {
        op_require_dtype(op, operands.items[i], allowed);
    }
}

void op_require_type(OpCall *op, const char *name, aclDataType common, DTypeSet allowed)
{
    char text[DTYPE_SET_TEXT_SIZE];
    op_require(op, dtype_in(common, allowed), name, "common-dtype", op->invalid,
               "%s and the other parameters have the common type %s; it may be %s", name, acl_dtype_name(common),
               dtype_set_text(allowed, text));
}

void op_require_dtype_attribute(OpCall *op, const char *name, aclDataType dtype, DTypeSet allowed)
{
    char text[DTYPE_SET_TEXT_SIZE];
    op_require(op, dtype_in(dtype, allowed), name, "dtype", op->invalid, "%s is %s (%d); on %s it may be %s", name,
               acl_dtype_name(dtype), (int)dtype, op->product->series, dtype_set_text(allowed, text));
}

void op_require_given_dtype(OpCall *op, const Operand *operand, const char *name, aclDataType dtype)
{
    op_require(op, operand->dtype == dtype, operand->name, "same-dtype", op->invalid, "%s has type %s, %s is %s",
               operand->name, acl_dtype_name(operand->dtype), name, acl_dtype_name(dtype));
}

void op_require_scalar_dtype(OpCall *op, const ScalarArgument *scalar, DTypeSet allowed)
{
    char text[DTYPE_SET_TEXT_SIZE];
    op_require(op, !scalar->given || dtype_in(scalar->dtype, allowed), scalar->name, "dtype", op->invalid,
               "%s has type %s (%d); on %s it may be %s", scalar->name, acl_dtype_name(scalar->dtype),
               (int)scalar->dtype, op->product->series, dtype_set_text(allowed, text));
}

aclDataType op_promote(OpCall *op, Operands operands)
{
    aclDataType joint = ACL_DT_UNDEFINED;
    for (int32_t i = 0; i < operands.count && !op_refused(op); i++) {
        const Operand *operand = operands.items[i];
        if (!op_given(operand)) {
            continue;
        }
        aclDataType next = joint == ACL_DT_UNDEFINED ? operand->dtype : acl_promote(joint, operand->dtype);
        op_require(op, next != ACL_DT_UNDEFINED, operand->name, "promote", op->invalid,
                   "%s has type %s, which has no common type with %s of the parameters before it", operand->name,
                   acl_dtype_name(operand->dtype), acl_dtype_name(joint));
        joint = next;
    }
    return joint;
}

aclDataType op_promote_scalar(OpCall *op, aclDataType tensor, const ScalarArgument *scalar)
{
    aclDataType joint = scalar->given && !op_refused(op) ? acl_promote_scalar(tensor, scalar->dtype) : tensor;
    op_require(op, joint != ACL_DT_UNDEFINED, scalar->name, "promote", op->invalid,
               "%s has type %s, which has no common type with %s of the tensor", scalar->name,
               acl_dtype_name(scalar->dtype), acl_dtype_name(tensor));
    return joint;
}

bool op_is_integer(aclDataType dtype)
{
    const DType type = dtype_of_acl(dtype);
    return type >= DTYPE_INT8 && type <= DTYPE_BOOL;
}

aclDataType op_floating(aclDataType dtype)
{
    return op_is_integer(dtype) ? ACL_FLOAT : dtype;
}

aclDataType op_list_dtype(Operands list)
{
    return list.count > 0 ? list.items[0]->dtype : ACL_FLOAT;
}

int32_t op_list_rank(Operands list)
{
    return list.count > 0 ? list.items[0]->view.rank : 0;
}

void op_require_cast(OpCall *op, aclDataType from, const Operand *to)
{
    const bool emulated = dtype_of_acl(from) != DTYPE_NONE && dtype_of_acl(to->dtype) != DTYPE_NONE;
    op_require(op, !op_given(to) || (emulated && acl_can_cast(from, to->dtype)), to->name, "cast", op->invalid,
               "%s has type %s; a result of type %s cannot be converted to it", to->name, acl_dtype_name(to->dtype),
               acl_dtype_name(from));
}

void op_require_scalar_cast(OpCall *op, const ScalarArgument *scalar, aclDataType to)
{
    const bool whole_to_bool = to == ACL_BOOL && op_is_integer(scalar->dtype); /* legal calls: Add, Sub */
    op_require(op, !scalar->given || whole_to_bool || acl_can_cast(scalar->dtype, to), scalar->name, "cast", op->invalid,
               "%s has type %s, which cannot be converted to %s", scalar->name, acl_dtype_name(scalar->dtype),
               acl_dtype_name(to));
}

static void round_to(double *value, DType dtype)
{
    _Alignas(16) unsigned char stored[16];
    us_store_double(stored, dtype, 1, value, 1);
    us_load_double(value, stored, dtype, 1, 1);
}

static bool is_complex(aclDataType dtype)
{
    return dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128 || dtype == ACL_COMPLEX32;
}

Number op_real(double value, aclDataType dtype)
{
    ScalarArgument scalar = {.dtype = ACL_DOUBLE, .given = true};
    scalar.value = (Number){value, 0, value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : 0};
    return op_number(&scalar, dtype);
}

/* Integers wrap to the type; a complex scalar becomes 0 in a real type (aclnn-base 5, aclCreateScalar). */
Number op_number(const ScalarArgument *scalar, aclDataType dtype)
{
    const DType type = dtype_of_acl(dtype);
    Number number = scalar->value;
    if (is_complex(dtype)) {
        if (dtype == ACL_COMPLEX64) {
            round_to(&number.real, DTYPE_FLOAT32);
            round_to(&number.imaginary, DTYPE_FLOAT32);
        }
        return number;
    }
    if (is_complex(scalar->dtype)) {
        return (Number){0, 0, 0};
    }
    if (us_dtype_is_float(type)) {
        round_to(&number.real, type);
        return number;
    }
    switch (type) {
    case DTYPE_BOOL:
        number.integer = number.integer != 0 || number.real != 0;
        break;
    case DTYPE_INT8:
        number.integer = (int8_t)number.integer;
        break;
    case DTYPE_UINT8:
        number.integer = (uint8_t)number.integer;
        break;
    case DTYPE_INT16:
        number.integer = (int16_t)number.integer;
        break;
    case DTYPE_UINT16:
        number.integer = (uint16_t)number.integer;
        break;
    case DTYPE_INT32:
        number.integer = (int32_t)number.integer;
        break;
    case DTYPE_UINT32:
        number.integer = (uint32_t)number.integer;
        break;
    default:
        break;
    }
    number.real = (double)number.integer;
    return number;
}

/* ---- shapes ---- */

void op_require_same_shape(OpCall *op, const Operand *operand, const Operand *model)
{
    char operand_text[SHAPE_TEXT_SIZE];
    char model_text[SHAPE_TEXT_SIZE];
    op_require(op, !op_given(operand) || !op_given(model) || us_view_same_shape(&operand->view, &model->view),
               operand->name, "same-shape", op->invalid, "%s is %s, %s is %s", operand->name,
               us_shape_text(operand->view.rank, operand->view.shape, operand_text, sizeof operand_text), model->name,
               us_shape_text(model->view.rank, model->view.shape, model_text, sizeof model_text));
}

void op_require_elements(OpCall *op, const Operand *operand, int64_t count)
{
    op_require(op, !op_given(operand) || op_elements(operand) == count, operand->name, "elements", op->invalid,
               "%s has %lld elements; it needs %lld", operand->name, (long long)op_elements(operand), (long long)count);
}

Shape op_broadcast(OpCall *op, Operands operands)
{
    Shape joint = {0};
    for (int32_t i = 0; i < operands.count; i++) {
        if (op_given(operands.items[i])) {
            op_require_broadcast(op, operands.items[i], &joint);
        }
    }
    return joint;
}

Shape op_shape_of(int32_t rank, const int64_t *sizes)
{
    Shape shape = {.rank = rank};
    memcpy(shape.sizes, sizes, (size_t)rank * sizeof *sizes);
    return shape;
}

Shape op_shape_or_one(const Operand *operand, Shape expected)
{
    const bool is_one = operand->view.rank == 1 && operand->view.shape[0] == 1;
    return expected.rank == 0 && is_one ? op_shape_of(1, operand->view.shape) : expected;
}

Shape op_reduced_shape(const Operand *operand, uint32_t axes, bool keep_dims)
{
    Shape shape = {0};
    for (int32_t axis = 0; axis < operand->view.rank; axis++) {
        const bool reduced = (axes >> axis & 1) != 0;
        if (!reduced || keep_dims) {
            shape.sizes[shape.rank++] = reduced ? 1 : operand->view.shape[axis];
        }
    }
    return shape;
}

int64_t op_size(const Operand *operand, int64_t axis)
{
    const int32_t rank = operand->view.rank;
    const int64_t at = axis < 0 ? axis + rank : axis;
    return at >= 0 && at < rank ? operand->view.shape[at] : -1;
}

int64_t op_times(int64_t a, int64_t b)
{
    int64_t product = 0;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

const char *op_shape_text(OpCall *op, const Operand *operand)
{
    char *text = op->executor != NULL ? executor_take(op->executor, SHAPE_TEXT_SIZE) : NULL;
    return text != NULL ? us_shape_text(operand->view.rank, operand->view.shape, text, SHAPE_TEXT_SIZE) : "?";
}

/* ---- lists ---- */

static bool of_one_type(Operands list, Operands model)
{
    return list.alike.known && model.alike.known && list.items[0]->dtype == model.items[0]->dtype;
}

void op_require_ranks(OpCall *op, Operands operands, int32_t lowest, int32_t highest)
{
    if (operands.alike.known && operands.alike.lowest_rank >= lowest && operands.alike.highest_rank <= highest) {
        return;
    }
    for (int32_t i = 0; i < operands.count; i++) {
        op_require_rank(op, operands.items[i], lowest, highest);
    }
}

void op_require_list_length(OpCall *op, const char *name, int32_t count, Operands model)
{
    op_require(op, count == model.count, name, "length", op->invalid, "%s has %d entries, %s has %d", name, (int)count,
               model.name, (int)model.count);
}

void op_require_items(OpCall *op, Operands list)
{
    if (list.alike.known) {
        return;
    }
    for (int32_t i = 0; i < list.count; i++) {
        op_require(op, op_given(list.items[i]), list.name, "item", op->invalid, "tensor %d of %s is NULL", (int)i,
                   list.name);
    }
}

void op_require_uniform(OpCall *op, Operands list, Operands model)
{
    if (of_one_type(list, model)) {
        return;
    }
    for (int32_t i = 0; i < list.count && model.count > 0; i++) {
        const Operand *operand = list.items[i];
        op_require(op, operand->dtype == model.items[0]->dtype, list.name, "uniform", op->invalid,
                   "tensor %d of %s has type %s, the first of %s has %s", (int)i, list.name,
                   acl_dtype_name(operand->dtype), model.name, acl_dtype_name(model.items[0]->dtype));
    }
}

void op_require_same_shapes(OpCall *op, Operands list, Operands model)
{
    for (int32_t i = 0; i < list.count && i < model.count; i++) {
        op_require_same_shape(op, list.items[i], model.items[i]);
    }
}

void op_require_room(OpCall *op, Operands list, Operands model)
{
    char list_text[SHAPE_TEXT_SIZE], model_text[SHAPE_TEXT_SIZE];
    for (int32_t i = 0; i < list.count && i < model.count; i++) {
        const Operand *operand = list.items[i], *partner = model.items[i];
        op_require(op, !op_given(operand) || !op_given(partner) || us_view_same_shape(&operand->view, &partner->view) ||
                           op_elements(operand) >= op_elements(partner),
                   operand->name, "same-shape", op->invalid, "%s is %s and has fewer elements than %s, which is %s",
                   operand->name, us_shape_text(operand->view.rank, operand->view.shape, list_text, sizeof list_text),
                   partner->name, us_shape_text(partner->view.rank, partner->view.shape, model_text, sizeof model_text));
    }
}

void op_require_same_dtypes(OpCall *op, Operands list, Operands model)
{
    if (of_one_type(list, model)) {
        return;
    }
    for (int32_t i = 0; i < list.count && i < model.count; i++) {
        op_require_same_dtype(op, list.items[i], model.items[i]);
    }
}

/* ---- values ---- */

int32_t op_require_dim(OpCall *op, const char *name, int64_t dim, int32_t rank)
{
    const int32_t limit = rank > 0 ? rank : 1;
    op_require(op, dim >= -limit && dim < limit, name, "range", op->invalid,
               "%s is %lld; with %d dimensions it may be %d to %d", name, (long long)dim, (int)rank, (int)-limit,
               (int)limit - 1);
    return op_refused(op) ? 0 : (int32_t)(dim < 0 ? dim + limit : dim);
}

uint32_t op_require_dims(OpCall *op, IntArguments dims, int32_t rank)
{
    const int32_t count = rank > 0 ? rank : 1;
    uint32_t axes = 0;
    for (int64_t i = 0; i < dims.count && !op_refused(op); i++) {
        const uint32_t bit = UINT32_C(1) << op_require_dim(op, dims.name, dims.values[i], rank);
        op_require(op, (axes & bit) == 0, dims.name, "unique", op->invalid, "%s names dimension %lld twice", dims.name,
                   (long long)dims.values[i]);
        axes |= bit;
    }
    const uint32_t all = (UINT32_C(1) << count) - 1;
    return axes == 0 ? all : axes;
}

void op_require_range(OpCall *op, const char *name, int64_t value, int64_t lowest, int64_t highest)
{
    char bounds[BOUNDS_TEXT_SIZE];
    op_require(op, value >= lowest && value <= highest, name, "range", op->invalid, "%s is %lld; it must be %s", name,
               (long long)value, bounds_text(lowest, highest, bounds));
}

void op_require_length(OpCall *op, const char *name, int64_t count, int64_t lowest, int64_t highest)
{
    char bounds[BOUNDS_TEXT_SIZE];
    op_require(op, count >= lowest && count <= highest, name, "length", op->invalid, "%s has %lld entries; it needs %s",
               name, (long long)count, bounds_text(lowest, highest, bounds));
}

void op_require_each(OpCall *op, IntArguments values, int64_t lowest, int64_t highest)
{
    for (int64_t i = 0; i < values.count; i++) {
        op_require_range(op, values.name, values.values[i], lowest, highest);
    }
}
