"""Runs programs in processes that are forked from this one, which has imported PyTorch: importing it takes longer than most
programs do. Our libraries and the adapter are loaded in the forked process, after its environment is set.

Reads a line for each call, {"device": …, "programs": […], "variables": {…}}, and answers with a line
{"status": …, "results": {program: numbers or error}, "printed": what went to stderr}.
"""

import json
import os
import sys
import tempfile

import numpy  # noqa: F401
import torch


def work(device: str, programs: list[str], variables: dict[str, str], out, errors) -> None:
    os.dup2(errors.fileno(), 2)
    os.environ.update(variables)
    if device != "cpu":
        import torch_npu  # noqa: F401
    from tests.clients.torch_npu.programs import run

    torch.set_num_threads(2)
    json.dump(run(device, programs), out)
    out.flush()


def answer(call: dict) -> dict:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(**call, out=out, errors=errors)
                status = 0
            finally:
                sys.stderr.flush()
                sys.exit(status)  # with what the adapter does at exit
        _, status = os.waitpid(child, 0)
        out.seek(0)
        errors.seek(0)
        text = out.read()
        return {"status": status, "results": json.loads(text) if status == 0 else {}, "printed": errors.read()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
