"""Buffers with a private area, and chains of them; limits of devices; groups (cann-runtime-3 11, 12, 14)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import Out, case, device, no_context, ok, with_out
from tests.conformance.harness import check_rule

NULL = ffi.NULL
ON_910 = {"UNDERSTUDY_SOC": "Ascend910"}
HIDDEN = {"UNDERSTUDY_DEVICES": "2", "ASCEND_RT_VISIBLE_DEVICES": "1"}


@contextlib.contextmanager
def buffers(count: int = 1):
    """A list of buffers of 64 bytes; what is in it at the end is freed."""
    with device():
        made = ffi.new("aclrtMbuf[]", count)
        for i in range(count):
            ok(lib.aclrtAllocBuf(made + i, 64))
        left = list(made)
        yield left
        for buffer in left:
            ok(lib.aclrtFreeBuf(buffer))


def chained(left, head, *others):
    """Puts buffers in a chain, with whose head they end."""
    for other in others:
        ok(lib.aclrtAppendBufChain(head, other))
        left.remove(other)


def dead():
    with buffers() as left:
        made = left[0]
    return made


def chain(length: int):
    with buffers(length + 1) as left:
        head, *rest, last = left
        chained(left, head, *rest)
        status = lib.aclrtAppendBufChain(head, last)
        if status == 0:
            left.remove(last)
        return status


def append(order):
    """Of three buffers the second is in the chain of the first: appends one of them to another."""
    with buffers(3) as left:
        made = list(left)
        chained(left, *made[:2])
        head, other = (made[i] for i in order)
        status = lib.aclrtAppendBufChain(head, other)
        if status == 0:
            left.remove(other)
        return status


def free_member():
    with buffers(2) as left:
        head, other = left
        chained(left, head, other)
        return lib.aclrtFreeBuf(other)


def allocate(size: int = 64, out: bool = True):
    with device():
        made = Out("aclrtMbuf")
        result = made.result(lib.aclrtAllocBuf(made.cell if out else NULL, size))
        if result.status == 0:
            ok(lib.aclrtFreeBuf(made.value))
        return result


def allocate_without_context():
    with device(), no_context():
        made = Out("aclrtMbuf")
        return made.result(lib.aclrtAllocBuf(made.cell, 64))


BYTES = ffi.new("char[96]")
# The legal call: what follows the buffer, with a new output each time.
CALLS = {
    "aclrtFreeBuf": lambda: [], "aclrtGetBufData": lambda: [Out("void *"), Out("size_t")],
    "aclrtSetBufDataLen": lambda: [63],
    "aclrtGetBufDataLen": lambda: [Out("size_t")], "aclrtSetBufUserData": lambda: [BYTES, 96, 0],
    "aclrtGetBufUserData": lambda: [BYTES, 1, 95], "aclrtCopyBufRef": lambda: [Out("aclrtMbuf")],
    "aclrtAppendBufChain": lambda: [], "aclrtGetBufChainNum": lambda: [Out("uint32_t")],
    "aclrtGetBufFromChain": lambda: [0, Out("aclrtMbuf")],
}  # fmt: skip


def call(name, changes=None, buffer=None):
    """The legal call with arguments changed by position behind the buffer."""
    with buffers(2) as left:
        mine, other = left
        arguments = CALLS[name]() if name != "aclrtAppendBufChain" else [other]
        for position, value in (changes or {}).items():
            arguments[position] = value
        outs = [item for item in arguments if isinstance(item, Out)]
        given = [item.cell if isinstance(item, Out) else item for item in arguments]
        status = getattr(lib, name)(mine if buffer is None else buffer, *given)
        if status == 0 and name == "aclrtCopyBufRef":
            left.append(outs[0].value)
        if status == 0 and name in ("aclrtFreeBuf", "aclrtAppendBufChain"):
            left.remove(mine if name == "aclrtFreeBuf" else other)
        return outs[0].result(status) if outs else status


def pair(rule, changes=None, buffer=None, neighbour=None):
    name = rule.split("/")[0]
    return case(rule, lambda: call(name, changes, buffer and buffer()), lambda: call(name, neighbour))


def set_limit(limit: int = 2, value: int = 65536):
    return lib.aclrtDeviceSetLimit(limit, value)


def get_limit(limit: int = 2, out: bool = True):
    value = Out("size_t")
    return value.result(lib.aclrtDeviceGetLimit(limit, value.cell if out else NULL))


def first(name):
    return "headBuf" if "Chain" in name else "buf"


LIMITS = {"aclrtDeviceSetLimit": set_limit, "aclrtDeviceGetLimit": get_limit}
RULES = [
    *[pair(f"{name}/{first(name)}/null", buffer=lambda: NULL) for name in CALLS],
    *[pair(f"{name}/{first(name)}/dead", buffer=dead) for name in CALLS],
    case("aclrtAllocBuf/buf/null", lambda: allocate(out=False), allocate),
    case("aclrtAllocBuf/size/zero", lambda: allocate(0), lambda: allocate(1)),
    case("aclrtAllocBuf/size/range", lambda: allocate((4 << 30) + 1), lambda: allocate(4 << 30)),
    case("aclrtAllocBuf/context/none", allocate_without_context, allocate),
    pair("aclrtAppendBufChain/buf/null", {0: NULL}),
    case("aclrtAppendBufChain/buf/dead", lambda: call("aclrtAppendBufChain", {0: dead()}), lambda: chain(1)),
    case("aclrtAppendBufChain/buf/chained", lambda: append((2, 1)), lambda: append((0, 2))),
    case("aclrtAppendBufChain/headBuf/chained", lambda: append((1, 2)), lambda: append((0, 2))),
    case("aclrtAppendBufChain/headBuf/limit", lambda: chain(128), lambda: chain(127)),
    case("aclrtFreeBuf/buf/chained", free_member, lambda: call("aclrtFreeBuf")),
    *[pair(f"{name}/{parameter}/null", {place: NULL}) for name, parameter, place in (
        ("aclrtGetBufData", "dataPtr", 0), ("aclrtGetBufData", "size", 1), ("aclrtGetBufDataLen", "len", 0),
        ("aclrtSetBufUserData", "dataPtr", 0), ("aclrtGetBufUserData", "dataPtr", 0), ("aclrtCopyBufRef", "newBuf", 0),
        ("aclrtGetBufChainNum", "num", 0), ("aclrtGetBufFromChain", "buf", 1))],
    pair("aclrtSetBufDataLen/len/range", {0: 64}, neighbour={0: 63}),
    *[pair(f"{name}/size/zero", {1: 0}, neighbour={1: 1}) for name in ("aclrtSetBufUserData", "aclrtGetBufUserData")],
    *[pair(f"{name}/size/range", {1: 2, 2: 95}, neighbour={1: 1, 2: 95})
      for name in ("aclrtSetBufUserData", "aclrtGetBufUserData")],
    pair("aclrtGetBufFromChain/index/range", {0: 1}),
    *[case(f"{name}/limit/range", lambda call=call: call(5), call) for name, call in LIMITS.items()],
    *[case(f"{name}/limit/unsupported", lambda call=call: call(4),
           lambda call=call: call(3)) for name, call in LIMITS.items()],
    *[case(f"{name}/device/unsupported", call, lambda: 0, ON_910) for name, call in LIMITS.items()],
    case("aclrtDeviceSetLimit/value/range", lambda: set_limit(value=196609), lambda: set_limit(value=196608)),
    case("aclrtDeviceSetLimit/device/hidden", set_limit, get_limit, HIDDEN),
    case("aclrtDeviceGetLimit/value/null", lambda: get_limit(out=False), get_limit),
    case("aclrtGetGroupCount/count/null", lambda: lib.aclrtGetGroupCount(NULL),
         with_out("uint32_t", lib.aclrtGetGroupCount)),
]  # fmt: skip


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
