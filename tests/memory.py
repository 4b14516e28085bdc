"""How much memory the process has."""

import os
import pathlib


def resident() -> int:
    """Bytes in memory now."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
