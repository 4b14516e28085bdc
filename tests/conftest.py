"""Settings of every test run."""

import os

# NumPy's BLAS starts threads when it is loaded, which look for work for 20 ms of processor time each in every process of the
# tests; so they sleep at once. Before NumPy is imported.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import pytest
from understudy import addresses
from understudy.kit.collection import cases_are_no_garbage


def pytest_xdist_auto_num_workers(config):
    """A worker per processor that this process may use: tests are bound by processor time. A run that a test starts is one
    process, since its worker has one processor."""
    return 0 if "PYTEST_XDIST_WORKER" in os.environ else len(os.sched_getaffinity(0))


def pytest_configure(config):
    """Some cases write to literal addresses of the DSP: the workers keep their own memory away from there."""
    addresses.keep_in_place()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    with cases_are_no_garbage():
        return (yield)
