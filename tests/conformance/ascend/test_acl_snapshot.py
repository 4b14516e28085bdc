"""Snapshots of the process's devices (cann-runtime-3 18)."""

import os

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import case, device, ok
from tests.conformance.ascend.test_acl_model import NULL, ON_910, STRANGE
from tests.conformance.harness import check_rule

STEPS = ["Lock", "Backup", "Restore", "Unlock"]
BEFORE = {"Lock": [], "Backup": ["Lock"], "Restore": ["Lock", "Backup"], "Unlock": ["Lock"]}
WRONG = {"Lock": ["Lock"], "Backup": [], "Restore": ["Lock"], "Unlock": []}
STAGE = {"Lock": lib.ACL_RT_SNAPSHOT_LOCK_PRE, "Backup": lib.ACL_RT_SNAPSHOT_BACKUP_POST,
         "Restore": lib.ACL_RT_SNAPSHOT_RESTORE_PRE, "Unlock": lib.ACL_RT_SNAPSHOT_UNLOCK_POST}  # fmt: skip


@ffi.callback("aclrtSnapShotCallBack")
def answer(_device, result):
    return int(ffi.cast("uintptr_t", result))


@ffi.callback("aclrtSnapShotCallBack")
def other(_device, _arguments):
    return 0


def step(name, pid=None, reserved=NULL):
    return getattr(lib, f"aclrtSnapShotProcess{name}")(os.getpid() if pid is None else pid, reserved)


def after(states, name, **changes):
    """A step from the state to which other steps lead; the process runs afterwards."""
    with device():
        for state in states:
            ok(step(state))
        status = step(name, **changes)
        unlocked = name == "Unlock" and status in (0, 507912)  # that of a callback: too late
        if (states or (name == "Lock" and status == 0)) and not unlocked:
            ok(step("Unlock"))
        return status


def legal(name):
    return after(BEFORE[name], name)


def with_callback(name, result):
    ok(lib.aclrtSnapShotCallbackRegister(STAGE[name], answer, ffi.cast("void *", result)))
    try:
        return legal(name)
    finally:
        ok(lib.aclrtSnapShotCallbackUnregister(STAGE[name], answer))


def register(stage=0, callback=answer, already=()):
    for entry in already:
        ok(lib.aclrtSnapShotCallbackRegister(*entry, NULL))
    status = lib.aclrtSnapShotCallbackRegister(stage, callback, NULL)
    for entry in {*already, (stage, callback)} if status == 0 else already:
        ok(lib.aclrtSnapShotCallbackUnregister(*entry))
    return status


def unregister(stage=0, callback=answer):
    ok(lib.aclrtSnapShotCallbackRegister(0, answer, NULL))
    status = lib.aclrtSnapShotCallbackUnregister(stage, callback)
    if status != 0:
        ok(lib.aclrtSnapShotCallbackUnregister(0, answer))
    return status


def strangers(count):
    """So many functions, which nobody calls."""
    return [(i % 6, ffi.cast("aclrtSnapShotCallBack", 4096 + i)) for i in range(count)]


RULES = [
    *[case(f"aclrtSnapShotProcess{name}/device/unsupported", lambda name=name: step(name), lambda: 0,
           ON_910) for name in STEPS],
    *[case(f"{name}/device/unsupported", lambda name=name, more=more: getattr(lib, name)(0, answer, *more), lambda: 0,
           ON_910)
      for name, more in (("aclrtSnapShotCallbackRegister", [NULL]), ("aclrtSnapShotCallbackUnregister", []))],
    *[case(f"aclrtSnapShotProcess{name}/pid/other", lambda name=name: after(BEFORE[name], name, pid=os.getppid()),
           lambda name=name: legal(name)) for name in STEPS],
    *[case(f"aclrtSnapShotProcess{name}/reserve/reserved",
           lambda name=name: after(BEFORE[name], name, reserved=ffi.cast(f"aclrtSnapShot{name}Args *", STRANGE)
                                   if name in ("Backup", "Restore") else STRANGE),
           lambda name=name: legal(name)) for name in STEPS],
    *[case(f"aclrtSnapShotProcess{name}/process/state", lambda name=name: after(WRONG[name], name),
           lambda name=name: legal(name)) for name in STEPS],
    *[case(f"aclrtSnapShotProcess{name}/callback/failed", lambda name=name: with_callback(name, 1),
           lambda name=name: with_callback(name, 0)) for name in STEPS],
    case("aclrtSnapShotCallbackRegister/stage/range", lambda: register(6), lambda: register(5)),
    case("aclrtSnapShotCallbackRegister/callback/null", lambda: register(callback=NULL), register),
    case("aclrtSnapShotCallbackRegister/callback/registered", lambda: register(already=[(0, answer)]),
         lambda: register(already=[(1, answer), (0, other)])),
    case("aclrtSnapShotCallbackRegister/callback/limit", lambda: register(already=strangers(64)),
         lambda: register(already=strangers(63))),
    case("aclrtSnapShotCallbackUnregister/stage/range", lambda: unregister(6), unregister),
    case("aclrtSnapShotCallbackUnregister/callback/null", lambda: unregister(callback=NULL), unregister),
    case("aclrtSnapShotCallbackUnregister/callback/unknown", lambda: unregister(1), unregister),
]  # fmt: skip


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
