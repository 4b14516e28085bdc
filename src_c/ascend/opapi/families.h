/* The ends of first functions by kernel family: from checked operands to the kernel's views and attributes. The files that
 * are made from pages include nothing else. */
#ifndef ASCEND_FAMILIES_H
#define ASCEND_FAMILIES_H

#include "ascend/common/op_call.h"
#include "ascend/common/promotion.h"
#include "kernels/map/map.h"

#include <string.h>

/* Types by the names that pages give them, for sets. */
#define T_F32 DTYPE_BIT(ACL_FLOAT)
#define T_F16 DTYPE_BIT(ACL_FLOAT16)
#define T_BF16 DTYPE_BIT(ACL_BF16)
#define T_F64 DTYPE_BIT(ACL_DOUBLE)
#define T_I8 DTYPE_BIT(ACL_INT8)
#define T_I16 DTYPE_BIT(ACL_INT16)
#define T_I32 DTYPE_BIT(ACL_INT32)
#define T_I64 DTYPE_BIT(ACL_INT64)
#define T_I4 DTYPE_BIT(ACL_INT4)
#define T_U8 DTYPE_BIT(ACL_UINT8)
#define T_U16 DTYPE_BIT(ACL_UINT16)
#define T_U32 DTYPE_BIT(ACL_UINT32)
#define T_U64 DTYPE_BIT(ACL_UINT64)
#define T_B DTYPE_BIT(ACL_BOOL)
#define T_C64 DTYPE_BIT(ACL_COMPLEX64)
#define T_C128 DTYPE_BIT(ACL_COMPLEX128)
/* In tables of what goes together: the operand is absent. */
#define T_NONE (UINT64_C(1) << 63)

static inline bool op_is_of(const Operand *operand, DTypeSet types)
{
    return op_given(operand) ? dtype_in(operand->dtype, types) : (types & T_NONE) != 0;
}

/* Numbers in an array, and how many; NO_NUMBERS for none. */
#define NUMBERS(...) sizeof((const Number[]){__VA_ARGS__}) / sizeof(Number), (const Number[]){__VA_ARGS__}
#define NO_NUMBERS 0, NULL

/* map.c: out = formula(inputs; numbers) element by element, computed in the type `compute`. A NULL among the inputs is a
 * scalar whose value follows the formula's own numbers; operands after the formula's inputs are tensors of one element
 * that give number 0, 1, …  */
aclnnStatus op_map(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs, Operands outputs,
                   int32_t number_count, const Number *numbers);

/* The same for lists of one length, computed in the type of the outputs, or in float where the formula has nothing for their
 * integers; an input may also be one tensor for all items, or NO_OPERANDS for a scalar. `device_numbers` are tensors of one
 * element that give number 0, 1, … for all items; `each` scalars, if not NULL, give the last number of item i. */
aclnnStatus op_map_lists(OpCall *op, const MapFormula *formula, int32_t input_count, const Operands *inputs,
                         int32_t output_count, const Operands *outputs, Operands device_numbers,
                         const ScalarArguments *each, int32_t number_count, const Number *numbers);
/* The type in which a product is formed: the common one, but F32 of an integer and an F16 where the result is F32. */
aclDataType op_product_dtype(aclDataType promoted, const Operand *a, const Operand *b, const Operand *out);

/* Whether a list's copy may be of this other type. */
bool op_copies_to(aclDataType from, aclDataType to);

/* Outputs of lists may have more elements than their partners among the inputs, or another shape: results are the first elements
 * in order, the others stay. list_outputs.c: the view of an output that a kernel writes; where strides leave no such view it is a
 * temporary, and steps begin. op_plan_lists plans the kernel and then the copies out of temporaries; outputs are those of the
 * list, in the order of the views that are written. */
PlannedView op_list_output(OpCall *op, const Operand *output, const Operand *partner);
aclnnStatus op_plan_lists(OpCall *op, Kernel *kernel, const void *attributes, size_t size, int32_t count,
                          const PlannedView *views, int32_t output_count, const Operands *outputs);
#define LISTS(...) sizeof((const Operands[]){__VA_ARGS__}) / sizeof(Operands), (const Operands[]){__VA_ARGS__}
#define NO_OPERANDS ((Operands){.name = ""})
#define NO_INTS ((IntArguments){.name = ""})

/* Shapes that pages write as name(…): shapes.c. A size that makes no sense gives a shape that no tensor has. */
Shape op_shape_concatenated(OpCall *op, Operands tensors, int32_t axis);
Shape op_shape_stacked(OpCall *op, Operands tensors, int32_t axis);
/* The operand as this view of it. */
const Operand *op_shown_as(OpCall *op, const Operand *operand, View view);
/* The view with two axes in each other's place. */
View op_swap_axes(View view, int32_t a, int32_t b);
/* An axis as two, the second of `inner` elements, which is above 0. */
View op_split_axis(View view, int32_t axis, int64_t inner);
Shape op_shape_permuted(OpCall *op, const Operand *operand, IntArguments dims);
Shape op_shape_sliced(OpCall *op, const Operand *operand, int32_t axis, int64_t start, int64_t end, int64_t step);
Shape op_shape_repeated(OpCall *op, const Operand *operand, IntArguments repeats);
Shape op_shape_interleaved(OpCall *op, const Operand *operand, int32_t axis, int64_t repeats);
Shape op_shape_padded(OpCall *op, const Operand *operand, IntArguments pad);
Shape op_shape_selected(OpCall *op, const Operand *operand, int32_t axis, const Operand *index);
Shape op_shape_halved(OpCall *op, const Operand *operand, int32_t axis);
/* Of matrices, vectors and batches, as torch.matmul; also refuses what does not fit (b/shape). */
Shape op_shape_product(OpCall *op, const Operand *a, const Operand *b);

/* Checks of lists: all of one shape, but for an axis (LIST/shape). */
void require_alike(OpCall *op, Operands list);
void require_alike_but(OpCall *op, Operands list, int32_t axis);
/* `to` are the pieces of `from` along the axis, `section` long each, or as `sizes` say (to/split). */
void require_pieces(OpCall *op, const Operand *from, int32_t axis, int64_t section, IntArguments sizes, Operands to);
bool op_is_flattened(const Operand *from, int64_t axis, const Operand *to);

/* move.c: copies between views. Results convert to the type of `to`. */
aclnnStatus op_copy(OpCall *op, const Operand *from, const Operand *to);
aclnnStatus op_permute(OpCall *op, const Operand *from, IntArguments dims, const Operand *to);
aclnnStatus op_flip(OpCall *op, const Operand *from, uint32_t axes, const Operand *to);
aclnnStatus op_slice(OpCall *op, const Operand *from, int32_t axis, int64_t start, int64_t step, const Operand *to);
aclnnStatus op_reshape(OpCall *op, const Operand *from, const Operand *to);
/* The vendor repeats up to 4 dimensions at once, and 3 behind one that is not repeated. */
bool op_repeats_fit(IntArguments repeats);
aclnnStatus op_repeat(OpCall *op, const Operand *from, IntArguments repeats, const Operand *to);
aclnnStatus op_repeat_interleave(OpCall *op, const Operand *from, int64_t repeats, int32_t axis, const Operand *to);
/* Elements in row-major order, to one axis. */
aclnnStatus op_repeat_elements(OpCall *op, const Operand *from, int64_t repeats, const Operand *to);
aclnnStatus op_concatenate(OpCall *op, Operands from, int32_t axis, aclDataType promoted, const Operand *to);
aclnnStatus op_stack(OpCall *op, Operands from, int32_t axis, aclDataType promoted, const Operand *to);
aclnnStatus op_split(OpCall *op, const Operand *from, int32_t axis, Operands to);
bool op_has_axes(const Operand *operand, IntArguments dims);
aclnnStatus op_roll(OpCall *op, const Operand *from, IntArguments shifts, IntArguments dims, const Operand *to);
aclnnStatus op_fill(OpCall *op, const Operand *to, Number value);
/* Those of real or complex types that are given: what is summed up over no elements at all. */
aclnnStatus op_fill_all(OpCall *op, Operands outputs, Number value);
aclnnStatus op_constant_pad(OpCall *op, const Operand *from, IntArguments pad, Number value, const Operand *to);
aclnnStatus op_triangle(OpCall *op, const Operand *from, int64_t diagonal, bool lower, const Operand *to);
/* to[i] = start + i * step, the element last_at (if not negative) `last`. */
aclnnStatus op_sequence(OpCall *op, const Operand *to, Number start, Number step, Number last, int64_t last_at,
                        aclDataType compute);
/* start, start + step …; as many as `to` has. */
aclnnStatus op_arange(OpCall *op, const ScalarArgument *start, const ScalarArgument *step, const Operand *to);
aclnnStatus op_linspace(OpCall *op, const ScalarArgument *start, const ScalarArgument *end, int64_t steps,
                        const Operand *to);
aclnnStatus op_eye(OpCall *op, const Operand *to);
/* Python's slices: the first place, and how many there are. */
int64_t op_slice_begin(int64_t size, int64_t start);
int64_t op_slice_size(int64_t size, int64_t start, int64_t end, int64_t step);

#define ONE ((Number){1, 0, 1})
#define ZERO ((Number){0, 0, 0})

#endif
