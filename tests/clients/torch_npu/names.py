"""The names of the programs: pytest collects them where PyTorch is not installed too."""

import pathlib
import re

TEXT, *OPERATORS = (pathlib.Path(__file__).with_name(f"{name}.py").read_text() for name in ("programs", "serving", "by_name"))
OPTIMIZERS = re.findall(r'"(\w+)": lambda p: torch\.optim', TEXT)
PROGRAMS = [*re.findall(r"^@program\ndef (\w+)", TEXT, re.MULTILINE), *(f"optimizer_{name}" for name in OPTIMIZERS),
            *re.findall(r"^@operator\ndef (\w+)", "".join(OPERATORS), re.MULTILINE)]  # fmt: skip
