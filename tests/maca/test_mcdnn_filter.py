"""What filter descriptors store and report (mcdnn 7.2); the query for run-time errors (mcdnn 7.1)."""

import pytest

from understudy.maca import ffi, lib

from tests.maca.mcdnn_support import HALF, handle, ok


@pytest.fixture
def filter_descriptor():
    made = ffi.new("mcdnnFilterDescriptor_t *")
    ok(lib.mcdnnCreateFilterDescriptor(made))
    yield made[0]
    ok(lib.mcdnnDestroyFilterDescriptor(made[0]))


def four(descriptor):
    kind, order, sizes = ffi.new("mcdnnDataType_t *"), ffi.new("mcdnnTensorFormat_t *"), ffi.new("int[4]")
    ok(lib.mcdnnGetFilter4dDescriptor(descriptor, kind, order, *[sizes + i for i in range(4)]))
    return kind[0], order[0], list(sizes)


def nd(descriptor, requested):
    kind, order, rank, sizes = (ffi.new("mcdnnDataType_t *"), ffi.new("mcdnnTensorFormat_t *"), ffi.new("int *"),
                                ffi.new("int[8]", [-1] * 8))
    ok(lib.mcdnnGetFilterNdDescriptor(descriptor, requested, kind, order, rank, sizes))
    return kind[0], order[0], rank[0], list(sizes)


def bytes_of(descriptor):
    size = ffi.new("size_t *")
    ok(lib.mcdnnGetFilterSizeInBytes(descriptor, size))
    return size[0]


def test_four_dimensions(filter_descriptor):
    ok(lib.mcdnnSetFilter4dDescriptor(filter_descriptor, HALF, lib.MCDNN_TENSOR_NHWC, 2, 3, 5, 7))
    assert four(filter_descriptor) == (HALF, lib.MCDNN_TENSOR_NHWC, [2, 3, 5, 7])
    assert nd(filter_descriptor, 2) == (HALF, lib.MCDNN_TENSOR_NHWC, 4, [2, 3] + [-1] * 6)
    assert bytes_of(filter_descriptor) == 420


@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank(filter_descriptor, rank):
    sizes = list(range(2, 2 + rank))
    ok(lib.mcdnnSetFilterNdDescriptor(filter_descriptor, lib.MCDNN_DATA_INT8, lib.MCDNN_TENSOR_NCHW, rank, sizes))
    assert nd(filter_descriptor, 8) == (lib.MCDNN_DATA_INT8, lib.MCDNN_TENSOR_NCHW, rank, sizes + [-1] * (8 - rank))
    assert four(filter_descriptor)[2] == (sizes + [1] * 3)[:4]


def test_vector_types_have_a_byte_per_channel(filter_descriptor):
    ok(lib.mcdnnSetFilter4dDescriptor(filter_descriptor, lib.MCDNN_DATA_INT8x4, lib.MCDNN_TENSOR_NCHW_VECT_C, 2, 8, 3,
                                      3))
    assert bytes_of(filter_descriptor) == 144


def test_no_run_time_error_is_left():
    status = ffi.new("mcdnnStatus_t *", lib.MCDNN_STATUS_RUNTIME_FP_OVERFLOW)
    for mode in (lib.MCDNN_ERRQUERY_RAWCODE, lib.MCDNN_ERRQUERY_NONBLOCKING, lib.MCDNN_ERRQUERY_BLOCKING):
        ok(lib.mcdnnQueryRuntimeError(handle(), status, mode, ffi.NULL))
        assert status[0] == lib.MCDNN_STATUS_SUCCESS
