"""opdev/fp16_t.h: the half type of C++ programs converts and computes as NumPy's float16."""

import subprocess

import numpy

from tests import native
from understudy import paths

PROGRAM = r"""
#include "opdev/fp16_t.h"
#include <cstdio>

int main()
{
    double number;
    while (std::fread(&number, sizeof number, 1, stdin) == 1) {
        op::fp16_t half = number;
        const float back = op::fp16_t::FromBits(half.val);
        half *= op::fp16_t(3);
        half -= op::fp16_t(0.5f);
        const float changed = half;
        std::fwrite(&back, sizeof back, 1, stdout);
        std::fwrite(&changed, sizeof changed, 1, stdout);
    }
    return sizeof(op::fp16_t) == 2 && static_cast<int>(op::fp16_t(7)) == 7 && -op::fp16_t(2) < op::fp16_t(1) ? 0 : 1;
}
"""


def test_halves_are_numpys(tmp_path):
    (tmp_path / "half.cpp").write_text(PROGRAM)
    include = paths.STACKS["ascend"].root / "include" / "aclnn"
    native.check(["g++", "-std=c++11", *native.STRICT, f"-I{include}", tmp_path / "half.cpp", "-o", tmp_path / "half"])
    every = numpy.arange(1 << 16, dtype=numpy.uint16).view(numpy.float16).astype(float)
    finite = numpy.sort(every[numpy.isfinite(every)])
    middles = (finite[1:] + finite[:-1]) / 2
    numbers = numpy.concatenate([every, middles, numpy.nextafter(middles, numpy.inf), numpy.nextafter(middles, -numpy.inf),
                                 [65519.999, 65520, 1e300, -1e300, 5e-324, numpy.inf, -numpy.inf]])
    done = subprocess.run([tmp_path / "half"], input=numbers.tobytes(), capture_output=True, check=True)
    found = numpy.frombuffer(done.stdout, numpy.float32).reshape(-1, 2)
    with numpy.errstate(over="ignore", invalid="ignore"):
        halves = numbers.astype(numpy.float16)
        changed = (halves.astype(numpy.float32) * 3).astype(numpy.float16)
        changed = (changed.astype(numpy.float32) - numpy.float32(0.5)).astype(numpy.float16)
    numpy.testing.assert_array_equal(found[:, 0], halves.astype(numpy.float32))
    numpy.testing.assert_array_equal(found[:, 1], changed.astype(numpy.float32))
