"""The libraries for aarch64, run by qemu, beside those of this machine: vendor-style programs print the same, numbers have
the same bits. Of a build that `python tools/aarch64.py` has made; it is brought up to date here."""

import json
import shutil
import subprocess

import pytest

from tests import native
from tests.test_same_bits import digests_of_this_machine
from understudy import paths

BUILD, PYTHON = native.BUILDS / "aarch64", native.BUILDS / "aarch64-python" / "python"
COMPILER = "aarch64-linux-gnu-gcc"
# These multiply by a BLAS, which adds in an order of its own on each kind of processor (README, Limits).
BY_BLAS = ("attention", "product", "recurrence")
PROGRAMS = ["ascend/soft_margin_loss_backward", "maca/softmax", "maca/training", "ftdsp/binarycrossentropygrad"]

pytestmark = [
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"no {COMPILER}"),
    pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="no qemu-aarch64 (qemu-user)"),
    pytest.mark.skipif(not (BUILD / "build.ninja").exists(), reason="no build/aarch64 (python tools/aarch64.py)"),
]


@pytest.fixture(scope="module", autouse=True)
def up_to_date():
    with native.locked(native.BUILDS / "aarch64.lock"):
        native.check(["cmake", "--build", BUILD])
        native.check(["cmake", "--install", BUILD])  # that Python uses what is installed


@pytest.mark.parametrize("folder", PROGRAMS)
def test_programs_print_the_same(folder, tmp_path):
    stack = paths.STACKS[folder.partition("/")[0]]
    for source in sorted((native.ROOT / "examples_c" / folder).glob("*.c")):
        printed = []
        for compiler, sdk, emulator in (("gcc", paths.sdk(), []),
                                        (COMPILER, BUILD / "sdk", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"])):
            program, libraries = tmp_path / f"{source.stem}-{compiler}", sdk / stack.name / stack.library
            headers = [f"-I{paths.sdk() / stack.name / include}" for include in stack.include]
            links = [f"-l{name}" for name in stack.link]
            native.check([compiler, source, "-O1", *headers, f"-I{paths.sdk() / 'include'}", "-o", program, f"-L{libraries}",
                          *links, "-lm", f"-Wl,-rpath,{libraries}", f"-Wl,-rpath-link,{sdk / 'lib'}"])
            printed.append(native.check([*emulator, program]))
        assert printed[0] == printed[1] and printed[0].strip(), source.name


@pytest.mark.skipif(not PYTHON.exists(), reason="no Python for aarch64 (python tools/aarch64.py -V)")
def test_numbers_have_the_same_bits():
    source = "import json; from tests.test_same_bits import digests; print(json.dumps(digests()))"
    done = subprocess.run([PYTHON, "-c", source], cwd=native.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected, actual = digests_of_this_machine(), json.loads(done.stdout.splitlines()[-1])
    assert len(expected) > 1000 and expected.keys() == actual.keys()
    differs = [key for key, value in expected.items() if actual[key] != value]
    assert not [key for key in differs if not key.removeprefix("structured: ").startswith(BY_BLAS)]
