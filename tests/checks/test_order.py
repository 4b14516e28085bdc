"""What the program has arranged is what the checks go by, whatever other threads do meanwhile."""

import pathlib

import pytest

from tests import native

HERE = pathlib.Path(__file__).parent
ALL = "memory,sync,race,leak"


def findings(stack, arguments, mode):
    program = native.build_vendor(HERE / f"order_{stack}.c", stack, flags=("-pthread",))
    done = native.run([program, *arguments], {"UNDERSTUDY_CHECK": ALL, "UNDERSTUDY_STREAM": mode})
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    return [line for line in done.stderr.splitlines() if ": check " in line]


@pytest.mark.parametrize("mode", ["async", "deferred"])
@pytest.mark.parametrize("other", ["device", "query"])
@pytest.mark.parametrize("what", ["short-streams", "event"])
def test_another_thread_invents_no_mistake(what, other, mode):
    assert findings("ascend", [what, other], mode) == []


@pytest.mark.parametrize("mode", ["async", "deferred"])
def test_what_another_process_has_recorded_may_come_after_anything(mode):
    assert findings("ascend", ["process", "none"], mode) == []


def test_another_thread_hides_no_mistake():
    """A stream's wait for an event is over for nobody before the event is."""
    found = findings("ascend", ["no-wait", "query"], "async")
    assert len(found) == 400 and all("check sync: the host copies" in line for line in found)


@pytest.mark.parametrize("mode", ["async", "deferred"])  # inline, no work is waited for
@pytest.mark.parametrize("what", ["default-waits", "default-asked"])
def test_the_default_stream_hides_no_mistake(what, mode):
    (found,) = findings("maca", [what], mode)
    assert "check race: mcMemsetAsync" in found


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
@pytest.mark.parametrize("what, expected", [("free", None), ("unordered-free", "mcFreeAsync"), ("allocation", None),
                                            ("unordered-allocation", "mcMemsetAsync"), ("launch", None),
                                            ("unordered-launch", "mcGraphLaunch"), ("branches", None),
                                            ("unordered-branches", "mcMemsetAsync"), ("reset", None)])
def test_what_ends_in_a_streams_order(what, expected, mode):
    found = findings("maca", [what], mode)
    assert len(found) == (expected is not None), found
    assert all(f"check race: {expected}" in line for line in found)
