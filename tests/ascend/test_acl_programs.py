"""Programs of the kinds that the vendor's samples are, built as their users build them (cann-runtime-3 21)."""

import pathlib

import pytest

from tests import native

PROGRAMS = pathlib.Path(__file__).parent / "programs"
LIBRARIES = ["opapi", "opapi_math", "nnopbase", "msprofiler", "ascend_dump", "acl_tdt_channel", "acl_tdt_queue", "ascendcl"]
PRINTED = {
    "built_in_tasks.c": "sum 2 4 6 8\nuniform 1000 1\nmet 2 2 1 1\n",
    "built_models.c": "labels 10 21\nswitched 10 21\nnot switched 11 21\n",
    "captured_models.c": "replayed 3 4.5 6.25\nupdated 12 9 8.5\nchosen 501 252 128\nordered 4 5 6.5\n",
    "tools.c": "error=0 peekErr=0 lastErr=0 recentErrMsg=<null>\nallocCount=2 freeCount=2\nmanaged 3 5\npool 128 0\n",
    "processes.c": "answered 9\nimporter 0\n",
    "queries.c": "cores -1 2\ndevice 7 0 1\npeer 1 1 2\nflag 123\ndumped 1 1 2 4\n",
    "channels.cpp": "channel 1 0 16 4\nfull 207014\nroute 1 6 hello\n",
}


@pytest.mark.parametrize("name", PRINTED)
def test_it_prints_what_its_operations_mean(name, tmp_path):
    vendor, program = native.sdk() / "ascend", tmp_path / "program"
    language = ["g++", "-std=c++11", "-D_GLIBCXX_USE_CXX11_ABI=0"] if name.endswith(".cpp") else ["gcc", "-std=c11"]
    native.check([*language, "-Wall", "-Werror", PROGRAMS / name, f"-I{vendor / 'include'}", "-o", program,
                  f"-L{vendor / 'lib64'}",
                  "-Wl,--as-needed", *(f"-l{library}" for library in LIBRARIES), f"-Wl,-rpath,{vendor / 'lib64'}"])  # fmt: skip
    done = native.run(["env", f"--chdir={tmp_path}", program], {"UNDERSTUDY_DEVICES": "2"})
    assert (done.returncode, done.stdout) == (0, PRINTED[name]), done.stderr
