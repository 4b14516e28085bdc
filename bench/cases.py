"""What the rows of the benchmark share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy

from understudy.arrays import dtype_table

try:
    import torch
except ImportError:
    torch = None

DTYPES = {str(dtype): dtype for dtype in dtype_table(float32="", float16="", bfloat16="")}


@dataclass
class Case:
    operator: Callable[[], None]
    torch: Callable[[], None] | None
    reads: int  # inputs that must be read once
    bytes_each: int  # size of each input and of the output


def to_torch(array: numpy.ndarray):
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def random(dtype: str, size: int, low: float, high: float, count: int) -> list[numpy.ndarray]:
    generator = numpy.random.default_rng(7)
    elements = size // DTYPES[dtype].itemsize
    return [generator.uniform(low, high, elements).astype(numpy.float32).astype(DTYPES[dtype]) for _ in range(count)]
