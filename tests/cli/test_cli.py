"""The command line as a user meets it: fresh processes, exit statuses, one-line errors."""

import importlib.metadata
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest

from understudy import paths

PROGRAM = r"""
#include <stdio.h>
#include <acl/acl.h>
#include <aclnn/acl_meta.h>
int main(int count, char **arguments)
{
    const int64_t shape[] = {2, 3};
    aclTensor *tensor = aclCreateTensor(shape, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 2, NULL);
    printf("%d %d %s\n", tensor != NULL, count, count > 1 ? arguments[1] : "");
    return count > 2 ? 7 : aclDestroyTensor(tensor);
}
"""
LINK = ["-lopapi_nn", "-lnnopbase", "-lascendcl"]


def understudy(*arguments, env=None, **settings) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "understudy", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **(env or {})}, **settings)  # fmt: skip


def assert_error_of_use(done, *words) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert all(word in done.stderr for word in words), done.stderr


@pytest.fixture
def source(tmp_path) -> pathlib.Path:
    path = tmp_path / "program.c"
    path.write_text(PROGRAM)
    return path


def test_entry_point_is_installed():
    (entry,) = [one for one in importlib.metadata.distribution("understudy-abi").entry_points if one.name == "understudy"]
    assert entry.value == "understudy.__main__:main"
    assert understudy("--version").stdout.startswith("understudy ")


def test_without_arguments_it_helps():
    done = understudy()
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("demo", "env", "cc", "c++", "run"))


@pytest.mark.parametrize("arguments, words", [
    (["polish"], ["invalid choice: 'polish'"]),
    (["--fast"], ["--fast"]),
    (["env", "--stack", "cuda"], ["understudy env:", "invalid choice: 'cuda'"]),
    (["env", "surplus"], ["surplus"]),
    (["cc"], ["understudy cc:", "nothing to compile"]),
    (["cc", "--stack"], ["--stack"]),
    (["c++", "--stack", "ascend"], ["nothing to compile"]),
    (["run"], ["no program given"]),
    (["run", "./no-such-program"], ["'./no-such-program' not found"]),
    (["run", "/"], ["not executable"]),
    (["ft-run"], ["understudy ft-run:", "no program given"]),
    (["ft-run", "-n", "9", "true"], ["-n is 9", "1 to 8"]),
    (["ft-run", "-n", "0", "true"], ["-n is 0"]),
    (["ft-run", "-n", "two", "true"], ["two"]),
    (["ft-run", "./no-such-program"], ["not found"]),
])  # fmt: skip
def test_errors_of_use(arguments, words):
    assert_error_of_use(understudy(*arguments), *words)


@pytest.mark.parametrize("command", [
    ["doctor", "n" * 300], ["abi", "n" * 300], ["replay", "n" * 300, "1"], ["manual", "-o", "n" * 300], ["run", "n" * 300],
    ["trace", "-o", "n" * 300, "true"], ["conform", "--lib", "n" * 300], ["conform", "--known", "n" * 300],
    ["abi", "--write-lock", __file__], ["abi", "--write-lock", "/proc/x"], ["abi", "--write-lock", "/proc/self"],
], ids=lambda command: " ".join(command)[:20])  # fmt: skip
def test_a_file_that_cannot_be_used_is_an_error_of_use(command):
    assert_error_of_use(understudy(*command), f"understudy {command[0]}:")


def test_a_compiler_whose_quotation_has_no_end_is_an_error_of_use(source):
    assert_error_of_use(understudy("cc", source, env={"CC": 'gcc "'}), "CC is 'gcc \"'")


def test_a_missing_compiler_is_an_error_of_use(source):
    assert_error_of_use(understudy("cc", source, env={"CC": "no-such-compiler"}), "no-such-compiler", "CC")


@pytest.mark.parametrize("command, variable", [("cc", "CC"), ("c++", "CXX")])
def test_a_compiler_variable_may_name_this_command(command, variable, source, tmp_path):
    """As `CC="understudy cc" make` sets it; the command does not call itself for ever."""
    named = {variable: f"{shlex.quote(sys.executable)} -m understudy {command}"}
    done = understudy(command, source, "-o", tmp_path / "program", env=named, timeout=60)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "program"], capture_output=True, text=True).stdout == "1 1 \n"


@pytest.fixture(scope="module")
def named_in_letters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "program.c").write_text(PROGRAM)
    assert understudy("cc", folder / "program.c", *LINK, "-o", folder / "prögramm").returncode == 0
    assert understudy("trace", folder / "prögramm", "-o", folder / "trace.json").returncode == 0
    return folder


@pytest.mark.parametrize("command", [
    ["doctor", "prögramm"], ["doctor", "."], ["rules", "aclnnAdd"], ["abi", str(paths.STACKS["ascend"].libraries[-1])],
    ["trace", "-o", "zwei.html", "./prögramm"], ["replay", "trace.json", "1"], ["manual"],
], ids=lambda command: " ".join(command[:2]))  # fmt: skip
def test_a_locale_whose_letters_are_not_those_of_utf_8(named_in_letters, command):
    """Our files are UTF-8 whatever the locale is: C without Python's own change of it stands for GBK and Latin-1."""
    strict = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = understudy(*command, env=strict, cwd=named_in_letters)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("command", ["env", "rules mcMalloc", "manual", "--version", "--help", "cc --help"])
def test_a_full_disk_is_an_error_of_use(command, buffered):
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m understudy {command} > /dev/full"], capture_output=True,
                          text=True, env={**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"})  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "understudy: cannot write the output: No space left on device\n")


def test_a_closed_output_takes_nothing():
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m understudy rules mcMalloc >&-"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_errors_go_nowhere():
    def without_errors(command):
        return subprocess.run(["sh", "-c", f"{sys.executable} -m understudy {command} 2>&-"], capture_output=True, text=True)

    labelled = without_errors("ft-run --label -n 2 sh -c 'echo $UNDERSTUDY_FT_CORE'")
    assert (labelled.returncode, sorted(labelled.stdout.splitlines())) == (0, ["[0] 0", "[1] 1"])
    assert (refused := without_errors("bogus")).returncode == 2 and refused.stdout == ""


def test_errors_that_cannot_be_written_leave_the_status():
    for target in ("2>&-", "2>/dev/full", ">/dev/full 2>/dev/full"):
        done = subprocess.run(["sh", "-c", f"{sys.executable} -m understudy doctor no-such-file {target}"], capture_output=True)
        assert done.returncode == 2, target


def test_a_source_in_another_character_set_compiles(tmp_path):
    source = tmp_path / "greeting.c"
    source.write_bytes(b'int main(void) { return greet("\xc4\xe3\xba\xc3"); }\n')  # the compiler's warnings repeat the line
    done = understudy("cc", "-w", "-c", source, "-o", tmp_path / "greeting.o")
    assert (done.returncode, done.stderr) == (0, "")


def test_all_functions_without_a_declaration_are_named(tmp_path):
    source = tmp_path / "calls.c"
    source.write_text("int main(void)\n{\n    fp_add_p(0, 0, 0, 0);\n    fp_exp_p(0, 0, 0, 1.0f, 1.0f, 1);\n    return 0;\n}\n")
    assert_error_of_use(understudy("cc", "-std=gnu11", "-c", source, "-o", tmp_path / "calls.o"),
                        f"{source}:3: fp_add_p is called without a declaration; #include <add.h>",
                        f"{source}:4: fp_exp_p is called without a declaration; #include <exp.h>")  # fmt: skip
    assert_error_of_use(understudy("cc", "-fdiagnostics-color=always", "-c", source, "-o", tmp_path / "calls.o"), f"{source}:3: fp")
    made = source.rename(tmp_path / "calls.made")
    assert_error_of_use(understudy("cc", "-x", "c", "-c", made, "-o", tmp_path / "calls.o"), f"{made}:3: fp_add_p")


@pytest.mark.parametrize("command", ["run", "ft-run", "trace"])
def test_a_program_of_this_folder_is_named_with_it(tmp_path, command):
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    assert_error_of_use(understudy(command, "program", cwd=tmp_path), "'program' not found in PATH; here is ./program\n")


@pytest.mark.parametrize("command", ["run", "ft-run"])
def test_what_the_system_cannot_run_is_an_error_of_use(tmp_path, command):
    program = tmp_path / "program"
    program.write_bytes(b"no program")
    program.chmod(0o755)
    assert_error_of_use(understudy(command, program), "cannot run", "Exec format error")


def test_a_missing_sdk_is_an_error_of_use():
    assert_error_of_use(understudy("env", env={"UNDERSTUDY_SDK": "/nowhere"}), "/nowhere", "UNDERSTUDY_SDK")


@pytest.mark.parametrize("words", [("env",), ("cc", "-v"), ("doctor", sys.executable), ("rules", "fp_add_s"), ("run", "true")])
def test_a_folder_that_is_no_sdk_is_an_error_of_use(tmp_path, words):
    done = understudy(*words, env={"UNDERSTUDY_SDK": str(tmp_path)})
    assert_error_of_use(done, f"{tmp_path} (from UNDERSTUDY_SDK) is no SDK: it has no folder ascend, maca, ftdsp\n")


@pytest.mark.parametrize("words", [("env",), ("cc", "-v"), ("run", "true"), ("ft-run", "true")])
def test_an_sdk_with_a_colon_is_an_error_of_use(tmp_path, words):
    """The loader would look for the libraries in two other folders."""
    odd = tmp_path / "a:b"
    odd.mkdir()
    for part in paths.sdk().iterdir():
        (odd / part.name).symlink_to(part)
    assert_error_of_use(understudy(*words, env={"UNDERSTUDY_SDK": str(odd)}), f"{odd}: its name has a colon")


@pytest.mark.parametrize("locale", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "C.UTF-8"}])
def test_names_of_files_are_printed_as_they_are(tmp_path, locale):
    """In any locale, also bytes that are no text."""
    name = b"f\xc3\xbcr \xff.o"
    place = os.fsencode(tmp_path) + b"/" + name
    shutil.copyfile(shutil.which("true"), place)
    command = [sys.executable, "-m", "understudy"]
    for words in (["doctor", place], ["abi", place], ["doctor", place + b"2"]):
        done = subprocess.run([*command, *words], env={**os.environ, **locale}, capture_output=True)
        assert place in done.stdout + done.stderr, done


@pytest.mark.parametrize("command", ["demo", "env", "cc", "c++", "run", "ft-run"])
def test_every_command_has_help(command):
    done = understudy(command, "--help")
    assert done.returncode == 0 and f"understudy {command}" in done.stdout and done.stderr == ""


# ---- env ----


def after_env(script: str, *options: str, env=None) -> str:
    lines = understudy("env", *options)
    assert lines.returncode == 0 and lines.stderr == ""
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(["sh", "-euc", f"{lines.stdout}\n{script}"], capture_output=True, text=True,
                          env={**clean, **(env or {})})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_env_names_the_roots():
    printed = after_env('echo "$ASCEND_HOME_PATH"; echo "$MACA_PATH"; echo "$FTDSP_PATH"').splitlines()
    assert printed == [str(stack.root) for stack in paths.STACKS.values()]


def test_env_keeps_what_is_there():
    printed = after_env('echo "$LD_LIBRARY_PATH"', env={"LD_LIBRARY_PATH": "/mine:/also mine"}).strip()
    assert printed.endswith(":/mine:/also mine") and printed.startswith(str(paths.STACKS["ascend"].library_path))
    alone = after_env('echo "$LD_LIBRARY_PATH"').strip()
    assert set(alone.split(":")) == {*(str(stack.library_path) for stack in paths.STACKS.values()), str(paths.sdk() / "lib")}


def test_env_of_one_stack():
    printed = after_env('echo "${MACA_PATH}" "${ASCEND_HOME_PATH-unset}"', "--stack", "maca").strip()
    assert printed == f"{paths.STACKS['maca'].root} unset"


def test_env_survives_odd_folder_names(tmp_path):
    odd = tmp_path / "it's a $HOME; folder"
    (odd / "maca").mkdir(parents=True)
    done = understudy("env", env={"UNDERSTUDY_SDK": str(odd)})
    shown = subprocess.run(["sh", "-euc", f'{done.stdout}\nprintf %s "$MACA_PATH"'], capture_output=True, text=True)
    assert shown.stdout == str(odd / "maca")


def test_a_plain_compiler_works_after_env(source, tmp_path):
    program = tmp_path / "program"
    printed = after_env(f"cc {source} -o {program} {' '.join(LINK)} && {program}")
    assert printed == "1 1 \n"


def test_the_vendors_command_line_works_after_env(source, tmp_path):
    program = tmp_path / "program"
    printed = after_env(f"g++ {source} -I $ASCEND_HOME_PATH/include -I $ASCEND_HOME_PATH/include/aclnn "
                        "-L $ASCEND_OPP_PATH/lib64 -L $ASCEND_HOME_PATH/lib64 -lopapi_nn -lopapi_math -lascendcl "
                        f"-lnnopbase -o {program} && {program}")  # fmt: skip
    assert printed == "1 1 \n"


# ---- cc, c++, run ----


@pytest.mark.parametrize("command", ["cc", "c++"])
def test_compile_and_start_without_any_environment(command, source, tmp_path):
    program = tmp_path / "program"
    done = understudy(command, "--stack", "ascend", source, "-O1", "-Wall", "-Werror", "-o", program, *LINK)
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run([program], capture_output=True, text=True, env={}).stdout == "1 1 \n"


def test_libraries_that_are_used_are_linked_and_no_others(source, tmp_path):
    program, plain = tmp_path / "program", tmp_path / "plain"
    assert understudy("cc", source, "-o", program).returncode == 0
    assert subprocess.run([program], capture_output=True, text=True, env={}).stdout == "1 1 \n"
    (tmp_path / "plain.c").write_text("int main(void) { return 0; }\n")
    assert understudy("c++", tmp_path / "plain.c", "-o", plain).returncode == 0
    needed = subprocess.run(["readelf", "-d", program, plain], capture_output=True, text=True, check=True).stdout
    assert needed.count("libnnopbase.so") == 1
    assert not any(name in needed for name in ("libmcdnn.so", "libftdsp.so", "libopapi_nn.so", "libm.so"))


def test_a_program_that_calls_mathematics_needs_no_option(tmp_path):
    (tmp_path / "root.c").write_text("""
#include <math.h>
#include <stdio.h>
int main(int count, char **words) { (void)words; printf("%g\\n", exp2(count)); return 0; }
""")
    assert understudy("cc", tmp_path / "root.c", "-o", tmp_path / "root").returncode == 0
    assert subprocess.run([tmp_path / "root"], capture_output=True, text=True, env={}).stdout == "2\n"


def test_compile_without_linking(source, tmp_path):
    done = understudy("cc", "-c", source, "-o", tmp_path / "program.o")
    assert (done.returncode, done.stderr) == (0, "")


def test_static_programs_name_their_library(tmp_path):
    program = tmp_path / "gradient"
    example = paths.examples() / "ftdsp" / "binarycrossentropygrad" / "shared_space.c"
    done = understudy("cc", "-static-pie", example, "-o", program, f"-L{paths.STACKS['ftdsp'].library_path}", "-lftdsp",
                      "-lm", "-lpthread")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert subprocess.run([program], capture_output=True, text=True).stdout.startswith("dx[0] = 0.370370\n")


def test_compiler_errors_are_the_compilers(tmp_path):
    broken = tmp_path / "broken.c"
    broken.write_text("int main(void) { return missing; }\n")
    done = understudy("cc", broken, "-o", tmp_path / "broken")
    assert done.returncode == 1 and "missing" in done.stderr and "Traceback" not in done.stderr


def test_a_call_without_declaration_names_the_header(tmp_path):
    program = tmp_path / "program.c"
    call = "int main(void)\n{\n    fp_linspace_s((float *)0xA0000000, 0.5f, 2.0f, 4, 1);\n    return 0;\n}\n"
    program.write_text(call)
    for options in (["-std=gnu99"], ["-w"]):
        done = understudy("cc", program, "-o", tmp_path / "program", *options)
        assert_error_of_use(done, f"{program}:3", "fp_linspace_s", "#include <linspace.h>")
    assert not (tmp_path / "program").exists()
    program.write_text(f"#include <linspace.h>\n{call}")
    assert understudy("cc", program, "-o", tmp_path / "program").returncode == 0
    for name in ("puts", "shape", "rank"):  # not ours, although comments of headers have them: as the compiler wants
        program.write_text(f'int main(void) {{ return {name}("") < 0; }}\n')
        assert understudy("cc", "-c", program, "-o", tmp_path / "program.o", "-std=gnu99").returncode == 0


@pytest.mark.parametrize("name", ["slices", "momentum"])
def test_programs_that_are_several_cores(name, tmp_path):
    program = tmp_path / name
    assert understudy("cc", paths.examples() / "ftdsp" / "cores" / f"{name}.c", "-o", program).returncode == 0
    done = understudy("ft-run", "-n", 3, program)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("3 cores:" if name == "slices" else "weight[0]")
    link = "-lftdsp -I$FTDSP_PATH/../include -L$FTDSP_PATH/../lib -lunderstudy"  # the READMEs' line; no run path
    source = paths.examples() / "ftdsp" / "cores" / f"{name}.c"
    printed = after_env(f"cd {tmp_path}; gcc {source} -I$FTDSP_PATH/include -L$FTDSP_PATH/lib {link} -o plain; ./plain")
    assert printed.startswith("1 cores:" if name == "slices" else "weight[0]")
    done = understudy("ft-run", "-n", 3, tmp_path / "plain")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_core_that_ends_before_it_has_begun_ends_those_that_wait_for_it(tmp_path):
    """Nothing of the library was loaded in it yet."""
    program = tmp_path / "slices"
    assert understudy("cc", paths.examples() / "ftdsp" / "cores" / "slices.c", "-o", program).returncode == 0
    command = [sys.executable, "-m", "understudy", "ft-run", "-n", "3", "sh", "-c",
               f'test "$UNDERSTUDY_FT_CORE" = 1 && exit 0; exec {program}']  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "waits at a barrier of the cores 0x07, but core 1 has ended" in done.stderr, done
    assert "has been waiting" not in done.stderr


def test_the_end_of_a_program_is_not_the_end_of_its_core(tmp_path):
    """Core 1 is between two programs when the others look for it, which they do every 0.1 s."""
    program = tmp_path / "slices"
    assert understudy("cc", paths.examples() / "ftdsp" / "cores" / "slices.c", "-o", program).returncode == 0
    done = ft_run(3, f'{program} && if [ "$UNDERSTUDY_FT_CORE" = 1 ]; then sleep 0.4; fi && {program}')
    assert (done.returncode, done.stderr, done.stdout.count("3 cores:")) == (0, "", 2)


def test_a_stack_left_out_is_not_found(source, tmp_path):
    done = understudy("cc", "--stack=maca", source, "-o", tmp_path / "program")
    assert done.returncode != 0 and "acl/acl.h" in done.stderr


def test_options_behind_the_first_argument_belong_to_the_compiler(source):
    done = understudy("cc", source, "--stack", "ascend")
    assert done.returncode == 1 and "--stack" in done.stderr


def test_run_finds_the_libraries(source, tmp_path):
    program = tmp_path / "program"
    root = paths.STACKS["ascend"]
    subprocess.run(["cc", source, *(f"-I{path}" for path in root.include_paths), f"-L{root.library_path}", *LINK,
                    "-o", program], check=True)  # fmt: skip
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    assert subprocess.run([program], capture_output=True, env=clean).returncode == 127
    done = understudy("run", program, "--stack", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 2 --stack\n")


def test_run_passes_the_exit_status_and_signals():
    assert understudy("run", "sh", "-c", "exit 41").returncode == 41
    assert understudy("run", "sh", "-c", "kill -TERM $$").returncode == -15
    assert understudy("run", "--", "true").returncode == 0


# ---- ft-run ----


def ft_run(cores: int, script: str) -> subprocess.CompletedProcess:
    return understudy("ft-run", "-n", cores, "sh", "-c", script)


def test_ft_run_starts_one_process_per_core():
    done = ft_run(3, 'echo "$UNDERSTUDY_FT_CORE of $UNDERSTUDY_FT_CORES"; test -r "$UNDERSTUDY_FT_MEMORY"')
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["0 of 3", "1 of 3", "2 of 3"]


def test_ft_run_gives_the_status_of_the_core_that_fails_and_stops_the_others():
    start = time.monotonic()
    done = ft_run(4, 'test "$UNDERSTUDY_FT_CORE" = 2 && exit 5; exec sleep 60')
    assert done.returncode == 5 and "core 2 ended with status 5" in done.stderr
    done = ft_run(2, 'test "$UNDERSTUDY_FT_CORE" = 1 && kill -SEGV $$; exec sleep 60')
    assert done.returncode == 128 + 11 and "core 1 was ended by SIGSEGV" in done.stderr
    assert time.monotonic() - start < 30


def test_ft_run_starts_all_cores_of_the_chip(monkeypatch):
    for chip, cores in (("MT7004", 4), ("FT78NE", 8), ("", 8)):
        monkeypatch.setenv("UNDERSTUDY_FT_CHIP", chip)
        done = understudy("ft-run", "sh", "-c", 'echo "$UNDERSTUDY_FT_CORE"')
        assert sorted(done.stdout.split()) == [str(core) for core in range(cores)]
        done = understudy("ft-run", "-n", cores + 1, "true")
        assert done.returncode == 2 and f"{chip or 'a chip'} has 1 to {cores} cores" in done.stderr
    assert "FT78NE 8 (as without one), MT7004 4" in " ".join(understudy("ft-run", "--help").stdout.split())


def test_ft_run_labels_lines():
    script = 'echo "out $UNDERSTUDY_FT_CORE"; printf "more\\nrest"; echo "err" >&2'
    done = understudy("ft-run", "--label", "-n", 2, "sh", "-c", script)
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [f"[{core}] {text}" for core in (0, 1)
                                                for text in ("more", f"out {core}", "rest")]  # fmt: skip
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err"]


@pytest.mark.parametrize("target", ["runner", "its group"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_runner_that_is_ended_ends_its_cores(how, target):
    command = [sys.executable, "-m", "understudy", "ft-run", "-n", "2", "sh", "-c", "sleep 60 & echo $$ $!; wait"]
    runner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    started = [int(word) for _ in range(2) for word in runner.stdout.readline().split()]  # the cores, and what they started
    start = time.monotonic()
    (os.kill if target == "runner" else os.killpg)(runner.pid, how)
    _, errors = runner.communicate(timeout=30)  # until nobody holds its output
    assert time.monotonic() - start < 1
    assert runner.returncode == -how and "the runner was ended, and so were its 2 cores" in errors
    while any(is_alive(process) for process in started):
        assert time.monotonic() - start < 1


def test_a_core_that_fails_ends_what_the_others_started():
    start = time.monotonic()
    done = ft_run(2, 'test "$UNDERSTUDY_FT_CORE" = 1 && exit 3; sleep 60 & echo $!; wait')
    assert done.returncode == 3 and time.monotonic() - start < 10
    assert not is_alive(int(done.stdout))


def is_alive(process: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] not in "ZX"  # ended, at most waiting to be collected by its new parent


# ---- demo ----


def test_demo():
    done = understudy("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\033" not in done.stdout
    for name in ("soft_margin_loss_backward", "softmax", "binarycrossentropygrad/shared_space"):
        assert any(line.startswith(name) and line.endswith("ok") for line in done.stdout.splitlines())
    programs = len([*paths.examples().rglob("*.c"), *paths.examples().rglob("*.cpp")])
    assert f"{programs} programs" in done.stdout and done.stdout.rstrip().endswith(" 0 bad")


def test_demo_of_one_stack():
    done = understudy("demo", "--stack", "ascend")
    assert done.returncode == 0 and "soft_margin_loss_backward" in done.stdout


def test_demo_in_a_folder_with_a_space(tmp_path):
    """As a vendor writes it, the compile command has no quotes around its variables."""
    odd = tmp_path / "a b"
    odd.mkdir()
    for part in paths.sdk().iterdir():
        (odd / part.name).symlink_to(part)
    done = understudy("demo", "--stack", "ftdsp", env={"UNDERSTUDY_SDK": str(odd)})
    assert done.returncode == 0, done.stdout


def test_demo_notices_wrong_numbers_and_broken_programs(tmp_path, monkeypatch, capsys):
    from understudy import demo

    folder = tmp_path / "ascend" / "soft_margin_loss_backward"
    folder.mkdir(parents=True)
    program = folder / "soft_margin_loss_backward.c"
    monkeypatch.setattr(paths, "examples", lambda: tmp_path)
    stacks = [paths.STACKS["ascend"]]

    compiling = "/* gcc soft_margin_loss_backward.c -o soft_margin_loss_backward */"

    def result(body: str, first=compiling) -> tuple[int, str]:
        program.write_text(f"{first}\n#include <stdio.h>\nint main(void) {{ {body} }}\n")
        return demo.run(stacks), capsys.readouterr().out

    expected = demo.REFERENCES["soft_margin_loss_backward"]()
    lines = {label: " ".join(f"{value:.9g}" for value in values) for label, values in expected.items()}
    good = "".join(f'puts("{label}: {text}");' for label, text in lines.items())
    status, out = result(good + "return 0;")
    assert status == 0 and out.count(" ok\n") == len(expected)
    status, out = result(good.replace("1.46211", "1.46212") + "return 0;")
    assert status == 1 and "DIFFERS" in out
    status, out = result('puts("none: 1 2");return 0;')
    assert status == 1 and "(not printed)" in out
    status, out = result(good + "return 3;")
    assert status == 1 and "status 3" in out
    status, out = result("return missing;")
    assert status == 1 and "missing" in out
    status, out = result("return 0;", first="/* no command */")
    assert status == 1 and "not a compile command" in out
    program.rename(folder / "other.c")
    program = folder / "other.c"
    status, out = result(good + "return 0;", first="/* gcc other.c -o other */")
    assert status == 1 and "no reference" in out
