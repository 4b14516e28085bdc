"""Communicators by name, for operators that get no more than that: made when a call first asks for them."""

import functools
import os

from understudy.ascend import ffi, lib

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.verdicts import require_status as ok

RANKS = {"one rank": 1, "another rank": 1, "two ranks": 2}  # all of them of device 0 and of this process


def configured(**fields):
    """As HcclCommConfigInit of hccl_comm.h leaves it, but for some fields."""
    made = ffi.new("HcclCommConfig *")
    ffi.memmove(made.reserved, ffi.new("uint64_t *", ffi.sizeof("HcclCommConfig")), 8)
    for name in ("hcclBufferSize", "hcclDeterministic", "hcclRdmaTrafficClass", "hcclRdmaServiceLevel"):
        setattr(made, name, 0xFFFFFFFF)
    made.hcclExecTimeOut = -1
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@functools.cache
def _make(name: str, process: int) -> list:
    support.start()
    root, made = ffi.new("HcclRootInfo *"), ffi.new("HcclComm[]", RANKS[name])
    ok(lib.HcclGetRootInfo(root))
    ok(lib.HcclGroupStart())
    for rank in range(RANKS[name]):
        config = configured(hcclCommName=name.encode())
        ok(lib.HcclCommInitRootInfoConfig(RANKS[name], root, rank, config, made + rank))
    ok(lib.HcclGroupEnd())
    return list(made)


def be_there(name: str) -> None:
    """Does nothing for names that are not in RANKS."""
    if name in RANKS:
        _make(name, os.getpid())
