/* Fourier transforms: acl_stft.h, acl_rfft1d.h. */
#ifndef ASCEND_OPAPI_FOURIER_H
#define ASCEND_OPAPI_FOURIER_H

#include "ascend/opapi/families.h"

/* The type of the result: complex, or of its parts. */
aclDataType op_stft_type(aclDataType dtype, bool returns_complex);
/* [..., frequencies, frames], and the two parts where they are apart. */
Shape op_shape_stft(OpCall *op, const Operand *self, int64_t points, int64_t hop, bool one_sided, bool returns_complex);
/* A window that is shorter than the transform stands in its middle, as in PyTorch. */
aclnnStatus op_stft(OpCall *op, const Operand *self, const Operand *window, const Operand *out, int64_t points, int64_t hop,
                    int64_t window_length, bool normalized);

/* The lengths that aclRfft1D takes: up to 4096, powers of 2 up to 262144. */
bool op_is_rfft_length(int64_t points);
/* The axis has the frequencies, and one axis more the parts. */
Shape op_shape_rfft(OpCall *op, const Operand *self, int32_t axis, int64_t points);
enum { RFFT_PLAIN = 1, RFFT_FORWARD, RFFT_ORTHOGONAL };
aclnnStatus op_rfft(OpCall *op, const Operand *self, int64_t points, int32_t axis, int64_t norm, const Operand *out);

#endif
