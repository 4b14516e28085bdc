"""NumPy functions of the operators that are made from pages: `understudy.ascend.ops.NAME` finds them here.

A function takes the operator's inputs and attributes by the vendor's parameter names, arrays in, arrays out. The shape and
the type of each output follow from the page; `out_dtype` names another type. A tensor that the operator changes in place is
copied, and the copy is returned.
"""

from __future__ import annotations

import functools
import inspect
import json
import re

import numpy

from understudy import paths
from understudy.ascend import ffi, lib, shapes
from understudy.ascend import operator_text as text
from understudy.ascend.runtime import DTYPES, Operation
from understudy.device_array import as_operand
from understudy.kit.names import nearest

ARRAYS = {"IA": ("int64_t[]", "aclCreateIntArray", "aclDestroyIntArray"),
          "FA": ("float[]", "aclCreateFloatArray", "aclDestroyFloatArray"),
          "BA": ("bool[]", "aclCreateBoolArray", "aclDestroyBoolArray")}  # fmt: skip


@functools.cache
def operators() -> dict[str, dict]:
    """The operators with an element-wise or moving plan, by the name of their Python function."""
    data = json.loads((paths.sdk() / "rules/ascend/pages.json").read_text())
    return {entry["python"]: entry for entry in data["operators"].values() if text.is_simple(entry)}


def _scalar(op: Operation, value):
    """bool, int, float and complex become ACL_BOOL, ACL_INT64, ACL_DOUBLE and ACL_COMPLEX128, as PyTorch's adapter does."""
    if isinstance(value, (bool, numpy.bool_)):
        cell, code = ffi.new("bool *", bool(value)), lib.ACL_BOOL
    elif isinstance(value, (int, numpy.integer)):
        cell, code = ffi.new("int64_t *", int(value)), lib.ACL_INT64
    elif isinstance(value, (complex, numpy.complexfloating)):
        cell, code = ffi.new("double[2]", [value.real, value.imag]), lib.ACL_COMPLEX128
    else:
        cell, code = ffi.new("double *", float(value)), lib.ACL_DOUBLE
    made = lib.aclCreateScalar(cell, code)
    op.callback(lib.aclDestroyScalar, made)
    return made


def _array(op: Operation, kind: str, values):
    ctype, create, destroy = ARRAYS[kind]
    values = list(values)
    made = getattr(lib, create)(ffi.new(ctype, values), len(values))
    op.callback(getattr(lib, destroy), made)
    return made


def _dtype_code(value) -> int:
    return getattr(lib, DTYPES[numpy.dtype(value)])


# Types that a page gives a result whatever the inputs are.
FIXED = {"B": numpy.bool_, "I8": numpy.int8, "I32": numpy.int32, "I64": numpy.int64, "U8": numpy.uint8, "F32": numpy.float32}


def _result_dtypes(entry: dict, arrays: dict, values: dict, scalars: list) -> list[numpy.dtype]:
    """The types of the results in turn, as the page gives them: "promoted" for all, "self, I64" for each."""
    if "dtype" in values:
        return [numpy.dtype(values["dtype"])]
    rules = entry["result"].split(", ") if entry["result"] else [next(iter(arrays))]
    return [numpy.dtype(FIXED[rule]) if rule in FIXED else _with_scalars(_result_dtype(rule, arrays, values), scalars)
            for rule in rules]  # fmt: skip


def _result_dtype(rule: str, arrays: dict, values: dict) -> numpy.dtype:
    if floating := re.fullmatch(r"floating\((.*)\)", rule):
        rule = floating[1]
    dtype = arrays[rule].dtype if rule in arrays else _promoted([array.dtype for array in arrays.values()], values)
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
    for value in scalars:
        if isinstance(value, complex) and dtype.kind != "c":
            dtype = numpy.dtype(numpy.complex128 if dtype == numpy.float64 else numpy.complex64)
        elif isinstance(value, float) and dtype.kind in "iub":
            dtype = numpy.dtype(numpy.float32)
        elif isinstance(value, int) and not isinstance(value, bool) and dtype.kind == "b":
            dtype = numpy.dtype(numpy.int64)
    return dtype


def _call(entry: dict, values: dict, out_dtype):
    parameters = entry["parameters"]
    arrays = {p["name"]: as_operand(values[p["name"]]) for p in parameters
              if p["kind"] == "T" and values.get(p["name"]) is not None}  # fmt: skip
    scalars = {p["name"]: values[p["name"]] for p in parameters if p["kind"] == "S" and values.get(p["name"]) is not None}
    sizes = {**{name: array.shape for name, array in arrays.items()},
             **{name: value for name, value in values.items() if name not in arrays}}  # fmt: skip
    promoting = [name for check in entry["checks"] if check[0] == "promote" for name in check[1:] if name in scalars]
    results = _result_dtypes(entry, arrays, values, [scalars[name] for name in promoting])
    with Operation() as op:
        arguments, outputs = [], []
        for parameter in parameters:
            name, kind = parameter["name"], parameter["kind"]
            if parameter["in_place"] and kind == "T":
                outputs.append(op.changed(arrays[name]))
                arguments.append(outputs[-1].tensor)
            elif parameter["written"] and kind == "T":
                result = out_dtype or results[min(len(outputs), len(results) - 1)]
                outputs.append(op.output(_shape(entry, name, sizes, arrays), result))
                arguments.append(outputs[-1].tensor)
            elif values.get(name) is None and parameter["optional"]:
                arguments.append(ffi.NULL)
            elif kind == "T":
                arguments.append(op.input(arrays[name]))
            elif kind == "S":
                arguments.append(_scalar(op, values[name]))
            elif kind in ARRAYS:
                arguments.append(_array(op, kind, values[name]))
            elif kind == "dt":
                arguments.append(_dtype_code(values[name]))
            elif kind == "str":
                arguments.append(ffi.new("char[]", values[name].encode()))
            else:
                arguments.append(values[name])
        op.run(entry["function"], *arguments)
        fetched = tuple(output.fetch() for output in outputs)
    return fetched[0] if len(fetched) == 1 else fetched


def _shape(entry: dict, name: str, sizes: dict, arrays: dict) -> tuple[int, ...]:
    """Where shapes do not go together, that of the first input: the operator is the one to refuse."""
    try:
        return shapes.evaluate(text.shape_rule(entry, name), sizes)
    except (ValueError, IndexError, TypeError):
        return next(iter(arrays.values())).shape


@functools.cache
def function(name: str):
    """The NumPy function of an operator. Raises AttributeError for a name that no page has."""
    if name not in operators():
        near = nearest(name, operators(), 0.7)
        raise AttributeError(f"no operator {name}" + (f"; did you mean {near}?" if near else ""))
    entry = operators()[name]
    python_names = {text.python_name(p["name"]): p["name"] for p in text.inputs(entry)}
    signature = inspect.Signature(
        [inspect.Parameter(text.python_name(p["name"]), inspect.Parameter.POSITIONAL_OR_KEYWORD,
                           default=None if p["optional"] else inspect.Parameter.empty) for p in text.inputs(entry)]
        + [inspect.Parameter("out_dtype", inspect.Parameter.KEYWORD_ONLY, default=None)])  # fmt: skip

    def operator(*arguments, **named):
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        out_dtype = bound.arguments.pop("out_dtype")
        return _call(entry, {python_names[key]: value for key, value in bound.arguments.items()}, out_dtype)

    operator.__name__ = operator.__qualname__ = name
    operator.__signature__ = signature
    operator.__doc__ = text.docstring(entry)
    return operator
