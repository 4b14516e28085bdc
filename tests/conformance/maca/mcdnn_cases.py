"""Pairs of calls for the rules of libmcdnn: a legal call, changed in the one way that the rule refuses."""

from __future__ import annotations

from collections.abc import Callable

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase
from tests.maca.mcdnn_support import Tensor, call, ok, parameters, synchronize


def unset_descriptor():
    made = ffi.new("mcdnnTensorDescriptor_t *")
    ok(lib.mcdnnCreateTensorDescriptor(made))
    return ffi.gc(made[0], lib.mcdnnDestroyTensorDescriptor)


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
        for name, kind in zip(parameters(self.function), types, strict=True):
            if kind.kind != "pointer" or name in optional:
                continue
            if kind.item.kind == "struct":
                cases.append(self.case(f"{name}/alive", {name: None}))
                if kind is ffi.typeof("mcdnnTensorDescriptor_t"):
                    cases.append(self.case(f"{name}/set", lambda _, name=name: {name: unset_descriptor()}))
            else:
                cases.append(self.case(f"{name}/null", {name: None}))
        return cases

    def launch(self) -> RuleCase:
        return self.case("handle/launch", lambda _: {"handle": broken_handle()})
