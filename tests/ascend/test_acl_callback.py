"""Host functions in streams (cann-runtime 9, doc 12)."""

import contextlib
import threading

import pytest
from understudy.ascend import ffi, lib

from tests.ascend.test_acl_stream import gate, stream, value_of, wait_until
from tests.conformance.ascend.acl_support import Out, device, download, in_thread, memory, ok

SEEN = []


@ffi.callback("void(void *)")
def note(argument):
    SEEN.append((int(ffi.cast("uintptr_t", argument)), threading.get_ident()))


@pytest.fixture(autouse=True)
def device_0():
    SEEN.clear()
    with device():
        yield


def number(value: int):
    return ffi.cast("void *", value)


def test_host_functions_run_in_order_with_the_stream():
    with stream() as made, memory(64) as block:
        for value in range(5):
            ok(lib.aclrtMemsetAsync(block, 64, value, 64, made))
            ok(lib.aclrtLaunchHostFunc(made, note, number(value)))
        ok(lib.aclrtSynchronizeStream(made))
        assert [value for value, _ in SEEN] == list(range(5))


def test_later_work_waits_for_a_host_function():
    contents = []

    with stream() as made, memory(64) as block:

        @ffi.callback("void(void *)")
        def look(_):
            contents.append(download(block, 1))

        ok(lib.aclrtMemsetAsync(block, 64, 1, 64, made))
        ok(lib.aclrtLaunchHostFunc(made, look, ffi.NULL))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made))
        ok(lib.aclrtSynchronizeStream(made))
        assert contents == [b"\x01"] and download(block, 1) == b"\x02"


@pytest.mark.parametrize("end", [lib.aclrtDestroyStream, lib.aclrtDestroyStreamForce], ids=["drain", "force"])
def test_a_host_function_may_end_its_own_stream(end):
    current, made, ended = Out(), Out(), []
    ok(lib.aclrtGetCurrentContext(current.cell))
    ok(lib.aclrtCreateStream(made.cell))

    @ffi.callback("void(void *)")
    def end_it(_):
        ended.extend([lib.aclrtSetCurrentContext(current.value), end(made.value)])

    ok(lib.aclrtLaunchHostFunc(made.value, end_it, ffi.NULL))
    wait_until(lambda: ended or lib.aclrtStreamQuery(made.value, ffi.new("aclrtStreamStatus *")) != 0)  # lets it run
    wait_until(lambda: len(ended) == 2)
    assert ended == [0, 0]
    assert lib.aclrtSynchronizeStream(made.value) == 107017


def test_a_host_function_has_no_context_to_wait_in():
    waited = []

    @ffi.callback("void(void *)")
    def wait(_):
        waited.extend([lib.aclrtSynchronizeStream(ffi.NULL), lib.aclrtSynchronizeDevice()])

    with stream() as made:
        ok(lib.aclrtLaunchHostFunc(made, wait, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(made))
    assert waited == [107002, 107002]  # ACL_ERROR_RT_CONTEXT_NULL
    ok(lib.aclrtSynchronizeDevice())  # this thread's is what it was


def test_a_host_function_may_stop_what_follows_on_its_stream():
    current, stopped = Out(), []
    ok(lib.aclrtGetCurrentContext(current.cell))
    with gate() as closed, stream() as made:

        @ffi.callback("void(void *)")
        def stop(_):
            stopped.extend([lib.aclrtSetCurrentContext(current.value), lib.aclrtStreamAbort(made)])

        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtLaunchHostFunc(made, stop, ffi.NULL))
        ok(lib.aclrtLaunchHostFunc(made, note, number(1)))
        closed.open()
        assert lib.aclrtSynchronizeStream(made) == 107023  # what aclrtStreamAbort leaves
    assert (stopped, SEEN) == ([0, 0], [])


class Server:
    """A thread that serves streams, as in a program of the vendor's user."""

    def __init__(self):
        self.stopping = False
        self.statuses = set()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping:
            self.statuses.add(lib.aclrtProcessReport(20))

    def stop(self):
        self.stopping = True
        self.thread.join()


@pytest.mark.parametrize("blocks", [0, 1])
def test_callbacks_run_on_the_serving_thread(blocks):
    server = Server()
    try:
        with stream() as made:
            ok(lib.aclrtSubscribeReport(server.thread.ident, made))
            for value in range(20):
                ok(lib.aclrtLaunchCallback(note, number(value), blocks, made))
            if blocks:
                ok(lib.aclrtSynchronizeStream(made))
                assert len(SEEN) == 20
            while len(SEEN) < 20:
                assert server.thread.is_alive()
            ok(lib.aclrtUnSubscribeReport(server.thread.ident, made))
    finally:
        server.stop()
    assert SEEN == [(value, server.thread.ident) for value in range(20)]
    assert server.statuses <= {0, 507012, 107012}


def test_a_blocking_callback_holds_the_stream_until_it_has_run():
    with stream() as made, memory(64) as block:
        ok(lib.aclrtMemset(block, 64, 1, 64))
        ok(lib.aclrtSubscribeReport(threading.get_ident(), made))
        ok(lib.aclrtLaunchCallback(note, ffi.NULL, 1, made))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made))
        assert lib.aclrtSynchronizeStreamWithTimeout(made, 30) == 507046
        assert download(block, 1) == b"\x01" and SEEN == []
        ok(lib.aclrtProcessReport(10000))
        ok(lib.aclrtSynchronizeStream(made))
        assert download(block, 1) == b"\x02" and len(SEEN) == 1
        ok(lib.aclrtUnSubscribeReport(threading.get_ident(), made))


@contextlib.contextmanager
def model_of(stream, *functions):
    """Two fills of a block, and what the functions put between them."""
    ok(lib.aclmdlRICaptureBegin(stream, lib.ACL_MODEL_RI_CAPTURE_MODE_RELAXED))
    for function in functions:
        function()
    model = Out("aclmdlRI")
    ok(lib.aclmdlRICaptureEnd(stream, model.cell))
    try:
        yield model.value
    finally:
        ok(lib.aclmdlRIDestroy(model.value))


SERVED = {"Report": lambda made, value, blocks: lib.aclrtLaunchCallback(note, number(value), blocks, made),
          "HostFunc": lambda made, value, blocks: lib.aclrtLaunchHostFunc(made, note, number(value))}  # fmt: skip


@pytest.mark.parametrize("of, blocks", [("Report", 0), ("Report", 1), ("HostFunc", 1)])
def test_a_model_calls_in_every_run(of, blocks):
    """As PyTorch's adapter records them: the thread of the captured stream runs them, whatever stream the model runs on."""
    this, launch = threading.get_ident(), SERVED[of]
    process, subscribe, unsubscribe = (getattr(lib, f"aclrt{verb}{of}") for verb in ("Process", "Subscribe", "UnSubscribe"))
    with stream() as made, stream() as other, memory(64) as block:
        ok(subscribe(this, made))
        fill = [lambda value=value: ok(lib.aclrtMemsetAsync(block, 64, value, 64, made)) for value in (1, 2)]
        calls = [lambda value=value: ok(launch(made, value, blocks)) for value in (7, 8)]
        with model_of(made, fill[0], *calls, fill[1]) as model:
            assert SEEN == []
            for run in range(3):
                ok(lib.aclmdlRIExecuteAsync(model, other))
                if blocks:
                    assert lib.aclrtSynchronizeStreamWithTimeout(other, 30) == 507046
                    wait_until(lambda: download(block, 1) == b"\x01")  # a busy machine may not have begun the run by then
                    assert len(SEEN) == 2 * run
                else:
                    ok(lib.aclrtSynchronizeStream(other))
                while len(SEEN) < 2 * run + 2:
                    ok(process(10000))
                ok(lib.aclrtSynchronizeStream(other))
                assert download(block, 1) == b"\x02"
            assert SEEN == [(7, this), (8, this)] * 3
            ok(unsubscribe(this, made))
            ok(lib.aclmdlRIExecuteAsync(model, other))  # nobody is there to run them: nobody waits
            ok(lib.aclrtSynchronizeStream(other))
            assert len(SEEN) == 6


@pytest.mark.parametrize("of", SERVED)
def test_functions_of_models_that_never_run_end_with_them(of):
    subscribe, unsubscribe = (getattr(lib, f"aclrt{verb}{of}") for verb in ("Subscribe", "UnSubscribe"))
    with stream() as made:
        ok(subscribe(threading.get_ident(), made))
        with model_of(made, lambda: ok(SERVED[of](made, 1, 1))):
            pass
        ok(lib.aclmdlRICaptureBegin(made, lib.ACL_MODEL_RI_CAPTURE_MODE_RELAXED))
        ok(SERVED[of](made, 2, 1))
        assert lib.aclrtSynchronizeStream(made) != 0  # the capture is invalid now, and takes what it loses
        ok(SERVED[of](made, 3, 1))
        assert lib.aclmdlRICaptureEnd(made, Out("aclmdlRI").cell) == 507903
        ok(unsubscribe(threading.get_ident(), made))
    assert SEEN == []


def test_a_model_runs_functions_of_the_runtime_in_every_run():
    with stream() as made, model_of(made, lambda: ok(lib.aclrtLaunchHostFunc(made, note, number(3)))) as model:
        for _ in range(3):
            ok(lib.aclmdlRIExecuteAsync(model, made))
        ok(lib.aclrtSynchronizeStream(made))
        assert [value for value, _ in SEEN] == [3, 3, 3]


def test_one_thread_serves_several_streams():
    with stream() as first, stream() as second:
        for made in (first, second):
            ok(lib.aclrtSubscribeReport(threading.get_ident(), made))
        ok(lib.aclrtLaunchCallback(note, number(1), 0, first))
        ok(lib.aclrtLaunchCallback(note, number(2), 0, second))
        while len(SEEN) < 2:
            ok(lib.aclrtProcessReport(10000))
        assert {value for value, _ in SEEN} == {1, 2}
        ok(lib.aclrtUnSubscribeReport(threading.get_ident(), first))
        assert lib.aclrtProcessReport(5) == 507012
        ok(lib.aclrtUnSubscribeReport(threading.get_ident(), second))
        assert lib.aclrtProcessReport(5) == 107012


def test_unsubscribing_drops_what_has_not_run_and_frees_the_stream():
    with stream() as made, memory(64) as block:
        ok(lib.aclrtSubscribeReport(4711, made))
        ok(lib.aclrtLaunchCallback(note, ffi.NULL, 1, made))
        ok(lib.aclrtMemsetAsync(block, 64, 3, 64, made))
        ok(lib.aclrtUnSubscribeReport(4711, made))
        ok(lib.aclrtSynchronizeStream(made))
        assert SEEN == [] and download(block, 64) == bytes([3] * 64)


def destroy_context():
    ok(lib.aclrtDestroyContext(value_of("aclrtContext", lib.aclrtGetCurrentContext)))


@contextlib.contextmanager
def ending(how, made):
    """Ends the stream in another thread, which waits for its callbacks; goes on when the stream's handle has ended."""
    context = value_of("aclrtContext", lib.aclrtGetCurrentContext)

    def end():
        ok(lib.aclrtSetCurrentContext(context))
        how(made)

    thread = threading.Thread(target=end)
    thread.start()
    wait_until(lambda: lib.aclrtStreamQuery(made, ffi.new("aclrtStreamStatus *")) != 0)
    yield
    thread.join()


ENDS = {"stream": lambda made: ok(lib.aclrtDestroyStream(made)),
        "context": lambda made: destroy_context(),
        "device": lambda made: ok(lib.aclrtResetDevice(0))}  # fmt: skip


@pytest.fixture
def own_context():
    """A context that the test may end, alone or with its device."""
    ok(lib.aclrtCreateContext(Out("aclrtContext").cell, 0))
    yield
    ok(lib.aclrtSetDevice(0))
    ok(lib.aclrtResetDeviceForce(0))
    ok(lib.aclrtSetDevice(0))


@pytest.mark.parametrize("how", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("blocks", [0, 1])
def test_the_end_of_a_stream_waits_for_its_callbacks(how, blocks, own_context):
    made = value_of("aclrtStream", lib.aclrtCreateStream)
    ok(lib.aclrtSubscribeReport(threading.get_ident(), made))
    ok(lib.aclrtLaunchCallback(note, number(1), 1, made))
    ok(lib.aclrtLaunchCallback(note, number(2), blocks, made))
    with ending(how, made):
        while len(SEEN) < 2:
            ok(lib.aclrtProcessReport(10000))
    assert [value for value, _ in SEEN] == [1, 2]
    assert lib.aclrtProcessReport(5) == 107012  # the stream was the thread's last


def test_a_callback_may_end_while_its_device_is_reset():
    """It lets the stream go on, and makes neither a context nor a stream for that."""
    made = value_of("aclrtStream", lib.aclrtCreateStream)
    flags, active = ffi.new("uint32_t *"), ffi.new("int32_t *")
    ended = []

    @ffi.callback("void(void *)")
    def until_the_reset(_):
        wait_until(lambda: lib.aclrtStreamQuery(made, ffi.new("aclrtStreamStatus *")) != 0)
        ended.append(True)

    ok(lib.aclrtSubscribeReport(threading.get_ident(), made))
    ok(lib.aclrtLaunchCallback(until_the_reset, ffi.NULL, 1, made))
    reset = threading.Thread(target=ENDS["device"], args=[made])
    reset.start()
    ok(lib.aclrtProcessReport(10000))
    reset.join()
    ok(lib.aclrtGetPrimaryCtxState(0, flags, active))
    ok(lib.aclrtSetDevice(0))
    assert ended and active[0] == 0


def test_callbacks_take_no_stream():
    with stream() as made:
        ok(lib.aclrtSubscribeReport(threading.get_ident(), made))
        ok(lib.aclrtLaunchCallback(note, ffi.NULL, 1, made))
        ok(lib.aclrtProcessReport(10000))
        ok(lib.aclrtSynchronizeStream(made))
        with stream() as following:
            first, second = (value_of("int32_t", lib.aclrtStreamGetId, handle) for handle in (made, following))
        ok(lib.aclrtUnSubscribeReport(threading.get_ident(), made))
    assert second == first + 1


def test_a_model_of_a_stream_that_has_ended_waits_for_nobody():
    with stream() as other:
        made = value_of("aclrtStream", lib.aclrtCreateStream)
        ok(lib.aclrtSubscribeReport(threading.get_ident(), made))
        with model_of(made, lambda: ok(lib.aclrtLaunchCallback(note, ffi.NULL, 1, made))) as model:
            ok(lib.aclrtDestroyStream(made))
            ok(lib.aclmdlRIExecuteAsync(model, other))
            ok(lib.aclrtSynchronizeStreamWithTimeout(other, 10000))
    assert SEEN == []


def test_a_late_callback_of_an_aborted_run_lets_no_other_run_go_on():
    made = value_of("aclrtStream", lambda cell: lib.aclrtCreateStreamWithConfig(cell, 0, lib.ACL_STREAM_PERSISTENT))
    ok(lib.aclrtSubscribeReport(threading.get_ident(), made))
    model = value_of("aclmdlRI", lambda cell: lib.aclmdlRIBuildBegin(cell, 0))
    ok(lib.aclmdlRIBindStream(model, made, 0))
    ok(lib.aclrtLaunchCallback(note, ffi.NULL, 1, made))
    ok(lib.aclmdlRIBuildEnd(model, ffi.NULL))
    with stream() as other:
        ok(lib.aclmdlRIExecuteAsync(model, other))
        assert lib.aclrtSynchronizeStreamWithTimeout(other, 30) == 507046
        ok(lib.aclmdlRIAbort(model))
        ok(lib.aclrtSynchronizeStream(other))
        ok(lib.aclrtProcessReport(10000))
        for run in range(2, 4):
            ok(lib.aclmdlRIExecuteAsync(model, other))
            assert lib.aclrtSynchronizeStreamWithTimeout(other, 30) == 507046
            ok(lib.aclrtProcessReport(10000))
            ok(lib.aclrtSynchronizeStream(other))
            assert len(SEEN) == run
    ok(lib.aclmdlRIUnbindStream(model, made))
    ok(lib.aclmdlRIDestroy(model))
    ok(lib.aclrtUnSubscribeReport(threading.get_ident(), made))
    ok(lib.aclrtDestroyStream(made))


def test_aborting_a_stream_drops_its_callbacks():
    with gate() as closed:
        made = Out()
        ok(lib.aclrtCreateStream(made.cell))
        ok(lib.aclrtSubscribeReport(threading.get_ident(), made.value))
        ok(lib.aclrtStreamWaitEvent(made.value, closed.handle))
        ok(lib.aclrtLaunchCallback(note, ffi.NULL, 1, made.value))
        ok(lib.aclrtStreamAbort(made.value))
        assert lib.aclrtProcessReport(5) == 507012
        ok(lib.aclrtUnSubscribeReport(threading.get_ident(), made.value))
        ok(lib.aclrtDestroyStream(made.value))
    assert SEEN == []


def test_threads_that_serve_nothing():
    assert lib.aclrtProcessReport(5) == 107012
    assert in_thread(lib.aclrtProcessReport, 5) == 107012
