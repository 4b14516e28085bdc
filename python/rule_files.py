"""Makes the rule catalogues of the SDK from those beside the sources, as JSON: every command reads them when it starts, and
reading TOML takes forty times as long.

    python -m rule_files SOURCES FOLDER    with python/ on PYTHONPATH; a catalogue is in FOLDER as it is in SOURCES
"""

import json
import pathlib
import shutil
import sys

from understudy import toml


def main(sources: pathlib.Path, folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for file in sources.rglob("rules.toml"):
        made = (folder / file.relative_to(sources)).with_suffix(".json")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(json.dumps(toml.loads(file.read_text("utf-8")), ensure_ascii=False, indent=1), "utf-8")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
