"""Rows of operators with structure of Ascend: picked and scattered elements, pooling, random numbers, sorting."""

import contextlib
from functools import partial

import numpy
from aclnn import Out, axes_array, called, dtype_code, running, values
from cases import DTYPES, Case, Row, peer, shaped_rows, to_torch, torch

from understudy import ascend
from understudy.ascend.runtime import Operation

SHAPE = (1024, 1024)
TABLE, TOKENS = (50_000, 1024), 16 << 10
IMAGES = (32, 64, 56, 56)
LEVELS, HEADS, POINTS = ((64, 64), (32, 32), (16, 16), (8, 8)), 8, 4  # of deformable attention
WINDOW = {"kernelSize": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1]}


def places(shape: tuple[int, ...], size: int) -> numpy.ndarray:
    return numpy.random.default_rng(3).integers(0, size, shape)


@contextlib.contextmanager
def gather(dtype: str, axis: int):
    x, index = values(dtype, SHAPE, 1), places(SHAPE, SHAPE[axis])
    with Operation() as op:
        run = running(op, "aclnnGather", [op.input(x), axis, op.input(index), op.output(SHAPE, x.dtype).tensor])

        def with_torch():
            data, where = to_torch(x), torch.from_numpy(index)
            out = torch.empty_like(data)
            return lambda: torch.gather(data, axis, where, out=out)

        yield Case(run, peer(with_torch), x.nbytes + index.nbytes, x.nbytes)


@contextlib.contextmanager
def picked_rows(dtype: str, name: str, axis: list[int]):
    """Reads rows of a table."""
    table, tokens = values(dtype, TABLE, 1), places((TOKENS,), TABLE[0])
    with Operation() as op:
        out = op.output((TOKENS, TABLE[1]), table.dtype)
        run = running(op, name, [op.input(table), *axis, op.input(tokens), out.tensor])

        def with_torch():
            weight, where = to_torch(table), torch.from_numpy(tokens)
            result = torch.empty((TOKENS, TABLE[1]), dtype=weight.dtype)
            return lambda: torch.index_select(weight, 0, where, out=result)

        moved = TOKENS * TABLE[1] * table.itemsize
        yield Case(run, peer(with_torch), moved + tokens.nbytes, moved)


@contextlib.contextmanager
def scatter(dtype: str, axis: int, adds: bool):
    """Reads self, index and source, writes the result."""
    x, source, index = values(dtype, SHAPE, 1), values(dtype, SHAPE, 2), places(SHAPE, SHAPE[axis])
    with Operation() as op:
        given = [op.input(x), axis, op.input(index), op.input(source)]
        out = op.output(SHAPE, x.dtype).tensor
        run = running(op, "aclnnScatterAdd", [*given, out]) if adds else running(op, "aclnnScatter", [*given, 0, out])

        def with_torch():
            data, where, other = to_torch(x), torch.from_numpy(index), to_torch(source)
            result = torch.empty_like(data)
            function = torch.scatter_add if adds else torch.scatter
            return lambda: function(data, axis, where, other, out=result)

        yield Case(run, peer(with_torch), 2 * x.nbytes + index.nbytes, x.nbytes)


@contextlib.contextmanager
def index_put(dtype: str):
    """Rows added to the rows of a table that indices name."""
    table, rows, index = values(dtype, (4096, 1024), 1), values(dtype, (TOKENS, 1024), 2), places((TOKENS,), 4096)
    with Operation() as op:
        tensors = ascend.lib.aclCreateTensorList(ascend.ffi.new("aclTensor *[]", [op.input(index)]), 1)
        run = running(op, "aclnnIndexPutImpl", [op.input(table), tensors, op.input(rows), True, False])

        def with_torch():
            data, where, other = to_torch(table), torch.from_numpy(index), to_torch(rows)
            return lambda: data.index_put_((where,), other, accumulate=True)

        yield Case(run, peer(with_torch), rows.nbytes + index.nbytes + table.nbytes, table.nbytes)


@contextlib.contextmanager
def pooling_with_indices(dtype: str):
    """Windows of 3 x 3, 2 apart, as ResNet begins."""
    x = values(dtype, IMAGES, 1)
    shape, window = (*IMAGES[:2], IMAGES[2] // 2, IMAGES[3] // 2), ([3, 3], [2, 2], [1, 1], [1, 1])
    with Operation() as op:
        lists = [axes_array(op, numbers) for numbers in window]
        results = [op.output(shape, kind).tensor for kind in (x.dtype, numpy.dtype(numpy.int32))]
        run = running(op, "aclnnMaxPool2dWithIndices", [op.input(x), *lists, False, *results])

        def with_torch():
            data = to_torch(x)
            out = torch.empty(shape, dtype=data.dtype), torch.empty(shape, dtype=torch.int64)
            function = torch.ops.aten.max_pool2d_with_indices.out
            return lambda: function(data, *window, False, out=out[0], indices=out[1])

        yield Case(run, peer(with_torch), x.nbytes, x.nbytes // 4 + x.size)


@contextlib.contextmanager
def pooling_gradient(dtype: str, maximum: bool):
    x = values(dtype, IMAGES, 1)
    window = list(WINDOW.values())
    data = x.reshape(*IMAGES[:2], IMAGES[2] // 2, 2, IMAGES[3] // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    grad = numpy.ascontiguousarray(data[..., 0, 0])
    at = data.reshape(*grad.shape, 4).argmax(-1)
    row, column = (numpy.arange(size) * 2 for size in grad.shape[2:])
    index = ((row[:, None] + at // 2) * IMAGES[3] + column + at % 2).astype(numpy.int32)
    with Operation() as op:
        lists = [axes_array(op, numbers) for numbers in window]
        out = op.output(IMAGES, x.dtype).tensor
        tensors = [op.input(grad), op.input(x)]
        if maximum:
            arguments = [*tensors, op.input(index), *lists, False, out]
            run = running(op, "aclnnMaxPool2dWithIndicesBackward", arguments)
        else:
            run = running(op, "aclnnAvgPool2dBackward", [*tensors, *lists[:3], False, True, 0, 0, out])

        def with_torch():
            slopes, elements, where = to_torch(grad), to_torch(x), torch.from_numpy(index.astype(numpy.int64))
            result = torch.empty_like(elements)
            if maximum:
                function = torch.ops.aten.max_pool2d_with_indices_backward.grad_input
                return lambda: function(slopes, elements, *window, False, where, grad_input=result)
            function = torch.ops.aten.avg_pool2d_backward.grad_input
            return lambda: function(slopes, elements, *window[:3], False, True, None, grad_input=result)

        yield Case(run, peer(with_torch), grad.nbytes + (index.nbytes if maximum else 0), x.nbytes)


@contextlib.contextmanager
def random(dtype: str, name: str, arguments: list, function):
    x = values(dtype, (4 << 20,), 1)
    with Operation() as op:
        run = running(op, name, [op.input(x), *arguments, 1, 0])

        def with_torch():
            data = to_torch(x)
            return lambda: function(data)

        yield Case(run, peer(with_torch), 16, x.nbytes)  # seed and offset


@contextlib.contextmanager
def sorting(dtype: str, shape: tuple[int, int], kept: int):
    """Lines sorted, or the `kept` largest of each."""
    x = values(dtype, shape, 1)
    result = (shape[0], kept or shape[1])
    with Operation() as op:
        outputs = [op.output(result, x.dtype).tensor, op.output(result, "int64").tensor]
        if kept:
            run = running(op, "aclnnTopk", [op.input(x), kept, 1, True, True, *outputs])
        else:
            run = running(op, "aclnnSort", [op.input(x), True, 1, False, *outputs])

        def with_torch():
            data = to_torch(x)
            out = torch.empty(result, dtype=data.dtype), torch.empty(result, dtype=torch.int64)
            if kept:
                return lambda: torch.topk(data, kept, 1, out=out)
            return lambda: torch.sort(data, stable=True, dim=1, out=out)

        written = result[0] * result[1] * (x.itemsize + 8)
        yield Case(run, peer(with_torch), x.nbytes, written)


@contextlib.contextmanager
def product(dtype: str, shape: tuple[int, int, int]):
    m, n, k = shape
    x, y = (values("float32", size, seed).astype(DTYPES[dtype]) for size, seed in (((m, k), 1), ((k, n), 2)))
    with Operation() as op:
        run = running(op, "aclnnMatmul", [op.input(x), op.input(y), op.output((m, n), x.dtype).tensor, 1])

        def with_torch():
            a, b = map(to_torch, (x, y))
            out = torch.empty((m, n), dtype=a.dtype)
            return lambda: torch.mm(a, b, out=out)

        yield Case(run, peer(with_torch), x.nbytes + y.nbytes, m * n * x.itemsize)


@contextlib.contextmanager
def running_product(dtype: str, axis: int):
    x = values(dtype, (2048, 2048), 1)
    with Operation() as op:
        number = ascend.lib.aclCreateScalar(ascend.ffi.new("int64_t *", axis), ascend.lib.ACL_INT64)
        op.callback(ascend.lib.aclDestroyScalar, number)
        out = op.output(x.shape, x.dtype).tensor
        run = running(op, "aclnnCumprod", [op.input(x), number, dtype_code(x), out])

        def with_torch():
            data = to_torch(x)
            result = torch.empty_like(data)
            return lambda: torch.cumprod(data, axis, out=result)

        yield Case(run, peer(with_torch), x.nbytes, x.nbytes)


def deformable_attention(dtype: str):
    """1000 queries of 8 heads look at 4 points in each of 4 levels."""
    queries, depth, generator = 1000, 32, numpy.random.default_rng(2)
    sizes = [height * width for height, width in LEVELS]
    value = values(dtype, (2, sum(sizes), HEADS, depth), 1)
    at = generator.uniform(-0.1, 1.1, (2, queries, HEADS, len(LEVELS), POINTS, 2)).astype(value.dtype)
    weight = generator.uniform(0, 1, at.shape[:-1]).astype(value.dtype)
    shape, starts = numpy.array(LEVELS, "int32"), numpy.cumsum([0, *sizes[:-1]]).astype("int32")

    def with_torch():
        maps, points, factors = map(to_torch, (value, at, weight))

        def run():
            found = []
            for level, (part, (height, width)) in enumerate(zip(maps.split(sizes, 1), LEVELS)):
                images = part.permute(0, 2, 3, 1).reshape(2 * HEADS, depth, height, width)
                grid = (2 * points[:, :, :, level] - 1).transpose(1, 2).flatten(0, 1)
                found.append(torch.nn.functional.grid_sample(images, grid, align_corners=False))
            own = factors.permute(0, 2, 1, 3, 4).reshape(2 * HEADS, 1, queries, -1)
            return (torch.cat(found, -1) * own).sum(-1).view(2, HEADS * depth, queries).transpose(1, 2).contiguous()

        return run

    out = Out((2, queries, HEADS * depth), value.dtype)
    return called("aclnnMultiScaleDeformableAttnFunction", [value, shape, starts, at, weight, out], with_torch)


def deformable_convolution(dtype: str):
    """Of 3 x 3 taps, each moved and weighted."""
    x, weight = values(dtype, (2, 64, 56, 56), 1), values(dtype, (64, 64, 3, 3), 2)
    offset = values(dtype, (2, 27, 56, 56), 3) / 4
    out, samples = Out(x.shape, x.dtype), Out((2, 64, 3 * 56, 3 * 56), x.dtype)
    settings = [3, 3], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], 1, 1, True
    return called("aclnnDeformableConv2d", [x, weight, offset, None, *settings, out, samples])


def windows_gradient(dtype: str, axis: int):
    """Windows of 16, 8 apart, along the last axis or the one before."""
    size, step, kept = 16, 8, [1024, 1024]
    count = (kept[axis] - size) // step + 1
    slopes = values(dtype, (8, *kept[:axis], count, *kept[axis + 1 :], size), 1)

    def with_torch():
        data = to_torch(slopes)
        return lambda: torch.ops.aten.unfold_backward(data, [8, *kept], 1 + axis, size, step)

    return called("aclnnUnfoldGrad", [slopes, [8, *kept], 1 + axis, size, step, Out((8, *kept), slopes.dtype)], with_torch)


def resize(dtype: str, mode: str):
    x = values(dtype, (8, 64, 56, 56), 1)

    def with_torch():
        data = to_torch(x)
        return lambda: torch.nn.functional.interpolate(data, scale_factor=2.0, mode=mode)

    return called("aclnnResize", [x, [1.0, 1.0, 2.0, 2.0], mode.encode(), Out((8, 64, 112, 112), x.dtype)], with_torch)


def short_time_transform(dtype: str):
    """Half a minute of speech, as a speech model sees it: windows of 400 samples, 160 apart."""
    x, window = values(dtype, (1, 480_000), 1), numpy.hanning(400).astype(dtype)
    out = Out((1, 201, 2998, 2), dtype)

    def with_torch():  # has no form with a given output
        signal, weights = to_torch(x), to_torch(window)
        return lambda: torch.stft(signal, 400, 160, window=weights, center=False, return_complex=True)

    return called("aclStft", [x, window, out, 400, 160, 400, False, True, False], with_torch)


def rows() -> list[Row]:
    floats, label = ["float32", "float16"], "x".join(map(str, SHAPE))
    found = []
    for where, axis in (("inner", 1), ("outer", 0)):
        found += shaped_rows(f"gather {where}", floats, label, partial(gather, axis=axis), 0.0, 1.0)
        found += shaped_rows(f"scatter {where}", floats, label, partial(scatter, axis=axis, adds=False), 0.0, 1.0)
        found += shaped_rows(f"scatter add {where}", floats, label, partial(scatter, axis=axis, adds=True), 0.0, 1.0)
        found += shaped_rows(f"cumprod {where}", floats, "2048x2048", partial(running_product, axis=axis), 0.0, 1.0)
    for row, name, axis in (("embedding", "aclnnEmbedding", []), ("index select", "aclnnIndexSelect", [0])):
        make = partial(picked_rows, name=name, axis=axis)
        found += shaped_rows(row, floats, f"{TOKENS >> 10}k tokens", make, 0.8, 1.0)
    found += shaped_rows("index put accumulate", floats, f"{TOKENS >> 10}k rows", index_put, 0.0, 1.0)
    found += shaped_rows("short-time Fourier transform", ["float32"], "480000", short_time_transform)
    found += shaped_rows("deformable attention", floats, "2x1000x8x32", deformable_attention, 0.0, 1.0)
    found += shaped_rows("deformable convolution", floats, "2x64x56x56", deformable_convolution)
    for where, axis in (("inner", 1), ("outer", 0)):
        found += shaped_rows(f"windows backward {where}", floats, "8x1024x1024", partial(windows_gradient, axis=axis), 0.3, 1.0)
    for mode in ("nearest", "bilinear"):
        found += shaped_rows(f"resize {mode}", floats, "8x64x56x56", partial(resize, mode=mode), 0.3, 1.0)
    size = "x".join(map(str, IMAGES))
    found += shaped_rows("max pooling with indices", floats, size, pooling_with_indices, 0.0, 0.9)
    for name, dtypes, maximum in (("max pooling by indices backward", ["float32"], True),
                                  ("average pooling 2d backward", floats, False)):  # fmt: skip
        found += shaped_rows(name, dtypes, size, partial(pooling_gradient, maximum=maximum), 0.0, 0.9)
    for name, operator, arguments, function in (
        ("uniform", "aclnnInplaceUniform", [0.0, 1.0], lambda x: x.uniform_()),
        ("normal", "aclnnInplaceNormal", [0.0, 1.0], lambda x: x.normal_()),
    ):
        make = partial(random, name=operator, arguments=arguments, function=function)
        found += shaped_rows(name, floats, "4M", make, 0.0, 1.0)
    for name, shape, kept in (("sort", (1024, 1024), 0), ("sort", (1, 1 << 20), 0), ("topk 10", (1024, 1024), 10)):
        make = partial(sorting, shape=shape, kept=kept)
        found += shaped_rows(name, floats, "x".join(map(str, shape)), make, 0.0, 1.0)
    for name, shape in (("64x64", (64, 64, 64)), ("1024x1024", (1024, 1024, 1024)), ("777x1025", (1000, 777, 1025)),
                        ("depth 16", (4096, 1024, 16))):  # fmt: skip
        make = partial(product, shape=shape)
        found += shaped_rows("matmul", ["float32"], name, make)  # its aim is the bare BLAS call: gemm_cost.c
        found += shaped_rows("matmul", ["float16", "bfloat16"], name, make, 0.0, 1.0)
    return found
