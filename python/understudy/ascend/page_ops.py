"""NumPy functions of the operators that are made from pages: `understudy.ascend.ops.NAME` finds them here.

A function takes the operator's inputs and attributes by the vendor's parameter names, arrays in, arrays out. The shape and
the type of each output follow from the page; `out_dtype` names another type. A tensor that the operator changes in place is
copied, and the copy is returned. Lists of tensors are lists of arrays.
"""

from __future__ import annotations

import functools
import inspect
import json
import operator
import re

import numpy

from understudy import paths
from understudy.arrays import REDUCTIONS, code_of, dtype_named, is_known
from understudy.ascend import ffi, lib, shapes
from understudy.ascend import operator_text as text
from understudy.ascend.array_shapes import ArrayShape
from understudy.ascend.runtime import DTYPES, Operation, Output, dtype_code
from understudy.device_array import as_operand
from understudy.kit.names import nearest

ARRAYS = {"IA": ("int64_t[]", "aclCreateIntArray", "aclDestroyIntArray"),
          "FA": ("float[]", "aclCreateFloatArray", "aclDestroyFloatArray"),
          "BA": ("bool[]", "aclCreateBoolArray", "aclDestroyBoolArray")}  # fmt: skip
_SCALAR_KINDS = [bool, int, float, complex]
# What becomes of numbers that are no objects of the vendor's, and of the elements of its arrays.
_PLAIN = {**dict.fromkeys(("i64", "i32", "i8", "u64", "u32", "b", "IA", "BA"), operator.index),
          **dict.fromkeys(("d", "f", "FA"), float)}  # fmt: skip


@functools.cache
def operators() -> dict[str, dict]:
    """The operators with an element-wise or moving plan, by the name of their Python function."""
    data = json.loads((paths.sdk() / "rules/ascend/pages.json").read_text("utf-8"))
    return {entry["python"]: entry for entry in data["operators"].values() if text.has_function(entry)}


def _listed(entry: dict, name: str) -> list[numpy.dtype]:
    """The types that the page gives a parameter, as far as NumPy has them."""
    names = [text.TYPES.get(kind) for kind in entry["dtypes"].get(name, {}).get(text.PRODUCT, [])]
    return [dtype_named(name) for name in names if name and is_known(name)]


def _number(value):
    """Python's or NumPy's number: itself, or the element of an array or tensor without axes."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    array = numpy.asarray(as_operand(value))
    if array.ndim or array.dtype not in DTYPES:
        raise TypeError(f"needed is a number, not {type(value).__name__} ({array.dtype}, {array.ndim} dimensions)")
    return array[()]


def _of_python(number):
    return number.item() if isinstance(number, numpy.generic) else number


def _converted(parameter: dict, value):
    """What is no tensor, as the operator takes it; a mistake is told with the parameter's name."""
    kind, plain = parameter["kind"], _PLAIN.get(parameter["kind"])
    if value is None and parameter["optional"]:
        return None
    if parameter["name"] == "reduction" and isinstance(value, str):
        value = code_of(value, REDUCTIONS, "reduction")
    try:
        if kind == "S":
            return _number(value)
        if kind == "SL":
            return [_of_python(_number(item)) for item in value]
        if kind in ARRAYS:
            return [plain(_of_python(_number(item))) for item in value]
        if plain is not None:
            return plain(_of_python(_number(value)))
        if kind == "str" and not isinstance(value, str):
            raise TypeError(f"needed is text, not {type(value).__name__}")
        if kind == "T" and value is None:
            raise TypeError("needed is an array, not NoneType")
        return list(value) if kind == "TL" else value
    except TypeError as error:
        raise TypeError(f"{parameter['name']}: {error}") from None


def _scalar_type(value, listed: list[numpy.dtype]) -> numpy.dtype:
    """bool, int, float and complex become bool, int64, float64 and complex128, as PyTorch's adapter does. Where the page does
    not list that, a NumPy number's own type or the first of the same kind, if it is listed."""
    natural = numpy.dtype(type(_of_python(value)))
    wanted = [natural, *([value.dtype] if isinstance(value, numpy.generic) else []),
              *(d for d in listed if d.kind == natural.kind)]  # fmt: skip
    return next((dtype for dtype in wanted if dtype in listed), natural)


def _made_scalar(value, dtype: numpy.dtype):
    data = numpy.array(_of_python(value), dtype)  # an error where the type has no such number
    return lib.aclCreateScalar(ffi.cast("void *", data.ctypes.data), dtype_code(dtype))


def _scalar(op: Operation, value, listed: list[numpy.dtype]):
    made = _made_scalar(value, _scalar_type(value, listed))
    op.callback(lib.aclDestroyScalar, made)
    return made


def _scalars(op: Operation, values: list):
    """The list owns its scalars. They are of one type: a float among them makes all floats."""
    kind = numpy.dtype(max((type(value) for value in values), key=_SCALAR_KINDS.index, default=float))
    made = lib.aclCreateScalarList(ffi.new("aclScalar *[]", [_made_scalar(value, kind) for value in values]), len(values))
    op.callback(lib.aclDestroyScalarList, made)
    return made


def _array(op: Operation, kind: str, values: list):
    ctype, create, destroy = ARRAYS[kind]
    made = getattr(lib, create)(ffi.new(ctype, values), len(values))
    op.callback(getattr(lib, destroy), made)
    return made


# Types that a page gives a result whatever the inputs are.
FIXED = ("B", "I8", "I32", "I64", "U8", "F32", "F64", "F16", "BF16")


def _flat(arrays: dict) -> list:
    """The arrays and those of lists."""
    parts = [part for value in arrays.values() for part in (value if isinstance(value, list) else [value])]
    return [part for part in parts if part is not None]


def _result_dtypes(entry: dict, arrays: dict, values: dict, scalars: list) -> list[list[numpy.dtype]]:
    """The types of the results in turn, as the page gives them: "promoted" for all, "self, I64" for each. Of a result that
    is a list they are those of its tensors, or one for all."""
    if any((p["name"], p["kind"]) == ("dtype", "dt") for p in entry["parameters"]):
        return [[numpy.dtype(values["dtype"])]]
    if not arrays:  # made of numbers
        return [[_with_scalars(numpy.dtype(numpy.int64), scalars)]]
    rules = entry["result"].split(", ") if entry["result"] else [next(iter(arrays))]
    return [_types_of(rule, arrays, values, scalars) for rule in rules]


def _is_one_of(name: str, words: list[str], arrays: dict, values: dict) -> bool:
    """Whether an array is of one of these types, or an attribute has one of these values."""
    if name in arrays:
        types = {str(array.dtype) for array in _flat({name: arrays[name]})}
        return any(text.TYPES.get(word) in types for word in words)
    return str(values.get(name)) in words


def _types_of(rule: str, arrays: dict, values: dict, scalars: list) -> list[numpy.dtype]:
    if either := re.fullmatch(r"(\w+) if (\w+) is ([-\w ]+?) else (.+)", rule):
        holds = _is_one_of(either[2], either[3].split(), arrays, values)
        return _types_of(either[1] if holds else either[4], arrays, values, scalars)
    if rule in FIXED:
        return [dtype_named(text.TYPES[rule])]
    if index := re.fullmatch(r"index\((\w+)\)", rule):
        return [numpy.dtype(numpy.int32 if values[index[1]] else numpy.int64)]
    if parts := re.fullmatch(r"complex\((\w+)(?: if (\w+))?\)", rule):
        dtype = numpy.result_type(arrays[parts[1]].dtype, numpy.complex64)
        return [dtype if values.get(parts[2], True) else numpy.finfo(dtype).dtype]
    if parts := re.fullmatch(r"parts\((\w+)\)", rule):
        return [numpy.empty(0, arrays[parts[1]].dtype).real.dtype]
    if not _flat(arrays):  # lists of nothing
        return [numpy.dtype(numpy.float32)]
    if rule in arrays:
        found = [array.dtype for array in _flat({rule: arrays[rule]})]
    else:
        found = [_result_dtype(rule, arrays, values)]
    return [_with_scalars(dtype, scalars) for dtype in found]


def _result_dtype(rule: str, arrays: dict, values: dict) -> numpy.dtype:
    if floating := re.fullmatch(r"floating\((.*)\)", rule):
        rule = floating[1]
    given = _flat({rule: arrays[rule]} if rule in arrays else arrays)
    dtype = given[0].dtype if rule in arrays else _promoted([array.dtype for array in given], values)
    return numpy.dtype(numpy.float32) if floating and dtype.kind in "iub" else dtype


def _promoted(dtypes: list[numpy.dtype], values: dict) -> numpy.dtype:
    """The common type of tensors, and of scalars whose category is above theirs (aclnn-base 7)."""
    names = [str(dtype) for dtype in dtypes]
    joint = dtypes[0]
    for dtype, name in zip(dtypes[1:], names[1:]):
        if dtype == joint:
            continue
        halves = {str(joint), name} & {"float16", "bfloat16"}
        others = [kind for kind in (joint, dtype) if str(kind) not in halves]
        if len(halves) == 2:
            joint = numpy.dtype(numpy.float32)
        elif halves and others[0].kind in "iub":
            joint = joint if str(joint) in halves else dtype
        elif joint.kind in "fc" and dtype.kind in "iub":
            pass
        elif dtype.kind in "fc" and joint.kind in "iub":
            joint = dtype
        else:
            joint = numpy.promote_types(joint, dtype)
    return joint


def _with_scalars(dtype: numpy.dtype, scalars: list) -> numpy.dtype:
    for value in map(_of_python, scalars):
        if isinstance(value, complex) and dtype.kind != "c":
            dtype = numpy.dtype(numpy.complex128 if dtype == numpy.float64 else numpy.complex64)
        elif isinstance(value, float) and dtype.kind in "iub":
            dtype = numpy.dtype(numpy.float32)
        elif isinstance(value, int) and not isinstance(value, bool) and dtype.kind == "b":
            dtype = numpy.dtype(numpy.int64)
    return dtype


def _operand(parameter: dict, value):
    if parameter["kind"] == "T":
        return as_operand(value)
    return [None if item is None else as_operand(item) for item in value]


def _shape_value(entry: dict, name: str, value):
    """Of a list of arrays the list of their shapes."""
    if isinstance(value, list):
        return [None if item is None else _shape_value(entry, name, item) for item in value]
    return _whole_shape(value) if _has_eights(entry, name, value.dtype) else ArrayShape(value)


def _has_eights(entry: dict, name: str, dtype: numpy.dtype) -> bool:
    """Where a page has integers of 4 bits, or a result of them, each int32 is eight of them."""
    listed = entry["dtypes"].get(name, {}).get(text.PRODUCT, [])
    return dtype == numpy.int32 and ("I4" in listed or text.shape_rule(entry, name).startswith("packed("))


def _whole_shape(array) -> tuple[int, ...]:
    """Of eights that lie side by side along the last dimension, or of a transposed array along the one before."""
    turned = array.ndim > 1 and array.strides[-1] != array.itemsize == array.strides[-2] and array.shape[-1] > 1
    axis = array.ndim - (2 if turned else 1)
    return tuple(8 * size if at == axis else size for at, size in enumerate(array.shape))


def _given(op: Operation, entry: dict, parameter: dict, value):
    """What the operator gets for a parameter that it reads."""
    kind = parameter["kind"]
    if value is None and parameter["optional"]:
        return ffi.NULL
    if format := text.private_format(entry, parameter):
        return op.private_input(value, format)
    if kind == "S":
        return _scalar(op, value, _listed(entry, parameter["name"]))
    if kind in MADE:
        return MADE[kind](op, value)
    if kind in ARRAYS:
        return _array(op, kind, value)
    return value


MADE = {
    "T": Operation.input,
    "TL": Operation.inputs,
    "SL": _scalars,
    "dt": lambda op, value: dtype_code(value),
    "str": lambda op, value: ffi.new("char[]", value.encode()),
}


def _changed(op: Operation, parameter: dict, given) -> Output | None:
    if given is None:
        return None
    return op.changed(given) if parameter["kind"] == "T" else op.changed_list(given)


def _room(op: Operation, parameter: dict, shape, dtypes: list[numpy.dtype]) -> Output | None:
    """For a result: of one shape, or of a list of them; None: it is not wanted."""
    if shape is None:
        return None
    if parameter["kind"] == "T":
        return op.output(shape, dtypes[0])
    return op.outputs(shape, dtypes if len(dtypes) == len(shape) else dtypes[:1] * len(shape))


def _own_dtype(entry: dict, name: str, dtype: numpy.dtype) -> numpy.dtype:
    """Of a result that has the type of an array, if nobody says another: int64 of bool, where the page has only the array of it."""
    counts = dtype == bool and dtype in _listed(entry, name) and dtype not in _listed(entry, "out")
    return numpy.dtype(numpy.int64) if counts else dtype


def _call(entry: dict, values: dict, out_dtype, out_shape):
    parameters = entry["parameters"]
    values = {p["name"]: _converted(p, values[p["name"]]) for p in parameters if p["name"] in values}
    arrays = {p["name"]: _operand(p, values[p["name"]]) for p in parameters
              if p["kind"] in text.TENSORS and values.get(p["name"]) is not None}  # fmt: skip
    scalars = {p["name"]: values[p["name"]] for p in parameters if p["kind"] == "S" and values.get(p["name"]) is not None}
    if "dtype" in values and values["dtype"] is None:
        name, array = next(iter(arrays.items()))
        values["dtype"] = _own_dtype(entry, name, array.dtype)
    sizes = {**{name: _shape_value(entry, name, value) for name, value in arrays.items()},
             **{name: value for name, value in values.items() if name not in arrays}}  # fmt: skip
    promoting = [name for check in entry["checks"] if check[0] == "promote" for name in check[1:] if name in scalars]
    results = _result_dtypes(entry, arrays, values, [scalars[name] for name in promoting or (scalars if not arrays else [])])
    with Operation() as op:
        arguments, outputs = [], []
        for parameter in parameters:
            name = parameter["name"]
            if parameter["kind"] not in text.TENSORS or not parameter["written"]:
                value = arrays[name] if name in arrays else values.get(name)
                arguments.append(_given(op, entry, parameter, value))
                continue
            if text.is_absent(entry, parameter):
                output = None
            elif parameter["updated"]:
                output = _changed(op, parameter, arrays.get(name))
            else:
                only_caller_knows = text.shape_rule(entry, name) == "given"
                shape = sizes[name] = out_shape if only_caller_knows else _shape(entry, parameter, sizes, arrays)
                types = _types(entry, name, None if outputs else out_dtype, results[min(len(outputs), len(results) - 1)])
                if parameter["kind"] == "T" and shape and _has_eights(entry, name, types[0]):
                    shape = (*shape[:-1], shape[-1] // 8)
                output = _room(op, parameter, shape, types)
            arguments.append(ffi.NULL if output is None else output.tensor)
            if not text.is_absent(entry, parameter):
                outputs.append((output, text.is_found(entry, parameter)))
        op.run(entry["function"], *arguments)
        fetched = tuple(_fetched(output, found) for output, found in outputs)
    return fetched[0] if len(fetched) == 1 else fetched


def _fetched(output: Output | None, found: bool):
    """None: it was not wanted."""
    if output is None:
        return None
    return output.fetch_found() if found else output.fetch()


def _types(entry: dict, name: str, out_dtype, types: list[numpy.dtype]) -> list[numpy.dtype]:
    """Of a result: what the caller asks for, else as the page gives them; where it lists them, the first of these."""
    known = _listed(entry, name)
    if out_dtype is not None:
        return [numpy.dtype(out_dtype)]
    return types if not known or all(dtype in known for dtype in types) else known[:1]


def _shape(entry: dict, parameter: dict, sizes: dict, arrays: dict):
    """Where arguments do not go together, the shape of the first input: the operator is the one to refuse. None: the output is
    not wanted, because an attribute says so, or because there is nothing that it is the gradient of."""
    rule = text.shape_rule(entry, parameter["name"])
    if parameter["optional"] and sizes.get(rule, ()) is None:
        return None
    try:
        shape = shapes.evaluate(rule.removeprefix(text.AT_MOST), sizes)
        if all(size >= 0 for one in (shape or () if parameter["kind"] == "TL" else [shape]) for size in one or ()):
            return shape
        raise ValueError(f"a size below 0: {shape}")
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        given = _flat(arrays)
        shape = given[0].shape if given else (1,)
        return shape if parameter["kind"] == "T" else [shape]


@functools.cache
def function(name: str):
    """The NumPy function of an operator. Raises AttributeError for a name that no page has."""
    if name not in operators():
        near = nearest(name, operators(), 0.7)
        raise AttributeError(f"no operator {name}" + (f"; did you mean {near}?" if near else ""))
    entry = operators()[name]
    python_names = {text.python_name(p["name"]): p["name"] for p in text.inputs(entry)}
    defaults = text.defaults(entry)
    signature = inspect.Signature(
        [inspect.Parameter(text.python_name(p["name"]), inspect.Parameter.POSITIONAL_OR_KEYWORD,
                           default=defaults.get(p["name"], inspect.Parameter.empty)) for p in text.inputs(entry)]
        + [inspect.Parameter("out_shape", inspect.Parameter.KEYWORD_ONLY)] * text.takes_shape(entry)
        + [inspect.Parameter("out_dtype", inspect.Parameter.KEYWORD_ONLY, default=None)])  # fmt: skip

    def operator(*arguments, **named):
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        options = [bound.arguments.pop(name, None) for name in ("out_dtype", "out_shape")]
        return _call(entry, {python_names[key]: value for key, value in bound.arguments.items()}, *options)

    operator.__name__ = operator.__qualname__ = name
    operator.__signature__ = signature
    operator.__doc__ = text.docstring(entry)
    return operator
