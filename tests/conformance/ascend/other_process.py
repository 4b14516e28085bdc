"""A second process with a device of its own, which does what it is told."""

from __future__ import annotations

from tests.conformance import other_process as any_process

PRELUDE = """
from understudy.ascend import ffi, lib
from tests.conformance.ascend.acl_support import *
ok(lib.aclrtSetDevice({device}))
"""


class OtherProcess(any_process.OtherProcess):
    def __init__(self, device: int = 0, env=None):
        super().__init__(PRELUDE.format(device=device), env)


other_process = OtherProcess
