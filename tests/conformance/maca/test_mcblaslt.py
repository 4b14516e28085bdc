"""Every rule of libmcblasLt that a test can break: a call that breaks it, and its nearest legal neighbour."""

from __future__ import annotations

import pytest

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.maca import mcblaslt_support as lt
from tests.maca import runtime_support as rt
from understudy.kit import catalogue
from understudy.kit.prototypes import prototype
from understudy.maca import ffi, lib

OBJECTS = {"MatrixLayout": ("matLayout", lambda: lt.layout(0, 4, 4)), "MatmulDesc": ("matmulDesc", lt.description),
           "MatmulPreference": ("pref", lt.preference), "MatrixTransformDesc": ("transformDesc", lt.transform)}
MEMORY = []


def memory():
    if not MEMORY:
        MEMORY.append(rt.device_memory(256))
        rt.ok(lib.mcMemset(MEMORY[0], 0, 256))
    return MEMORY[0]


def matmul_arguments():
    return {"lightHandle": lt.handle(), "computeDesc": lt.description(), "operationDesc": lt.description(),
            "alpha": ffi.new("float *", 1), "beta": ffi.new("float *", 1), **{name: memory() for name in "ABCD"},
            **{f"{name}desc": lt.layout(0, 4, 4) for name in "ABCD"}, "algo": ffi.NULL, "workspace": ffi.NULL,
            "workspaceSizeInBytes": 0, "stream": ffi.NULL, "transformDesc": lt.transform(),
            "preference": lt.preference(), "requestedAlgoCount": 1,
            "heuristicResultsArray": ffi.new("mcblasLtMatmulHeuristicResult_t *"), "returnAlgoCount": ffi.new("int *", 7)}


def legal(function):
    """Legal arguments by name."""
    names = [parameter.name for parameter in prototype("maca", function).parameters]
    if function in ("mcblasLtMatmul", "mcblasLtMatmulAlgoGetHeuristic", "mcblasLtMatrixTransform"):
        found = matmul_arguments()
        return {name: found[name] for name in names}
    for kind, (parameter, make) in OBJECTS.items():
        if function.startswith(f"mcblasLt{kind}"):
            created = function.endswith("Create")
            found = {parameter: ffi.new(f"mcblasLt{kind}_t *") if created else make(),
                     "attr": 0 if kind != "MatmulPreference" else 5,
                     "buf": ffi.new("uint32_t *"), "sizeInBytes": 4, "sizeWritten": ffi.new("size_t *"), "type": 0,
                     "rows": 4, "cols": 4, "ld": 4, "computeType": 68, "scaleType": 0}  # fmt: skip
            return {name: found[name] for name in names}
    found = {"lightHandle": ffi.new("mcblasLtHandle_t *") if function == "mcblasLtCreate" else lt.handle(), "type": 0,
             "value": ffi.new("int *")}
    return {name: found[name] for name in names}


def desc_changes(**attributes):
    return lambda: lt.description(**attributes)


def with_aux(**attributes):
    return lambda: lt.description(**{"EPILOGUE": 160, "EPILOGUE_AUX_POINTER": memory(), "EPILOGUE_AUX_LD": 8} | attributes)


# (parameter, rule) -> what takes the place of which arguments in the refused call.
CHANGES = {
    ("TRANSA", "range"): {"Desc": desc_changes(TRANSA=3)}, ("TRANSB", "range"): {"Desc": desc_changes(TRANSB=3)},
    ("computeDesc", "form"): {"Desc": desc_changes(FILL_MODE=0)},
    ("computeDesc", "pointer-mode"): {"Desc": desc_changes(POINTER_MODE=2)},
    ("computeDesc", "epilogue"): {"Desc": desc_changes(EPILOGUE=3)},
    ("computeDesc", "output-scale"): {"Desc": lambda: lt.description(D_SCALE_POINTER=memory())},
    ("computeDesc", "bias"): {"Desc": desc_changes(EPILOGUE=4)},
    ("D", "in-place"): {"Ddesc": lambda: lt.layout(0, 4, 4, ORDER=1)},
    ("computeDesc", "bias-type"): {"Desc": lambda: lt.description(EPILOGUE=4, BIAS_POINTER=memory(), BIAS_DATA_TYPE=3)},
    ("computeDesc", "aux"): {"Desc": desc_changes(EPILOGUE=160, EPILOGUE_AUX_LD=8)},
    ("computeDesc", "aux-leading"): {"Desc": with_aux(EPILOGUE_AUX_LD=4)},
    ("computeDesc", "aux-stride"): {"Desc": with_aux(EPILOGUE_AUX_BATCH_STRIDE=20)},
    ("computeDesc", "aux-type"): {"Desc": with_aux(EPILOGUE_AUX_DATA_TYPE=2)},
    ("computeDesc", "aux-order"): {"Desc": with_aux(), "Ddesc": lambda: lt.layout(0, 4, 4, ORDER=1)},
    ("Adesc", "combination"): {"Desc": desc_changes(compute=70)},
    ("Ddesc", "batch"): {"Ddesc": lambda: lt.layout(0, 4, 4, BATCH_COUNT=2)},
}


TRANSFORM_CHANGES = {
    ("TRANSA", "range"): {"transformDesc": lambda: lt.transform(TRANSA=3)},
    ("TRANSB", "range"): {"transformDesc": lambda: lt.transform(TRANSB=3)},
    ("transformDesc", "pointer-mode"): {"transformDesc": lambda: lt.transform(POINTER_MODE=2)},
    ("Cdesc", "combination"): {"transformDesc": lambda: lt.transform(1)},
    **{(f"{name}desc", "type"): {f"{name}desc": lambda: lt.layout(2, 4, 4)} for name in "AB"},
    **{(f"{name}desc", "batch"): {f"{name}desc": lambda: lt.layout(0, 4, 4, BATCH_COUNT=2)} for name in "AB"},
    ("C", "in-place"): {"transformDesc": lambda: lt.transform(TRANSA=1)},
}


def changes(function, parameter, rule):
    if function == "mcblasLtMatrixTransform" and (parameter, rule) in TRANSFORM_CHANGES:
        return {name: make() for name, make in TRANSFORM_CHANGES[parameter, rule].items()}
    if (parameter, rule) in CHANGES:
        name = "operationDesc" if function.endswith("Heuristic") else "computeDesc"
        return {name if key == "Desc" else key: make() for key, make in CHANGES[parameter, rule].items()}
    if rule == "device":
        return {parameter: memory()}
    if rule == "alive":
        return {parameter: rt.dead_stream() if parameter == "stream" else ffi.NULL}
    if rule == "null":
        return {parameter: ffi.NULL} | ({"sizeInBytes": 0} if parameter == "sizeWritten" else {})
    layouts = {"size": lambda: lt.layout(0, 1 << 40, 4), "leading": lambda: lt.layout(0, 4, 4, 3),
               "shape": lambda: lt.layout(0, 3, 4), "order": lambda: lt.layout(0, 4, 4, ORDER=2)}
    if rule in layouts and parameter.endswith("desc"):
        return {parameter: layouts[rule]()}
    return {parameter: {"range": 99, "size": 3, "positive": 0}[rule]}


def call(function, broken=()):
    before = bytes(ffi.buffer(content(), 256))
    status = int(getattr(lib, function)(*(legal(function) | dict(broken)).values()))
    lib.mcDeviceSynchronize()
    return Result(status, bytes(ffi.buffer(content(), 256)) == before if status else None)


def content():
    copy = ffi.new("char[]", 256)
    rt.ok(lib.mcMemcpy(copy, memory(), 256, lib.mcMemcpyDeviceToHost))
    return copy


def call_in_capture(function):
    """On the default stream, while a stream that it waits for is being captured."""
    stream, arguments = rt.stream(), legal(function)
    rt.ok(lib.mcStreamBeginCapture(stream, lib.mcStreamCaptureModeRelaxed))
    status = int(getattr(lib, function)(*arguments.values()))
    rt.ok(lib.mcStreamDestroy(stream))
    return Result(status)


def rule_case(rule_id):
    function, parameter, rule = rule_id.split("/")
    if rule == "launch":
        return RuleCase(rule_id, lambda: call_in_capture(function), lambda: call(function))
    return RuleCase(rule_id, lambda: call(function, changes(function, parameter, rule)), lambda: call(function))


RULES = [rule_case(rule.id) for rule in catalogue.rules().values()
         if rule.library == "libmcblasLt.so" and rule.source != "cannot-check"]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
