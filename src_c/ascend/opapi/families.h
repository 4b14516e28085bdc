/* The ends of first functions by kernel family: from checked operands to the kernel's views and attributes. The files that
 * are made from pages include nothing else. */
#ifndef ASCEND_FAMILIES_H
#define ASCEND_FAMILIES_H

#include "ascend/common/op_call.h"
#include "ascend/common/promotion.h"
#include "kernels/map/formulas.h"

/* Types by the names that pages give them, for sets. */
#define T_F32 DTYPE_BIT(ACL_FLOAT)
#define T_F16 DTYPE_BIT(ACL_FLOAT16)
#define T_BF16 DTYPE_BIT(ACL_BF16)
#define T_F64 DTYPE_BIT(ACL_DOUBLE)
#define T_I8 DTYPE_BIT(ACL_INT8)
#define T_I16 DTYPE_BIT(ACL_INT16)
#define T_I32 DTYPE_BIT(ACL_INT32)
#define T_I64 DTYPE_BIT(ACL_INT64)
#define T_U8 DTYPE_BIT(ACL_UINT8)
#define T_U16 DTYPE_BIT(ACL_UINT16)
#define T_U32 DTYPE_BIT(ACL_UINT32)
#define T_U64 DTYPE_BIT(ACL_UINT64)
#define T_B DTYPE_BIT(ACL_BOOL)
#define T_C64 DTYPE_BIT(ACL_COMPLEX64)
#define T_C128 DTYPE_BIT(ACL_COMPLEX128)

/* Numbers in an array, and how many; NO_NUMBERS for none. */
#define NUMBERS(...) sizeof((const Number[]){__VA_ARGS__}) / sizeof(Number), (const Number[]){__VA_ARGS__}
#define NO_NUMBERS 0, NULL

/* map.c: out = formula(inputs; numbers) element by element, computed in the type `compute`. A NULL among the inputs is a
 * scalar whose value follows the formula's own numbers; operands after the formula's inputs are tensors of one element
 * that give number 0, 1, …  */
aclnnStatus op_map(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs, Operands outputs,
                   int32_t number_count, const Number *numbers);

/* The same for lists: `inputs` and `outputs` are lists of one length, one after the other; each tensor is computed in its
 * own type. `device_numbers` are tensors of one element that give number 0, 1, … for all items; `each` scalars, if given,
 * give the last number of item i. */
aclnnStatus op_map_lists(OpCall *op, const MapFormula *formula, int32_t input_count, const Operands *inputs,
                         int32_t output_count, const Operands *outputs, Operands device_numbers,
                         const ScalarArguments *each, int32_t number_count, const Number *numbers);
#define LISTS(...) sizeof((const Operands[]){__VA_ARGS__}) / sizeof(Operands), (const Operands[]){__VA_ARGS__}
#define NO_OPERANDS ((Operands){.name = ""})

#endif
