"""Operators as the pages describe them: a legal call of each, and for each rule the change that breaks just it.

Uses the vendor's public ABI and the data of the pages (rules/ascend/pages.json and cases.json of the SDK).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import json
import math
import re

import numpy

from understudy import paths
from understudy.ascend import ffi, lib, shapes

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import communicators, promotion
from tests.conformance.ascend.aclnn_support import Kind, Tensor, blank, dead_tensor, expanded
from tests.conformance.harness import Result, RuleCase

KINDS = {
    "F32": support.F32, "F16": support.F16, "BF16": support.BF16, "F64": support.F64, "I8": support.I8, "U8": support.U8,
    "I16": support.I16, "U16": support.U16, "I32": support.I32, "I64": support.I64, "B": support.BOOL,
    "I4": Kind("int4", lib.ACL_INT4, numpy.int8),  # a byte each: more room than it needs
    "U32": Kind("uint32", lib.ACL_UINT32, numpy.uint32), "U64": Kind("uint64", lib.ACL_UINT64, numpy.uint64),
    "C64": Kind("complex64", lib.ACL_COMPLEX64, numpy.complex64),
    "C128": Kind("complex128", lib.ACL_COMPLEX128, numpy.complex128),
}  # fmt: skip
PREFERRED = ["F32", "I32", "F16", "I64", "B", "C64"]
LARGE = 2**24  # elements: a tensor of more has only one in memory
DTYPE_CODES = {"C32": 33, "STRING": 13, "HF8": 34}


@functools.cache
def operators() -> dict[str, dict]:
    folder = paths.sdk() / "rules/ascend"
    entries, rules = (json.loads((folder / name).read_text()) for name in ("pages.json", "cases.json"))
    return {name: {**entry, "rules": rules[name]} for name, entry in entries["operators"].items()}


def planned() -> list[str]:
    """The operators whose first function comes from their page."""
    return [name for name, entry in operators().items() if entry["planned"]]


def kind_of(dtype: str) -> Kind:
    """What stands for a type: bytes for those that no kernel computes on."""
    return KINDS.get(dtype, support.I8)


# ---- arguments -----------------------------------------------------------------------------------------------------------


def _values(count: int, dtype: str, below: int | None) -> numpy.ndarray:
    if below is not None:
        return numpy.arange(count) % below
    if dtype == "B":
        return numpy.arange(count) % 2
    floating = dtype in ("F32", "F16", "BF16", "F64")
    return numpy.arange(count) % 7 * 0.25 + 0.25 if floating else (numpy.arange(count) % 5 + 1).astype(numpy.int8)


# An operator's cases ask for the same tensors over and over: what they hold, as it is stored. Not to be written.
@functools.lru_cache(maxsize=32)
def _stored(count: int, dtype: str, below: int | None) -> numpy.ndarray:
    return kind_of(dtype).encode(_values(count, dtype, below))


@functools.lru_cache(maxsize=8)
def _stored_ones(count: int, dtype: str) -> numpy.ndarray:
    return kind_of(dtype).encode(numpy.ones(count))


def format_code(name: str) -> int:
    """One format's constant has another beginning."""
    return lib.ACL_FRACTAL_Z_3D if name == "FRACTAL_Z_3D" else getattr(lib, f"ACL_FORMAT_{name}")


@dataclasses.dataclass
class Shaped:
    """A tensor to be made."""

    dtype: str
    shape: tuple[int, ...]
    below: int | None = None  # integers 0 … below-1
    every: int | None = None  # all are this integer
    leaves_storage: bool = False
    format: str | None = None  # ACL_FORMAT_…
    storage: tuple[int, ...] | None = None  # with this shape of its storage, of ACL_FORMAT_FRACTAL_NZ if no format is given
    turned: bool = False  # the last two dimensions lie the other way round

    def strides(self) -> list[int]:
        if not self.turned:
            return support.row_major(self.shape)
        *rest, rows, columns = self.shape
        *outer, of_columns, of_rows = support.row_major([*rest, columns, rows])
        return [*outer, of_rows, of_columns]

    def values(self) -> numpy.ndarray:
        """What it holds as an input."""
        return numpy.full(math.prod(self.shape), self.every) if self.every is not None else _values(
            math.prod(self.shape), self.dtype, self.below)  # fmt: skip

    def stored(self) -> numpy.ndarray:
        """The same as the type stores it. Not to be written."""
        return _stored(math.prod(self.shape), self.dtype, self.below) if self.every is None else kind_of(
            self.dtype).encode(self.values())  # fmt: skip

    def make(self, output: bool) -> Tensor:
        kind = kind_of(self.dtype)
        code = DTYPE_CODES.get(self.dtype)
        name = self.format or ("FRACTAL_NZ" if self.storage else None)
        format = format_code(name) if name else None
        if self.leaves_storage:
            strides = [2 * stride for stride in self.strides()]
            return blank(kind, self.shape, strides=strides, storage=[1], format=format)
        if math.prod(self.shape) > LARGE:
            return expanded(kind, self.shape)
        if output:
            return blank(kind, self.shape, strides=self.strides(), storage=self.storage,
                         format=format) if code is None else Tensor(kind, numpy.zeros(math.prod(self.shape)),
                                                                    shape=self.shape, code=code)  # fmt: skip
        if self.storage is not None:
            return Tensor(kind, stored=_stored_ones(math.prod(self.storage), self.dtype), shape=self.shape,
                          strides=self.strides(), storage=self.storage, code=code, format=format)  # fmt: skip
        return Tensor(kind, stored=self.stored(), shape=self.shape, strides=self.strides(), code=code, format=format)


SPEC = re.compile(r"(\w+)\[([\d, ]*)\](?:<(\d+))?(?:=(\d+))?(\^T)?(?:@\[([\d, ]*)\])?(?::([A-Z0-9_]+))?")


@functools.lru_cache(maxsize=1024)
def _spec(text: str) -> dict:
    match = SPEC.fullmatch(text)
    assert match, text
    shape, storage = (tuple(int(size) for size in sizes.split(",") if size.strip()) for sizes in (match[2], match[6] or ""))
    return {"dtype": match[1], "shape": shape, "below": int(match[3]) if match[3] else None,
            "every": int(match[4]) if match[4] else None, "turned": match[5] is not None, "storage": storage or None,
            "format": match[7]}  # fmt: skip


def shaped(text: str) -> Shaped:
    """"F32[2,3]", "I64[4]<3" (values below 3), "I64[4]=3" (all are 3), "F32[2,3]^T" (transposed: its columns lie side by side), "F16[2,3]@[1,1,16,16]"
    (ACL_FORMAT_FRACTAL_NZ with this storage shape), "F32[2,3,4,5]:NHWC" (of that format, behind a storage shape too)."""
    return Shaped(**_spec(text))


def preferred(types: list[str]) -> str:
    return next((kind for kind in PREFERRED if kind in types), types[0] if types else "F32")


def listed_types(entry: dict, name: str) -> list[str]:
    """A parameter's types on the default product; none where the page lists none."""
    return entry["dtypes"].get(name, {}).get("910B", [])


def _input_type(entry: dict) -> str:
    """The type of the first tensor in a legal call."""
    for parameter in entry["parameters"]:
        if parameter["kind"] in ("T", "TL"):
            return preferred(listed_types(entry, parameter["name"]) or ["F32"])
    return "F32"


def _default(entry: dict, parameter: dict):
    name, kind = parameter["name"], parameter["kind"]
    if kind in ("T", "TL"):
        types = listed_types(entry, name) or ["F32"]
        one = Shaped(_input_type(entry) if parameter["written"] and _input_type(entry) in types else preferred(types),
                     (2, 3))  # fmt: skip
        for check in entry["checks"]:  # elements NAME … = COUNT
            if check[0] == "elements" and name in check[1:-2]:
                one.shape = (int(check[-1]),)
        return one if kind == "T" else [one, Shaped(one.dtype, (5,))]
    defaults = {"S": 1.0, "SL": [1.0, 2.0], "IA": [0], "FA": [1.0], "BA": [True], "i64": 0, "i32": 0, "i8": 0, "u64": 0,
                "b": False, "d": 0.5, "f": 0.5, "dt": "F32", "str": ""}  # fmt: skip
    if kind in ("S", "SL") and promotion.category(_input_type(entry)) != "float":
        return 1 if kind == "S" else [1, 2]
    return copy.copy(defaults[kind])


def parsed(value, kind: str):
    """A value of a page's `example`, `break` or `legal`."""
    if kind == "T" and isinstance(value, str):
        return None if value == "null" else shaped(value)
    if kind == "TL" and isinstance(value, list):
        return [parsed(item, "T") for item in value]
    return None if value == "null" else value


def legal(entry: dict) -> dict:
    """Arguments of a legal call, by parameter name in the header's order."""
    arguments = {}
    for parameter in entry["parameters"]:
        name = parameter["name"]
        if name in entry["example"]:
            arguments[name] = parsed(entry["example"][name], parameter["kind"])
        else:
            arguments[name] = _default(entry, parameter)
    for check in entry["checks"]:
        if check[0] == "shape" and check[1] not in entry["example"]:
            arguments[check[1]].shape = shape_of(" ".join(check[3:]), arguments)
    return arguments


# ---- shapes ----------------------------------------------------------------------------------------------------------------


def shape_of(text: str, arguments: dict) -> tuple[int, ...]:
    values = {name: value.shape if isinstance(value, Shaped) else [item.shape for item in value] if is_list(value) else value
              for name, value in arguments.items()}  # fmt: skip
    return shapes.evaluate(text, values)


def is_list(value) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Shaped)


# ---- calls -----------------------------------------------------------------------------------------------------------------

NUMBER_STORAGE = {"F32": ("float", lib.ACL_FLOAT), "F64": ("double", lib.ACL_DOUBLE), "I64": ("int64_t", lib.ACL_INT64),
                  "B": ("bool", lib.ACL_BOOL), "I32": ("int32_t", lib.ACL_INT32)}  # fmt: skip


class Handle:
    """A scalar, array or list made for one call."""

    def __init__(self, handle, destroy, parts=()):
        assert handle != ffi.NULL
        self.handle, self.destroy, self.parts = handle, destroy, parts

    def __del__(self):
        self.destroy(self.handle)


def scalar(value) -> Handle:
    """bool -> BOOL, int -> INT64, float -> FLOAT, complex -> COMPLEX128, ("F64", 1.0) -> that type."""
    if isinstance(value, complex):
        cell = ffi.new("double[2]", [value.real, value.imag])
        return Handle(lib.aclCreateScalar(cell, lib.ACL_COMPLEX128), lib.aclDestroyScalar)
    if isinstance(value, (tuple, list)):
        name, value = value
    else:
        name = "B" if isinstance(value, bool) else "I64" if isinstance(value, int) else "F32"
    if name not in NUMBER_STORAGE:  # 16-bit and other types: as NumPy stores them
        stored = KINDS[name].encode(numpy.array([value]))
        return Handle(lib.aclCreateScalar(ffi.from_buffer(stored), KINDS[name].code), lib.aclDestroyScalar)
    ctype, code = NUMBER_STORAGE[name]
    return Handle(lib.aclCreateScalar(ffi.new(f"{ctype} *", value), code), lib.aclDestroyScalar)


def tensor_list(parts: list[Tensor]) -> Handle:
    handles = [part.handle if part is not None else ffi.NULL for part in parts]
    made = lib.aclCreateTensorList(ffi.new("aclTensor *[]", handles), len(parts))
    for part in parts:
        if part is not None:
            part.handle = ffi.NULL  # it belongs to the list now
    return Handle(made, lib.aclDestroyTensorList, parts)


def _scalars(values) -> Handle:
    parts = [scalar(value) if value is not None else None for value in values]
    made = lib.aclCreateScalarList(ffi.new("aclScalar *[]", [handle_of(part) or ffi.NULL for part in parts]), len(parts))
    for part in filter(None, parts):
        part.destroy = lambda handle: None
    return Handle(made, lib.aclDestroyScalarList, parts)


def _array(values, ctype: str, create, destroy) -> Handle:
    return Handle(create(ffi.new(f"{ctype}[]", list(values)), len(values)), destroy)


def made(parameter: dict, value):
    """What the operator is given for an argument."""
    kind = parameter["kind"]
    if value is None or not isinstance(value, (Shaped, list, tuple, int, float, complex, str)):
        return value
    if kind == "T":
        return value.make(parameter["written"] and not parameter["updated"])
    if kind == "TL":
        output = parameter["written"] and not parameter["updated"]
        return tensor_list([item.make(output) if item is not None else None for item in value])
    if kind == "S":
        return scalar(value)
    if kind == "SL":
        return _scalars(value)
    if kind == "IA":
        return _array(value, "int64_t", lib.aclCreateIntArray, lib.aclDestroyIntArray)
    if kind == "FA":
        return _array(value, "float", lib.aclCreateFloatArray, lib.aclDestroyFloatArray)
    if kind == "BA":
        return _array(value, "bool", lib.aclCreateBoolArray, lib.aclDestroyBoolArray)
    if kind == "dt":
        return KINDS[value].code if isinstance(value, str) else value
    if kind == "str":
        communicators.be_there(value)
        return ffi.new("char[]", value.encode())
    return value


def handle_of(value):
    return value.handle if isinstance(value, Handle) else value


def watched(entry: dict, values: dict) -> list[Tensor]:
    tensors = []
    for parameter in entry["parameters"]:
        value = values[parameter["name"]]
        if parameter["written"] and isinstance(value, Tensor):
            tensors.append(value)
        elif parameter["written"] and isinstance(value, Handle):
            tensors += [part for part in value.parts if part is not None]
    return tensors


def values_of(entry: dict, arguments: dict) -> dict:
    return {parameter["name"]: made(parameter, arguments[parameter["name"]]) for parameter in entry["parameters"]}


def result_of(entry: dict, arguments: dict) -> Result:
    """Both phases with these arguments."""
    values = values_of(entry, arguments)
    tensors = watched(entry, values)
    before = [tensor.bytes() for tensor in tensors]
    status, size, executor = support.plan(entry["function"], *map(handle_of, values.values()))
    if status == 0:
        support.execute(entry["function"], size, executor)
    return Result(status, [tensor.bytes() for tensor in tensors] == before)


def subject(entry: dict) -> support.Subject:
    """The operator for the cases that every operator has."""

    def arguments():
        return values_of(entry, legal(entry))

    arguments.__module__ = "tests.conformance.ascend.test_aclnn_pages"
    outputs = [parameter["name"] for parameter in entry["parameters"] if parameter["written"]]
    return support.Subject(entry["function"], arguments, outputs)


# ---- breaking a rule ---------------------------------------------------------------------------------------------------------

def dead_handle(kind: str):
    if kind == "T":
        return dead_tensor()
    arguments = {"TL": [Shaped("F32", (1,))], "S": 1.0, "SL": [1.0], "IA": [0], "FA": [0.0], "BA": [True]}[kind]
    value = made({"kind": kind, "written": False, "in_place": False, "name": ""}, arguments)
    handle, value.handle = value.handle, ffi.NULL
    assert value.destroy(handle) == 0
    value.destroy = lambda nothing: None
    return handle


class CannotBreak(Exception):
    """No change of the legal call breaks just this rule."""


def _set_dtype(value, dtype: str):
    if isinstance(value, list):
        return [dataclasses.replace(item, dtype=dtype) for item in value]
    return dataclasses.replace(value, dtype=dtype)


def _first(value) -> Shaped:
    return value[0] if isinstance(value, list) else value


def break_dtype(entry, rule, arguments):
    name = rule["subject"]
    allowed = entry["dtypes"][name]["910B"]
    refused = next(kind for kind in ("STRING", "HF8", "C32") if kind not in allowed)
    if isinstance(arguments[name], str):
        return {name: DTYPE_CODES[refused]}
    if not isinstance(arguments[name], Shaped) and not is_list(arguments[name]):
        if "C64" in allowed:
            raise CannotBreak
        return {name: 1j}
    return {name: _set_dtype(arguments[name], refused)}


def _words(entry, rule) -> list[str]:
    return entry["checks"][rule["check"]][1:]


def _scalar_names(entry) -> list[str]:
    return [parameter["name"] for parameter in entry["parameters"] if parameter["kind"] == "S"]


def _tensor_names(entry) -> list[str]:
    return [parameter["name"] for parameter in entry["parameters"] if parameter["kind"] == "T"]


def _is_limited(entry, rule, name: str) -> bool:
    """Whether a check before the rule holds the parameter to the types that are listed for it."""
    return any(check[0] == "dtype" and name in check or check[0] == "same-dtype" and name in check[2:]
               for check in entry["checks"][: rule["check"]])  # fmt: skip


def _possible(entry, rule, name: str) -> list[str]:
    """Types with which a parameter comes as far as this rule."""
    if _is_limited(entry, rule, name):
        return listed_types(entry, name)
    return [kind for kind in KINDS if kind in promotion.TYPES]


def break_promote(entry, rule, arguments):
    """Types that the parameters may have and that do not mix: those before this one mix."""
    words = [word for word in _words(entry, rule) if word in arguments]
    before = [word for word in words[: words.index(rule["subject"])] if isinstance(arguments[word], Shaped)]
    name = rule["subject"]
    value = arguments[name]
    if is_list(value):
        types = listed_types(entry, name)
        for first, second in itertools.product(types, types):
            if promotion.promoted(first, second) is None:
                rest = [dataclasses.replace(item, dtype=second) for item in value[1:]]
                return {name: [dataclasses.replace(value[0], dtype=first), *rest]}
    if not before or isinstance(value, list):
        raise CannotBreak
    for first in _possible(entry, rule, before[0]):
        if any(first not in _possible(entry, rule, other) for other in before):
            continue
        for second in _possible(entry, rule, name):
            if isinstance(value, Shaped) and promotion.promoted(first, second) is None:
                return {**{other: _set_dtype(arguments[other], first) for other in before},
                        name: _set_dtype(value, second)}  # fmt: skip
        if not isinstance(value, Shaped) and promotion.category(first) == "wide":
            return {**{other: _set_dtype(arguments[other], first) for other in before}, name: 0.5}
    raise CannotBreak


def computed_type(entry, arguments, source: str) -> str | None:
    """The type that a name in a check stands for, with these arguments."""
    if match := re.fullmatch(r"floating\((.*)\)", source):
        inner = computed_type(entry, arguments, match[1])
        return "F32" if inner and promotion.category(inner) in ("int", "wide", "bool") else inner
    if isinstance(arguments.get(source), Shaped):
        return arguments[source].dtype
    if source in promotion.TYPES:
        return source
    for check in entry["checks"]:
        if check[0] != "promote":
            continue
        words = check[1:]
        name = "promoted"
        if len(words) > 1 and words[1] == "=":
            name, words = words[0], words[2:]
        if name == source:
            return promoted_type([arguments[word] for word in words if word in arguments])
    return None


def scalar_type(value) -> str:
    if isinstance(value, (tuple, list)):
        return value[0]
    return ("B" if isinstance(value, bool) else "I64" if isinstance(value, int) else
            "C128" if isinstance(value, complex) else "F32")  # fmt: skip


def promoted_type(values) -> str | None:
    values = [item for value in values for item in (value if is_list(value) else [value])]
    tensors = [value.dtype for value in values if isinstance(value, Shaped)]
    scalars = [scalar_type(value) for value in values if not isinstance(value, Shaped) and value is not None]
    joint = tensors[0]
    for other in tensors[1:]:
        joint = promotion.promoted(joint, other) if joint else None
    for other in scalars:
        joint = promotion.promoted_with_scalar(joint, other) if joint else None
    return joint


def break_cast(entry, rule, arguments):
    source, _, target = _words(entry, rule)
    name = rule["subject"]
    if name == source:  # a scalar that does not convert to a type
        for dtype in listed_types(entry, _type_source(entry, target)) or ["F32"]:
            changed = with_types(entry, arguments, dtype)
            if promotion.category(dtype) != "float":
                changed.update({other: 1 for other in _scalar_names(entry)})
            to = computed_type(entry, changed, target)
            for value in (0.5, 1j):
                if to and not promotion.can_cast(scalar_type(value), to):
                    return {**changes(arguments, changed), name: value}
        raise CannotBreak
    in_place = any(parameter["in_place"] and parameter["name"] == target for parameter in entry["parameters"])
    lists = [name for name, value in arguments.items() if is_list(value)]
    inputs = [word for word in _tensor_names(entry) + lists if word != target and not in_place]
    candidates = {dtype for word in inputs for dtype in listed_types(entry, word)}
    for dtype in sorted(candidates, key=lambda kind: (kind != "F32", kind)):
        changed = with_types(entry, arguments, dtype, skip=target)
        from_type = computed_type(entry, changed, source)
        for to in _possible(entry, rule, target):
            if from_type and not promotion.can_cast(from_type, to):
                return {**changes(arguments, changed), target: _set_dtype(arguments[target], to)}
    if not _is_limited(entry, rule, target):
        return {target: _set_dtype(arguments[target], "STRING")}
    for word in (word for word in inputs if not _is_limited(entry, rule, word)):
        for dtype in _possible(entry, rule, word):
            from_type = computed_type(entry, {**arguments, word: _set_dtype(arguments[word], dtype)}, source)
            if from_type and not promotion.can_cast(from_type, arguments[target].dtype):
                return {word: _set_dtype(arguments[word], dtype)}
    own = _possible(entry, rule, target)
    for dtype, others in itertools.product(own, own):  # changed in place: its partners decide
        changed = {**with_types(entry, arguments, others), target: _set_dtype(arguments[target], dtype)}
        from_type = computed_type(entry, changed, source)
        if from_type and not promotion.can_cast(from_type, dtype):
            return changes(arguments, changed)
    scalars = _scalar_names(entry)
    for dtype in own:  # a scalar may make the common type what target is not
        for name, value in ((name, value) for name in scalars for value in (0.5, 1j)):
            changed = {**with_types(entry, arguments, dtype), name: value}
            from_type = computed_type(entry, changed, source)
            if from_type and not promotion.can_cast(from_type, dtype):
                return changes(arguments, changed)
    raise CannotBreak


def _type_source(entry, target: str) -> str:
    if target in entry["dtypes"]:
        return target
    for check in entry["checks"]:
        if check[0] == "promote":
            return next(word for word in check[1:] if word in entry["dtypes"])
    return next(iter(entry["dtypes"]), "")


def with_types(entry, arguments, dtype: str, skip: str = "") -> dict:
    """All tensors of a type, where their lists allow it."""
    changed = dict(arguments)
    for name, value in arguments.items():
        if (isinstance(value, Shaped) or is_list(value)) and name != skip and dtype in listed_types(entry, name):
            changed[name] = _set_dtype(value, dtype)
    return changed


def changes(before: dict, after: dict) -> dict:
    return {name: value for name, value in after.items() if value is not before[name]}


def _another_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """One that neither equals nor broadcasts with a shape."""
    if not shape:
        return (2,)
    return (*shape[:-1], shape[-1] + 2)


def break_among(entry, rule, arguments):
    name, *types = _words(entry, rule)
    tensors = [other for other in _tensor_names(entry) if isinstance(arguments[other], Shaped)]
    allowed = {kind for other in tensors for kind in listed_types(entry, other)}
    for dtype in sorted(allowed - set(types)):
        changed = with_types(entry, arguments, dtype)
        if computed_type(entry, changed, name) not in (None, *types):
            return changes(arguments, changed)
    joined = [word for check in entry["checks"] if check[0] == "promote" for word in check[1:] if word in tensors]
    for first, second in itertools.product(*(_possible(entry, rule, word) for word in joined[:2])) if len(joined) > 1 else ():
        kinds = dict.fromkeys(joined[1:], second) | {joined[0]: first}
        changed = arguments | {word: _set_dtype(arguments[word], kind) for word, kind in kinds.items()}
        if computed_type(entry, changed, name) not in (None, *types):
            return changes(arguments, changed)
    for value in (0.5, 1j):  # a scalar may make the common type
        for scalar_name in _scalar_names(entry):
            for dtype in sorted(allowed):
                changed = {**with_types(entry, arguments, dtype), scalar_name: value}
                if computed_type(entry, changed, name) not in (None, *types):
                    return changes(arguments, changed)
    raise CannotBreak


def break_shape(entry, rule, arguments):
    name = rule["subject"]
    return {name: _with_first(arguments[name], shape=_another_shape(_first(arguments[name]).shape))}


def break_room(entry, rule, arguments):
    """A list that is only written may have more elements, not fewer."""
    name = rule["subject"]
    *others, last = _first(arguments[name]).shape
    return {name: _with_first(arguments[name], shape=(*others, last - 1))}


def break_own_shape(entry, rule, arguments):
    """shape selfRef = broadcast(selfRef, other): a size of 1 that the others broadcast."""
    name, shape = rule["subject"], arguments[rule["subject"]].shape
    if name not in re.findall(r"\w+", " ".join(_words(entry, rule)[2:])):
        return break_shape(entry, rule, arguments)
    at = next(axis for axis, size in enumerate(shape) if size > 1)
    return {name: dataclasses.replace(arguments[name], shape=(*shape[:at], 1, *shape[at + 1 :]))}


def break_same_dtype(entry, rule, arguments):
    name = rule["subject"]
    allowed = listed_types(entry, name) or list(KINDS)
    others = [kind for kind in allowed if kind != _first(arguments[name]).dtype]
    if not others:
        raise CannotBreak
    return {name: _with_first(arguments[name], dtype=others[0])}


def break_uniform(entry, rule, arguments):
    name = rule["subject"]
    *rest, last = arguments[name]
    others = [kind for kind in listed_types(entry, name) if kind != last.dtype]
    if not others:
        raise CannotBreak
    changed = {name: [*rest, dataclasses.replace(last, dtype=others[0])]}
    for check in entry["checks"]:  # partners that must have the same type, tensor by tensor
        if check[0] == "same-dtype" and name in check[1:]:
            for partner in check[1:]:
                if isinstance(arguments.get(partner), list):
                    changed[partner] = [*arguments[partner][:-1],
                                        dataclasses.replace(arguments[partner][-1], dtype=others[0])]  # fmt: skip
    return changed


def break_length(entry, rule, arguments):
    name = rule["subject"]
    value = arguments[name]
    return {name: value[:-1] if len(value) > 1 else [*value, *value]}


def break_rank(entry, rule, arguments):
    """One dimension too many, of size 1, in every tensor of the call whose shape follows this one's."""
    words = _words(entry, rule)
    low, _, high = words[0].partition("-")
    name = rule["subject"]
    value = arguments[name]
    many = int(high or low) + 1
    if isinstance(value, list) and name != words[1]:  # it need not have its partner's shape
        return {name: [dataclasses.replace(item, shape=_grown(item.shape, many)) for item in value]}
    if isinstance(value, list):
        grown = {other: [dataclasses.replace(item, shape=_grown(item.shape, many)) for item in values]
                 for other, values in arguments.items() if isinstance(values, list) and values
                 and isinstance(values[0], Shaped)}  # fmt: skip
        return grown
    changed = {name: dataclasses.replace(value, shape=_grown(value.shape, many))}
    after = {**arguments, **changed}
    earlier = entry["checks"][: rule["check"]]
    for check in earlier:
        partners = set(check[1:]) & set(_tensor_names(entry))
        if check[0] == "same-shape" and name in partners:
            for partner in partners - {name}:
                if isinstance(arguments[partner], Shaped):
                    after[partner] = dataclasses.replace(arguments[partner], shape=after[name].shape)
    for check in earlier:
        if check[0] == "shape" and check[1] != name and isinstance(after.get(check[1]), Shaped):
            try:
                after[check[1]] = dataclasses.replace(after[check[1]], shape=tuple(shape_of(" ".join(check[3:]), after)))
            except (AssertionError, ValueError):
                pass
    return changes(arguments, after)


def _grown(shape, rank: int):
    return (1,) * (rank - len(shape)) + tuple(shape)


def break_dim(entry, rule, arguments):
    name = rule["subject"]
    return {name: [99, *arguments[name][1:]] if isinstance(arguments[name], list) else 99}


def break_range(entry, rule, arguments):
    low, _, high = _words(entry, rule)[1].partition("..")
    return {rule["subject"]: int(high) + 1 if high else int(low) - 1}


def break_each(entry, rule, arguments):
    low = int(_words(entry, rule)[-1])
    value = arguments[rule["subject"]]
    return {rule["subject"]: [low - 1, *value[1:]]}


def break_unique(entry, rule, arguments):
    value = arguments[rule["subject"]]
    return {rule["subject"]: [0, 0, *value[2:]]}


def break_array_length(entry, rule, arguments):
    limit = _words(entry, rule)[-1]
    count = int(limit.rpartition("..")[2]) + 1
    value = arguments[rule["subject"]]
    if is_list(value):  # its partners as well
        return {name: [other[0]] * count for name, other in arguments.items() if isinstance(other, list)}
    return {rule["subject"]: [value[0] if value else 1] * count}


def _with_first(value, **changed):
    """A tensor, or the first of a list, with these changes."""
    if isinstance(value, list):
        return [dataclasses.replace(value[0], **changed), *value[1:]]
    return dataclasses.replace(value, **changed)


def break_sizes(entry, rule, arguments):
    """Where it stands: an optional one may never be taken, but its sizes are looked at first."""
    uncountable = Shaped("F32", (2**32, 2**31))
    is_one = any(parameter["name"] == rule["subject"] and parameter["kind"] == "T" for parameter in entry["parameters"])
    return {rule["subject"]: uncountable if is_one else [uncountable, *(arguments[rule["subject"]] or ())[1:]]}


def break_view(entry, rule, arguments):
    return {rule["subject"]: _with_first(arguments[rule["subject"]], leaves_storage=True)}


def break_format(entry, rule, arguments):
    return {rule["subject"]: _with_first(arguments[rule["subject"]], format="FRACTAL_NZ")}


def break_item(entry, rule, arguments):
    return {rule["subject"]: [None, *(arguments[rule["subject"]] or ())[1:]]}


BREAKS = {
    "null-item": break_item,
    "dtype": break_dtype, "promote": break_promote, "among": break_among, "cast": break_cast, "broadcast": break_shape,
    "expands": break_shape, "shape": break_own_shape,
    "same-shape": break_shape, "room": break_room, "same-dtype": break_same_dtype, "rank": break_rank, "dim": break_dim,
    "range": break_range,
    "each": break_each, "unique": break_unique, "length": break_array_length, "shorter": break_length,
    "sizes": break_sizes, "view": break_view, "format": break_format, "elements": break_shape, "uniform": break_uniform,
}  # fmt: skip


def broken(entry: dict, rule: dict, arguments: dict) -> dict:
    """The changes of a legal call that break just this rule."""
    kinds = {parameter["name"]: parameter["kind"] for parameter in entry["parameters"]}
    kind, name = rule["kind"], rule["subject"]
    if "breaks" in rule:
        return {other: parsed(value, kinds[other]) for other, value in rule["breaks"].items()}
    if kind == "null":
        return {name: None}
    if kind == "handle":
        return {name: dead_handle(kinds[name])}
    if kind in ("list-shape", "list-length"):
        kind = "shorter" if rule["tail"].endswith("/length") else "room"
    if kind not in BREAKS:
        raise CannotBreak
    return BREAKS[kind](entry, rule, arguments)


def _on_product(entry: dict, rule: dict) -> dict:
    """The operator with the types of the product that the rule needs, where others look for those of the default one."""
    product = rule.get("env", {}).get("UNDERSTUDY_SOC", "Ascend910B").removeprefix("Ascend")
    return {**entry, "dtypes": {name: {**types, "910B": types[product]} for name, types in entry["dtypes"].items()}}


def case_of(entry: dict, rule: dict) -> RuleCase:
    entry = _on_product(entry, rule)
    kinds = {parameter["name"]: parameter["kind"] for parameter in entry["parameters"]}

    def nearest() -> dict:
        """A legal call that has what the rule is about."""
        arguments = legal(entry)
        if "breaks" not in rule and "legal" not in rule:
            changed = entry["given"].get(rule["subject"], {})
            arguments.update({name: parsed(value, kinds[name]) for name, value in changed.items()})
        return arguments

    def refuse():
        arguments = nearest()
        arguments.update(broken(entry, rule, arguments))
        return result_of(entry, arguments)

    def accept():
        arguments = nearest()
        arguments.update({name: parsed(value, kinds[name]) for name, value in rule.get("legal", {}).items()})
        return result_of(entry, arguments)

    refuse.__module__ = accept.__module__ = "tests.conformance.ascend.test_aclnn_pages"
    return RuleCase(f"{entry['function']}/{rule['tail']}", refuse, accept, env=rule.get("env", {}))


def cases(entry: dict) -> list[RuleCase]:
    """A pair for every rule of an operator that can be broken."""
    if any(rule.get("always") for rule in entry["rules"]):
        return []  # no call is legal
    made_cases = subject(entry).phase_cases()
    made_cases += [case_of(entry, rule) for rule in entry["rules"]
                   if rule["kind"] != "phase" and rule.get("source") != "cannot-check"]  # fmt: skip
    return made_cases
