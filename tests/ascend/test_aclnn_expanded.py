"""Inputs that are expanded along an axis: every operator of the pages gives the bits that it gives for tensors which
hold the same numbers one by one."""

import dataclasses

import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages


@dataclasses.dataclass
class Expanded(pages.Shaped):
    """The first place along an axis stands for all; `packed`: in memory of their own."""

    axis: int = 0
    packed: bool = False

    def make(self, output: bool) -> support.Tensor:
        one = tuple(1 if axis == self.axis else size for axis, size in enumerate(self.shape))
        stored = dataclasses.replace(self, shape=one).stored().reshape(one)
        kind, code = pages.kind_of(self.dtype), pages.DTYPE_CODES.get(self.dtype)
        if self.packed:
            whole = numpy.ascontiguousarray(numpy.broadcast_to(stored, self.shape))
            return support.Tensor(kind, stored=whole.ravel(), shape=self.shape, storage=[whole.size], code=code)
        strides = support.row_major(one)
        strides[self.axis] = 0
        return support.Tensor(kind, stored=stored.ravel(), shape=self.shape, strides=strides, storage=[stored.size],
                              code=code)  # fmt: skip


def expandable(entry, arguments):
    """Inputs whose elements lie in memory of their own, with each of their axes."""
    for parameter in entry["parameters"]:
        value = arguments[parameter["name"]]
        plain = isinstance(value, pages.Shaped) and not parameter["written"] and not value.turned
        if plain and value.storage is None and value.format is None and value.dtype != "I4":
            yield from ((parameter["name"], axis) for axis, size in enumerate(value.shape) if size > 1)


def results(entry, arguments):
    """What the call leaves: None where it is refused, the status where numbers make it fail."""
    values = pages.values_of(entry, arguments)
    status, size, executor = support.plan(entry["function"], *map(pages.handle_of, values.values()))
    if status != 0:
        return None
    stream, workspace = ffi.new("aclrtStream *"), support.Memory(size)
    support.ok(lib.aclrtCreateStream(stream))
    support.ok(getattr(lib, entry["function"])(workspace.address, size, executor, stream[0]))
    status = lib.aclrtSynchronizeStream(stream[0])
    support.ok(lib.aclrtDestroyStream(stream[0]))
    return status or [tensor.bits().tobytes() for tensor in pages.watched(entry, values)]


@pytest.mark.parametrize("name", pages.planned())
def test_expanded_inputs(name):
    entry = pages.operators()[name]
    arguments = pages.legal(entry)
    for changed, axis in expandable(entry, arguments):
        expanded = Expanded(**vars(arguments[changed]), axis=axis)
        packed = dataclasses.replace(expanded, packed=True)
        found = results(entry, {**arguments, changed: expanded})
        assert found is None or found == results(entry, {**arguments, changed: packed}), f"{changed} along axis {axis}"
