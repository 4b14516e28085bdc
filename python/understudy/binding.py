"""The raw ABI of one stack: several shared libraries behind one object, and statuses as exceptions."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import NamedTuple

from understudy.errors import SdkError, StatusError
from understudy.kit import names as vendor_names
from understudy.paths import STACKS


class LastError(NamedTuple):
    """The calling thread's last refusal; status 0 and empty texts when there was none."""

    status: int
    rule: str
    text: str


class MissingName(AttributeError):
    """A name that no loaded library has. The message says more than that, and is made when somebody reads it."""

    def __init__(self, name: str, candidates):
        super().__init__(name)
        self.name, self._candidates = name, candidates

    def __str__(self) -> str:
        return vendor_names.absence(self.name, self._candidates())


class Libraries:
    """Functions and constants of several libraries of one ABI, looked up in order."""

    def __init__(self, ffi, paths: Iterable[str | os.PathLike]):
        self._ffi = ffi
        self._generation = 0
        self._handles: list = []
        self._retired: list = []
        self._load(paths)

    def _load(self, paths: Iterable[str | os.PathLike]) -> None:
        try:
            handles = [self._ffi.dlopen(os.fspath(path)) for path in paths]
        except OSError as error:
            raise SdkError(f"cannot load a library: {error}") from None
        # Never closed: their threads may be running, and callers may hold their functions.
        self._retired += self._handles
        self._handles = handles
        self._generation += 1
        for name in [name for name in vars(self) if not name.startswith("_")]:
            delattr(self, name)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        for handle in self._handles:
            try:
                value = getattr(handle, name)
            except (AttributeError, self._ffi.error):
                continue
            setattr(self, name, value)  # a function or a constant: the headers have no variables
            return value
        raise MissingName(name, self.__dir__)

    def __dir__(self):
        return sorted({name for handle in self._handles for name in dir(handle)})


def paths_from_environment(stack: str) -> list[str]:
    """Libraries to use instead of ours, as UNDERSTUDY_ASCEND_LIBRARIES=PATH:PATH… names them.

    Unlike `load`, this keeps ours out of the process: a library of the same name would be taken for the other's."""
    return [path for path in os.environ.get(f"UNDERSTUDY_{stack.upper()}_LIBRARIES", "").split(os.pathsep) if path]


class Binding:
    """`ffi` and `lib` of one stack, and calls that turn a refusal into a StatusError."""

    def __init__(self, stack: str, ffi, status_prefixes: tuple[str, ...] = ()):
        self.stack = STACKS[stack]
        self.ffi = ffi
        self.lib = Libraries(ffi, paths_from_environment(stack) or self.stack.libraries)
        self._status_prefixes = status_prefixes

    def load(self, paths: str | os.PathLike | Iterable[str | os.PathLike] | None = None) -> None:
        """Points `lib` at another library of the same ABI, such as the vendor's, or at several; None: back to our own.

        Objects made with the libraries loaded before are not valid with the new ones."""
        given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        self.lib._load(self.stack.libraries if given is None else given)

    def last_error(self) -> LastError:
        """The calling thread's last refusal, as the library tells it."""
        try:
            status = self.lib.understudy_last_status()
        except AttributeError:  # not an Understudy library: it has no such texts
            return LastError(0, "", "")
        text = [self.lib.understudy_last_rule(), self.lib.understudy_last_error()]
        return LastError(status, *(self.ffi.string(item).decode("utf-8", "replace") for item in text))

    def status_name(self, function: str, code: int) -> str:
        """How the headers spell the status `code` of `function`; the number when they do not."""
        result = self.ffi.typeof(getattr(self.lib, function)).result
        if result.kind == "enum":
            return result.elements.get(code, str(code))
        return self._statuses.get(code) or vendor_names.status_name(self.stack.name, code) or str(code)

    @functools.cached_property
    def _statuses(self) -> dict[int, str]:
        """Macros of the headers that are statuses, the first of several with one value."""
        found = {}
        for name in dir(self.lib):
            if name.startswith(self._status_prefixes):
                found.setdefault(getattr(self.lib, name), name)
        return found

    def call(self, function: str, *arguments) -> None:
        """Calls a function that returns a status; anything but 0 becomes a StatusError."""
        code = int(getattr(self.lib, function)(*arguments))
        if code != 0:
            last = self.last_error()
            rule, text = (last.rule, last.text) if last.status == code else ("", "")
            raise StatusError(function, self.status_name(function, code), code, rule, text)
