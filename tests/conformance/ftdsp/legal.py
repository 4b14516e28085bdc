"""What the table of the manual's operators cannot say of the legal call: parameter structures and tables of arrays."""

import numpy

from tests.conformance.ftdsp.calls import DDR, Table, sample
from understudy.ftdsp import ffi


def ints(*values):
    return numpy.array(values, numpy.int32)


def structure(type_name, **members):
    """A parameter structure; arrays among its members are kept alive with it."""
    made = ffi.new(f"{type_name} *")
    for name, value in members.items():
        setattr(made, name, value)
    return made


def pieces(*counts):
    """A table of arrays with these numbers of elements."""
    def table(prefix, name):
        return Table(name, [sample(prefix or "fp", count, position) for position, count in enumerate(counts)])

    return table


def filling(elements, type_size):
    return lambda prefix: structure("FillParameter", elem_cnt_=elements, type_size_=type_size)


class Tensors:
    """input_tensors of switchlayer: tensors whose data is at these addresses."""

    def __init__(self, *tensors):
        self.members = [structure("TensorC", type_size=size, size=count, data=ffi.cast("void *", address))
                        for size, count, address in tensors]
        self.table = ffi.new("TensorC *[]", [member if member else ffi.NULL for member in self.members])


_kept = []


def tensors(*given):
    made = Tensors(*given)
    _kept.append(made)
    return made.table


def tensor(size, count, address):
    made = structure("TensorC", type_size=size, size=count, data=ffi.cast("void *", address))
    _kept.append(made)
    return made


_numbers = numpy.array([0.5, 0.75, 1], numpy.float32)  # alpha, beta, bias


def local_norm(out_size=3, channel=4, radius=1, addresses=(0, 4, 8)):
    first = _numbers.ctypes.data
    return numpy.array([out_size, channel, radius, *(0 if a is None else first + a for a in addresses)], numpy.int64)


def longs(*values):
    return numpy.array(values, numpy.int64)


def reduction(total=24, axes=2, mode=4, output=2, outer=(2, 2), axis=(3, 4), inner=(4, 1)):
    arrays = [ffi.NULL if sizes is None else ffi.new("int[]", list(sizes)) for sizes in (outer, inner, axis)]
    _kept.append(arrays)
    return structure("ReduceParameter", total_num_=total, num_axes_=axes, mode_=mode, output_num_=output,
                     outer_sizes_=arrays[0], inner_sizes_=arrays[1], axis_sizes_=arrays[2])  # fmt: skip


def cropping(image=(1, 3, 4, 2), output=(1, 2, 2, 2)):
    arrays = [ffi.NULL if sizes is None else ffi.new("int[]", list(sizes)) for sizes in (image, output)]
    _kept.append(arrays)
    return structure("CropAndResizeParameter", input_shape_=arrays[0], output_shape_=arrays[1])


OWN_PARAMETERS = {
    "reduce": {"param": lambda prefix: reduction()}, "crop_and_resize": {"param": lambda prefix: cropping()},
    "lrn": {"params": lambda prefix: local_norm()},
    "split": {"outputs": lambda prefix: pieces(4, 6)(prefix, "outputs")},
    "split_with_overlap": {"outputs": lambda prefix: pieces(4, 6)(prefix, "outputs")},
    "tensorlistfromtensor": {"output_tensors": lambda prefix: pieces(3, 3)(prefix, "output_tensors")},
    "flatten": {"param": lambda prefix: structure("FlattenParameter", elem_cnt_=6, type_size_=4)},
    "fill": {"param": filling(6, 4)},
    "switchlayer": {"input_tensors": lambda prefix: tensors((4, 3, DDR), (4, 6, DDR + 64)),
                    "output": lambda prefix: tensor(4, 6, DDR + 2**20)},
}
