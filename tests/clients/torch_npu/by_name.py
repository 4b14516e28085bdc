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


def in_common(boxes, others, distances: bool):
    """The formulas of the adapter's docstrings, of boxes [4, n] of middles and sizes."""
    corners = [torch.cat([one[:2] - one[2:] / 2, one[:2] + one[2:] / 2]) for one in (boxes, others)]
    shared = (torch.minimum(corners[0][2:], corners[1][2:]) - torch.maximum(corners[0][:2], corners[1][:2])).clamp(min=0).prod(0)
    around = torch.maximum(corners[0][2:], corners[1][2:]) - torch.minimum(corners[0][:2], corners[1][:2])
    union = boxes[2:].prod(0) + others[2:].prod(0) - shared
    if distances:
        return shared / union - ((boxes[:2] - others[:2]) ** 2).sum(0) / (around**2).sum(0)
    return shared / union - (around.prod(0) - union) / around.prod(0)


@operator
def boxes_in_common(npu):
    boxes, others = single(4, 7) + 2, single(4, 7, step=1.1) + 2
    both = lambda name: lambda a, b: getattr(npu, name)(a, b, True, False, 0).flatten()  # noqa: E731
    return [with_gradients(both(name) if npu else lambda a, b, name=name: in_common(a, b, name == "npu_diou"), boxes, others)
            for name in ("npu_giou", "npu_diou")]  # fmt: skip


@operator
def boxes_coded(npu):
    anchors, moves = torch.tensor([[0.0, 1, 7, 9], [2, 2, 12, 10], [1, 0, 4, 5]]), single(3, 4)
    truths = anchors + single(3, 4, step=1.3)
    means, deviations = (0.25, 0.0, 0.5, 0.0), (0.1, 0.2, 0.2, 0.5)
    if npu:
        return [npu.npu_bounding_box_encode(anchors, truths, *means, *deviations),
                npu.npu_bounding_box_decode(anchors, moves, *means, *deviations, (9, 11), 0.016)]  # fmt: skip
    size, other = anchors[:, 2:] - anchors[:, :2] + 1, truths[:, 2:] - truths[:, :2] + 1
    middle = (anchors[:, :2] + anchors[:, 2:]) / 2
    deltas = torch.cat([((truths[:, :2] + truths[:, 2:]) / 2 - middle) / size, (other / size).log()], 1)
    scaled = moves * torch.tensor(deviations) + torch.tensor(means)
    half = (size * scaled[:, 2:].exp() - 1) / 2
    middle = middle + size * scaled[:, :2]
    limits = torch.tensor([10.0, 8] * 2)
    return [(deltas - torch.tensor(means)) / torch.tensor(deviations),
            torch.minimum(torch.cat([middle - half, middle + half], 1).clamp(min=0), limits)]  # fmt: skip


@operator
def boxes_chosen(npu):
    """The second and the fourth one overlap with the first one too much."""
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 1, 10, 10], [5, 5, 25, 25]])
    scores = torch.tensor([0.9, 0.8, 0.3, 0.95, 0.7])
    if npu:
        numbers, count = npu.npu_nms_v4(boxes, scores, 4, torch.tensor(0.5), torch.tensor(0.25), True)
        _, places, mask = npu.npu_nms_with_mask(torch.cat([boxes, scores[:, None]], 1), 0.5)
        return [numbers, count, places, mask, npu.npu_batch_nms(boxes[None, :, None], scores[None, :, None], 0.25, 0.5, 3, 4)]
    best = torch.stack([boxes[3], boxes[4], boxes[2], torch.zeros(4)])
    return [torch.tensor([3, 4, 2, 0]), torch.tensor(3), torch.arange(5), torch.tensor([1, 0, 1, 0, 1]),
            [best, torch.tensor([0.95, 0.7, 0.3, 0]), torch.zeros(4), torch.tensor(3)]]  # fmt: skip


@operator
def regions_of_images(npu):
    """The example of the adapter's page, and the gradient of a mean: what is asked for once is given back once."""
    x, region = torch.arange(1.0, 37).reshape(1, 1, 6, 6), torch.tensor([[0.0, 4, 4, 16, 16]])
    if npu:
        example = npu.npu_roi_align(x, torch.tensor([[0, -2.0, -2, 22, 22]]), 0.25, 3, 3, 2, 0)
        slopes = npu.npu_roi_alignbk(torch.ones(1, 1, 3, 3), region, [1, 1, 6, 6], 3, 3, 0.25, 2, 0)
        return [example, slopes.sum()]
    return [torch.tensor([4.5, 6.5, 8.5, 16.5, 18.5, 20.5, 28.5, 30.5, 32.5]), torch.tensor(9.0)]


def deformed(x, weight, moves, bias):
    """A convolution of 3 x 3 taps with a zero about the image; each tap is moved and has a factor."""
    across, down, factors = moves.chunk(3, 1)
    height, width = x.shape[2:]
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    result = bias[:, None, None]
    for tap in range(9):
        i, j = divmod(tap, 3)
        places = [columns + j - 1 + across[:, tap], rows + i - 1 + down[:, tap]]
        grid = torch.stack([2 * at / (size - 1) - 1 for at, size in zip(places, (width, height))], -1)
        sampled = functional.grid_sample(x, grid, align_corners=True) * factors[:, tap : tap + 1]
        result = result + torch.einsum("nchw,kc->nkhw", sampled, weight[:, :, i, j])
    return result


@operator
def older_deformable_convolution(npu):
    def convolution(x, weight, moves, bias):
        return npu.npu_deformable_conv2d(x, weight, moves, bias, [3, 3], [1, 1, 1, 1], [1, 1, 1, 1])[0]

    operands = single(2, 4, 6, 7), single(5, 4, 3, 3), single(2, 27, 6, 7, step=1.3), single(5)
    return with_gradients(convolution if npu else deformed, *operands)


@operator
def older_values_in_order(npu):
    x = single(3, 9)
    return [npu.npu_sort_v2(x, -1, True), npu.npu_sort_v2(x, 0, False)] if npu else [x.sort(1, True).values, x.sort(0).values]


@operator
def npu_masked_fill_range(npu):
    x, starts, ends = single(4, 4), torch.tensor([[0, 1, 2, 3]], dtype=torch.int32), torch.tensor([[1, 2, 4, 3]], dtype=torch.int32)
    if npu:
        return npu.npu_masked_fill_range(x, starts, ends, torch.tensor([5.0]), 1)
    places = torch.arange(4)
    return x.masked_fill((places >= starts.T) & (places < ends.T), 5.0)


@operator
def dropout_by_bytes(npu):
    """What stays is scaled, and about as much stays as is to: 5 standard deviations of 4,096 draws are 0.034 of 0.75."""
    x = torch.ones(64, 64)
    if npu is None:
        return torch.tensor([True, True])
    y = npu.dropout_with_byte_mask(x, 0.25, True)
    kept = y[y > 0]
    return torch.stack([(kept.numel() / y.numel() - torch.tensor(0.75)).abs() < 0.034, (kept == 1 / 0.75).all()])


@operator
def older_adam(npu):
    """Two steps; PyTorch adds its epsilon to the corrected root, so that here it is small."""
    weights = single(3, 7)
    slopes = [single(3, 7, step=step) for step in (0.5, 1.3)]
    if npu:
        device = npu.device
        kept = [weights.to(device), torch.zeros(3, 7, device=device), torch.zeros(3, 7, device=device)]
        for step, slope in enumerate(slopes, 1):
            npu.module.npu_apply_adam(0.9**step, 0.99**step, 0.1, 0.9, 0.99, 1e-12, slope.to(device), False, False, out=tuple(kept))
        return kept[0].cpu()
    weights = torch.nn.Parameter(weights)
    optimizer = torch.optim.Adam([weights], 0.1, (0.9, 0.99), 1e-12)
    for weights.grad in slopes:
        optimizer.step()
    return weights


@operator
def older_gru(npu):
    """PyTorch's has weights with rows of r, z, n."""
    x, h, weights = single(3, 2, 4), single(1, 2, 5), (single(4, 15), single(5, 15), single(15), single(15, step=1.1))
    if npu:
        lengths = torch.full((2,), 3, dtype=torch.int32)
        return with_gradients(lambda x, h, *w: npu.npu_gru(x, h, *w, lengths, True, 1, 0.0, True, False, False)[0], x, h, *weights)
    return with_gradients(lambda x, h, w, u, b, d: torch.gru(x, h, [w.T, u.T, b, d], True, 1, 0.0, True, False, False)[0], x, h, *weights)


@operator
def packed_lstm(npu):
    """Without the gradient of the input, and of the last states of what runs backwards: the adapter loses them."""
    results, device = [], npu.device if npu else "cpu"
    for layers, both in ((2, False), (1, True), (2, True)):
        torch.manual_seed(layers)
        network = torch.nn.LSTM(4, 5, layers, bidirectional=both)
        states = [single(layers * (1 + both), 3, 5, step=step) for step in (0.3, 0.9)]
        x = torch.nn.utils.rnn.pack_padded_sequence(single(4, 3, 4).to(device), [4, 2, 1])
        y, (h, c) = network.to(device)(x, tuple(one.to(device) for one in states))
        y = torch.nn.utils.rnn.pad_packed_sequence(y)[0]
        loss = (y * torch.linspace(1, 2, y.numel(), device=device).reshape(y.shape)).sum()
        (loss if both else loss + (h + 2 * c).sum()).backward()
        results += [one.cpu() for one in (y, h, c, *(weights.grad for weights in network.parameters()))]
    return results
