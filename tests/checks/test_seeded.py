"""Every seeded mistake is found, in every stream mode, at its line; correct neighbours have no findings."""

import functools
import re

import pytest

from tests import native
from tests.checks import seeded

CHECKS = "memory,init,sync,race,leak"
PROGRAMS = {
    "ascend": (seeded.ASCEND_PRELUDE, seeded.ASCEND_MAIN, seeded.ASCEND | seeded.WORKSPACE),
    "maca": (seeded.MACA_PRELUDE, seeded.MACA_MAIN, seeded.MACA),
}


@functools.cache
def program(stack):
    """One executable for all programs of a stack, chosen by number; and its source's lines."""
    prelude, main, table = PROGRAMS[stack]
    functions = [f"static void program_{i}(void)\n{{\n{body.replace(';', ';' + chr(10))}\n}}\n"
                 for i, (body, _) in enumerate(table.values())]  # fmt: skip
    names = ", ".join(f"program_{i}" for i in range(len(functions)))
    main = main.replace("PROGRAM();", "programs[atoi(arguments[1])]();")
    text = (prelude + "".join(functions) + f"int main(int count, char **arguments)\n{{\n    (void)count;\n"
            f"    static void (*const programs[])(void) = {{{names}}};\n{main}    return 0;\n}}\n")  # fmt: skip
    source = native.work_folder() / f"seeded_{stack}.c"
    source.write_text(text)
    return native.build_vendor(source, stack, flags=("-g", "-fno-inline")), source


def run(stack, number, checks, mode):
    executable, _ = program(stack)
    done = native.run([executable, str(number)], {"UNDERSTUDY_CHECK": checks, "UNDERSTUDY_STREAM": mode})
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition(": check ")[2] for line in done.stderr.splitlines() if ": check " in line]


def marked_line(source, number):
    """Of the statement before the comment in a program."""
    lines = source.read_text().splitlines()
    first = lines.index(f"static void program_{number}(void)")
    return next(i for i in range(first, len(lines)) if "/*1*/" in lines[i])


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
@pytest.mark.parametrize("stack", PROGRAMS)
def test_what_is_found(stack, mode):
    wrong = []
    for number, (name, (_, expected)) in enumerate(PROGRAMS[stack][2].items()):
        checks = CHECKS + (",workspace" if name in seeded.WORKSPACE else "")
        found = run(stack, number, checks, mode)
        if len(found) != len(expected) and name != seeded.MAY_BE_TOLD_TWICE:
            wrong.append((name, found))
        for check, pattern, marked in expected:
            place = f".* at .*:{marked_line(program(stack)[1], number)} in program_{number}$" if marked else ""
            if not any(re.search(f"^{check}: .*{pattern}{place}", line) for line in found):
                wrong.append((name, check, pattern, found))
    assert not wrong, "\n".join(map(str, wrong))


def test_each_check_finds_its_own():
    """And nothing is found by the others."""
    for number, (name, (_, expected)) in enumerate(PROGRAMS["ascend"][2].items()):
        for check in {check for check, _, _ in expected} - {"workspace"}:
            others = ",".join({*CHECKS.split(","), *(["workspace"] if name in seeded.WORKSPACE else [])} - {check})
            found = run("ascend", number, others, "async")
            assert not any(line.startswith(check) for line in found), (name, check, found)
