/* Diagonals, and slices along several axes. */
#ifndef ASCEND_OPAPI_DIAGONAL_H
#define ASCEND_OPAPI_DIAGONAL_H

#include "ascend/opapi/families.h"
#include "ascend/opapi/shapes.h"

/* Of a matrix its diagonal; of anything else the matrix that has it on the diagonal, and 0 elsewhere. */
Shape op_shape_diagonal(OpCall *op, const Operand *self, int64_t diagonal);
aclnnStatus op_diagonal(OpCall *op, const Operand *self, int64_t diagonal, const Operand *out);
/* The matrix, of a self of any rank. */
Shape op_shape_diagonal_matrix(OpCall *op, const Operand *self, int64_t diagonal);
aclnnStatus op_diagonal_matrix(OpCall *op, const Operand *self, int64_t diagonal, const Operand *out);
aclnnStatus op_fill_diagonal(OpCall *op, const Operand *self, Number value, bool wraps);
bool op_is_cube(const Operand *operand); /* all sizes are equal */
/* Whether the type has no such value: beyond its range, fractions aside. */
bool op_overflows(const ScalarArgument *scalar, aclDataType dtype);

/* self[start:end:step, …] along the axes that `axes` names. */
Shape op_shape_sliced_axes(OpCall *op, const Operand *self, IntArguments starts, IntArguments ends, IntArguments axes,
                           IntArguments steps);
aclnnStatus op_slice_axes(OpCall *op, const Operand *self, IntArguments starts, IntArguments axes, IntArguments steps,
                          const Operand *out);
/* The axes that are given, or 0, 1, …; distinct axes of the operand; some step along the last one that is not 1. */
IntArguments op_axes_or_first(IntArguments axes, int64_t count);
bool op_are_axes(const Operand *operand, IntArguments axes);
bool op_steps_on_last(const Operand *operand, IntArguments axes, IntArguments steps);
/* Whether that slice has its shape, and whole[start:end:step, …] = value. */
bool op_is_slice(OpCall *op, const Operand *slice, const Operand *whole, IntArguments starts, IntArguments ends,
                 IntArguments axes, IntArguments steps);
aclnnStatus op_assign_slice(OpCall *op, const Operand *whole, IntArguments starts, IntArguments axes, IntArguments steps,
                            const Operand *value);
bool op_broadcasts_to(const Operand *operand, IntArguments sizes);

#endif
