"""What the rows of the benchmark share."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy

from understudy.arrays import dtype_table

try:
    import torch
except ImportError:
    torch = None

DTYPES = {str(dtype): dtype for dtype in dtype_table(float32="", float16="", bfloat16="")}
SIZES = {"4 KiB": 4 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}  # of the first input


@dataclass
class Case:
    """The least that any implementation moves: every input read once, every result written once."""

    operator: Callable[[], None]
    torch: Callable[[], object] | None
    bytes_read: int
    bytes_written: int


@dataclass
class Row:
    name: str
    dtype: str
    size: str  # as the table prints it
    make: Callable[[], AbstractContextManager[Case]]
    stream_aim: float = 0.0  # least wanted ratio of the stream's time to the operator's; 0: no aim
    torch_aim: float = 0.0  # the same for PyTorch's time


def to_torch(array: numpy.ndarray):
    """A tensor that shares the array's memory, with the strides of a view."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def peer(make: Callable[[], Callable[[], object]]) -> Callable[[], object] | None:
    """PyTorch's way to do the same, or None where PyTorch is absent or has no such kernel for the type."""
    if torch is None:
        return None
    try:
        function = make()
        function()
    except (NotImplementedError, RuntimeError) as error:
        if "not implemented for" not in str(error):
            raise
        return None
    return function


def random(dtype: str, size: int, low: float, high: float, count: int) -> list[numpy.ndarray]:
    """Vectors of so many bytes."""
    generator = numpy.random.default_rng(7)
    elements = size // DTYPES[dtype].itemsize
    return [generator.uniform(low, high, elements).astype(numpy.float32).astype(DTYPES[dtype]) for _ in range(count)]


def sized_rows(name: str, dtypes, make: Callable[[str, int], AbstractContextManager[Case]], *aims: float) -> list[Row]:
    """A row for each type and size; `make` takes the two. The smallest shows the cost of a call and has no aim."""
    return [
        Row(name, dtype, label, lambda dtype=dtype, size=size: make(dtype, size), *(aims if size >= 1 << 20 else ()))
        for dtype in dtypes
        for label, size in SIZES.items()
    ]


def shaped_rows(name: str, dtypes, label: str, make: Callable[[str], AbstractContextManager[Case]], *aims) -> list[Row]:
    """A row for each type, at one shape."""
    return [Row(name, dtype, label, lambda dtype=dtype: make(dtype), *aims) for dtype in dtypes]
