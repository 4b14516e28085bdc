"""The thread pool: every piece runs once, whoever calls, also from several threads, from inside a piece, after a fork."""

import ctypes
import os
import subprocess
import sys
import threading

import pytest

from tests.tensor.internals import library

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def run(pieces, body):
    library().us_parallel(ctypes.c_int64(pieces), BODY(lambda _, piece: body(piece)), None)


@pytest.mark.parametrize("pieces", [-1, 0, 1, 2, 3, 100, 1031])
def test_every_piece_runs_once(pieces):
    counts = [0] * max(pieces, 0)

    def body(piece):
        counts[piece] += 1

    run(pieces, body)
    assert counts == [1] * max(pieces, 0)


def test_nested_calls_run_in_the_calling_thread():
    inner = []

    def body(piece):
        thread = threading.get_ident()
        run(5, lambda inner_piece: inner.append((piece, inner_piece, threading.get_ident() == thread)))

    run(7, body)
    assert sorted(inner) == [(piece, k, True) for piece in range(7) for k in range(5)]


def test_several_callers_at_once():
    totals = {}

    def caller(number):
        for _ in range(50):
            counts = [0] * 64

            def body(piece, counts=counts):
                counts[piece] += 1

            run(64, body)
            assert counts == [1] * 64
        totals[number] = True

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(totals) == 6


def test_a_forked_child_has_a_pool_of_its_own():
    script = """
import os, sys
from tests.tensor.test_parallel import run
def total():
    counts = [0] * 300
    def body(piece):
        counts[piece] += 1
    run(300, body)
    return counts == [1] * 300
assert total()
child = os.fork()
if child == 0:
    os._exit(0 if total() and total() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert total()
"""
    environment = dict(os.environ, UNDERSTUDY_THREADS="4")
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, check=True, timeout=60)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_thread_count_from_the_environment(threads):
    script = "from tests.tensor.internals import library; print(library().us_parallel_threads())"
    environment = dict(os.environ, UNDERSTUDY_THREADS=threads)
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == threads
