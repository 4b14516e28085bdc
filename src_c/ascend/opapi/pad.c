#include "ascend/opapi/pad.h"

void require_padding(OpCall *op, const Operand *self, IntArguments padding, int32_t axes)
{
    const View *view = &self->view;
    op_require(op, padding.count == 2 * axes, "padding", "length", op->invalid, "padding has %lld entries, not %d",
               (long long)padding.count, 2 * (int)axes);
    bool only_batch = view->rank == axes + 2;
    for (int32_t d = 1; d < view->rank && only_batch; d++) {
        only_batch = view->shape[d] != 0;
    }
    op_require(op, !op_empty(self) || only_batch, self->name, "empty", op->invalid,
               "%s is %s: only its batch may be empty", self->name, op_shape_text(op, self));
    for (int32_t k = 0; k < axes && !op_refused(op); k++) {
        const int64_t size = view->shape[view->rank - 1 - k];
        const int64_t before = padding.values[2 * k], after = padding.values[2 * k + 1];
        op_require(op, before < size && after < size && before > -size && after > -size && before + after + size >= 0,
                   "padding", "range", op->invalid, "padding has %lld and %lld for a dimension of size %lld",
                   (long long)before, (long long)after, (long long)size);
    }
}

static BorderPad attributes_of(IntArguments padding, BorderMode mode)
{
    BorderPad attributes = {.mode = mode, .axes = (int32_t)(padding.count / 2)};
    for (int32_t k = 0; k < attributes.axes && k < PAD_AXES; k++) {
        attributes.before[k] = padding.values[2 * (attributes.axes - 1 - k)];
    }
    return attributes;
}

aclnnStatus op_border_pad(OpCall *op, const Operand *self, IntArguments padding, BorderMode mode, const Operand *out)
{
    const BorderPad attributes = attributes_of(padding, mode);
    return op_plan_operands(op, us_border_pad, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(out));
}

aclnnStatus op_border_pad_gradient(OpCall *op, const Operand *grad_output, IntArguments padding, BorderMode mode,
                                   const Operand *grad_input)
{
    const BorderPad attributes = attributes_of(padding, mode);
    return op_plan_operands(op, us_border_pad_gradient, &attributes, sizeof attributes, OPERANDS(grad_output),
                            OPERANDS(grad_input));
}

bool op_padding_small(IntArguments padding)
{
    for (int64_t i = 0; i < padding.count; i++) {
        if (padding.values[i] > 7) {
            return false;
        }
    }
    return true;
}
