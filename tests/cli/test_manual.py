"""The man page and the completions say what the parser knows, in forms that man and shells take."""

import argparse
import re
import shutil
import subprocess

import pytest

from understudy.__main__ import COMMANDS, make_parser
from understudy.kit import manual


def test_the_man_page_has_every_command_and_option():
    text = manual.man_page(make_parser())
    plain = text.replace("\\-", "-")
    for name, command in manual.commands(make_parser()).items():
        section = plain.partition(f"\n.SS {name}\n")[2].partition("\n.SS ")[0]
        assert section, name
        for action in manual.options(command):
            assert all(option in section for option in action.option_strings), (name, action.option_strings)
    assert set(manual.commands(make_parser())) == set(COMMANDS)


def test_text_of_the_parser_is_no_command_of_the_page():
    parser = argparse.ArgumentParser(description=".so /etc/passwd")
    parser.add_argument("--x", help="'quoted \\\\path")
    parser.add_subparsers().add_parser("sub", help="", description="\\\\fB")
    lines = manual.man_page(parser).splitlines()
    assert not any(line.startswith((".so", "'")) for line in lines)
    assert all(re.match(r"\.(TH|SH|SS|TP|PP|B)\b", line) for line in lines if line.startswith("."))


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff")
def test_the_man_page_is_formatted_without_a_warning():
    done = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-cbou"], input=manual.man_page(make_parser()),
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and "doctor" in done.stdout


@pytest.mark.parametrize("typed, expected", [
    ("understudy do", {"doctor"}), ("understudy rules --", {"--json", "--stack", "--help"}),
    ("understudy --ver", {"--version"}), ("understudy doctor mai", set()),
])  # fmt: skip
def test_bash_completes(typed, expected):
    first, *rest = typed.split(" ")
    words = " ".join(f"'{word}'" for word in [first, *rest])
    script = (f"{manual.completion('bash', make_parser())}\nCOMP_WORDS=({words}); COMP_CWORD={len(rest)}; _understudy\n"
              'printf "%s\\n" "${COMPREPLY[@]}"')  # fmt: skip
    done = subprocess.run(["bash", "-uc", script], capture_output=True, text=True)
    assert done.stderr == "" and set(done.stdout.split()) == expected


@pytest.mark.parametrize("shell", manual.SHELLS)
def test_completions_are_scripts_of_their_shell(shell):
    script = manual.completion(shell, make_parser())
    assert "doctor" in script and "--timeout" in script.replace("-l ", "--")
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True).returncode == 0
