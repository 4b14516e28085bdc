"""Stand-in libraries with the C ABI of three vendor accelerator stacks, on a plain CPU.

understudy.ascend, understudy.maca and understudy.ftdsp give the raw ABI (`ffi`, `lib`) and a NumPy layer;
understudy.paths tells where the SDK trees are.
"""

__version__ = "0.12.0"
