"""What tensor descriptors store and report (mcdnn 7.2)."""

import itertools

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.maca.mcdnn_support import FLOAT, STORAGE, handle, nhwc_strides, ok, packed_strides

NCHW, NHWC, VECT_C = lib.MCDNN_TENSOR_NCHW, lib.MCDNN_TENSOR_NHWC, lib.MCDNN_TENSOR_NCHW_VECT_C


@pytest.fixture
def tensor():
    made = ffi.new("mcdnnTensorDescriptor_t *")
    ok(lib.mcdnnCreateTensorDescriptor(made))
    yield made[0]
    ok(lib.mcdnnDestroyTensorDescriptor(made[0]))


def four(tensor):
    kind, numbers = ffi.new("mcdnnDataType_t *"), ffi.new("int[8]")
    ok(lib.mcdnnGetTensor4dDescriptor(tensor, kind, *[numbers + i for i in range(8)]))
    return kind[0], tuple(numbers[0:4]), tuple(numbers[4:8])


def nd(tensor, requested=8):
    kind, rank = ffi.new("mcdnnDataType_t *"), ffi.new("int *")
    sizes, strides = ffi.new("int[8]", [-1] * 8), ffi.new("int[8]", [-1] * 8)
    ok(lib.mcdnnGetTensorNdDescriptor(tensor, requested, kind, rank, sizes, strides))
    return kind[0], rank[0], tuple(sizes), tuple(strides)


def bytes_of(tensor):
    size = ffi.new("size_t *")
    ok(lib.mcdnnGetTensorSizeInBytes(tensor, size))
    return size[0]


@pytest.mark.parametrize("data_type", STORAGE)
@pytest.mark.parametrize("layout", [NCHW, NHWC])
def test_packed_four_dimensions(tensor, layout, data_type):
    sizes = (2, 3, 5, 7)
    ok(lib.mcdnnSetTensor4dDescriptor(tensor, layout, data_type, *sizes))
    strides = packed_strides(sizes) if layout == NCHW else nhwc_strides(sizes)
    assert four(tensor) == (data_type, sizes, strides)
    assert nd(tensor) == (data_type, 4, sizes + (-1,) * 4, strides + (-1,) * 4)
    assert bytes_of(tensor) == 210 * np.dtype(STORAGE[data_type]).itemsize


def test_own_strides_count_gaps_in_the_size(tensor):
    ok(lib.mcdnnSetTensor4dDescriptorEx(tensor, FLOAT, 2, 3, 4, 5, 1000, 100, 10, 1))
    assert four(tensor) == (FLOAT, (2, 3, 4, 5), (1000, 100, 10, 1))
    assert bytes_of(tensor) == (1 + 1000 + 200 + 30 + 4) * 4


@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank(tensor, rank):
    sizes = tuple(range(2, 2 + rank))
    ok(lib.mcdnnSetTensorNdDescriptor(tensor, FLOAT, rank, sizes, ffi.NULL))
    filler = (-1,) * (8 - rank)
    assert nd(tensor) == (FLOAT, rank, sizes + filler, packed_strides(sizes) + filler)
    kind, first, _ = four(tensor)
    assert kind == FLOAT and first == (sizes + (1, 1, 1))[:4]
    ok(lib.mcdnnSetTensorNdDescriptorEx(tensor, NHWC, FLOAT, rank, sizes))
    strides = nhwc_strides(sizes) if rank >= 3 else packed_strides(sizes)
    assert nd(tensor)[3] == strides + filler


def test_getter_writes_what_was_asked_and_the_true_rank(tensor):
    ok(lib.mcdnnSetTensorNdDescriptor(tensor, FLOAT, 5, (2, 3, 4, 5, 6), ffi.NULL))
    assert nd(tensor, 2) == (FLOAT, 5, (2, 3) + (-1,) * 6, (360, 120) + (-1,) * 6)
    assert nd(tensor, 0)[1:] == (5, (-1,) * 8, (-1,) * 8)
    assert nd(tensor, -3)[1:] == (5, (-1,) * 8, (-1,) * 8)
    ok(lib.mcdnnGetTensorNdDescriptor(tensor, 5, *[ffi.NULL] * 4))


@pytest.mark.parametrize("data_type, lanes", [(lib.MCDNN_DATA_INT8x4, 4), (lib.MCDNN_DATA_UINT8x4, 4),
                                              (lib.MCDNN_DATA_INT8x32, 32)])
def test_vector_types_count_strides_in_vectors(tensor, data_type, lanes):
    ok(lib.mcdnnSetTensor4dDescriptor(tensor, VECT_C, data_type, 2, 64, 3, 5))
    assert four(tensor) == (data_type, (2, 64, 3, 5), (64 // lanes * 15, 15, 5, 1))
    assert bytes_of(tensor) == 2 * 64 * 15


def test_signed_strides_are_stored(tensor):
    ok(lib.mcdnnSetTensorNdDescriptor(tensor, FLOAT, 3, (2, 3, 4), (-12, 0, 1)))
    assert nd(tensor)[3][:3] == (-12, 0, 1)
    assert bytes_of(tensor) == (1 + 12 + 3) * 4


def test_a_descriptor_without_a_shape(tensor):
    assert nd(tensor)[:2] == (FLOAT, 0)
    assert bytes_of(tensor) == 0


def test_null_is_destroyed_quietly():
    assert lib.mcdnnDestroyTensorDescriptor(ffi.NULL) == lib.MCDNN_STATUS_SUCCESS


def foreign_handles(tensor):
    dead = ffi.new("mcdnnTensorDescriptor_t *")
    ok(lib.mcdnnCreateTensorDescriptor(dead))
    ok(lib.mcdnnDestroyTensorDescriptor(dead[0]))
    numbers = (1, 8, 0x1000, 2**47 - 16, 2**63, 2**64 - 1, int(ffi.cast("uintptr_t", tensor)) + 16)
    yield dead[0]
    yield ffi.cast("mcdnnTensorDescriptor_t", handle())
    yield from (ffi.cast("mcdnnTensorDescriptor_t", number) for number in numbers)


def test_dead_foreign_and_made_up_descriptors_are_refused(tensor):
    for wrong in foreign_handles(tensor):
        for status in (lib.mcdnnSetTensor4dDescriptor(wrong, NCHW, FLOAT, 1, 1, 1, 1),
                       lib.mcdnnGetTensorSizeInBytes(wrong, ffi.new("size_t *")),
                       lib.mcdnnDestroyTensorDescriptor(wrong)):
            assert status == lib.MCDNN_STATUS_BAD_PARAM


EXTREMES = [-(2**31), -1, 0, 1, 2, 2**16, 2**31 - 1]


@pytest.mark.parametrize("sizes", list(itertools.product(EXTREMES, repeat=3)))
def test_no_size_is_too_absurd(tensor, sizes):
    """Refused or stored, and never an overflow: the sanitizer run watches."""
    legal = min(sizes) > 0
    fits = legal and np.prod([int(size) for size in sizes], dtype=object) <= 2**31
    expected = (lib.MCDNN_STATUS_SUCCESS if fits else
                lib.MCDNN_STATUS_NOT_SUPPORTED if legal else lib.MCDNN_STATUS_BAD_PARAM)
    assert lib.mcdnnSetTensor4dDescriptor(tensor, NHWC, FLOAT, 1, *sizes) == expected
    assert lib.mcdnnSetTensorNdDescriptor(tensor, FLOAT, 3, sizes, ffi.NULL) == expected
    strides_status = lib.mcdnnSetTensorNdDescriptor(tensor, FLOAT, 3, (2**31 - 1,) * 3, sizes)
    assert strides_status in (lib.MCDNN_STATUS_SUCCESS, lib.MCDNN_STATUS_NOT_SUPPORTED)
