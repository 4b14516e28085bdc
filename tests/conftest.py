"""Settings of every test run."""

import os


def pytest_xdist_auto_num_workers(config):
    """A worker per processor that this process may use: tests are bound by processor time."""
    return len(os.sched_getaffinity(0))
