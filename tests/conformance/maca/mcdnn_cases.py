"""Pairs of calls for the rules of libmcdnn: a legal call, changed in the one way that the rule refuses."""

from __future__ import annotations

from collections.abc import Callable

from understudy.maca import ffi, lib

from tests import in_step
from tests.conformance.harness import Result, RuleCase
from tests.maca.mcdnn_support import Tensor, call, ok, parameters, synchronize


def fresh(kind: str, name: str):
    """A new descriptor that was not set: fresh("mcdnnTensorDescriptor_t", "Tensor")."""
    made = ffi.new(f"{kind} *")
    ok(getattr(lib, f"mcdnnCreate{name}Descriptor")(made))
    return ffi.gc(made[0], getattr(lib, f"mcdnnDestroy{name}Descriptor"))


def unset_tensor():
    return fresh("mcdnnTensorDescriptor_t", "Tensor")


def operands(pairs, make):
    """Changes that give each pair of a descriptor and a data parameter a new tensor."""
    return lambda _: {name: tensor for pair in pairs for tensor in [make()] for name in pair}


def both(*changes):
    return lambda arguments: {name: value for change in changes for name, value in change(arguments).items()}


def descriptor_rules(name: str, kind: str, parameter: str, users: dict) -> list[RuleCase]:
    """Creation without a place, destruction twice, and every user of a descriptor given NULL instead."""
    create, destroy = getattr(lib, f"mcdnnCreate{name}Descriptor"), getattr(lib, f"mcdnnDestroy{name}Descriptor")

    def destroyed(times):
        made = ffi.new(f"{kind} *")
        ok(create(made))
        return Result([int(destroy(made[0])) for _ in range(times)][-1])

    return [
        RuleCase(f"mcdnnCreate{name}Descriptor/{parameter}/null", lambda: Result(int(create(ffi.NULL))),
                 lambda: Result(int(create(ffi.new(f"{kind} *"))))),
        RuleCase(f"mcdnnDestroy{name}Descriptor/{parameter}/alive", lambda: destroyed(2), lambda: destroyed(1)),
        *[RuleCase(f"{function}/{parameter}/alive", lambda user=user: Result(int(user(ffi.NULL))),
                   lambda user=user: Result(int(user(fresh(kind, name))))) for function, user in users.items()],
    ]


def broken_handle():
    """A library handle whose stream has been destroyed behind its back."""
    stream, handle = ffi.new("mcStream_t *"), ffi.new("mcdnnHandle_t *")
    ok(lib.mcStreamCreate(stream))
    ok(lib.mcdnnCreate(handle))
    ok(lib.mcdnnSetStream(handle[0], stream[0]))
    ok(lib.mcStreamDestroy(stream[0]))
    return handle[0]


class Subject:
    """A function and a legal call of it: `arguments` makes new ones each time, `outputs` names what it writes."""

    def __init__(self, function: str, arguments: Callable[[], dict], outputs: tuple[str, ...] = ()):
        self.function, self.arguments, self.outputs = function, arguments, outputs

    def result(self, changes) -> Result:
        """Calls with changes: a dictionary, or a function that gets the legal arguments and returns one."""
        arguments = self.arguments()
        arguments.update(changes(arguments) if callable(changes) else changes)
        watched = {name: arguments[name] for name in self.outputs if isinstance(arguments[name], Tensor)}
        before = {name: output.bytes() for name, output in watched.items()}
        status = call(self.function, **arguments)
        synchronize()
        untouched = all(output.bytes() == before[name] for name, output in watched.items()) if watched else None
        return Result(status, untouched)

    def case(self, rule: str, refused, accepted=None) -> RuleCase:
        return RuleCase(f"{self.function}/{rule}", refused=lambda: self.result(refused),
                        accepted=lambda: self.result(accepted if accepted is not None else {}))

    def operands(self, optional: tuple[str, ...] = ()) -> list[RuleCase]:
        """The cases that follow from the parameters' types: handles and descriptors alive, pointers given."""
        cases = []
        types = ffi.typeof(getattr(lib, self.function)).args
        for name, kind in in_step(parameters(self.function), types):
            if kind.kind != "pointer" or name in optional:
                continue
            if kind.item.kind == "struct":
                cases.append(self.case(f"{name}/alive", {name: None}))
                if kind is ffi.typeof("mcdnnTensorDescriptor_t"):
                    cases.append(self.case(f"{name}/set", lambda _, name=name: {name: unset_tensor()}))
            else:
                cases.append(self.case(f"{name}/null", {name: None}))
        return cases

    def launch(self) -> RuleCase:
        return self.case("handle/launch", lambda _: {"handle": broken_handle()})
