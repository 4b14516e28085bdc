"""Streams and what their waits report (cann-runtime 8 and 9)."""

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    Out, case, dead_stream, device, foreign_stream, inside, memory, no_context, ok, stream, with_out,
)
from tests.conformance.harness import Result, check_rule


def create_and_destroy() -> int:
    with device():
        made = Out()
        status = lib.aclrtCreateStream(made.cell)
        return status or lib.aclrtDestroyStream(made.value)


def create_without_context(cell) -> int:
    with no_context():
        return lib.aclrtCreateStream(cell)


@inside(device)
def destroy_the_default_stream() -> int:
    default = Out()
    ok(lib.aclrtCtxGetCurrentDefaultStream(default.cell))
    return lib.aclrtDestroyStream(default.value)


def soft_margin_on(address) -> Result:
    """An operator that reads and writes one float at an address; the status of the wait for it."""
    with device(), stream() as made:
        shape = ffi.new("int64_t[1]", [1])
        tensor = lib.aclCreateTensor(shape, 1, lib.ACL_FLOAT, ffi.NULL, 0, lib.ACL_FORMAT_ND, shape, 1, address)
        size, executor = Out("uint64_t"), Out()
        executor_cell = ffi.cast("aclOpExecutor **", executor.cell)
        ok(lib.aclnnSoftMarginLossBackwardGetWorkspaceSize(tensor, tensor, tensor, 0, tensor, size.cell, executor_cell))
        ok(lib.aclnnSoftMarginLossBackward(ffi.NULL, 0, executor_cell[0], made))
        status = lib.aclrtSynchronizeStream(made)
        ok(lib.aclDestroyTensor(tensor))
        return Result(status)


def kernel_on_host_memory() -> Result:
    data = ffi.new("float *", 1.5)
    result = soft_margin_on(data)
    return Result(result.status, data[0] == 1.5)


@inside(device, memory)
def kernel_on_device_memory(address) -> Result:
    return soft_margin_on(address)


def copy_to(address_of_destination) -> int:
    """A queued copy whose destination `address_of_destination` frees or keeps; the status of the wait for it."""
    with device(), stream() as made, memory() as source:
        target = Out()
        ok(lib.aclrtMalloc(target.cell, 64, 0))
        ok(lib.aclrtMemcpyAsync(target.value, 64, source, 64, lib.ACL_MEMCPY_DEVICE_TO_DEVICE, made))
        freed = address_of_destination == "freed"
        if freed:
            ok(lib.aclrtFree(target.value))
        status = lib.aclrtSynchronizeStream(made)
        if not freed:
            ok(lib.aclrtFree(target.value))
        return status


DEFERRED = {"UNDERSTUDY_STREAM": "deferred"}  # the copy runs after the free for certain

RULES = [
    case("aclrtCreateStream/stream/null", lambda: lib.aclrtCreateStream(ffi.NULL), create_and_destroy),
    case("aclrtCreateStream/context/none", with_out("void *", create_without_context), create_and_destroy),
    case("aclrtDestroyStream/stream/null", lambda: lib.aclrtDestroyStream(ffi.NULL), create_and_destroy),
    case("aclrtDestroyStream/stream/default", destroy_the_default_stream, create_and_destroy),
    case("aclrtSynchronizeStream/stream/kernel-fault", kernel_on_host_memory, kernel_on_device_memory),
    case("aclrtSynchronizeStream/stream/copy-fault", lambda: copy_to("freed"), lambda: copy_to("live"), DEFERRED),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
