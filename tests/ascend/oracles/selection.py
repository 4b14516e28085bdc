"""Elements chosen by a mask."""

import numpy

from tests.ascend.oracles import oracle


@oracle("SWhere")
def s_where(condition, self, other):
    return numpy.where(condition != 0, self, other)


@oracle("InplaceMaskedFillScalar", "InplaceMaskedFillTensor", attributes={"value": True})
def masked_fill(selfRef, mask, value):
    return numpy.where(mask != 0, value, selfRef)
