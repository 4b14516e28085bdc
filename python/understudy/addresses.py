"""Where programs that this process starts get their memory."""

import ctypes

ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h
ASK = 0xFFFFFFFF


def keep_in_place() -> None:
    """Children have the same addresses in every run, and no heap in the DSP's windows (ft-dsp 2.2).

    The heap of a program that does not move, as many builds of Python do not, lies at a random place among the low
    addresses otherwise, where the windows are. Without effect where a container forbids it.
    """
    personality = ctypes.CDLL(None).personality
    personality.argtypes = [ctypes.c_ulong]
    personality(personality(ASK) | ADDR_NO_RANDOMIZE)
