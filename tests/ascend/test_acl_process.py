"""Start and end of the runtime, last errors, error text, and fork."""

import os
import re

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import device, in_thread, no_context
from tests.conformance.harness import run_python

SHORT = "from understudy.ascend import ffi, lib\n"


@pytest.mark.parametrize("calls, statuses", [
    ("fI", [0, 0]),  # the flag "finalised" starts false
    ("fff", [0, 100037, 100037]),
    ("IfIf", [0, 0, 0, 0]),
    ("IIf", [0, 100002, 0]),  # one finalize ends all
    ("IIff", [0, 100002, 0, 100037]),
    ("IfI", [0, 0, 0]),
])  # fmt: skip
def test_order_of_init_and_finalize(calls, statuses):
    source = SHORT + f"print([lib.aclInit(ffi.NULL) if c == 'I' else lib.aclFinalize() for c in {calls!r}])"
    assert run_python(source, {}).strip() == str(statuses)


def test_devices_work_without_init():
    assert run_python(SHORT + "print(lib.aclrtSetDevice(0), lib.aclrtResetDevice(0))", {}).split() == ["0", "0"]


def test_default_device_of_the_configuration(tmp_path):
    file = tmp_path / "acl.json"
    file.write_text('{"dump": {"dump_scene": "lite_exception"}, "defaultDevice": {"default_device": "1"}}')
    source = SHORT + f"""
import threading
cell, number = ffi.new("void **"), ffi.new("int32_t *")
print(lib.aclrtMalloc(cell, 64, 0), lib.aclInit({os.fsencode(file)!r}), lib.aclrtMalloc(cell, 64, 0))
print(lib.aclrtGetDevice(number), number[0])
thread = threading.Thread(target=lambda: print(lib.aclrtSynchronizeStream(ffi.NULL))); thread.start(); thread.join()
"""
    assert run_python(source, {"UNDERSTUDY_DEVICES": "2"}).split() == ["107002", "0", "0", "0", "1", "0"]


@pytest.mark.parametrize("devices, status", [(0, 0), (1, 100000), (2, 100000), (3, 0)])
def test_a_default_device_that_is_not_there(tmp_path, devices, status):
    file = tmp_path / "acl.json"
    file.write_text('{"defaultDevice": {"default_device": "2"}}')
    source = SHORT + f"""
print(lib.aclInit({os.fsencode(file)!r}))
sentence = lib.aclGetRecentErrMsg()
print(bool(sentence) and b"the last device is" in ffi.string(sentence))
"""
    assert run_python(source, {"UNDERSTUDY_DEVICES": str(devices)}).split() == [str(status), str(status != 0)]


@pytest.mark.parametrize("text, answers", [
    ('{"err_msg_mode": "1"}', "True False False True"), ('{"err_msg_mode": 1, "dump": {}}', "True False False True"),
    ('{"err_msg_mode": "0"}', "False False True True"), ('{"dump": {"err_msg_mode": "1"}}', "False False True True"),
    ("{}", "False False True True"),
])  # fmt: skip
def test_error_texts_of_the_thread_or_the_process(tmp_path, text, answers):
    file = tmp_path / "acl.json"
    file.write_text(text)
    source = SHORT + f"""
import threading
assert lib.aclInit({os.fsencode(file)!r}) == 0
told = []
def tell():
    message = lib.aclGetRecentErrMsg()
    told.append(message != ffi.NULL and b"devPtr is NULL" in ffi.string(message))
def elsewhere():
    assert lib.aclrtFree(ffi.NULL) == 100000
    failed.set(); heard.wait()
    tell()
failed, heard = threading.Event(), threading.Event()
thread = threading.Thread(target=elsewhere); thread.start()
failed.wait(); tell(); tell(); heard.set(); thread.join()
assert lib.aclrtFree(ffi.NULL) == 100000
tell()
print(*told)
"""
    assert run_python(source, {}).strip() == answers


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a" 1}', '{"a": tru}', "1 2", '"\x01"', "-", "1.", "1e", '"open',
                                  "[" * 5000 + "]" * 5000, '{"a": 1}}', "nul"],  # fmt: skip
                         ids=lambda text: text[:8])
def test_configurations_that_are_no_json(tmp_path, text):
    file = tmp_path / "acl.json"
    file.write_text(text)
    expected = 100006 if text else 100005
    assert run_python(SHORT + f"print(lib.aclInit({os.fsencode(file)!r}))", {}).strip() == str(expected)


EVERYTHING = '{"a": [1, -2.5e+3, true, false, null, "\\"x\\\\"], "b": {"c": {}}}'


@pytest.mark.parametrize("text", ["{}", " [ ] ", EVERYTHING, "0"])
def test_configurations_that_are_json(tmp_path, text):
    file = tmp_path / "acl.json"
    file.write_text(text)
    source = SHORT + f"print(lib.aclInit({os.fsencode(file)!r}), lib.aclInit({os.fsencode(file)!r}))"
    assert run_python(source, {}).split() == ["0", "100002"]


def test_a_call_without_a_file_only_repeats_one_with_a_file(tmp_path):
    file = tmp_path / "acl.json"
    file.write_text("{}")
    source = SHORT + f"print(lib.aclInit({os.fsencode(file)!r}), lib.aclInit(ffi.NULL), lib.aclInit(b''))"
    assert run_python(source, {}).split() == ["0", "100002", "100002"]


def test_only_faults_of_queued_work_are_last_errors():
    lib.aclrtGetLastError(lib.ACL_RT_THREAD_LEVEL)
    while lib.aclrtResetDevice(0) == 0:  # whatever other tests of this process have left
        pass
    with no_context():
        refusals = [lib.aclrtFree(ffi.NULL), lib.aclrtGetDevice(ffi.new("int32_t *")), lib.aclrtResetDevice(0),
                    lib.aclsysGetVersionStr(ffi.new("char[]", b"nothing"), ffi.new("char[128]"))]
        with device():
            refusals.append(lib.aclrtMalloc(ffi.new("void **"), 1 << 60, 0))
    assert refusals == [100000, 107002, 507007, 100003, 207001]
    assert lib.aclrtPeekAtLastError(0) == lib.aclrtGetLastError(0) == 0


def test_error_text():
    while lib.aclGetRecentErrMsg() != ffi.NULL:
        pass
    assert lib.aclrtSetDevice(4711) == 107001
    assert in_thread(lib.aclGetRecentErrMsg) == ffi.NULL
    text = ffi.string(lib.aclGetRecentErrMsg()).decode()
    assert re.fullmatch(rf"\[PID:{os.getpid()}\] \d{{4}}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{{3}}\.\d{{3}} "
                        r"\w+\(E[EZ]\d{4}\): device 4711 does not exist.*", text)  # fmt: skip
    assert lib.aclGetRecentErrMsg() == ffi.NULL


def test_error_text_of_an_operator():
    ok = lib.aclnnSoftMarginLossBackwardGetWorkspaceSize(
        ffi.NULL, ffi.NULL, ffi.NULL, 0, ffi.NULL, ffi.new("uint64_t *"), ffi.new("aclOpExecutor **"))
    assert ok == 161001
    assert " AclNN_Parameter_Error(EZ1001): " in ffi.string(lib.aclGetRecentErrMsg()).decode()


def test_no_text_says_more_than_fits():
    with no_context():
        assert lib.aclrtSynchronizeStream(ffi.NULL) == 107002
    assert len(ffi.string(lib.aclGetRecentErrMsg())) < 1152


FORK = SHORT + """
import os
event = ffi.new("aclrtEvent *")
assert lib.aclrtSetDevice(0) == 0 and lib.aclrtCreateEvent(event) == 0
child = os.fork()
if child == 0:
    cell = ffi.new("void **")
    data = ffi.new("char[8]")
    statuses = {lib.aclInit(ffi.NULL), lib.aclFinalize(), lib.aclrtSetDevice(0), lib.aclrtMalloc(cell, 64, 0),
                lib.aclrtMemcpy(data, 8, data, 8, 0), lib.aclrtFree(data), lib.aclrtSynchronizeStream(ffi.NULL),
                lib.aclrtSynchronizeEvent(event[0]), lib.aclrtSynchronizeDevice(), lib.aclrtProcessReport(10)}
    os._exit(0 if statuses == {507899} else 1)
print(os.waitpid(child, 0)[1], lib.aclrtSynchronizeStream(ffi.NULL))
"""


def test_the_child_of_a_process_that_used_devices_is_refused():
    assert run_python(FORK, {}).split() == ["0", "0"]


def test_a_process_may_fork_before_first_use():
    source = SHORT + """
import os
child = os.fork()
status = lib.aclrtSetDevice(0) or lib.aclrtResetDevice(0)
if child == 0:
    os._exit(status)
print(os.waitpid(child, 0)[1], status)
"""
    assert run_python(source, {}).split() == ["0", "0"]


OTHER_STACK = SHORT + """
from understudy.maca import ffi as other_ffi, lib as other
stream, event = other_ffi.new("mcStream_t *"), other_ffi.new("mcEvent_t *")
assert other.mcStreamCreate(stream) == 0 and other.mcEventCreate(event) == 0
assert lib.aclrtSetDevice(0) == 0
stream, event = (ffi.cast("void *", int(other_ffi.cast("uintptr_t", cell[0]))) for cell in (stream, event))
print(lib.aclrtSynchronizeStream(stream), lib.aclrtDestroyStream(stream), lib.aclrtSynchronizeEvent(event),
      lib.aclrtRecordEvent(event, ffi.NULL), lib.aclrtDestroyContext(stream))
"""


def test_handles_of_another_stack_are_refused():
    assert run_python(OTHER_STACK, {}).split() == ["107017", "107017", "107017", "107017", "107002"]
