"""Two thousand steps of training on the emulated device: prints the memory of the process as it goes, and fails when it grows.

    understudy run python -m tests.clients.torch_npu.soak [STEPS]
"""

import sys

from tests.clients.torch_npu.programs import train_long

WARM, ALLOWED = 4, 8 << 20  # entries of fifty steps; bytes


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    losses, memory = train_long("npu", steps)
    for entry, (loss, used) in enumerate(zip(losses, memory)):
        print(f"step {50 * entry:6}  loss {loss:.5f}  memory {used / 2**20:.1f} MiB")
    grown = memory[-1] - memory[min(WARM, len(memory) - 1)]
    if grown > ALLOWED:
        raise SystemExit(f"the memory grew by {grown / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
