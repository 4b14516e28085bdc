"""The names of the programs: pytest collects them where PyTorch is not installed too."""

import pathlib
import re

TEXT = pathlib.Path(__file__).with_name("programs.py").read_text()
OPTIMIZERS = re.findall(r'"(\w+)": lambda p: torch\.optim', TEXT)
PROGRAMS = [*re.findall(r"^@program\ndef (\w+)", TEXT, re.MULTILINE), *(f"optimizer_{name}" for name in OPTIMIZERS)]
