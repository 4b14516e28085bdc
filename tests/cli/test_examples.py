"""The example programs: built as their first line says, as C++, and by their CMake files; numbers against float64."""

import os
import pathlib
import re
import subprocess

import numpy
import pytest

from understudy import demo, paths, toolchain
from understudy.errors import SdkError

EXAMPLES = list(demo.sources(list(paths.STACKS.values())))
COMPILERS = {"as the first line says": None, "gcc -std=c11": "gcc -std=c11", "g++": "g++ -x c++"}
COMPILERS_OF_CPP = {"as the first line says": None, "g++ -std=c++11": "g++ -std=c++11"}
BUILDS = [
    pytest.param(stack, source, compiler, id=f"{source.stem}-{name}")
    for stack, source in EXAMPLES
    for name, compiler in (COMPILERS_OF_CPP if source.suffix == ".cpp" else COMPILERS).items()
]


def identity(value) -> str:
    return value.stem if isinstance(value, pathlib.Path) else value.name


def assert_right(source: pathlib.Path, printed: str) -> None:
    comparisons = demo.compare(source, printed)
    assert comparisons and all(comparison.agrees for comparison in comparisons), printed


def test_every_stack_has_an_example():
    assert {stack.name for stack, _ in EXAMPLES} == set(paths.STACKS)


def test_without_a_compiler_the_demo_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SdkError, match="are C and C.. programs, and there is no compiler on PATH"):
        demo.run(list(paths.STACKS.values()))


@pytest.mark.parametrize("stack, source, compiler", BUILDS)
def test_compile_by_hand(stack, source, compiler, tmp_path):
    command = demo.compile_command(source)
    if compiler:
        command = re.sub(r"^\S+", compiler, command) + " -Wall -Wextra -Werror -lm"
    environment = demo.environment_of(stack)
    (tmp_path / source.name).write_bytes(source.read_bytes())
    for header in source.parent.glob("*.h"):
        (tmp_path / header.name).write_bytes(header.read_bytes())
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, check=True)
    done = subprocess.run(demo.start_command(source), cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_right(source, done.stdout)


@pytest.mark.parametrize(
    "stack, source", [(stack, source) for stack, source in EXAMPLES if (source.parent / "CMakeLists.txt").exists()],
    ids=identity)  # fmt: skip
def test_build_with_cmake(stack, source, tmp_path):
    # Only the variable that names the vendor's root, as on a machine with the vendor's install.
    environment = {**os.environ, **toolchain.variables([stack])}
    subprocess.run(["cmake", "-S", source.parent, "-B", tmp_path], env=environment, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path], env=environment, check=True, capture_output=True)
    environment["LD_LIBRARY_PATH"] = str(stack.library_path)
    done = subprocess.run([tmp_path / source.stem], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_right(source, done.stdout)


def test_one_device_is_enough(tmp_path):
    stack, source = next(example for example in EXAMPLES if example[1].stem == "vocab_parallel_cross_entropy")
    environment = {**toolchain.environment([stack]), "UNDERSTUDY_DEVICES": "1"}
    (tmp_path / source.name).write_bytes(source.read_bytes())
    subprocess.run(["sh", "-c", demo.compile_command(source)], cwd=tmp_path, env=environment, check=True)
    done = subprocess.run(demo.start_command(source), cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert_right(source, done.stdout)


@pytest.mark.parametrize("stack, source", EXAMPLES, ids=identity)
def test_nothing_of_ours_is_named(stack, source):
    if demo.name_of(source).startswith("cores/"):  # one process per core is our own offer
        pytest.skip("shows what only this project has")
    assert "understudy" not in source.read_text().lower()


@pytest.mark.parametrize("printed, label, values, resolution", [
    ("sum: 1.5 -2 nan", "sum", [1.5, -2, float("nan")], 0),
    ("title\n 1.0000 2.5000\n -3.0000", "title", [1, 2.5, -3], 0.5e-4),
    ("dx[0] = 0.25\ndx[1] = 1e-3", "dx", [0.25, 1e-3], 0),
    ("all: 0 0 0", "all", [0, 0, 0], 0),  # no decimal places: nothing is forgiven
    ("Hello, world: 12 monkeys\nz: 7.12345678", "z", [7.12345678], 0.5e-8),
])  # fmt: skip
def test_parse(printed, label, values, resolution):
    found = demo.parse(printed)
    assert list(found) == [label]
    numpy.testing.assert_array_equal(found[label].values, values)
    assert found[label].resolution == pytest.approx(resolution)


@pytest.mark.parametrize("got, expected, agrees", [
    ([1.0, 2.0], [1.0, 2.0], True),
    ([1.0, 2.0 * (1 + 2.0**-21)], [1.0, 2.0], True),
    ([1.0, 2.0 * (1 + 2.0**-19)], [1.0, 2.0], False),
    ([1.0], [1.0, 2.0], False),
    ([float("nan")], [1.0], False),
    ([float("inf")], [1.0], False),
    ([0.0], [1e-30], False),
    ([1.0, 0.0], [1.0, 1e-12], True),
    ([0.0], [0.0], True),
    ([1e-30], [0.0], False),
])  # fmt: skip
def test_comparison(got, expected, agrees):
    comparison = demo.Comparison("", "", demo.Printed(numpy.array(got), 0.0), numpy.array(expected))
    assert comparison.agrees == agrees
