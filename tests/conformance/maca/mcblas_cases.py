"""A legal call of any function of mcBLAS, made from its prototype by the names of its parameters, and the cases of the rule
catalogue made from it by changing the parameter that a rule names."""

from __future__ import annotations

import types

from tests.conformance.harness import Result, RuleCase
from tests.maca import mcblas_support
from tests.maca import runtime_support as rt
from understudy.kit.prototypes import prototype
from understudy.maca import ffi, lib

BYTES = 512
SIZES = {"m": 4, "n": 4, "k": 3, "kl": 1, "ku": 1, "nrhs": 3, "batchCount": 2, "batchSize": 2, "rows": 4, "cols": 4,
         "elemSize": 4, "group_count": 1, "smCountTarget": 8, "type": 0, "computeType": 68, "algo": -1, "mode": 0}
GROUP_ARRAYS = {"transa_array": 0, "transb_array": 0, "m_array": 4, "n_array": 4, "k_array": 3, "lda_array": 4,
                "ldb_array": 4, "ldc_array": 4, "group_size": 1}
RESULTS = {"result", "a", "b", "c", "s", "d1", "d2", "x1", "y1", "param", "value", "version", "streamId", "userCallback"}


class Memory:
    """Bytes that a call must not change when it refuses."""

    def __init__(self, address, on_device):
        self.address, self.on_device = address, on_device
        self.before = self.content()

    def content(self):
        copy = ffi.new("char[]", BYTES)
        if self.on_device:
            rt.ok(lib.mcMemcpy(copy, self.address, BYTES, lib.mcMemcpyDeviceToHost))
        else:
            ffi.memmove(copy, self.address, BYTES)
        return bytes(ffi.buffer(copy))


POOL = []  # device memory that every call uses again


def device_bytes(kept):
    index = len(kept)
    while len(POOL) <= index:
        POOL.append(rt.device_memory(BYTES))
    if lib.mcMemset(POOL[index], 0, BYTES) != 0:  # a test of the runtime has reset the device meanwhile
        lib.mcGetLastError()
        POOL[index] = rt.device_memory(BYTES)
        rt.ok(lib.mcMemset(POOL[index], 0, BYTES))
    return POOL[index]


def device(kept):
    address = device_bytes(kept)
    kept.append(Memory(address, True))
    return address


def table(kept):
    """A device array of two matrices."""
    address = device_bytes(kept)
    kept.append(address)
    matrices = ffi.new("void *[2]", [device(kept), device(kept)])
    rt.ok(lib.mcMemcpy(address, matrices, 16, lib.mcMemcpyHostToDevice))
    return address


def ones(kept, real):
    """Host memory that starts with ones: a factor, or a result."""
    memory = ffi.new("char[]", BYTES)
    ffi.cast(f"{real} *", memory)[0] = 1
    kept.append(Memory(memory, False))
    return memory


def is_double(parameter):
    return "double" in parameter.text.lower()


def legal(parameter, names, kept):
    """A legal value by name and type."""
    name, kind = parameter.name, parameter.kind
    if name == "handle":
        if "*" in parameter.text:
            return ffi.new("mcblasHandle_t *")
        return rt.made("mcblasHandle_t", lib.mcblasCreate) if names == ["Destroy"] else mcblas_support.handle()
    if name in GROUP_ARRAYS:
        return ffi.new("int[]", [GROUP_ARRAYS[name]] * 2)
    if not parameter.is_pointer or name in ("streamId", "stream") and "*" not in parameter.text:
        if name.startswith("stride"):
            return 16
        if name.startswith(("ld", "inc")):
            return 1 if name.startswith("inc") else 4
        return SIZES.get(name, ffi.NULL if kind.kind == "pointer" else 0)
    if name == "workspace":
        return ffi.NULL
    factor = name in ("alpha", "beta", "alpha_array", "beta_array")
    if factor or (name in RESULTS or name == "mode") or (name == "smCountTarget"):
        return ones(kept, "double" if is_double(parameter) else "uint16_t" if "half" in parameter.text else "float")
    if name == "hostPtr" or (name in ("x", "A") and "Set" in names) or (name in ("y", "B") and "Get" in names):
        return ones(kept, "float")
    if name in ("P", "devIpiv"):
        return ffi.NULL
    if name == "info" and "host info" in names:
        kept.append(memory := ffi.new("int *"))
        return memory
    if kind.item.kind == "pointer" or name in ("Aarray", "Barray", "Carray", "xarray", "yarray"):
        return table(kept)
    return device(kept)


def arguments(function, changes, kept):
    """Legal arguments by name, with changes: values, or functions of the other arguments."""
    known = prototype("maca", function).parameters
    marks = [word for word in ("Set", "Get") if f"mcblas{word}Vector" in function or f"mcblas{word}Matrix" in function]
    marks += ["host info"] if function.endswith(("getrsBatched", "geqrfBatched", "gelsBatched")) else []
    marks += ["Destroy"] if function == "mcblasDestroy" else []
    found = {parameter.name: legal(parameter, marks, kept) for parameter in known}
    if function == "mcblasCgemmEx":
        found |= {"Atype": 4, "Btype": 4, "Ctype": 4}
    for name, value in changes.items():
        found[name] = value(found, kept) if isinstance(value, types.FunctionType) else value
    return known, found


def call(function, changes):
    kept = []
    known, found = arguments(function, changes, kept)
    given = [ffi.cast(parameter.kind, found[parameter.name]) if parameter.is_pointer and found[parameter.name] is not None
             and not isinstance(found[parameter.name], (int, float)) else found[parameter.name] for parameter in known]
    given = [ffi.NULL if value is None else value for value in given]
    status = int(getattr(lib, function)(*given))
    lib.mcDeviceSynchronize()
    if status == 0:
        return Result(status)
    return Result(status, all(memory.content() == memory.before for memory in kept if isinstance(memory, Memory)))


def dead_stream_handle(found, kept):
    made, stream = rt.made("mcblasHandle_t", lib.mcblasCreate), rt.stream()
    rt.ok(lib.mcblasSetStream(made, stream))
    rt.ok(lib.mcStreamDestroy(stream))
    return made


def same_as(name):
    return lambda found, kept: found[name]


def freed(found, kept):
    return rt.freed_memory(BYTES)


def device_pointer(found, kept):
    return device(kept)


def group_of(value):
    return lambda found, kept: ffi.new("int[]", [value] * 2)


def on_second_device(found, kept):
    rt.ok(lib.mcSetDevice(1))
    made = rt.stream()
    rt.ok(lib.mcSetDevice(0))
    return made


BYTES_OF_8 = {"Atype": 3, "Btype": 3, "Ctype": 10, "computeType": 72, "lda": 4, "ldb": 4}
NO_NUMBER = {"n": 33, "type": 9, "computeType": 1, "algo": 50, "trans": 3, "transa": 3, "transb": 3}


def breaking(function, parameter, rule):
    """What breaks a rule, and what both calls of the pair have."""
    array = parameter in GROUP_ARRAYS
    base = {}
    if rule == "in-place":
        base = {"C": same_as("B" if "trmm" in function else "A")}
        broken = {"transa": 1} if parameter == "C" else {"ldc": 5}
        base |= {} if parameter == "C" else {"n": 2}
    elif rule == "alignment":
        base = BYTES_OF_8 if parameter == "lda" else {}
        broken = {"lda": 5} if parameter == "lda" else {"workspace": lambda found, kept: ffi.cast("void *", 0x1001)}
    elif rule == "combination":
        broken = {parameter: 1}
    elif rule == "form":
        broken = {parameter: 1 if "mcblasCh" in function or "mcblasZh" in function else 2}
    elif rule == "launch":
        broken = {"handle": dead_stream_handle}
    elif rule == "mapping":
        broken = {"y" if "Vector" in function else "B": freed} if "Set" in function else \
            {"x" if "Vector" in function else "A": freed}
        if "Async" in function and "Vector" in function:
            broken = {"devicePtr": freed}
    elif rule == "device" and parameter == "streamId":
        broken = {parameter: on_second_device}
    elif rule == "device":
        broken = {parameter: device_pointer}
    elif rule == "alive" and parameter != "handle":
        broken = {parameter: lambda found, kept: rt.dead_stream()}
    elif rule in ("alive", "null"):
        broken = {parameter: ffi.NULL}
    elif rule == "negative":
        broken = {parameter: group_of(-1) if array else -1}
    elif rule == "range":
        value = 18 if function == "mcblasSetMathMode" else 77 if parameter.endswith("Type") and "compute" not in parameter \
            or parameter in ("Atype", "Btype", "Ctype", "executiontype") else NO_NUMBER.get(parameter, 3)
        broken = {parameter: group_of(value) if array else value}
    else:
        assert rule in ("small", "zero", "positive"), rule
        broken = {parameter: group_of(0) if array else 0}
    return base, broken


def rule_case(module: str, rule_id: str) -> RuleCase:
    function, parameter, rule = rule_id.split("/")
    base, broken = breaking(function, parameter, rule)
    env = {"UNDERSTUDY_DEVICES": "2"} if (parameter, rule) == ("streamId", "device") else {}

    def refuse():
        return call(function, base | broken)

    refuse.__module__ = module  # the harness finds the case there again, in a child process
    return RuleCase(rule_id, refuse, lambda: call(function, base), env)
