"""The names of the programs: pytest collects them where PyTorch is not installed too."""

import pathlib
import re

TEXT, SERVING = (pathlib.Path(__file__).with_name(name).read_text() for name in ("programs.py", "serving.py"))
OPTIMIZERS = re.findall(r'"(\w+)": lambda p: torch\.optim', TEXT)
PROGRAMS = [*re.findall(r"^@program\ndef (\w+)", TEXT, re.MULTILINE), *(f"optimizer_{name}" for name in OPTIMIZERS),
            *re.findall(r"^@operator\ndef (\w+)", SERVING, re.MULTILINE)]  # fmt: skip
