"""Programs of many threads on each stack's public API: plain, with address and undefined, and with thread sanitizer."""

import pathlib
import signal
import subprocess

import pytest

from tests import native

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("sanitizer", ["", "address", "thread"], ids=lambda build: build or "plain")
@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
@pytest.mark.parametrize("name", ["ascend_threads", "ascend_storm", "ascend_ending", "ascend_graphs", "ascend_ipc",
                                  "ascend_callbacks", "ascend_collectives", "ascend_captures", "maca_threads", "maca_ending",
                                  "maca_captures"])
def test_threads_share_a_device(name, mode, sanitizer):
    program = native.build_vendor(HERE / f"{name}.c", name.split("_")[0], sanitizer)
    done = native.run([program], {"UNDERSTUDY_STREAM": mode, "UNDERSTUDY_LOG": "off"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("sanitizer", ["", "address", "thread"], ids=lambda build: build or "plain")
@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
@pytest.mark.parametrize("ranks", ["threads", "processes"])
def test_models_and_calls_of_a_communicator_take_turns_in_the_order_of_the_launches(ranks, mode, sanitizer):
    program = native.build_vendor(HERE / "ascend_model_turns.c", "ascend", sanitizer)
    done = native.run([program, ranks], {"UNDERSTUDY_STREAM": mode, "UNDERSTUDY_LOG": "off"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["async", "deferred"])
@pytest.mark.parametrize("name", ["ascend_orders", "ascend_capture_orders", "maca_orders", "maca_capture_orders"])
def test_two_threads_in_every_order_of_their_locks(name, mode):
    program = native.build_vendor(HERE / f"{name}.c", name.split("_")[0], "", flags=("-D_GNU_SOURCE",))
    done = native.run([program], {"UNDERSTUDY_STREAM": mode, "UNDERSTUDY_LOG": "off"}, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("sanitizer", ["", "address", "thread"], ids=lambda build: build or "plain")
def test_threads_share_the_chip(sanitizer):
    program = native.build_vendor(HERE / "ftdsp_threads.c", "ftdsp", sanitizer)
    done = native.run([program], {"UNDERSTUDY_LOG": "off"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("level", ["off", "warn"])
def test_children_of_a_process_with_threads_wait_for_none_of_these(level):
    """Plain: a child of a program with a sanitizer may wait for a lock of the sanitizer's own heap."""
    program = native.build_vendor(HERE / "ascend_forks.c", "ascend", "")
    done = native.run([program], {"UNDERSTUDY_LOG": level})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr[-2000:]


def test_a_small_stack_is_enough_to_wait():
    program = native.build_vendor(HERE / "ascend_small_stack.c", "ascend", "")
    done = native.run([program], {"UNDERSTUDY_STREAM": "async"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_a_forced_reset_does_not_wait_for_a_function_that_never_returns():
    program = native.build_vendor(HERE / "ascend_stuck.c", "ascend", "")
    done = native.run([program, "reset"], {"UNDERSTUDY_STREAM": "async"}, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_the_end_of_a_process_waits_for_all_functions_that_never_return_at_once():
    program = native.build_vendor(HERE / "ascend_stuck.c", "ascend", "")
    done = native.run([program, "ending"], {"UNDERSTUDY_STREAM": "async"}, timeout=40)  # 2 s for each would be 60
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize(("thread", "end", "told"), [("parting", -signal.SIGTERM, ""), ("waiting", 0, "taken\n")])
def test_our_threads_take_no_signal_from_the_program_but_let_it_end(thread, end, told):
    program = native.build_vendor(HERE / "ascend_stuck.c", "ascend", "")
    with subprocess.Popen([program, thread], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.terminate()
            assert (process.wait(60), process.stdout.read()) == (end, told)
        finally:
            process.kill()
