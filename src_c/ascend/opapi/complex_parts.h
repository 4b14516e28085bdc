/* Complex numbers of their parts, and what they are made of. */
#ifndef ASCEND_OPAPI_COMPLEX_PARTS_H
#define ASCEND_OPAPI_COMPLEX_PARTS_H

#include "ascend/opapi/families.h"

/* The real or the imaginary parts of a complex tensor. */
View op_parts_of(const Operand *operand, bool imaginary);

/* out, complex, of its parts, or of modulus and angle. */
aclnnStatus op_complex(OpCall *op, const Operand *real, const Operand *imaginary, const Operand *out);
/* The type of a complex type's parts, float32 of integers; others are their own. */
aclDataType op_angle_type(aclDataType dtype);
/* Of complex numbers, or 0 and pi of real ones. */
aclnnStatus op_angle(OpCall *op, const Operand *x, const Operand *out);
aclnnStatus op_polar(OpCall *op, const Operand *modulus, const Operand *angle, const Operand *out);

#endif
