"""The adapter's older operators, which it runs by their names, as in serving.py: each with its gradient where it has one, and on
the CPU its formula."""

import torch
from torch.nn import functional

from tests.clients.torch_npu.serving import operator, wave


def with_gradients(function, *inputs):
    """The result and the gradients of its sum, weighted by place."""
    inputs = [one.clone().requires_grad_() for one in inputs]
    result = function(*inputs)
    (result * torch.linspace(1, 2, result.numel()).reshape(result.shape)).sum().backward()
    return [result, *(one.grad for one in inputs)]


def single(*shape: int, step: float = 0.7):
    return wave(*shape, dtype=torch.float32, step=step)


@operator
def older_activations(npu):
    x = single(3, 17)
    return [with_gradients(npu.npu_silu if npu else functional.silu, x), with_gradients(npu.npu_mish if npu else functional.mish, x)]


@operator
def older_convolutions(npu):
    """Which have no gradients in the adapter."""
    x, weight, turned, bias = single(2, 4, 7, 5), single(6, 2, 3, 3), single(4, 3, 3, 3), single(6)
    cube, taps = single(1, 2, 4, 5, 3), single(3, 2, 2, 3, 1)
    if npu:
        return [npu.npu_conv2d(x, weight, bias, (2, 1), (1, 0), (1, 1), 2),
                npu.npu_conv_transpose2d(x, turned, None, (1, 0), (1, 0), (2, 1), (1, 1), 2),
                npu.npu_conv3d(cube, taps, None, (1, 2, 1), (0, 1, 0), (1, 1, 1), 1)]  # fmt: skip
    return [functional.conv2d(x, weight, bias, (2, 1), (1, 0), (1, 1), 2),
            functional.conv_transpose2d(x, turned, None, (2, 1), (1, 0), (1, 0), 2, (1, 1)),
            functional.conv3d(cube, taps, None, (1, 2, 1), (0, 1, 0))]  # fmt: skip


@operator
def older_extrema(npu):
    x = single(3, 7)
    results = []
    for name in ("max", "min"):
        places = (getattr(npu, f"npu_{name}")(x, 1) if npu else getattr(x, name)(1))[1]
        results += [places, with_gradients(lambda x, name=name: (getattr(npu, f"npu_{name}")(x, 1) if npu else getattr(x, name)(1))[0], x)]
    return results


@operator
def older_moves(npu):
    x, hot = single(3, 4, 5), torch.tensor([2, 0, 3], dtype=torch.int32)
    if npu:
        return [npu.npu_transpose(x, [2, 0, 1]), npu.npu_broadcast(x[:, :1], [3, 4, 5]), npu.npu_slice(x, [0, 1, 2], [3, 2, 3]),
                npu.npu_pad(x, [1, 0, 0, 2, 1, 1]), npu.npu_indexing(x, [0, 0, 1], [3, 4, 5], [2, 1, 2]),
                npu.npu_stride_copy(x, [2, 3], [1, 2], 4), npu.npu_one_hot(hot, depth=4, on_value=2, off_value=-1),
                with_gradients(lambda x: npu.npu_confusion_transpose(x, [0, 2, 1], (15, 4), True), x)]  # fmt: skip
    turned = lambda x: x.permute(0, 2, 1).reshape(15, 4)  # noqa: E731
    return [x.permute(2, 0, 1), x[:, :1].expand(3, 4, 5), x[:, 1:3, 2:5], functional.pad(x, (1, 1, 0, 2, 1, 0)), x[::2, :, 1::2],
            x.as_strided((2, 3), (1, 2), 4), 3 * functional.one_hot(hot.long(), 4) - 1, with_gradients(turned, x)]  # fmt: skip


@operator
def older_products(npu):
    a, b = single(2, 3, 4), single(2, 4, 5)
    return with_gradients((lambda a, b: npu.npu_bmmV2(a, b, [])) if npu else torch.bmm, a, b)


@operator
def older_losses_and_norms(npu):
    logits, labels, x, gamma, beta = single(3, 5), functional.one_hot(torch.tensor([1, 4, 2]), 5).float(), single(3, 4), single(4), single(4, step=1.1)
    loss = lambda logits: -(labels * logits.log_softmax(1)).sum(1)  # noqa: E731
    if npu:
        loss = lambda logits: npu.npu_softmax_cross_entropy_with_logits(logits, labels)  # noqa: E731
    norm = npu.npu_layer_norm_eval(x, [4], gamma, beta, 0.125) if npu else functional.layer_norm(x, [4], gamma, beta, 0.125)
    return [with_gradients(loss, logits), norm]


@operator
def npu_scaled_masked_softmax(npu):
    x, mask = wave(2, 3, 32, 32), wave(2, 1, 32, 32, step=1.3) > 0.5
    formula = lambda x: (x.float() * 0.5).masked_fill(mask, -10000.0).softmax(-1).half()  # noqa: E731
    return with_gradients((lambda x: npu.npu_scaled_masked_softmax(x, mask, 0.5, False)) if npu else formula, x)


@operator
def npu_iou(npu):
    """In float16, whatever the boxes are; they overlap, so no quotient is far from 1 / 2."""
    boxes, others = torch.tensor([[0.0, 0, 8, 8], [2, 2, 12, 10]]), torch.tensor([[1.0, 1, 9, 9], [4, 0, 10, 12], [0, 0, 16, 4]])
    if npu:
        return npu.npu_iou(boxes, others, 0)
    shared = (torch.minimum(others[:, None, 2:], boxes[None, :, 2:]) - torch.maximum(others[:, None, :2], boxes[None, :, :2])).clamp(0).prod(-1)
    areas = [(one[:, 2:] - one[:, :2] + 0.01).prod(-1) for one in (others, boxes)]
    return (shared / (areas[0][:, None] + areas[1] - shared)).half()


@operator
def signs_as_bits(npu):
    x = single(16)
    if npu:
        bits = npu.npu_sign_bits_pack(x, 1)
        return [bits, npu.npu_sign_bits_unpack(bits.flatten(), 1, torch.float32)]
    positive = x >= 0
    return [(positive.reshape(2, 8) * 2 ** torch.arange(8)).sum(1), positive.float() * 2 - 1]
