#include "ascend/opapi/fourier.h"

#include "ascend/opapi/complex_parts.h"
#include "ascend/opapi/shapes.h"
#include "kernels/fourier/fourier.h"

#include <math.h>

static View with_axis(View view, int64_t size, int64_t stride)
{
    return us_view_insert_axis(view, view.rank, size, stride);
}

/* Real elements, with an axis of the parts of each. */
static View parts_of(const Operand *operand)
{
    return op_is_complex(operand->dtype) ? with_axis(op_parts_of(operand, false), 2, 1) : with_axis(operand->view, 1, 1);
}

/* ---- aclStft ---- */

aclDataType op_stft_type(aclDataType dtype, bool returns_complex)
{
    const bool wide = dtype == ACL_DOUBLE || dtype == ACL_COMPLEX128;
    return returns_complex ? (wide ? ACL_COMPLEX128 : ACL_COMPLEX64) : wide ? ACL_DOUBLE : ACL_FLOAT;
}

Shape op_shape_stft(OpCall *op, const Operand *self, int64_t points, int64_t hop, bool one_sided, bool returns_complex)
{
    Shape shape = {0};
    if (op_refused(op)) {
        return shape;
    }
    for (; shape.rank < self->view.rank - 1; shape.rank++) {
        shape.sizes[shape.rank] = self->view.shape[shape.rank];
    }
    shape.sizes[shape.rank++] = one_sided ? points / 2 + 1 : points;
    shape.sizes[shape.rank++] = (op_size(self, -1) - points) / hop + 1;
    if (!returns_complex) {
        shape.sizes[shape.rank++] = 2;
    }
    return shape;
}

aclnnStatus op_stft(OpCall *op, const Operand *self, const Operand *window, const Operand *out, int64_t points, int64_t hop,
                    int64_t window_length, bool normalized)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Fourier how = {.points = points, .hop = hop, .before = (points - window_length) / 2, .width = window_length,
                         .scale = normalized ? 1 / sqrt((double)points) : 1};
    const View weights = op_given(window) ? parts_of(window) : us_view_absent(), signal = parts_of(self);
    const View result = op_is_complex(out->dtype) ? parts_of(out) : out->view;
    const PlannedView views[] = {{self, VIEW_READ, &signal}, {window, VIEW_READ, &weights}, {out, VIEW_WRITE, &result}};
    return op_plan_views(op, us_fourier, &how, sizeof how, 3, views);
}

/* ---- aclRfft1D ---- */

bool op_is_rfft_length(int64_t points)
{
    return points >= 1 && (points <= 4096 || (points <= 262144 && (points & (points - 1)) == 0));
}

Shape op_shape_rfft(OpCall *op, const Operand *self, int32_t axis, int64_t points)
{
    Shape shape = {0};
    if (!op_refused(op)) {
        shape = op_shape(self);
        shape.sizes[axis] = points / 2 + 1;
        shape.sizes[shape.rank++] = 2;
    }
    return shape;
}

/* The axis goes behind all others, which keep their order. */
static View with_last(View view, int32_t axis, int32_t last)
{
    for (; axis < last; axis++) {
        view = op_swap_axes(view, axis, axis + 1);
    }
    return view;
}

aclnnStatus op_rfft(OpCall *op, const Operand *self, int64_t points, int32_t axis, int64_t norm, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const int32_t last = self->view.rank - 1;
    View signal = with_last(self->view, axis, last), result = with_last(out->view, axis, last);
    const int64_t of_part = result.strides[last + 1];
    result.rank--;
    result = with_axis(with_axis(result, 1, 0), 2, of_part); /* the one frame, and its parts */
    signal = with_axis(signal, 1, 1);
    const double scale = norm == RFFT_FORWARD ? 1 / (double)points : norm == RFFT_ORTHOGONAL ? 1 / sqrt((double)points) : 1;
    const Fourier how = {.points = points, .hop = 1, .width = points, .scale = scale};
    const PlannedView views[] = {{self, VIEW_READ, &signal}, {NULL, VIEW_READ, NULL}, {out, VIEW_WRITE, &result}};
    return op_plan_views(op, us_fourier, &how, sizeof how, 3, views);
}
