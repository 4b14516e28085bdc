"""Every operator of PyTorch on the emulated device against the CPU, with PyTorch's own operator database and samples.

    understudy run python -m tests.clients.torch_npu.operators [--dtype float32 …] [--write docs/torch-npu-operators.md] [name …]

Needs the packages `expecttest` and `hypothesis`, which that database imports. Each operator's samples run forward and, where it
has one, backward, in a process that is replaced when it ends or hangs. Outcomes:

    equal         every sample, forward and backward, within the tolerance that PyTorch itself uses for the type
    differs       some number, shape or type does not
    refused       one of our functions refused the call; the sentence is shown
    type          the vendor's page of the function that the adapter calls does not list the type
    missing       the adapter looked for an aclnn function, or ran an operator by name, that is not emulated
    fallback      the adapter computed it on the CPU
    adapter       the adapter itself does not support the call
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SECONDS = 60  # for one operator
SAMPLES = 12  # of each operator: the first, and the rest evenly spread
OUTCOMES = ["equal", "differs", "refused", "type", "missing", "fallback", "adapter", "crashed"]
DTYPES = ["float32", "float16", "bfloat16", "int64", "bool"]
RANDOM = re.compile(r"lowrank|fractional|rand|normal|bernoulli|multinomial|dropout|uniform|cauchy|exponential|geometric|rrelu|multi_head|^empty|new_empty|_like$")
SIZED_BY_DATA = re.compile(r"nonzero|masked_select|unique|argwhere|combinations")
# Of equal elements either may be named, and get the gradient.
TIES = re.compile(r"^(sort|msort|argsort|topk|median|nanmedian|kthvalue|mode)$")
ROUNDED = "a number in a formula of 16-bit tensors rounds to their type before it is used; on the CPU it does not"
KNOWN = {  # why some differ
    "clamp": "where the lower bound is above the upper one, the vendor's page takes the lower one last",
    "cov": "the terms of one gradient cancel: a unit in the last place of a term is left, and on the CPU nothing",
    "triangular_solve": "the second result is the triangle only, as on the vendor's page",
    "nn.functional.gelu": "the adapter computes both forms, forward and backward, as the one with erf",
    "nn.functional.interpolate.nearest": "along one axis the adapter leaves scale_factor out",
    "nn.functional.upsample_nearest": "along one axis the adapter leaves scale_factor out",
    "logspace": "the CPU computes the exponents in the 16-bit type, the device in float64",
    "addcmul": ROUNDED, "erf": ROUNDED,
    "nn.functional.linear_cross_entropy.chunked": ROUNDED, "nn.functional.linear_cross_entropy.chunked_none": ROUNDED,
}  # fmt: skip
FAULT = re.compile(r"by name|50701\d")  # a device fault: nothing after it in this process counts
MISSING = re.compile(r"looked for (aclnn\w+)")


# ---- in the process that computes ----

def spread(samples: list) -> list:
    step = max(1, len(samples) // SAMPLES)
    return samples[::step][:SAMPLES]


def moved(value, device: str):
    """The same sample on another device, with leaves of its own."""
    import torch

    if isinstance(value, torch.Tensor):
        copied = value.detach().to(device)
        elements = value.untyped_storage().nbytes() // value.element_size() if value.layout is torch.strided else 0
        if elements > value.numel() > 0:  # what is around a view may be looked at too
            stored = value.detach().as_strided((elements,), (1,), 0).to(device)
            copied = stored.as_strided(value.shape, value.stride(), value.storage_offset())
        return copied.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        parts = [moved(item, device) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, torch.device) or value == "cpu":
        return device
    return value


def tensors_of(value) -> list:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    if isinstance(value, dict):
        return tensors_of(list(value.values()))
    return []


def computed(operator, sample, device: str, backward: bool) -> tuple[list, list]:
    import torch

    sample_input, arguments, options = (moved(part, device) for part in (sample.input, sample.args, sample.kwargs))
    result = operator.op(sample_input, *arguments, **options)
    results = tensors_of(result)
    gradients = []
    if backward:
        leaves = [leaf for leaf in tensors_of([sample_input, arguments, options]) if leaf.requires_grad]
        roots = [root for root in results if root.requires_grad]
        if leaves and roots:
            seeds = []
            for root in roots:
                ramp = torch.linspace(-1, 1, root.numel(), dtype=torch.float64).reshape(root.shape)
                seeds.append(ramp.to(root.dtype).to(device))
            gradients = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
    return results, [gradient for gradient in gradients if gradient is not None]


class Adapters(Exception):
    """A difference that is not ours: the adapter makes the results' tensors."""


def worst(value, exact) -> float:
    import torch

    error = (value.detach().cpu().to(exact.dtype) - exact).abs()
    return float(torch.nan_to_num(error).max()) if error.numel() else 0.0


def is_random(name: str, options: dict) -> bool:
    return bool(RANDOM.search(name)) or options.get("dropout_p", 0) > 0


def differs(name: str, random: bool, found, expected, exact) -> str | None:
    """`exact`: the result of the same call in float64, if it has one. What rounds as well as the CPU is equal."""
    import torch

    if found.dtype != expected.dtype or (found.shape != expected.shape and not SIZED_BY_DATA.search(name)):
        raise Adapters(f"{tuple(found.shape)} {found.dtype} where the CPU has {tuple(expected.shape)} {expected.dtype}")
    if random:
        return None
    rtol, atol = torch.testing._comparison.default_tolerances(expected.dtype)
    tolerance = {"rtol": rtol, "atol": atol}
    for wanted in (expected.detach(), exact):
        try:
            torch.testing.assert_close(found.detach().cpu().to(wanted.dtype), wanted, equal_nan=True, **tolerance)
            return None
        except AssertionError as error:
            told = " ".join(str(error).split())[:160]
        if exact is None or exact.shape != found.shape:
            return told
    if not bool((exact.isfinite() == found.detach().cpu().isfinite()).all()):
        return told
    return None if worst(found, exact) <= 2 * worst(expected, exact) else told


def widened(value):
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().double().requires_grad_(value.requires_grad) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        parts = [widened(item) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: widened(item) for key, item in value.items()}
    return value


def exactly(operator, sample, backward: bool, like: tuple) -> tuple[list, list]:
    """In float64 on the CPU; None for what it does not give."""
    import torch

    wide = type(sample)(widened(sample.input), args=widened(sample.args), kwargs=widened(sample.kwargs))
    torch.set_default_dtype(torch.float64)  # what comes of integers
    try:
        exact = computed(operator, wide, "cpu", backward)
    except Exception:
        exact = ([], [])
    finally:
        torch.set_default_dtype(torch.float32)
    return tuple(given if len(given) == len(wanted) else [None] * len(wanted) for given, wanted in zip(exact, like))


def dimension(name: str, sample) -> int:
    """Along which a sample sorts."""
    numbers = [value for value in sample.args if isinstance(value, int) and not isinstance(value, bool)]
    after = 1 if name in ("topk", "kthvalue") else 0  # behind k
    return sample.kwargs.get("dim", numbers[after] if len(numbers) > after else -1)


def named(name: str, sample, index):
    """The elements that an index along the sample's dimension names: the same for all ties."""
    import torch

    values, dim = sample.input.detach().cpu(), dimension(name, sample)
    if values.ndim == 0:
        return index.cpu()
    return torch.gather(values, dim, (index if index.ndim == values.ndim else index.unsqueeze(dim)).cpu())


def without_ties(name: str, sample, kind: str, place: int, tensors: list) -> list:
    if kind == "gradient":
        return [one.detach().cpu().flatten().sort()[0] for one in tensors]
    is_index = place == 1 or name == "argsort"
    return [named(name, sample, one) if is_index else one for one in tensors]


def compare(operator, sample, backward: bool) -> str | None:
    """What differs; None: nothing."""
    try:
        expected = computed(operator, sample, "cpu", backward)
    except Exception:
        return None  # not a sample for this type on the CPU either
    found = computed(operator, sample, "npu", backward)
    exact = exactly(operator, sample, backward, expected)
    for kind, *parts in zip(("result", "gradient"), found, expected, exact):
        if len(parts[0]) != len(parts[1]):
            raise Adapters(f"{len(parts[0])} {kind}s where the CPU has {len(parts[1])}")
        for place, tensors in enumerate(zip(*parts)):
            if TIES.match(operator.name):
                tensors = (*without_ties(operator.name, sample, kind, place, tensors[:2]), None)
            if why := differs(operator.name, is_random(operator.name, sample.kwargs), *tensors):
                return f"{kind}: {why}"
    return None


def outcome_of_exception(error: Exception) -> tuple[str, str]:
    text = str(error)
    if isinstance(error, Adapters):
        return "adapter", text
    if named := re.search(r"operator (\w+) by name is not emulated", text):
        return "missing", named[0]
    if ours := re.search(r"OPS function error: .*?\w+\(\w+\): ([^\n]+)", text, re.S):
        return "refused", f"by name: {ours[1]}"[:200]
    if absent := re.search(r"(aclnn\w+) or aclnn\w+ not in libopapi", text):
        return "missing", absent[1]
    text = text.split("[ERROR]")[0] if "AclNN" not in text else text
    if ours := re.search(r"call (aclnn\w+) failed.*?AclNN\w+\(\w+\): ([^\n]+)", text, re.S):
        kind = "type" if re.search(r" has type \w+( \(\d+\))?; on ", ours[2]) else "refused"
        return kind, f"{ours[1]}: {ours[2]}"[:200]
    if "aclnn" in text or "error code is" in text:
        return "refused", " ".join(text.split())[:200]
    return "adapter", " ".join(text.split())[:160]


def try_operator(operator, dtype) -> tuple[str, str]:
    import warnings

    backward = dtype.is_floating_point and operator.supports_autograd and dtype in operator.supported_backward_dtypes("cpu")
    samples = spread(list(operator.sample_inputs("cpu", dtype, requires_grad=backward)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for sample in samples:
            try:
                if why := compare(operator, sample, backward):
                    return "differs", why
            except Exception as error:
                return outcome_of_exception(error)
    if any("fall back to run on the CPU" in str(warning.message) for warning in told):
        return "fallback", ""
    return "equal", f"{len(samples)}"


def work(dtype_name: str, names: list[str]) -> None:
    import torch
    import torch_npu  # noqa: F401
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    dtype = getattr(torch, dtype_name)
    for operator in op_db:
        name = operator.name + (f".{operator.variant_test_name}" if operator.variant_test_name else "")
        if name not in names:
            continue
        if dtype not in operator.supported_dtypes("cpu"):
            continue
        torch.manual_seed(1)
        print(json.dumps({"begins": name}), flush=True)
        print(f"operator {name}", file=sys.stderr, flush=True)
        try:
            outcome, text = try_operator(operator, dtype)
        except Exception as error:  # the samples themselves
            outcome, text = "adapter", " ".join(str(error).split())[:160]
        print(json.dumps({"name": name, "outcome": outcome, "text": text}), flush=True)
        if FAULT.search(text):
            os._exit(0)


# ---- in the process that watches ----

def all_names() -> list[str]:
    listing = ("from torch.testing._internal.common_methods_invocations import op_db\n"
               "print(*[o.name + (f'.{o.variant_test_name}' if o.variant_test_name else '') for o in op_db], sep='\\n')")
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    found = subprocess.run([sys.executable, "-c", listing], env=environment, capture_output=True, text=True, check=True)
    return list(dict.fromkeys(found.stdout.split()))


def run(dtype: str, names: list[str]) -> dict[str, dict]:
    results, remaining = {}, list(names)
    while remaining:
        with tempfile.NamedTemporaryFile("w+", suffix=".txt") as errors, tempfile.NamedTemporaryFile("w+", suffix=".txt") as given:
            given.write("\n".join(remaining))
            given.flush()
            process = subprocess.Popen([sys.executable, "-m", "tests.clients.torch_npu.operators", "--work", given.name,
                                        "--dtype", dtype], stdout=subprocess.PIPE, stderr=errors, text=True,
                                       env={**os.environ, "UNDERSTUDY_LOG": "warn",
                                            "ASCEND_LAUNCH_BLOCKING": "1"})  # fmt: skip
            last = follow(process, results)
            missing = missing_of(pathlib.Path(errors.name).read_text())
        for name, functions in missing.items():
            if name in results and results[name]["outcome"] == "missing" and not results[name]["text"]:
                results[name]["text"] = " ".join(functions)
        if last is None or (process.returncode == 0 and not FAULT.search(results[last]["text"])):
            return results
        if last not in results:
            results[last] = {"name": last, "outcome": "crashed", "text": f"the process ended ({process.returncode})"}
        remaining = remaining[remaining.index(last) + 1:]
    return results


def follow(process: subprocess.Popen, results: dict) -> str | None:
    """Reads the process's results; the last operator that it began."""
    import select

    last = None
    while True:
        ready, _, _ = select.select([process.stdout], [], [], SECONDS * 3)
        line = process.stdout.readline() if ready else ""
        if not line:
            if not ready:
                process.kill()
            process.wait()
            return last
        if not line.startswith("{"):
            continue
        told = json.loads(line)
        if "begins" in told:
            last = told["begins"]
        else:
            results[told["name"]] = told
            counts = collections.Counter(result["outcome"] for result in results.values())
            if sys.stderr.isatty():
                print("\r" + "  ".join(f"{name} {counts[name]}" for name in OUTCOMES), end="", file=sys.stderr)


def missing_of(log: str) -> dict[str, list[str]]:
    """The functions that were looked up in vain, by operator."""
    missing, current = collections.defaultdict(list), ""
    for line in log.splitlines():
        if line.startswith("operator "):
            current = line.removeprefix("operator ")
        elif (found := MISSING.search(line)) and found[1] not in missing[current]:
            missing[current].append(found[1])
    return missing


def counts_of(results: dict[str, dict[str, dict]]) -> list[str]:
    lines = ["| type | " + " | ".join(OUTCOMES) + " | all |", "|" + "---|" * (len(OUTCOMES) + 2)]
    for dtype, entries in results.items():
        counts = collections.Counter(entry["outcome"] for entry in entries.values())
        lines.append(f"| {dtype} | " + " | ".join(str(counts[name]) for name in OUTCOMES) + f" | {len(entries)} |")
    return lines


def reasons_of(results: dict[str, dict[str, dict]], outcome: str) -> list[str]:
    """A line for each reason, with the operators that end so and, where it is not all that have it, the types."""
    texts: dict[str, str] = {}
    operators: dict[str, dict[str, list[str]]] = {}
    for dtype, entries in results.items():
        for entry in entries.values():
            if entry["outcome"] == outcome:
                reason = entry["text"].split(";")[0] if outcome == "type" else entry["text"]
                reason = KNOWN.get(entry["name"], reason) if outcome == "differs" else reason
                key = re.sub(r"[\d.()\[\], ]+|torch\.\w+|ACL_\w+", " ", reason)[:60]
                texts.setdefault(key, reason)
                operators.setdefault(key, {}).setdefault(entry["name"], []).append(dtype)
    lines = []
    for key, names in operators.items():
        listed = [f"`{name}`" + (f" ({', '.join(types)})" if types != [dtype for dtype in results if name in results[dtype]] else "")
                  for name, types in names.items()]
        lines.append(f"- {', '.join(listed)}" + (f": {texts[key]}" if texts[key] else ""))
    return lines


def report(results: dict[str, dict[str, dict]]) -> str:
    lines = ["## Counts", "", *counts_of(results), ""]
    for outcome in OUTCOMES[1:]:
        if reasons := reasons_of(results, outcome):
            lines += [f"## {outcome}", "", *reasons, ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", action="append")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    dtypes = given.dtype or DTYPES
    if given.work:
        work(dtypes[0], given.work.read_text().split())
        return
    names = [name for name in all_names() if not given.names or name in given.names]
    text = report({dtype: run(dtype, names) for dtype in dtypes})
    if given.write:
        head, _, _ = given.write.read_text().partition("## ") if given.write.exists() else ("", "", "")
        given.write.write_text(head + text)
    print(text)


if __name__ == "__main__":
    main()
