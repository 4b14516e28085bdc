"""What a core does in test_cores.py: the legal call of every _s function, twice, on the same operands in DDR as every other
core. Core 0 prints a line per call with the digest of what its operands hold then: they work in place or add up, so that
work done once too often, or not at all, shows.

Run as `python -m tests.ftdsp.core_calls`, alone or by `understudy ft-run`.
"""

import hashlib

from tests.conformance.ftdsp import legal, test_arrays, test_binarycrossentropygrad, test_elementwise
from tests.conformance.ftdsp.calls import DDR, At, Input, Invocation, Output, Table, initial_bytes, memory
from tests.conformance.ftdsp.manual import Manual, operators
from understudy.ftdsp import last_error, lib

MASKS = (0xFF, 0x0B, 0x02)  # 0x02: the first core that takes part is not core 0
FREE = DDR + 2**24  # the legal calls themselves name addresses below


class Space:
    """Places in DDR, one behind the other, each followed by a gap."""

    def __init__(self, begin: int):
        self.begin = self.end = begin

    def at(self, size: int) -> At:
        place = At(self.end)
        self.end += -(-size // 64) * 64 + 64
        return place

    def content(self) -> bytes:
        return memory(self.begin, self.end - self.begin)


def invocation(operator, prefix: str, mask: int, space: Space) -> Invocation:
    """A call with its operands in a space."""
    instead = {}
    parameters = operator.parameters(prefix)
    for parameter in parameters:
        if isinstance(parameter, (Input, Output)):
            instead[parameter.name] = space.at(len(initial_bytes(parameter)))
        elif isinstance(parameter, Table) and parameter.operands:
            entries = [space.at(entry.nbytes) if hasattr(entry, "nbytes") else entry for entry in parameter.entries]
            instead[parameter.name] = Table(parameter.name, entries)
    position = operator.mask_position() if hasattr(operator, "mask_position") else -1
    return Invocation(operator.symbol(prefix, "s"), parameters, instead, mask, position)


def everything():
    """Name, call and space of every call."""
    manual = [Manual(key, legal.OWN_PARAMETERS.get(key)) for key in operators()]
    others = [*test_arrays.OPERATORS.values(), *test_elementwise.OPERATORS, test_binarycrossentropygrad.OPERATOR]
    space = Space(FREE)
    for operator in [*manual, *others]:
        for prefix in operator.prefixes:
            for mask in MASKS:
                space = Space(space.end)
                yield f"{operator.symbol(prefix, 's')} {mask:#x}", invocation(operator, prefix, mask, space), space


def main() -> None:
    calls = list(everything())  # every core writes the same operands
    lib.understudy_barrier()
    for name, call, _ in calls:
        for _ in range(2):
            call.function(*call.arguments)
        assert last_error().rule == "", (name, last_error().rule)
    lib.understudy_barrier()
    if lib.understudy_core() == 0:
        for name, _, space in calls:
            print(name, hashlib.sha256(space.content()).hexdigest()[:16])
    lib.understudy_barrier()


if __name__ == "__main__":
    main()
