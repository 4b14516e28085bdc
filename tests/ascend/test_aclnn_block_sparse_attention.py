"""Attention of which a mask leaves out blocks: by its formula in float64, sequence by sequence."""

import numpy
import pytest

from tests.ascend.attention import attention, near
from tests.ascend.calling import LAYOUTS, call, drawn, empty, rounded, tensor

FAR = 2**31 - 1
CASES = [  # layout, rows, keys, lengths of rows and keys (packed: these alone), heads, of the key, depth, block,
         # blocks of lengths
    ("BNSD", 5, 300, None, None, 4, 2, 64, (2, 128), False),
    ("BSND", 200, 130, [150, 200], [130, 0], 2, 2, 128, (96, 128), False),
    ("BNSD", 9, 400, [3, 5], [129, 270], 3, 1, 64, (4, 256), True),
    ("TND", None, None, [2, 0, 260], [128, 3, 140], 4, 4, 128, (64, 128), True),
    ("TND", None, None, [33], [1], 1, 1, 64, None, True),
]
AXES = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3)}


class Case:
    """Tensors as [batch, head, row, depth], of packed sequences [1, head, token, depth]."""

    def __init__(self, layout, rows, keys, row_lengths, key_lengths, heads, key_heads, depth, block, of_lengths):
        self.layout, self.packed, self.block = layout, layout == "TND", block
        absent = [] if layout == "BNSD" else None  # which is the same
        self.given = row_lengths or absent, key_lengths or absent
        self.rows, self.keys = row_lengths or [rows] * 2, key_lengths or [keys] * 2
        batches = 1 if self.packed else 2
        self.row_shape = (batches, heads, sum(self.rows) if self.packed else rows, depth)
        self.key_shape = (batches, key_heads, sum(self.keys) if self.packed else keys, depth)
        self.sizes = block or (128, 128)
        most = (max(self.rows), max(self.keys)) if of_lengths else (rows, keys)
        blocks = [-(-count // size) for count, size in zip(most, self.sizes)]
        self.mask = numpy.random.default_rng(1).random((len(self.rows), heads, *blocks)) < 0.6
        self.mask[:, 0, 0] = False  # rows without keys

    def put(self, values, kind, layout):
        return tensor(self.laid_out(values), kind, layout)

    def laid_out(self, values):
        return values[0].swapaxes(0, 1) if self.packed else values.transpose(AXES[self.layout])

    def back(self, values):
        return values.swapaxes(0, 1)[None] if self.packed else values.transpose(AXES[self.layout])

    def sequences(self):
        """Where the rows and keys of each one lie, and which scores it keeps."""
        for s, (rows, keys) in enumerate(zip(self.rows, self.keys)):
            begin, first = (sum(self.rows[:s]), sum(self.keys[:s])) if self.packed else (0, 0)
            kept = self.mask[s].repeat(self.sizes[0], 1).repeat(self.sizes[1], 2)[:, :rows, :keys]
            batch = 0 if self.packed else s
            yield (slice(batch, batch + 1), slice(None), slice(begin, begin + rows)), (
                slice(batch, batch + 1), slice(None), slice(first, first + keys)), kept[None]  # fmt: skip

    def arguments(self):
        return {"attenMaskOptional": None, "blockShapeOptional": list(self.block) if self.block else None,
                "actualSeqLengthsOptional": self.given[0], "actualSeqLengthsKvOptional": self.given[1],
                "qInputLayout": self.layout, "kvInputLayout": self.layout, "numKeyValueHeads": self.key_shape[1],
                "maskType": 0, "scaleValue": 0.1, "preTokens": FAR, "nextTokens": FAR}  # fmt: skip


def computed(case, q, k, v, dy, kind=None):
    """The result, the logarithms of the sums, and the gradients, in which the result is rounded to a type."""
    y, joint = numpy.zeros(case.row_shape), numpy.full((*case.row_shape[:3], 1), numpy.inf)
    dq, dk, dv = numpy.zeros(q.shape), numpy.zeros(k.shape), numpy.zeros(v.shape)
    for rows, keys, kept in case.sequences():
        if q[rows].size == 0 or k[keys].size == 0:
            continue
        given = q[rows], k[keys], v[keys], dy[rows], 0.1, 0, kept, 1
        y[rows], largest, sums, *_ = attention(*given)
        dq[rows], dk[keys], dv[keys] = attention(*given, read=None if kind is None else rounded(y[rows], kind))[3:]
        seen = sums > 0
        joint[rows][..., 0][seen] = largest[seen] + numpy.log(sums[seen])
    return y, joint, dq, dk, dv


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind, layout", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_forward(kind, layout, case):
    case = Case(*case)
    q, k, v = (drawn(shape, 2 + n, kind) for n, shape in enumerate([case.row_shape, case.key_shape, case.key_shape]))
    y, joint, *_ = computed(case, q, k, v, numpy.zeros(q.shape))
    like = lambda values, of: empty(case.laid_out(values).shape, of, layout)
    for wanted in (1, 0):
        own = call("BlockSparseAttention", query=case.put(q, kind, layout), key=case.put(k, kind, layout),
                   value=case.put(v, kind, layout),
                   blockSparseMaskOptional=tensor(case.mask * 3 if wanted else case.mask, "I8" if wanted else "B", layout),
                   blockTableOptional=None, innerPrecise=0, blockSize=0, softmaxLseFlag=wanted, attentionOut=like(y, kind),
                   softmaxLseOptional=like(joint, "F32") if wanted else None, **case.arguments())  # fmt: skip
        near(case.back(own[0] if wanted else own), y, kind, 128 * 8)
        if wanted:
            own = case.back(own[1])
            numpy.testing.assert_array_equal(numpy.isinf(own), numpy.isinf(joint))
            seen = numpy.isfinite(joint)
            near(own[seen], joint[seen], "F32", 128 * 8)


@pytest.mark.parametrize("case", [case for case in CASES if case[0] != "BSND" and case[5] == case[6]] + [
    ("BNSD", 5, 300, None, None, 4, 4, 128, (2, 100), False), ("BNSD", 150, 140, [3, 150], [140, 60], 2, 2, 128, (64, 32), False),
    ("BNSD", 6, 70, [0, 6], [70, 0], 1, 1, 128, None, True), ("BNSD", 6, 70, [3, 5], None, 1, 1, 128, (2, 32), True),
    ("BNSD", 6, 70, None, [60, 9], 1, 1, 128, (2, 32), True)])  # fmt: skip
@pytest.mark.parametrize("kind, layout", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_gradients(kind, layout, case):
    case = Case(*case[:7], 128, *case[8:])
    q, k, v, dy = (drawn(shape, 5 + n, kind) for n, shape in
                   enumerate([case.row_shape, case.key_shape, case.key_shape, case.row_shape]))  # fmt: skip
    y, joint, *gradients = computed(case, q, k, v, dy, kind)
    found = call("BlockSparseAttentionGrad", dout=case.put(dy, kind, layout), query=case.put(q, kind, layout),
                 key=case.put(k, kind, layout), value=case.put(v, kind, layout), attentionOut=case.put(y, kind, layout),
                 softmaxLse=case.put(joint, "F32", layout),
                 blockSparseMaskOptional=tensor(case.mask, "I8" if kind == "F16" else "B", layout),
                 **{name: empty(case.laid_out(values).shape, kind, layout)
                    for name, values in zip(("dq", "dk", "dv"), (q, k, v))},
                 **case.arguments())  # fmt: skip
    for actual, expected in zip(found, gradients):
        near(case.back(actual), expected, kind, 128 * 8)


def test_no_rows():
    call("BlockSparseAttention", query=empty((2, 1, 0, 64), "F16"), key=empty((2, 1, 3, 64), "F16"),
         value=empty((2, 1, 3, 64), "F16"), blockSparseMaskOptional=empty((2, 1, 0, 1), "I8"), attenMaskOptional=None,
         blockShapeOptional=None, actualSeqLengthsOptional=None, actualSeqLengthsKvOptional=None, blockTableOptional=None,
         qInputLayout="BNSD", kvInputLayout="BNSD", numKeyValueHeads=1, maskType=0, scaleValue=1.0, innerPrecise=0, blockSize=0,
         preTokens=FAR, nextTokens=FAR, softmaxLseFlag=0, attentionOut=empty((2, 1, 0, 64), "F16"),
         softmaxLseOptional=None)  # fmt: skip
