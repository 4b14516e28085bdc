"""The Ascend stack: `ffi` and `lib` are the raw ABI, `ops` is the NumPy layer.

    from understudy.ascend import ffi, lib
    lib.aclInit(ffi.NULL)
"""

from understudy._ascend_cffi import ffi
from understudy.binding import Binding

_binding = Binding("ascend", ffi, status_prefixes=("ACL_SUCCESS", "ACL_ERROR", "ACLNN_SUCCESS", "ACLNN_ERR"))

lib = _binding.lib
load = _binding.load
last_error = _binding.last_error
call = _binding.call

from understudy.ascend import ops  # noqa: E402  (needs the names above)
from understudy.ascend.runtime import Event, Stream, array  # noqa: E402

__all__ = ["Event", "Stream", "array", "call", "ffi", "last_error", "lib", "load", "ops"]
