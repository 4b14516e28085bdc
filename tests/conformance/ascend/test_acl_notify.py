"""Notifies (cann-runtime-3 5)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case, device, no_context, ok, with_out
from tests.conformance.harness import check_rule


@contextlib.contextmanager
def notify(ordinal: int = 0):
    with device(ordinal):
        made = Out()
        ok(lib.aclrtCreateNotify(made.cell, 0))
        try:
            yield made.value
        finally:
            ok(lib.aclrtSynchronizeDevice())
            ok(lib.aclrtDestroyNotify(made.value))


def dead_notify():
    with notify() as made:
        pass
    return made


def create(flag: int = 0, null: bool = False):
    with device():
        made = Out()
        status = lib.aclrtCreateNotify(ffi.NULL if null else made.cell, flag)
        if status == 0:
            ok(lib.aclrtDestroyNotify(made.value))
        return made.result(status)


def create_many(count: int):
    """The status of the last creation. (All others are still there then.)"""
    with device():
        cells = ffi.new("aclrtNotify[]", count)
        statuses = [lib.aclrtCreateNotify(cells + index, 0) for index in range(count)]
        for index, status in enumerate(statuses):
            if status == 0:
                ok(lib.aclrtDestroyNotify(cells[index]))
        assert not any(statuses[:-1])
        return statuses[-1]


def create_without_context():
    with no_context():
        return with_out("aclrtNotify", lambda cell: lib.aclrtCreateNotify(cell, 0))()


def record_and_wait(made) -> int:
    return lib.aclrtRecordNotify(made, ffi.NULL) or lib.aclrtWaitAndResetNotify(made, ffi.NULL, 0)


def wait_on_device(ordinal: int) -> int:
    with notify(0) as made:
        with device(ordinal):
            ok(lib.aclrtRecordNotify(made, ffi.NULL))
            status = lib.aclrtWaitAndResetNotify(made, ffi.NULL, 10)
            ok(lib.aclrtSynchronizeDevice())
        ok(lib.aclrtSetDevice(0))
        ok(lib.aclrtResetDevice(0))
        return status


def get_id(made, null: bool = False):
    return with_out("uint32_t", lambda cell: lib.aclrtGetNotifyId(made, ffi.NULL if null else cell))()


def reset(made, count: int = 1, null: bool = False):
    return lib.aclrtNotifyBatchReset(ffi.NULL if null else ffi.new("aclrtNotify[1]", [made]), count)


def wait(made):
    return lib.aclrtWaitAndResetNotify(made, ffi.NULL, 0)


def record(made):
    return lib.aclrtRecordNotify(made, ffi.NULL)


def handle_cases():
    calls = {"aclrtRecordNotify": (record, record), "aclrtWaitAndResetNotify": (wait, record_and_wait),
             "aclrtGetNotifyId": (get_id, get_id), "aclrtNotifyBatchReset": (reset, reset)}  # fmt: skip
    for name, (refused, legal) in calls.items():
        def on_notify(legal=legal):
            with notify() as made:
                return legal(made)

        def on(handle, refused=refused):
            with device():
                return refused(handle())

        yield case(f"{name}/notify/null", lambda on=on: on(lambda: ffi.NULL), on_notify)
        yield case(f"{name}/notify/dead", lambda on=on: on(dead_notify), on_notify)


def with_notify(call):
    def run():
        with notify() as made:
            return call(made)

    return run


def destroy_one():
    dead_notify()
    return 0


def reset_on_the_product():
    with notify() as made:
        return reset(made)


RULES = [
    *handle_cases(),
    case("aclrtCreateNotify/notify/null", lambda: create(null=True), create),
    case("aclrtCreateNotify/flag/range", lambda: create(2), lambda: create(1).status),
    case("aclrtCreateNotify/context/none", create_without_context, create),
    case("aclrtCreateNotify/notify/limit", lambda: create_many(1025), lambda: create_many(1024),
         {"UNDERSTUDY_SOC": "Ascend910"}),
    case("aclrtDestroyNotify/notify/null", lambda: lib.aclrtDestroyNotify(ffi.NULL), destroy_one),
    case("aclrtDestroyNotify/notify/dead", lambda: lib.aclrtDestroyNotify(dead_notify()), destroy_one),
    case("aclrtGetNotifyId/notifyId/null", with_notify(lambda made: get_id(made, null=True)), with_notify(get_id)),
    case("aclrtWaitAndResetNotify/notify/device", lambda: wait_on_device(1), lambda: wait_on_device(0), ALONE),
    case("aclrtNotifyBatchReset/notifies/null", with_notify(lambda made: reset(made, null=True)), with_notify(reset)),
    case("aclrtNotifyBatchReset/num/range", with_notify(lambda made: reset(made, 0)), with_notify(reset)),
    case("aclrtNotifyBatchReset/device/unsupported", reset_on_the_product, with_notify(get_id),
         {"UNDERSTUDY_SOC": "Ascend910"}),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
