"""The GitHub action and the image: their shell steps, run here with a wheel that is made of the installed package."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import elftools
import pytest

import understudy

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
MISTAKE = r"""
#include "acl/acl.h"
int main(void)
{
    void *lost;
    return aclInit(0) || aclrtSetDevice(0) || aclrtMalloc(&lost, 64, ACL_MEM_MALLOC_HUGE_FIRST);
}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """With the one dependency that commands for programs have inside, since nothing can be fetched here."""
    name = f"understudy_abi-{understudy.__version__}"
    file = tmp_path_factory.mktemp("wheel") / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for package in (pathlib.Path(module.__file__).parent for module in (understudy, elftools)):
            for folder, _, files in os.walk(package, followlinks=True):
                for one in (pathlib.Path(folder, one) for one in files):
                    if "suite" not in one.parts and one.suffix != ".pyc":
                        archive.write(one, one.relative_to(package.parent))
        info = f"{name}.dist-info"
        archive.writestr(f"{info}/METADATA",
                         f"Metadata-Version: 2.1\nName: understudy-abi\nVersion: {understudy.__version__}\n")  # fmt: skip
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\nunderstudy = understudy.__main__:main\n")
        archive.writestr(f"{info}/RECORD", "")
    return file


def bash(script, environment):
    clean = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(["bash", *script], env={**clean, **offline, **environment}, capture_output=True, text=True)


@pytest.fixture(scope="module")
def job(wheel, tmp_path_factory):
    """What a job's later steps have in their environment after the first step of the action."""
    folder = tmp_path_factory.mktemp("job")
    files = {"GITHUB_ENV": folder / "env", "GITHUB_PATH": folder / "path"}
    done = bash([TOOLS / "action" / "install.sh"],
                {"RUNNER_TEMP": str(folder), "PACKAGE": str(wheel),
                 **{n: str(f) for n, f in files.items()}})  # fmt: skip
    assert done.returncode == 0, done.stderr
    variables = dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
    # A runner puts each line of this file before what was on PATH.
    path = os.pathsep.join([*reversed(files["GITHUB_PATH"].read_text().splitlines()), os.environ["PATH"]])
    return {**variables, "PATH": path}


def test_every_input_and_script_of_the_action_is_used():
    text = (TOOLS / "action" / "action.yml").read_text()
    inputs = re.findall(r"^  (\w+):$", text.partition("inputs:")[2].partition("runs:")[0], re.MULTILINE)
    assert set(inputs) == set(re.findall(r"inputs\.(\w+)", text)) == {"run", "package", "check", "status"}
    scripts = re.findall(r"\$GITHUB_ACTION_PATH/(\S+?)\"", text)
    assert sorted(scripts) == sorted(file.name for file in (TOOLS / "action").glob("*.sh"))
    given = set(re.findall(r"^        ([A-Z]+):", text, re.MULTILINE))
    assert given == {"PACKAGE", "COMMANDS", "CHECK", "STATUS"}


def test_the_action_checks_what_the_documents_say():
    text, page = (TOOLS / "action" / "action.yml").read_text(), (TOOLS.parent / "docs" / "programs.md").read_text()
    table = re.findall(r"^\| `(\w+)` \|", page.partition("## Checks")[2].partition("## In continuous")[0], re.MULTILINE)
    assert re.search(r"List of (.*), as in UNDERSTUDY_CHECK", text)[1].split(", ") == table
    build = re.search(r"UNDERSTUDY_CHECK=(\S+) UNDERSTUDY_CHECK_EXIT", page)[1]
    assert re.search(r"default: (memory\S*)", text)[1] == build


@pytest.mark.parametrize("check, status, expected", [("leak", "47", 47), ("memory", "47", 0), ("leak", "0", 0)])
def test_the_action_fails_on_a_finding(job, tmp_path, check, status, expected):
    (tmp_path / "mistake.c").write_text(MISTAKE)
    commands = f"cd {tmp_path}; understudy cc mistake.c -o mistake; ./mistake"
    done = bash([TOOLS / "action" / "run.sh"], {**job, "COMMANDS": commands, "CHECK": check, "STATUS": status})
    assert done.returncode == expected, done.stderr
    assert ("was not freed" in done.stderr) == (check == "leak"), done.stderr


def test_a_vendors_compiler_line_works_in_later_steps(job, tmp_path):
    (tmp_path / "mistake.c").write_text(MISTAKE)
    done = bash(["-c", f"cd {tmp_path}; gcc mistake.c -lascendcl -o mistake && ./mistake"], job)
    assert done.returncode == 0, done.stderr


def steps(file):
    """The instructions of a Dockerfile, by stage."""
    stages = []
    for line in file.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        elif word and not word.startswith("#"):
            stages[-1].append((word, rest))
    return stages


def test_the_image(wheel, tmp_path):
    """The steps of its second stage, but for Debian's packages, with a virtual environment in place of the system."""
    build, image = steps(TOOLS / "Dockerfile")
    assert ("COPY", ". /source") in build and any("pip wheel" in rest and "/source" in rest for _, rest in build)
    assert ("COPY", "--from=build /wheels /wheels") in image and ("ENTRYPOINT", '["understudy"]') in image
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    (tmp_path / "wheels").mkdir()
    shutil.copy(wheel, tmp_path / "wheels")
    environment = {"PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}"}
    commands = [rest for word, rest in image if word == "RUN" and not rest.startswith("apt-get")]
    assert len(commands) == 2
    for command in commands:
        done = bash(["-ec", command.replace("/wheels", f"{tmp_path}/wheels")], environment)
        assert done.returncode == 0, done.stderr
    assert understudy.__version__ in done.stdout
