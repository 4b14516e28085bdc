"""How many processors a process may keep busy: what its control groups say, in both versions of the kernel's interface."""

import os
import subprocess
import sys

import pytest

from tests.tensor.internals import library

NO_LIMIT = 2**31 - 1


def processors(tmp_path, listing: str, files: dict[str, str]) -> int:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "listing").write_text(listing)
    return library().us_processors_of_groups(str(tmp_path / "listing").encode(), str(tmp_path).encode())


def first_version(path: str, quota: int, period: int = 100000) -> dict[str, str]:
    return {f"cpu{path}/cpu.cfs_quota_us": str(quota), f"cpu{path}/cpu.cfs_period_us": str(period)}


@pytest.mark.parametrize("quota, period, count", [
    ("100000", 100000, 1), ("100001", 100000, 2), ("1", 100000, 1), ("400000", 100000, 4), ("50000", 20000, 3),
    ("max", 100000, NO_LIMIT), ("0", 100000, NO_LIMIT), ("9000000000000000000", 1, NO_LIMIT),
])  # fmt: skip
def test_second_version(tmp_path, quota, period, count):
    assert processors(tmp_path, "0::/a/b\n", {"a/b/cpu.max": f"{quota} {period}"}) == count


@pytest.mark.parametrize("quota, count", [(200000, 2), (250000, 3), (-1, NO_LIMIT), (0, NO_LIMIT)])
def test_first_version(tmp_path, quota, count):
    listing = "5:memory:/m\n3:cpuacct,cpu:/a/b\n0::/\n"
    assert processors(tmp_path, listing, first_version("/a/b", quota)) == count


@pytest.mark.parametrize("where", ["", "/a", "/a/b"])
def test_groups_around_a_group_count_too(tmp_path, where):
    assert processors(tmp_path, "4:cpu:/a/b\n", first_version("/a/b", 700000) | first_version(where, 300000)) == 3
    assert processors(tmp_path, "0::/a/b\n", {"a/b/cpu.max": "700000 100000"} | {f".{where}/cpu.max": "300000 100000"}) == 3


def test_a_container_sees_its_group_as_the_first(tmp_path):
    assert processors(tmp_path, "4:cpu,cpuacct:/docker/0123\n", first_version("", 200000)) == 2


def test_other_controllers_do_not_count(tmp_path):
    assert processors(tmp_path, "4:cpuset:/a\n5:cpuacct:/a\n", first_version("/a", 100000)) == NO_LIMIT


@pytest.mark.parametrize("listing", ["", "\n", "4\n", "4:cpu\n", "0::\n", "0::" + "/a" * 4000 + "\n"])
def test_a_listing_that_says_nothing(tmp_path, listing):
    assert processors(tmp_path, listing, {}) == NO_LIMIT
    assert library().us_processors_of_groups(str(tmp_path / "missing").encode(), str(tmp_path).encode()) == NO_LIMIT


def test_no_more_than_the_process_may_run_on():
    script = "from tests.tensor.internals import library; print(library().us_parallel_threads())"
    environment = {name: value for name, value in os.environ.items() if name != "UNDERSTUDY_THREADS"}
    one = min(os.sched_getaffinity(0))
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {one}))  # fmt: skip
    assert done.stdout.strip() == "1"
