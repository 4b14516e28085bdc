"""Residual streams: the formulas in float64, and PyTorch's automatic gradients of them."""

import numpy
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, tensor

HALF_UNIT = {"F16": 2.0**-11, "BF16": 2.0**-8, "F32": 2.0**-24}
TOKENS = [(2, 3), (5,), (1, 70), (130,)]
WIDTHS = [128, 384]
KINDS = [*zip(["F16", "BF16", "BF16"], LAYOUTS)]


def close(actual, expected, kind, terms, scale=None):
    """Rounded once from sums of `terms` in float32 whose terms' sizes add up to `scale` (of each or of all of them), or to 4 times
    the largest result."""
    expected = numpy.asarray(expected)
    scale = 4 * abs(expected).max() if scale is None else scale
    error = abs(numpy.asarray(actual) - expected)
    assert (error <= HALF_UNIT[kind] * abs(expected) * (1 + 2**-10) + terms * 2.0**-24 * scale + 2.0**-25).all(), error.max()


# ---- mixing ----------------------------------------------------------------------------------------------------------------


def mixed(x, mix, layer, weights):
    """By NumPy or torch."""
    return mix.swapaxes(-1, -2) @ x + weights[..., None] * layer[..., None, :]


def mixing(tokens, width, kind):
    return (drawn((*tokens, 4, width), 1, kind), abs(drawn((*tokens, 4, 4), 2)), drawn((*tokens, width), 3, kind),
            drawn((*tokens, 4), 4))  # fmt: skip


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind, layout", KINDS)
def test_mixing(kind, layout, width, tokens):
    given = mixing(tokens, width, kind)
    x, mix, layer, weights = (tensor(values, of, layout) for values, of in zip(given, (kind, "F32", kind, "F32")))
    own = call("MhcPost", x=x, hRes=mix, hOut=layer, hPost=weights, out=empty(given[0].shape, kind, layout))
    close(own, mixed(*given), kind, 5, mixed(*map(abs, given)))


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind, layout", KINDS)
def test_gradients_of_mixing(kind, layout, width, tokens):
    torch = pytest.importorskip("torch")
    given, slopes = mixing(tokens, width, kind), drawn((*tokens, 4, width), 5, kind)

    def gradients(slopes, *given):
        given = [torch.tensor(values, requires_grad=True) for values in given]
        return [found.numpy() for found in torch.autograd.grad(mixed(*given), given, torch.tensor(slopes))]

    types = (kind, "F32", kind, "F32")
    x, mix, layer, weights = (tensor(values, of, layout) for values, of in zip(given, types))
    own = call("MhcPostBackward", gradOutput=tensor(slopes, kind, layout), x=x, hRes=mix, hOut=layer, hPost=weights,
               **{name: empty(values.shape, of, layout)
                  for name, values, of in zip(("gradX", "gradHRes", "gradHOut", "gradHPost"), given, types)})  # fmt: skip
    scales = gradients(*map(abs, (slopes, *given)))
    for actual, expected, of, terms, scale in zip(own, gradients(slopes, *given), types, (4, 20, 4, 20), scales):
        close(actual, expected, of, terms, scale)


def test_no_tokens():
    own = call("MhcPost", x=empty((2, 0, 4, 128), "F16"), hRes=empty((2, 0, 4, 4)), hOut=empty((2, 0, 128), "F16"),
               hPost=empty((2, 0, 4)), out=empty((2, 0, 4, 128), "F16"))  # fmt: skip
    assert own.shape == (2, 0, 4, 128)


# ---- reading ---------------------------------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + (-x).exp() if hasattr(x, "exp") else 1 + numpy.exp(-x))


def read(x, phi, alpha, bias, gamma, norm_epsilon, epsilon):
    """By NumPy or torch: what MhcPre leaves, in its order."""
    tokens, streams = x.shape[:-2], x.shape[-2]
    flat = x.reshape(*tokens, -1)
    inverse = (((flat * flat).sum(-1) / flat.shape[-1]) + norm_epsilon) ** -0.5
    product = (flat if gamma is None else flat * gamma.reshape(-1)) @ phi.swapaxes(0, 1)
    parts = product * inverse[..., None]
    gates = sigmoid(parts[..., :streams] * alpha[0] + bias[:streams]) + epsilon
    weights = 2 * sigmoid(parts[..., streams : 2 * streams] * alpha[1] + bias[streams : 2 * streams])
    if len(alpha) == 2:
        weights, mix = weights + epsilon, numpy.zeros((*tokens, streams, streams))
    else:
        mix = parts[..., 2 * streams :] * alpha[2] + bias[2 * streams :]
        mix = mix.reshape(*tokens, streams, streams) if mix.shape[-1] == streams**2 else mix
    return (gates[..., None] * x).sum(-2), weights, mix, inverse, product, gates


def reading_errors(expected, x, phi, alpha, gamma):
    """How wrong what `read` gives may be, in units of float32, by what its products may be: sums of N D terms. The sigmoid's slope
    is 1/4 at most; 16 units of the largest are for all other steps."""
    tokens, streams = x.shape[:-2], x.shape[-2]
    inverse = expected[3]
    sizes = abs(x.reshape(*tokens, -1) * (1 if gamma is None else gamma.reshape(-1))) @ abs(phi).T
    products = sizes * x.shape[-2] * x.shape[-1]
    parts = products * inverse[..., None]
    gates, weights = parts[..., :streams] * abs(alpha[0]) / 4, parts[..., streams : 2 * streams] * abs(alpha[1]) / 2
    mix = parts[..., 2 * streams :] * abs(alpha[2]) if len(alpha) == 3 else numpy.zeros(expected[2].shape)
    layer = (gates[..., None] * abs(x)).sum(-2)
    errors = layer, weights, mix.reshape(expected[2].shape), 0 * inverse, products, gates
    return [error + 16 * abs(values).max() for error, values in zip(errors, expected)]


def reading(tokens, width, kind, rows, streams=4):
    """Products of a few units, so that the sigmoids are not flat."""
    return (drawn((*tokens, streams, width), 6, kind), drawn((rows, streams * width), 7) / 16,
            drawn((2 if rows == 8 else 3,), 8), drawn((rows,), 9), drawn((streams, width), 10))  # fmt: skip


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [24, 32, 8])
@pytest.mark.parametrize("kind, layout", KINDS)
def test_reading(kind, layout, rows, width, tokens):
    *given, gamma = reading(tokens, width, kind, rows)
    for own_gamma, wanted in [(gamma, True), (None, False)]:
        expected = read(*given, own_gamma, 1e-3, 1e-2)
        types = (kind, *["F32"] * 5)
        outputs = [empty(values.shape, of, layout) if at < 3 or wanted else None
                   for at, (values, of) in enumerate(zip(expected, types))]  # fmt: skip
        if rows == 8 and not wanted:
            outputs[2] = None
        own = call("MhcPre", **{name: tensor(values, of, layout) for name, values, of in
                                zip(("x", "phi", "alpha", "bias"), given, (kind, "F32", "F32", "F32"))},
                   gammaOptional=None if own_gamma is None else tensor(own_gamma, "F32", layout), normEps=1e-3, hcEps=1e-2,
                   **dict(zip(("hIn", "hPost", "hRes", "invRmsOptional", "hMixOptional", "hPreOptional"), outputs)))  # fmt: skip
        errors = reading_errors(expected, given[0], given[1], given[2], own_gamma)
        kept = [(values, of, error) for values, of, output, error in zip(expected, types, outputs, errors) if output is not None]
        assert len(own) == len(kept)
        for actual, (values, of, error) in zip(own, kept):
            close(actual, values, of, 1, error)


def test_no_mix_has_either_shape():
    x, phi, alpha, bias, _ = reading((3,), 128, "F16", 8)
    for shape in [(3, 4, 4), (3, 24)]:
        own = call("MhcPre", x=tensor(x, "F16"), phi=tensor(phi), alpha=tensor(alpha), bias=tensor(bias), gammaOptional=None,
                   normEps=1e-3, hcEps=1e-2, hIn=empty((3, 128), "F16"), hPost=empty((3, 4)), hRes=empty(shape),
                   invRmsOptional=None, hMixOptional=None, hPreOptional=None)  # fmt: skip
        assert own[2].shape == shape and not own[2].any()


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [24, 32])
@pytest.mark.parametrize("kind, layout", KINDS)
def test_gradients_of_reading(kind, layout, rows, width, tokens):
    torch = pytest.importorskip("torch")
    *given, gamma = reading(tokens, width, kind, rows)
    more = drawn((*tokens, 4, width), 11, kind)
    put = lambda values, of="F32": tensor(values, of, layout)
    for own_gamma in (gamma, None):
        tensors = [torch.tensor(values, requires_grad=True) for values in (*given, *([] if own_gamma is None else [own_gamma]))]
        layer, weights, mix, inverse, product, gates = read(*tensors[:4], None if own_gamma is None else tensors[4], 1e-3, 1e-2)
        slopes = [drawn(tuple(values.shape), 12 + at, of) for at, (values, of) in
                  enumerate([(layer, kind), (weights, "F32"), (mix, "F32")])]  # fmt: skip
        expected = torch.autograd.grad((layer, weights, mix), tensors, [torch.tensor(values) for values in slopes])
        expected = [values.numpy() for values in expected]
        if own_gamma is not None:
            expected[0] = expected[0] + more
        left = [put(values.detach().numpy()) for values in (inverse, product, gates, weights)]
        own = call("MhcPreBackward", x=put(given[0], kind), phi=put(given[1]), alpha=put(given[2]),
                   gradHIn=put(slopes[0], kind), gradHPost=put(slopes[1]), gradHRes=put(slopes[2]),
                   **dict(zip(("invRms", "hMix", "hPre", "hPost"), left)),
                   gammaOptional=None if own_gamma is None else put(own_gamma),
                   gradXPostOptional=None if own_gamma is None else put(more, kind), hcEps=1e-2,
                   gradX=empty(given[0].shape, kind, layout), gradPhi=empty(given[1].shape, "F32", layout),
                   gradAlpha=empty((3,), "F32", layout), gradBias=empty((rows,), "F32", layout),
                   gradGamma=None if own_gamma is None else empty(own_gamma.shape, "F32", layout))  # fmt: skip
        assert len(own) == len(expected)
        count = int(numpy.prod(tokens))
        for actual, values, of in zip(own, expected, (kind, *["F32"] * 4)):
            close(actual, values, of, width + count)


# ---- reading with a balanced mix -------------------------------------------------------------------------------------------

KEPT = ("hPre", "hcBeforeNorm", "invRms", "sumOut", "normOut")
BATCHES = [(2, 3), (1, 70), (5, 31)]


def balanced(mix, epsilon):
    """By NumPy or torch: the matrix and the sums of every step."""
    powers = mix.exp() if hasattr(mix, "exp") else numpy.exp(mix)
    matrices, sums = [powers / powers.sum(-1)[..., None] + epsilon], [0 * powers.sum(-1)]
    for step in range(1, 40):
        columns = step % 2 == 1
        sums.append(matrices[-1].sum(-2 if columns else -1) + epsilon)
        matrices.append(matrices[-1] / (sums[-1][..., None, :] if columns else sums[-1][..., None]))
    return matrices, sums


def unbalanced(slopes, matrices, sums):
    """The page's formula, which has epsilon in the softmax: PyTorch's gradients are those of a softmax without."""
    for step in range(39, -1, -1):
        axis = -2 if step % 2 else -1
        slopes = slopes - (slopes * matrices[step]).sum(axis, keepdims=True)
        slopes = slopes / numpy.expand_dims(sums[step], axis) if step else slopes * matrices[0]
    return slopes


def test_formula_of_the_balanced_gradients():
    torch = pytest.importorskip("torch")
    mix, slopes = torch.tensor(drawn((9, 4, 4), 20), requires_grad=True), drawn((9, 4, 4), 21)
    matrices, sums = balanced(mix, 1e-9)
    (expected,) = torch.autograd.grad(matrices[-1], mix, torch.tensor(slopes))
    left = [torch.stack(values).detach().numpy() for values in (matrices, sums)]
    assert numpy.allclose(unbalanced(slopes, *left), expected, rtol=1e-6, atol=1e-6)


def read_balanced(x, phi, alpha, bias, norm_epsilon, epsilon):
    """By NumPy or torch: hin, hPost, hRes, then what is kept."""
    layer, weights, mix, inverse, product, gates = read(x, phi, alpha, bias, None, norm_epsilon, epsilon)
    matrices, sums = balanced(mix, epsilon)
    return (layer, weights, matrices[-1].reshape(*x.shape[:2], -1), gates, product, inverse[..., None], sums, matrices)


@pytest.mark.parametrize("tokens", BATCHES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize("kind, layout", KINDS)
def test_reading_with_a_balanced_mix(kind, layout, backward, width, tokens):
    *given, _ = reading(tokens, width, kind, 24)
    *expected, sums, matrices = read_balanced(*given, 1e-3, 1e-2)
    expected += [numpy.stack(sums), numpy.stack(matrices)]
    types = (kind, *["F32"] * 7)
    outputs = [empty(values.shape, of, layout) if backward or at < 3 else None
               for at, (values, of) in enumerate(zip(expected, types))]  # fmt: skip
    own = call("MhcPreSinkhorn", **{name: tensor(values, of, layout) for name, values, of in
                                    zip(("x", "phi", "alpha", "bias"), given, (kind, "F32", "F32", "F32"))},
               hcMult=4, numIters=20, hcEps=1e-2, normEps=1e-3, needBackward=backward,
               **dict(zip(("hin", "hPost", "hRes", *KEPT), outputs)))  # fmt: skip
    assert len(own) == (8 if backward else 3)
    layer, weights, mix, inverse, product, gates = read(*given, None, 1e-3, 1e-2)
    errors = reading_errors((layer, weights, mix, inverse, product, gates), *given[:3], None)
    # To balance a matrix does not make errors of its logarithms larger; a sum has all those of its line, and so has what it
    # divides.
    of_mix = 4 * errors[2].max((-1, -2))
    errors = [errors[0], errors[1], of_mix[..., None], errors[5], errors[4], errors[3][..., None], of_mix[..., None] * 4,
              of_mix[..., None, None] * 4]  # fmt: skip
    for actual, values, of, error in zip(own, expected, types, errors):
        close(actual, values, of, 1, error)


@pytest.mark.parametrize("tokens", BATCHES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("flat, epsilon, streams", [(True, 1e-7, 4), (False, 1e-2, 4), (True, 1e-2, 8), (False, 1e-2, 3),
                                                    (True, 1e-2, 1)])  # fmt: skip
@pytest.mark.parametrize("kind, layout", KINDS)
def test_gradients_of_reading_with_a_balanced_mix(kind, layout, flat, epsilon, streams, width, tokens):
    torch = pytest.importorskip("torch")
    *given, _ = reading(tokens, width, kind, streams * (streams + 2), streams)
    tensors = [torch.tensor(values, requires_grad=True) for values in given]
    layer, weights, out, *kept, sums, matrices = read_balanced(*tensors, 1e-3, epsilon)
    mix = read(*tensors, None, 1e-3, epsilon)[2]
    kept = [values.detach().numpy() for values in (*kept, torch.stack(sums), torch.stack(matrices))]
    slopes = [drawn(tuple(values.shape), 18 + at, of) for at, (values, of) in
              enumerate([(layer, kind), (weights, "F32"), (out, "F32")])]  # fmt: skip
    square = slopes[2].reshape(*tokens, streams, streams)
    of_mix = unbalanced(square, kept[-1], kept[-2])
    expected = torch.autograd.grad((layer, weights, mix), tensors, list(map(torch.tensor, (*slopes[:2], of_mix))))
    put = lambda values, of="F32": tensor(values, of, layout)
    own = call("MhcPreSinkhornBackward", gradHin=put(slopes[0], kind), gradHPost=put(slopes[1]),
               gradHRes=put(slopes[2] if flat else square), x=put(given[0], kind), phi=put(given[1]),
               alpha=put(given[2]), bias=put(given[3]), **dict(zip(KEPT, map(put, kept))), hcEps=epsilon,
               gradX=empty(given[0].shape, kind, layout), gradPhi=empty(given[1].shape, "F32", layout),
               gradAlpha=empty((3,), "F32", layout), gradBias=empty(given[3].shape, "F32", layout))  # fmt: skip
    for actual, values, of in zip(own, expected, (kind, *["F32"] * 3)):
        close(actual, values.numpy(), of, width + int(numpy.prod(tokens)))


def test_no_tokens_of_a_balanced_mix():
    shapes = {"hin": (2, 0, 128), "hPost": (2, 0, 4), "hRes": (2, 0, 16)}
    x, phi, alpha, bias = (lambda: empty((2, 0, 4, 128), "F16")), empty((24, 512)), empty((3,)), empty((24,))
    own = call("MhcPreSinkhorn", x=x(), phi=phi, alpha=alpha, bias=bias, hcMult=4, numIters=20, hcEps=1e-6, normEps=1e-6,
               needBackward=False, **{name: empty(shape, "F16" if name == "hin" else "F32") for name, shape in shapes.items()},
               **dict.fromkeys(KEPT))  # fmt: skip
    assert [values.shape for values in own] == [*shapes.values()]
    kept = [(2, 0, 4), (2, 0, 24), (2, 0, 1), (40, 2, 0, 4), (40, 2, 0, 4, 4)]
    _, *sums = call("MhcPreSinkhornBackward", gradHin=empty((2, 0, 128), "F16"), gradHPost=empty((2, 0, 4)),
                    gradHRes=empty((2, 0, 16)), x=x(), phi=phi, alpha=alpha, bias=bias,
                    **{name: empty(shape) for name, shape in zip(KEPT, kept)}, hcEps=1e-6, gradX=x(), gradPhi=empty((24, 512)),
                    gradAlpha=empty((3,)), gradBias=empty((24,)))  # fmt: skip
    assert all((values == 0).all() for values in sums)


# ---- attention of residuals ------------------------------------------------------------------------------------------------

WEIGHED = [(1, 1, 1), (3, 4, 64), (70, 2, 257), (7, 100, 33), (150, 5, 600)]  # tokens, blocks, numbers
RESIDUALS = ("partialBlock", "blockRes", "projWeight", "normWeight")


def weighed(rows, projection, norm, epsilon):
    """By NumPy or torch."""
    inverse = ((rows * rows).sum(-1) / rows.shape[-1] + epsilon) ** -0.5
    scores = (rows * inverse[..., None] * (projection * norm)).sum(-1)
    powers = scores.exp() if hasattr(scores, "exp") else numpy.exp(scores)
    weights = powers / powers.sum(-1)[..., None]
    return (weights[..., None] * rows).sum(-2), inverse, weights


def residuals(tokens, blocks, numbers, kind):
    """Scores of a few units."""
    return (drawn((tokens, numbers), 13, kind), drawn((tokens, blocks, numbers), 14, kind),
            drawn((numbers,), 15, kind), drawn((numbers,), 16, kind))  # fmt: skip


def rows_of(partial, blocks):
    return numpy.concatenate([blocks, partial[:, None]], 1)


@pytest.mark.parametrize("size", WEIGHED)
@pytest.mark.parametrize("kind, layout", [*zip(("F16", "BF16", "F32"), LAYOUTS)])
@pytest.mark.parametrize("backward", [True, False])
def test_attention_of_residuals(backward, kind, layout, size):
    given = residuals(*size, kind)
    expected = weighed(rows_of(*given[:2]), *given[2:], 1e-3)
    own = call("BlockAttentionResiduals", **{name: tensor(values, kind, layout) for name, values in zip(RESIDUALS, given)},
               validBlockNum=-1, normEps=1e-3, needBackward=backward, hiddenStates=empty(given[0].shape, kind, layout),
               invNorm=empty(expected[1].shape, "F32", layout) if backward else None,
               probs=empty(expected[2].shape, "F32", layout) if backward else None)  # fmt: skip
    for actual, values, of in zip(own if backward else [own], expected, (kind, "F32", "F32")):
        close(actual, values, of, size[2] + size[1])


@pytest.mark.parametrize("size", WEIGHED)
@pytest.mark.parametrize("kind, layout", [*zip(("F16", "BF16", "F32"), LAYOUTS)])
def test_gradients_of_attention_of_residuals(kind, layout, size):
    torch = pytest.importorskip("torch")
    given, slopes = residuals(*size, kind), drawn((size[0], size[2]), 17, kind)
    tensors = [torch.tensor(values, requires_grad=True) for values in given]
    out, inverse, weights = weighed(torch.cat([tensors[1], tensors[0][:, None]], 1), *tensors[2:], 1e-3)
    expected = [values.numpy() for values in torch.autograd.grad(out, tensors, torch.tensor(slopes))]
    shapes = [values.shape if at != 2 else (1, size[2]) for at, values in enumerate(given)]
    own = call("BlockAttentionResidualsGrad",
               **{name: tensor(values.reshape(shape), kind, layout) for name, values, shape in zip(RESIDUALS, given, shapes)},
               gradHiddenStates=tensor(slopes, kind, layout), invNorm=tensor(inverse.detach().numpy(), "F32", layout),
               probs=tensor(weights.detach().numpy(), "F32", layout), validBlockNum=7,
               **{f"grad{name[0].upper()}{name[1:]}": empty(shape, kind, layout)
                  for name, shape in zip(RESIDUALS, shapes)})  # fmt: skip
    for actual, values, shape in zip(own, expected, shapes):
        close(actual, values.reshape(shape), kind, size[2] + size[1])


def test_no_residuals():
    own = call("BlockAttentionResiduals", partialBlock=empty((0, 8), "F16"), blockRes=empty((0, 2, 8), "F16"),
               projWeight=empty((8,), "F16"), normWeight=empty((8,), "F16"), validBlockNum=-1, normEps=1e-6, needBackward=False,
               hiddenStates=empty((0, 8), "F16"), invNorm=None, probs=None)  # fmt: skip
    assert own.shape == (0, 8)
