"""Allocates and frees a million times in each way, on both stacks: the number of mappings must not grow.

    python bench/soak.py [--rounds N] [--limit BYTES]

`--limit` runs with so much address space only (as `ulimit -v` does)."""

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

from understudy import toolchain

HERE = pathlib.Path(__file__).parent
CASES = {"ascend": ["small", "medium", "large", "pinned-small", "pinned-medium", "mixed", "reserve", "map"],
         "maca": ["small", "medium", "large", "mixed", "reserve"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()

    def limit() -> None:
        if options.limit:
            resource.setrlimit(resource.RLIMIT_AS, (options.limit, options.limit))

    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for stack, cases in CASES.items():
            program = pathlib.Path(folder) / stack
            found = toolchain.stacks_named([stack])
            define = ["-DSOAK_MACA"] if stack == "maca" else []
            subprocess.run([*toolchain.compiler("c"), "-O2", *define, HERE / "soak.c", "-o", program,
                            *toolchain.flags(found), *toolchain.libraries(found)], check=True)
            for name in cases:
                print(f"{stack:7}", end="", flush=True)
                failures += subprocess.run([program, name, str(options.rounds)], preexec_fn=limit).returncode != 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
