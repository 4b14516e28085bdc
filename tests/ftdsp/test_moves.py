"""What the manual's moving operators give, for every prefix, masks and uneven sizes, against NumPy, bit for bit."""

import re

import numpy
import pytest

from tests.conformance.ftdsp.calls import (DDR, ELEMENT, At, Input, Invocation, Output, Table, Value, clear, compute,
                                           memory)
from tests.ftdsp.test_arrays import ALL, ints, masks_agree, values
from understudy.errors import StatusError
from understudy.ftdsp import ffi, last_error, lib, run


def moved(symbol, x, parameters, expected):
    """Runs a function whose only output is `output`; `parameters` after input and output."""
    result = masks_agree(symbol, [Input("input", x), Output("output", expected.size, x.dtype), *parameters], "output")
    assert result.tobytes() == numpy.ascontiguousarray(expected).tobytes()


def each(**arrays):
    return [Value(name, value if not isinstance(value, (list, tuple)) else ints(*value)) for name, value in arrays.items()]


@pytest.mark.parametrize("prefix", ALL)
def test_copies(prefix):
    for count in (0, 1, 7, 70001):
        x = values(prefix, count)
        moved(f"{prefix}_reshape_s", x, each(length=count), x)
    x = values(prefix, (3, 5, 7))
    if prefix in ("fp", "hp"):
        moved(f"{prefix}_flattengrad_s", x, each(origin_shape=x.shape, origin_ndim=3), x)
    for outputs, ranks, size in ((3, 2, 5), (1, 1, 1), (0, 2, 3), (4, 3, 20011)):
        x = values(prefix, (ranks, size))
        moved(f"{prefix}_allgather_s", x, each(input_rank=ranks, output_rank=outputs, data_size=size),
              numpy.stack([x] * outputs) if outputs else x[:0])


@pytest.mark.parametrize("prefix", ALL)
def test_tile(prefix):
    for shape, axis, times in (((2, 3), 1, 2), ((2, 3), 0, 3), ((4, 5, 6), 1, 3), ((3, 2), 2, 4), ((2, 3), 1, 0),
                               ((7, 4001), 1, 3)):  # fmt: skip
        x = values(prefix, shape)
        stride = int(numpy.prod(shape[axis:]))
        blocks = x.reshape(-1, stride)
        moved(f"{prefix}_tile_s", x, each(input_shape=shape, tile_dim=axis, tile_num=times, stride=stride),
              numpy.repeat(blocks, times, axis=0))
    assert compute("fp_tile_s", [Input("input", numpy.float32([1, 2, 3, 4, 5, 6])), Output("output", 12, numpy.float32),
                                 *each(input_shape=(2, 3), tile_dim=1, tile_num=2, stride=3)])["output"].tolist() == [
        1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6]  # ft-dsp-manual 3 tile  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("prefix", ALL)
def test_splits(prefix, axis):
    x = values(prefix, (5, 6, 7))
    length, item = x.shape[axis], x.itemsize

    def run(name, bounds, extra):
        parts = [numpy.take(x, range(*bound), axis) for bound in bounds]
        places = [At(DDR + position * 2**16, copy=False) for position in range(len(parts))]
        for mask in (0xFF, 0x05, None):
            for place in places:
                memory(place.address, 1)
            symbol = f"{prefix}_{name}_{'p' if mask is None else 's'}"
            compute(symbol, [Input("input", x), Table("outputs", places), Value("axis", axis),
                             *each(input_shape=x.shape, input_ndim=3, num_split=len(parts), **extra)], mask)
            for place, part in zip(places, parts):
                assert memory(place.address, part.size * item) == part.tobytes()

    cuts = [0, 1, 1, 4, length]
    run("split", list(zip(cuts, cuts[1:])), {"split_sizes": numpy.diff(cuts).astype(numpy.int32)})
    bounds = [(0, 3), (2, length), (1, 1), (4, 5)]
    run("split_with_overlap", bounds, {"start_indices": ints(*[b[0] for b in bounds]),
                                       "end_indices": ints(*[b[1] for b in bounds])})


def test_tables_do_not_lie_under_what_is_written():
    """They are read while it is: a size that changes would send copies anywhere."""
    def at(kind, place, *numbers):
        pointer = ffi.cast(f"{kind} *", place)
        for position, number in enumerate(numbers):
            pointer[position] = ffi.cast(kind, number)
        return pointer

    def refused(symbol, *parameters):
        before = memory(DDR, 128)
        clear()
        assert Invocation(symbol, list(parameters), {}, 1).run().status == 7, last_error()
        assert memory(DDR, 128) == before

    x, far, near = Input("input", numpy.float32(range(6))), DDR + 2**16, DDR + 4
    split = [x, Table("outputs", [At(far, copy=False), At(DDR, copy=False)]),
             *each(axis=0, input_shape=(6,), input_ndim=1, num_split=2)]  # fmt: skip
    refused("fp_split_s", *split, *each(sizes=at("int", near, 2, 4)))
    refused("fp_split_with_overlap_s", *split, *each(start=at("int", near, 0, 2), end=(2, 6)))
    refused("fp_split_with_overlap_s", *split, *each(start=(0, 2), end=at("int", near, 2, 6)))
    table = ffi.cast("float **", at("uintptr_t", DDR, far, DDR))
    refused("fp_tensorlistfromtensor_s", x, *each(shape=(2, 3)), Value("table", table), *each(total=6))
    output = Value("output", ffi.cast("float *", DDR))
    refused("fp_concat_s", Value("inputs", ffi.cast("float **", at("uintptr_t", DDR, far, far))),
            Table("shapes", [ints(3, 2), ints(3, 3)]), *each(num_inputs=2, axis=1, input_ndim=2), output)  # fmt: skip
    inputs = Table("inputs", [At(far, copy=False)] * 2)
    refused("fp_concat_s", inputs, Value("shapes", ffi.cast("int **", at("uintptr_t", DDR, far + 64, far + 64))),
            *each(num_inputs=2, axis=int(at("int", far + 64, 3, 2)[1] - 1), input_ndim=2), output)  # fmt: skip
    at("int", near, 3, 2)
    refused("fp_concat_s", inputs, Table("shapes", [ints(3, 2), At(near, copy=False)]),
            *each(num_inputs=2, axis=1, input_ndim=2), output)  # fmt: skip
    refused("fp_stack_s", Value("inputs", ffi.cast("float **", at("uintptr_t", DDR, far, far))),
            *each(shape=(3, 2), num_inputs=2, axis=0, input_ndim=2), output)  # fmt: skip
    tensors, output = Table("data", [At(far, copy=False)] * 2), Value("output", ffi.cast("void *", DDR))
    for sizes, types in ((at("int", near, 4, 4), ints(4, 4)), (ints(4, 4), at("int", near, 4, 4))):
        refused("tensorliststack_s", *each(tensor_num=2, sizes=sizes, types=types), tensors, output, *each(unknown=0))
    table = Value("data", ffi.cast("void **", at("uintptr_t", DDR, far, far)))
    refused("tensorliststack_s", *each(tensor_num=2, sizes=(4, 4), types=(4, 4)), table, output, *each(unknown=0))
    refused("fp_sparsetodense_s", Input("indices", ints(0, 0, 0, 1, 0, 0, 1, 0)), Input("x", numpy.float32([1, 2])),
            Value("output", ffi.cast("float *", DDR)), *each(strides=at("int", near, 4, 2, 1), length=2, is_scalar=0))


@pytest.mark.parametrize("prefix", ALL)
def test_lists(prefix):
    x = values(prefix, (4, 5, 3))
    places = [At(DDR + position * 2**16, copy=False) for position in range(4)]
    for mask in (0xFF, 0x05, None):
        symbol, x = f"{prefix}_tensorlistfromtensor_{'p' if mask is None else 's'}", x[::-1].copy()
        compute(symbol, [Input("input_tensor_values", x), Value("input_tensor_shape", ints(4, 5, 3)),
                         Table("output_tensors", places), Value("total", x.size)], mask)
        for place, row in zip(places, x):
            assert memory(place.address, row.nbytes) == row.tobytes()


def test_a_list_of_nothing_needs_no_table():
    for symbol, mask in (("fp_tensorlistfromtensor_s", 0xFF), ("fp_tensorlistfromtensor_p", None)):
        compute(symbol, [Input("input_tensor_values", values("fp", (1,))), Value("input_tensor_shape", ints(2**31 - 1, 2)),
                         Value("output_tensors", ffi.NULL), Value("total", 0)], mask)


def test_switched_layers():
    """One of two tensors, of other sizes, is copied."""
    first, second = numpy.arange(5, dtype=numpy.int16), numpy.arange(7, dtype=numpy.int64)
    for mask in (0xFF, 0x0A):
        for index, chosen in enumerate((first, second)):
            given = [ffi.new("TensorC *", (x.itemsize, x.size, ffi.from_buffer(x))) for x in (first, second)]
            copy = numpy.full(8, -1, numpy.int64)
            output = ffi.new("TensorC *", (chosen.itemsize, chosen.size, ffi.from_buffer(copy)))
            lib.switchlayer_s(given, output, index, mask)
            assert copy.tobytes() == chosen.tobytes() + b"\xff" * (copy.nbytes - chosen.nbytes)


def test_items_of_lists():
    x = numpy.arange(24, dtype=numpy.int8)
    for symbol in ("tensorlistgetitem_s", "tensorlistgetitem_p"):
        for size, count, expected in ((4, 6, x), (3, 5, x[:15]), (0, 9, numpy.zeros(9, numpy.int8)), (1, 0, x[:0])):
            given = [Input("src", x), Output("dst", 24, numpy.int8), Value("data_type", size), Value("length", count)]
            result = compute(symbol, given)["dst"]
            assert result[: len(expected)].tobytes() == expected.tobytes()
            assert result[len(expected):].tobytes() == b"\xa5" * (24 - len(expected))


@pytest.mark.parametrize(("shape", "wanted"), [((3, 1), (2, 3, 2)), ((), (4,)), ((5,), (5,)), ((1, 7, 1), (3, 7, 5)),
                                               ((1,), (100003,)), ((2, 1, 3), (2, 0, 3)), ((4, 1, 2, 1), (4, 5, 2, 3))],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", ALL)
def test_broadcastto(prefix, shape, wanted):
    x = values(prefix, shape)
    moved(f"{prefix}_broadcastto_s", numpy.atleast_1d(x), each(input_shape=shape or (0,), input_shape_size=len(shape),
          output_shape=wanted, output_shape_size=len(wanted), data_size=0), numpy.broadcast_to(x, wanted))


@pytest.mark.parametrize("prefix", ALL)
def test_spacetodepth(prefix):
    for (n, h, w, c), block in (((1, 2, 2, 2), 2), ((2, 6, 9, 5), 3), ((3, 4, 5, 1), 1), ((0, 2, 2, 1), 2)):
        x = values(prefix, (n, h, w, c))
        expected = x.reshape(n, h // block, block, w // block, block, c).transpose(0, 1, 3, 5, 2, 4)
        moved(f"{prefix}_spacetodepth_s", x, each(in_shape=(n, h, w, c), block=block, data_size=4), expected)
    x = numpy.arange(8, dtype=numpy.float32)
    given = [Input("input", x), Output("output", 8, numpy.float32), *each(in_shape=(1, 2, 2, 2), block=2, data_size=4)]
    assert compute("fp_spacetodepth_s", given)["output"].tolist() == [0, 2, 4, 6, 1, 3, 5, 7]  # ft-dsp-manual 7


@pytest.mark.parametrize(("shape", "block", "margins"), [
    ((1, 2, 4, 3), (2, 2), (1, 1, 1, 1)), ((2, 3, 5, 2), (3, 2), (1, 2, 0, 1)), ((3, 4, 4, 1), (1, 1), (0, 0, 0, 0)),
    ((2, 1, 1, 7), (4, 3), (3, 0, 0, 2)), ((1, 2, 2, 1), (2, 5), (4, 0, 7, 1)), ((1, 6, 6, 2), (2, 3), (0, 0, 0, 0))])  # fmt: skip
@pytest.mark.parametrize("prefix", ALL)
def test_space_and_batch(prefix, shape, block, margins):
    x = values(prefix, shape)
    n, _, _, c = shape
    wide = numpy.pad(x, [(0, 0), margins[:2], margins[2:], (0, 0)])
    _, height, width, _ = wide.shape
    h, w = height // block[0], width // block[1]
    blocks = wide.reshape(n, h, block[0], w, block[1], c).transpose(2, 4, 0, 1, 3, 5)
    moved(f"{prefix}_spacetobatch_s", x, each(block_size=block, paddings=margins, input_shape=shape, data_size=4), blocks)
    batch = numpy.ascontiguousarray(blocks).reshape(-1, h, w, c)
    moved(f"{prefix}_batchtospace_s", batch, each(input_shape=batch.shape, block_size=block, crops=margins, data_size=4), x)
    moved(f"{prefix}_batch_to_space_s", batch, each(in_shape=batch.shape, block=block, crops=margins), x)


def test_empty_arrays_of_any_sizes():
    """Beside an axis of size 0 the other sizes may multiply to anything."""
    big, none = 2**31 - 1, numpy.zeros(0, numpy.float32)
    for axis, shape in ((0, (big, big, big, 0)), (2, (big, big, big, 0)), (3, (0, big, big, big))):
        table = [Input("input", none), Table("outputs", [None, None]), Value("axis", axis),
                 *each(input_shape=shape, input_ndim=4, num_split=2)]  # fmt: skip
        compute("fp_split_s", [*table, *each(split_sizes=(big - 1, 1))])
        compute("fp_split_with_overlap_s", [*table, *each(start=(0, big - 1), end=(big, big))])
    moved("fp_spacetodepth_s", none, each(in_shape=(0, big, big, big), block=1, data_size=4), none)
    moved("fp_batchtospace_s", none, each(in_shape=(big, big, big, 0), block=(1, 1), crops=(0, 0, 0, 0), data_size=4), none)
    moved("fp_slice_s", none, each(shape=(0, big, big, big), ndim=4, begin=(0, 5, 5, 5), size=(0, 7, 7, 7)), none)
    input_, output, index = Input("input", none), Output("output", 0, numpy.float32), Input("index", ints())
    places = [Output("places", 0, numpy.int32), output]
    for shape, axis, top in (((0, big, big, big), 3, 1), ((big, big, 8, 0), 2, 8)):
        compute("fp_argmax_s", [input_, *places, *each(shape=shape, in_strides=shape, out_strides=shape), *places[::-1],
                                *each(topk=top, out_value=1, rank=4, axis=axis)])
    compute("fp_glu_s", [input_, Table("split_data", [None, None]), output,
                         *each(ndim=5, split_dim=1, input_shape=(0, 2, big, big, big), num_split=2, split_sizes=(1, 1),
                               strides=(1, 1, 1, 1, 1), len=0)])
    wide = (0, big, big, big)
    compute("fp_gatherd_s", [input_, Value("dim", 0), index, output, *each(shape=wide, rank=4, index_shape=wide)])
    slices = [*each(shape=wide, ndim=4), index, *each(indices_shape=(0, 1), indices_ndim=2)]
    compute("fp_gather_nd_s", [input_, output, *slices])
    compute("fp_scatter_nd_s", [output, *slices, input_])
    compute("fp_avgpoolinggrad_s", [input_, output,
                                    *each(batch=0, out_h=big, out_w=big, channel=big, in_w=big, in_h=big, stride_w=1,
                                          stride_h=1, pad_l=0, pad_u=0, window_w=1, window_h=1)])
    compute("fp_nonzero_s", [input_, *places[:1], Output("count", 1, numpy.int32, ints(0)),
                             *each(strides=(0, 0, 1), shape=(4, 7, 0), rank=3, length=0)])


def test_nothing_takes_no_time():
    """Results without elements, as many as there may be of them."""
    big, none = 2**31 - 1, numpy.zeros(0, numpy.float32)
    input_, output = Input("input", none), Output("output", 0, numpy.float32)
    one = Input("one", numpy.ones(4, numpy.float32))
    number = lambda **values: [Value(name, value) for name, value in values.items()]  # noqa: E731
    compute("fp_roipooling_s", [*each(n=1, h=3, w=4, c=0, rois=1), *number(scale=1.0),
                                *each(pooled_h=2**22, pooled_w=2**22), input_, output,
                                Input("roi", numpy.zeros(5, numpy.float32)), output])
    compute("fp_layernormfusion_s", [input_, output, one, one, *number(mean=None, variance=None),
                                     *each(param_inner=4, param_outer=big, inner=0, outer=big),
                                     *number(epsilon=1e-5, length=0)])
    shapes = [ffi.new("int[]", [1, 3, 4, 0]), ffi.new("int[]", [1, big, big, 0])]
    param = ffi.new("CropAndResizeParameter *", {"input_shape_": shapes[0], "output_shape_": shapes[1]})
    clear()
    Invocation("fp_crop_and_resize_anycore",
               [input_, output, Input("box_idx", ints(0)), one, *number(param=param, outside=0.0)], {}, 0xFF).run()
    assert last_error().rule == "", last_error()


def in_format(x, number):
    """[batch, channel, plane] in a format."""
    if number == 0:
        return x
    if number == 1:
        return x.transpose(0, 2, 1)
    lanes = {13: 4, 19: 8, 20: 16}[number]
    batch, channels, plane = x.shape
    blocks = -(-channels // lanes)
    padded = numpy.zeros((batch, blocks * lanes, plane), x.dtype)
    padded[:, :channels] = x
    return padded.reshape(batch, blocks, lanes, plane).transpose(0, 1, 3, 2)


@pytest.mark.parametrize("source", [0, 1, 13, 19, 20])
@pytest.mark.parametrize("target", [0, 1, 13, 19, 20])
@pytest.mark.parametrize("prefix", ALL)
def test_formattranspose(prefix, source, target):
    for shape in ((2, 3, 5), (1, 21, 7), (3, 16, 1)):
        x = values(prefix, shape)
        given, expected = (numpy.ascontiguousarray(in_format(x, number)) for number in (source, target))
        result = masks_agree(f"{prefix}_formattranspose_s", [
            Value("src_format", source), Value("dst_format", target), Input("src_data", given),
            Output("dst_data", expected.size, ELEMENT[prefix]), *each(batch=shape[0], channel=shape[1], plane=shape[2])],
            "dst_data")
        assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("prefix", ALL)
def test_fill(prefix):
    for count in (0, 1, 5, 30011):
        value = values(prefix, 1, count)
        for mask in (0xFF, 0x0B, None):
            result = filled(prefix, value, count, mask)
            assert result.tobytes() == value.tobytes() * count


def filled(prefix, value, count, mask):
    param = ffi.new("FillParameter *", {"elem_cnt_": count, "type_size_": 4})
    symbol = f"{prefix}_fill_{'p' if mask is None else 's'}"
    clear()
    call = Invocation(symbol, [Input("value", value), Output("output", count, value.dtype), Value("param", param)], {},
                      mask, 2)  # fmt: skip
    call.run()
    assert last_error().rule == ""
    return call.output("output", value.dtype)


def test_flatten():
    x = numpy.arange(30, dtype=numpy.int16)
    param = ffi.new("FlattenParameter *", {"elem_cnt_": 5, "type_size_": 6})
    for mask, expected in ((0xFF, x[:15].tobytes()), (0x08, x[:15].tobytes()), (0, b"\xa5" * 30), (0x100, b"\xa5" * 30)):
        call = Invocation("Flatten", [Input("input", x), Output("output", 15, numpy.int16), Value("param", param)], {},
                          mask, 2)  # fmt: skip
        call.run()
        assert call.output("output", numpy.int16).tobytes() == expected
    lib.Flatten(ffi.cast("void *", 0xA0000000), ffi.cast("void *", 0xA0000000), 1, param)  # in place: nothing to do


def test_switchlayer():
    source, target = (ffi.cast("float *", DDR + offset) for offset in (0, 2**16))
    for i in range(6):
        source[i], target[i] = i + 0.5, -1
    inputs = [ffi.new("TensorC *", [4, 3, target]), ffi.new("TensorC *", [4, 5, source])]
    lib.switchlayer_s(ffi.new("TensorC *[]", inputs), ffi.new("TensorC *", [0, 0, target]), 1, 0xFF)
    assert list(target[0:6]) == [0.5, 1.5, 2.5, 3.5, 4.5, -1]


def test_a_refused_entry_of_a_table_is_named():
    x, out, shape = numpy.zeros(6, numpy.float32), numpy.zeros(12, numpy.float32), ints(2, 3)
    for operator, arguments, sentence in [
        ("concat", ([x, None], [shape, shape], 2, 0, 2, out), r"inputs\[1\] is NULL; it has 6 elements"),
        ("stack", ([None, x], shape, 2, 0, 2, out), r"inputs\[0\] is NULL; it has 6 elements"),
        ("split", (x, [out[:3], out[3:5]], 0, shape, 2, 2, ints(1, 1)), r"outputs\[1\] at \w+ needs 12 bytes, but its array ends after 8"),
    ]:
        with pytest.raises(StatusError) as refused:
            run(operator, *arguments, prefix="fp")
        assert re.fullmatch(sentence, refused.value.text)
        assert re.fullmatch(f"fp_{operator}_s/(in|out)puts/(null|window)", refused.value.rule)
