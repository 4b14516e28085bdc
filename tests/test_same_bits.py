"""The same bits on every x86-64: libraries take from the C library's mathematics only what is rounded exactly by
definition, and results do not change when the C library or the kernels are kept from newer instructions."""

import ctypes.util
import functools
import hashlib
import json
import pathlib
import sys

import numpy
import pytest
from elftools.elf.elffile import ELFFile

from tests import native
from understudy import paths

# Rounded exactly, or exact (powers of two, exponents, rests of divisions), so the same everywhere.
EXACT = {name + suffix for name in ("sqrt", "floor", "ceil", "rint", "nearbyint", "trunc", "fma", "fabs", "copysign",
                                    "ldexp", "frexp", "ilogb", "fmod")
         for suffix in ("", "f")}  # fmt: skip
# glibc's own names for "as if the processor had none of these", old and new.
WITHOUT = "AVX,AVX2,FMA,FMA4,AVX512F,AVX512VL,AVX512DQ,AVX512BW".split(",")
MASKED = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(f"-{name},-{name}_Usable" for name in WITHOUT)}
SETTINGS = {
    "masked for the C library": MASKED,
    "base level": {"UNDERSTUDY_ISA": "base"},
    "base level, masked": {"UNDERSTUDY_ISA": "base"} | MASKED,
    "v3 level": {"UNDERSTUDY_ISA": "v3"},
}
COUNT = 531  # whole vectors and a rest


def symbols(path):
    with open(path, "rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        return [(symbol.name, symbol["st_shndx"] == "SHN_UNDEF") for symbol in table.iter_symbols() if symbol.name]


@functools.cache
def mathematics():
    """What the C library's mathematics exports."""
    name = ctypes.util.find_library("m")
    ctypes.CDLL(name)
    loaded = [line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if name in line]
    return {symbol for symbol, undefined in symbols(loaded[0]) if not undefined and not symbol.startswith("GLIBC")}


def libraries():
    found = sorted(path for path in paths.sdk().rglob("*.so*") if path.is_file() and not path.is_symlink())
    return [pytest.param(path, id=path.name) for path in found]


@pytest.mark.parametrize("path", libraries())
def test_only_exactly_rounded_functions_are_imported(path):
    assert {"sin", "expf", "fma"} <= mathematics()
    imported = {name for name, undefined in symbols(path) if undefined}
    assert imported & mathematics() <= EXACT


def random(name, dtype, low, high):
    """Numbers that depend on the name only, a few of them special."""
    generator = numpy.random.default_rng(list(name.encode()))
    numbers = generator.uniform(low, high, COUNT)
    numbers[:4] = 0, -0.0, numpy.inf, numpy.nan
    return numbers.astype(dtype)


def maps():
    """Every formula of the map family."""
    from tests.kernels.test_map_formulas import CASES, FORMULAS, call, samples

    for name, dtype in CASES:
        count = FORMULAS[name][1]
        yield f"{name} {dtype}", call(name, dtype, [samples(dtype, COUNT, seed) for seed in range(count)])


def dsp_functions():
    from tests.conformance.ftdsp.calls import compute
    from tests.ftdsp.test_elementwise import CASES, values

    for operator, prefix in CASES:
        data = [values(prefix, COUNT, seed, operator.low, operator.high) for seed, _ in enumerate(operator.inputs)]
        name = f"{prefix}_{operator.name}_s"
        yield name, compute(name, operator.parameters(prefix, data)).values()


def layers():
    """Functions of mcDNN."""
    from understudy import maca

    for dtype in ("float32", "float16", "float64"):
        x, dy = (random(name, dtype, -4, 4)[3:].reshape(2, 11, 24, 1) for name in ("x", "dy"))
        for mode in ("relu", "clipped_relu", "elu", "sigmoid", "tanh", "swish"):
            y = maca.activation_forward(x, mode, 0.5)
            yield f"{mode} {dtype}", [y, maca.activation_backward(y, dy, x, mode, 0.5)]
        for algorithm in ("fast", "accurate", "log"):
            y = maca.softmax_forward(x, algorithm)
            yield f"softmax {algorithm} {dtype}", [y, maca.softmax_backward(y, dy, algorithm)]
        for beta in (0.75, 0.6):
            lrn = maca.LRNDescriptor(n=5, alpha=1e-2, beta=beta, k=1.5)
            y = maca.lrn_cross_channel_forward(x, lrn)
            yield f"lrn {beta} {dtype}", [y, maca.lrn_cross_channel_backward(y, dy, x, lrn)]


def dsp_manual():
    """Operators of the manual that sum, or take functions, in loops of their own; numbers are finite."""
    from understudy import ftdsp

    rows, length = 3, 177
    for dtype in ("float32", "float16"):
        x, dy = (random(name, dtype, -4, 4)[4:].reshape(-1)[:rows * length - 6] for name in ("x", "dy"))
        x, dy = (numpy.resize(array, rows * length) for array in (x, dy))
        ones, of_row = numpy.linspace(0.5, 2, length).astype(dtype), numpy.full(rows, 0.7, dtype)

        def like(count=x.size, dtype=dtype):
            return numpy.zeros(count, dtype)

        calls = {
            "layernormgrad": (x, dy, of_row, of_row, ones, length, rows, rows, length, like(), like(length), like(length)),
            "instancenorm": (x, of_row, of_row, like(), 1, rows, length, 1e-5),
            "softmax_cross_entropy_with_logits": (x, dy, like(), like(), like(1), like(rows), rows, length, 1),
            "QuantData": (x, like(dtype="int8"), x.size, of_row, numpy.arange(rows, dtype="int32"), rows, 1),
        }
        calls |= {f"lpnorm {p}": (x, of_row, of_row, like(), p, 1, rows, length, 1e-5) for p in (1.0, 2.0, 2.5, 3.0, 0.3)}
        # 4 x 4 images of 11 channels; windows of 3 x 3 overlap
        calls["avgpoolinggrad"] = (x, like(2 * 7 * 7 * 11), 2, 4, 4, 11, 7, 7, 2, 2, 1, 1, 3, 3)
        for planar in (0, 1):
            calls[f"resizebilineargrad {planar}"] = (x, like(3 * 11 * 59), 1, 3, planar, 0, 3, 59, 11, 59, 1.5, 0.4)
        for name, arguments in calls.items():
            ftdsp.run(name.split()[0], *arguments)
            yield f"{name} {dtype}", [array for array in arguments if isinstance(array, numpy.ndarray)]


def normalizations():
    """Of lines, by Ascend: parameters for each element, and one for several."""
    from tests.ascend.calling import call, drawn, empty, tensor

    shape, channels = (2, 3, COUNT), {"N": 2, "C": 3, "HxW": COUNT, "group": 3}
    for kind in ("F32", "F16", "BF16"):
        x, dy = (tensor(drawn(shape, seed, kind), kind) for seed in (1, 2))
        gamma, gammas = tensor(drawn((COUNT,), 3, kind), kind), tensor(drawn((3,), 4, kind), kind)
        of_line, of_group = tensor(abs(drawn((2, 3, 1), 5)) + 0.5), tensor(abs(drawn((2, 3), 6, kind)) + 0.5, kind)
        yield f"layer {kind}", call(
            "LayerNorm", input=x, normalizedShape=[COUNT], weightOptional=gamma, biasOptional=gamma, eps=1e-5,
            out=empty(shape, kind), meanOutOptional=empty((2, 3, 1)), rstdOutOptional=empty((2, 3, 1)))  # fmt: skip
        yield f"layer gradient {kind}", call(
            "LayerNormBackward", gradOut=dy, input=x, normalizedShape=[COUNT], mean=of_line, rstd=of_line,
            weightOptional=gamma, biasOptional=gamma, outputMask=[True] * 3, gradInputOut=empty(shape, kind),
            gradWeightOut=empty((COUNT,)), gradBiasOut=empty((COUNT,)))  # fmt: skip
        yield f"group {kind}", call(
            "GroupNorm", self=x, gamma=gammas, beta=gammas, eps=1e-5, out=empty(shape, kind), meanOut=empty((2, 3), kind),
            rstdOut=empty((2, 3), kind), **channels)  # fmt: skip
        yield f"group gradient {kind}", call(
            "GroupNormBackward", gradOut=dy, input=x, mean=of_group, rstd=of_group, gamma=gammas, outputMask=[True] * 3,
            gradInput=empty(shape, kind), gradGammaOut=empty((3,), kind), gradBetaOut=empty((3,), kind), **channels)  # fmt: skip
        images, small = (2, 9, 7, 7), {"N": 2, "C": 9, "HxW": 49, "group": 3}
        x, dy, gammas = (tensor(drawn(size, seed, kind), kind) for size, seed in ((images, 7), (images, 8), ((9,), 9)))
        yield f"group of small planes {kind}", call(
            "GroupNorm", self=x, gamma=gammas, beta=gammas, eps=1e-5, out=empty(images, kind), meanOut=empty((2, 3), kind),
            rstdOut=empty((2, 3), kind), **small)  # fmt: skip
        yield f"group gradient of small planes {kind}", call(
            "GroupNormBackward", gradOut=dy, input=x, mean=of_group, rstd=of_group, gamma=gammas, outputMask=[True] * 3,
            gradInput=empty(images, kind), gradGammaOut=empty((9,), kind), gradBetaOut=empty((9,), kind), **small)  # fmt: skip


def structured():
    """Operators with structure, by Ascend: each runs loops that no other family of this file does."""
    from understudy.ascend import ops

    def drawn(*shape, dtype="float32", seed=3):
        return numpy.random.default_rng([seed, *shape]).uniform(-2, 2, shape).astype(dtype)

    zeros, whole = numpy.zeros(COUNT), numpy.random.default_rng(4).integers(-100, 100, (40, 64)).astype("int8")
    for dtype in ("float32", "float16"):
        x, images, query = drawn(31, COUNT, dtype=dtype), drawn(2, 5, 19, 23, dtype=dtype), drawn(1, 2, 37, 32, dtype=dtype)
        planes, of_plane = drawn(3, 37, 7, 7, dtype=dtype), drawn(37) ** 2
        of_channel, filters = drawn(5, dtype=dtype) ** 2, drawn(7, 5, 3, 3, dtype=dtype)
        upper = numpy.triu(numpy.ones((37, 37), bool), 1)
        scores, gradient = drawn(9, COUNT), drawn(2, 5, 38, 46, dtype=dtype)
        drawing, nothing = zeros.astype(dtype), zeros[:0].astype(dtype)
        calls = {
            "batch norm": lambda: ops.batch_norm(images, False, 0.1, 1e-5, of_channel, of_channel, of_channel, of_channel),
            "batch norm in training": lambda: ops.batch_norm(images, True, 0.1, 1e-5, *[of_channel] * 4),
            "batch norm of small planes": lambda: ops.batch_norm(planes, True, 0.1, 1e-5, *[of_plane] * 4),
            "slopes of batch norm": lambda: ops.batch_norm_backward(planes, planes[::-1].copy(), True, 1e-5, [True] * 3,
                                                                    *[of_plane] * 5),
            "attention": lambda: ops.flash_attention_score(query, query * 2, query + 1, 0.2, 1.0, 65536, 65536, 2, "BNSD",
                                                           attenMaskOptional=upper),
            "normal": lambda: ops.inplace_normal(drawing, 1.0, 2.0, 5, 8),
            "uniform": lambda: ops.inplace_uniform(drawing, -1.0, 2.0, 5, 8),
            "bernoulli": lambda: ops.inplace_bernoulli(drawing, 0.3, 5, 8),
            "convolution": lambda: ops.convolution(images, filters, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
            "strided convolution": lambda: ops.convolution(images, filters, [2, 2], [1, 1], [1, 1], False, [0, 0], 1),
            "depthwise convolution": lambda: ops.convolution(images, filters[:5, :1], [1, 1], [1, 1], [1, 1], False, [0, 0], 5),
            "slopes of a convolution": lambda: ops.convolution_backward(
                drawn(2, 7, 19, 23, dtype=dtype), images, filters, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                [True, True, True], biasSizes=[7])[1],
            "product": lambda: ops.addmm(x[:, :31], x, x[:, :31].repeat(COUNT // 31 + 1, 0)[:COUNT], 0.5, 2.0),
            "resized": lambda: ops.upsample_bilinear2d(images, [38, 46]),
            "resized gradient": lambda: ops.upsample_bilinear2d_backward(gradient, [38, 46], list(images.shape)),
            "pooling": lambda: ops.max_pool2d_with_indices(images, [3, 3], [2, 2], [1, 1], [1, 1]),
            "averages": lambda: ops.avg_pool2d(images, [3, 3], [2, 2], [1, 1], countIncludePad=False),
            "slopes of averages": lambda: ops.avg_pool2d_backward(images, images, [3, 3], [1, 1], stride=[1, 1]),
            "adaptive averages": lambda: ops.adaptive_avg_pool2d(images, [7, 3]),
            "divergence": lambda: ops.kl_div(x, abs(x)),
            "added": lambda: ops.scatter_add(x, 1, abs(x).astype("int64"), x),
            "sorted": lambda: ops.sort(x, True, 1),
            "quantised": lambda: ops.dynamic_quant(x.astype("float16")),
            "quantised gate": lambda: ops.swi_glu_quant(x[:, 1:], scores[:1, : COUNT // 2], numpy.array([31], "int32"), True,
                                                        quantModeOptional="dynamic"),
            "moved convolution": lambda: ops.deformable_conv2d(images, filters, gradient[:, :1, :19, :23].repeat(27, 1), [3, 3],
                                                               [1] * 4, [1] * 4, [1] * 4, 1, 1, True),
            "deformable attention": lambda: ops.multi_scale_deformable_attn_function(
                query.reshape(1, 37, 2, 32), numpy.array([[6, 6]]), numpy.array([0]),
                abs(drawn(1, 64, 2, 1, 3, 2, dtype=dtype)), drawn(1, 64, 2, 1, 3, dtype=dtype)),
            "tokens": lambda: ops.moe_token_unpermute(x[:30], numpy.arange(30, dtype="int32")[::-1].copy(), False,
                                                      abs(x[:15, :2])),
            "gate": lambda: ops.moe_gating_top_k_softmax(x, 5),
            "gate gradient": lambda: ops.moe_gating_top_k_backward(
                (scores + 2) / 4, x[:9, :7], numpy.arange(63, dtype="int32").reshape(9, 7), 0, 1, 2.5, 1e-20),
            "segments": lambda: ops.exp_segsum(query[:, 0] / 8),
        }  # fmt: skip
        if dtype == "float32":
            calls |= {
                "distances": lambda: ops.cdist(x, x + 1, 3.0, 0),
                "cross entropy": lambda: ops.cross_entropy_loss(scores, numpy.arange(9), -100, 0.1, 0.0, False, nothing,
                                                                nothing),
                "paths": lambda: ops.ctc_loss(drawn(12, 2, 6), numpy.array([[1, 2, 3], [4, 4, 5]]), [12, 11], [3, 3]),
                "recurrence": lambda: ops.lstm(drawn(7, 3, 20), [drawn(68, 20), drawn(68, 17), drawn(68), drawn(68, seed=4)],
                                               True, 1, 0.0, False, False, False),
                "complex products": lambda: ops.prod_dim(x + 1j * x[::-1], 1, False, "complex64"),
            }
        else:
            calls["quantised product"] = lambda: ops.quant_matmul_v4(whole, whole.T, abs(drawn(40)), False, False,
                                                                     out_dtype="bfloat16")
            half = functools.partial(drawn, dtype=dtype)
            few, far, indices = half(3, 4, 128), 2**63 - 1, numpy.arange(48, dtype="int32").reshape(1, 3, 1, 16)
            calls |= {
                "read streams": lambda: ops.mhc_pre(few, drawn(24, 512), drawn(3), drawn(24), 1e-5, 1e-5),
                "balanced streams": lambda: ops.mhc_pre_sinkhorn(half(1, 3, 4, 128), drawn(24, 512), drawn(3), drawn(24), 4, 20,
                                                                 1e-6, 1e-6, True),
                "mixed streams": lambda: ops.mhc_post(few, drawn(3, 4, 4), few[:, 0], drawn(3, 4)),
                "weighed blocks": lambda: ops.block_attention_residuals_grad(
                    half(300, 64), half(300, 5, 64), half(1, 64), half(64), half(300, 64), drawn(300, 6), drawn(300, 6), -1),
                "selected keys": lambda: ops.lightning_indexer(half(1, 3, 8, 128), half(1, 48, 1, 128), drawn(1, 3, 8), 9, 3, far,
                                                               far, True),
                "attention to selected keys": lambda: ops.sparse_flash_attention(
                    half(1, 3, 4, 512), half(1, 48, 1, 512), half(1, 48, 1, 512), indices, half(1, 3, 4, 64), half(1, 48, 1, 64),
                    0.02, 1, 0, far, far, 2, True),
                "taught keys": lambda: ops.dense_lightning_indexer_grad_kl_loss(
                    half(1, 3, 32, 128), half(1, 5, 32, 128), half(1, 3, 8, 128), half(1, 5, 1, 128), drawn(1, 3, 8) / 64,
                    drawn(1, 32, 3, 1), abs(drawn(1, 32, 3, 1)), drawn(1, 1, 3), abs(drawn(1, 1, 3)), 0.02, "BSND", 3),
                "attention between pairs": lambda: ops.fused_floyd_attention(
                    half(1, 1, 16, 128, 32), half(1, 1, 16, 128, 32), half(1, 1, 16, 128, 32), half(1, 1, 128, 128, 32),
                    half(1, 1, 128, 128, 32), 0.1),
            }  # fmt: skip
        for name, run in calls.items():
            found = run()
            yield f"{name} {dtype}", found if isinstance(found, (tuple, list)) else [found]


def with_one_nan(array):
    """The same numbers as bytes, all NaNs being one. 16-bit integers of a Bfloat are bfloat16."""
    from tests.kernels.families import Bfloat

    if isinstance(array, Bfloat):
        return numpy.where((array & 0x7FFF) > 0x7F80, numpy.uint16(0x7FC0), array).tobytes()
    array = numpy.ascontiguousarray(array)
    parts = array.view(array.real.dtype)
    is_float = parts.dtype.kind == "f"
    return (numpy.where(numpy.isnan(parts), parts.dtype.type(numpy.nan), parts) if is_float else parts).tobytes()


def digests():
    found = {}
    for family in (maps, dsp_functions, dsp_manual, layers, normalizations, structured):
        for name, arrays in family():
            found[f"{family.__name__}: {name}"] = hashlib.sha256(b"".join(
                with_one_nan(array) for array in arrays if array is not None)).hexdigest()
    return found


def digests_under(settings):
    source = "import json; from tests.test_same_bits import digests; print(json.dumps(digests()))"
    return json.loads(native.check([sys.executable, "-c", source], settings).splitlines()[-1])


@functools.cache
def digests_of_this_machine():
    return digests_under({})


@pytest.mark.parametrize("name", SETTINGS)
def test_results_do_not_depend_on_the_processor(name):
    expected, actual = digests_of_this_machine(), digests_under(SETTINGS[name])
    assert len(expected) > 100 and expected.keys() == actual.keys()
    assert not [key for key, value in expected.items() if actual[key] != value]
