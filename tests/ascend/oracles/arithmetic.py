"""Arithmetic, comparison, logic, rounding."""

import numpy

from tests.ascend.oracles import oracle


def is_integer(x):
    return numpy.asarray(x).dtype.kind in "iub"


def counted(x):
    """bool as 0 and 1, which NumPy does not subtract."""
    return x.astype(numpy.int64) if numpy.asarray(x).dtype == bool else x


def where_nonzero(y, values, otherwise):
    return numpy.where(y != 0, values, otherwise)


@oracle("Add", "Adds", "AddV3", ulp=2, scale=16, attributes={"alpha": 3, "other": 2})
def add(self, other, alpha):
    return self + alpha * other


@oracle("Sub", "Subs", ulp=2, scale=16, attributes={"alpha": 3, "other": 2})
def sub(self, other, alpha):
    return counted(self) - alpha * counted(other)


@oracle("Rsub", "Rsubs", ulp=2, scale=16, attributes={"alpha": 3, "other": 2})
def rsub(self, other, alpha):
    return counted(other) - alpha * counted(self)


@oracle("Mul", "Muls", ulp=1, attributes={"other": 3})
def mul(self, other):
    return self * other


@oracle("Div", "Divs", ulp=4, attributes={"other": 3}, ranges={"other": (0.5, 4)})
def div(self, other):
    return self / other


@oracle("DivMod", "DivMods", attributes={"mode": 1, "other": 3}, refused=("C64", "C128"), ranges={"other": (0.5, 4)})
def div_mod(self, other, mode):
    if is_integer(self):
        self, other = counted(self), counted(other)
        divisor = where_nonzero(other, other, 1)
        return where_nonzero(other, numpy.sign(self) * numpy.sign(other) * (abs(self) // abs(divisor)), 0)
    return numpy.trunc(self / other)


@oracle("FloorDivide", "FloorDivides", attributes={"other": 3}, ranges={"other": (0.5, 4)})
def floor_divide(self, other):
    if is_integer(self):
        return where_nonzero(other, self // where_nonzero(other, other, 1), 0)
    return numpy.floor_divide(self, other)


@oracle("Addcmul", ulp=3, scale=64, attributes={"value": 2})
def addcmul(self, tensor1, tensor2, value):
    return self + value * tensor1 * tensor2


@oracle("Addcdiv", ulp=3, scale=64, attributes={"value": 2}, ranges={"tensor2": (0.5, 4)})
def addcdiv(self, tensor1, tensor2, value):
    return self + value * (tensor1 / tensor2)


@oracle("Lerp", "Lerps", ulp=3, scale=8, attributes={"weight": 0.25})
def lerp(self, end, weight):
    return self + weight * (end - self)


@oracle("Gcd")
def gcd(self, other):
    return numpy.gcd(self, other)


@oracle("BitwiseAndTensor", "BitwiseAndTensorOut", "BitwiseAndScalar", attributes={"other": 6})
def bitwise_and(self, other):
    return self & other


@oracle("BitwiseOrTensor", "BitwiseOrScalar", attributes={"other": 6})
def bitwise_or(self, other):
    return self | other


@oracle("BitwiseXorTensor", "BitwiseXorScalar", attributes={"other": 6})
def bitwise_xor(self, other):
    return self ^ other


@oracle("BitwiseNot")
def bitwise_not(self):
    return ~self


@oracle("LeftShift", "LeftShifts", ranges={"shiftBits": (0, 3)}, attributes={"shiftBits": 3})
def left_shift(self, shiftBits):
    return self << shiftBits


@oracle("RightShift", ranges={"shiftBits": (0, 3)})
def right_shift(input, shiftBits):
    return input >> shiftBits


@oracle("LogicalAnd")
def logical_and(self, other):
    return (self != 0) & (other != 0)


@oracle("LogicalOr")
def logical_or(self, other):
    return (self != 0) | (other != 0)


@oracle("LogicalXor")
def logical_xor(self, other):
    return (self != 0) != (other != 0)


@oracle("LogicalNot")
def logical_not(self):
    return self == 0


@oracle("EqTensor", "EqScalar", attributes={"other": 2})
def eq(self, other):
    return self == other


@oracle("NeTensor", "NeScalar", attributes={"other": 2})
def ne(self, other):
    return self != other


@oracle("GtTensor", "GtScalar", attributes={"other": 2})
def gt(self, other):
    return self > other


@oracle("GeTensor", "GeScalar", attributes={"other": 2})
def ge(self, other):
    return self >= other


@oracle("LtTensor", "LtScalar", attributes={"other": 2})
def lt(self, other):
    return self < other


@oracle("LeTensor", "LeScalar", attributes={"other": 2})
def le(self, other):
    return self <= other


@oracle("IsClose", attributes={"rtol": 0.25, "atol": 0.5, "equalNan": True})
def is_close(self, other, rtol, atol, equalNan):
    return numpy.isclose(self, other, rtol, atol, equalNan)


@oracle("Maximum")
def maximum(self, other):
    return numpy.maximum(self, other)


@oracle("Minimum")
def minimum(self, other):
    return numpy.minimum(self, other)


@oracle("FmodScalar", "FmodTensor", attributes={"other": 3})
def fmod(self, other):
    if is_integer(self):
        return where_nonzero(other, numpy.fmod(self, where_nonzero(other, other, 1)), self)
    return numpy.fmod(self, other)


@oracle("RemainderScalarTensor", "RemainderTensorScalar", "RemainderTensorTensor", attributes={"other": -3, "self": -7})
def remainder(self, other):
    if is_integer(other) and is_integer(self):
        return where_nonzero(other, numpy.mod(self, where_nonzero(other, other, 1)), self)
    return numpy.mod(self, other)


@oracle("IsInf")
def is_inf(x):
    return numpy.zeros(numpy.shape(x), bool) if is_integer(x) else numpy.isinf(x)


@oracle("ClampMaxTensor")
def clamp_max_tensor(self, max):
    return numpy.minimum(self, max)


@oracle("ClampMinTensor")
def clamp_min_tensor(self, clipValueMin):
    return numpy.maximum(self, clipValueMin)


@oracle("ClampMax", attributes={"clipValueMax": 2})
def clamp_max(self, clipValueMax):
    return numpy.minimum(self, clipValueMax)


@oracle("ClampMin", attributes={"clipValueMin": 1})
def clamp_min(self, clipValueMin):
    return numpy.maximum(self, clipValueMin)


@oracle("Clamp", "ClampTensor", attributes={"clipValueMin": 1, "clipValueMax": 2})
def clamp(self, clipValueMin, clipValueMax):
    return numpy.maximum(numpy.minimum(self, clipValueMax), clipValueMin)


@oracle("Hardtanh", attributes={"clipValueMin": 1, "clipValueMax": 2})
def hardtanh(self, clipValueMin, clipValueMax):
    return numpy.clip(self, clipValueMin, clipValueMax)


@oracle("Neg")
def neg(self):
    return -self


@oracle("Square", ulp=1)
def square(self):
    return self * self


@oracle("Reciprocal", ulp=4, low=0.5)
def reciprocal(self):
    return 1 / self


@oracle("Floor")
def floor(self):
    return self if is_integer(self) else numpy.floor(self)


@oracle("Ceil")
def ceil(self):
    return self if is_integer(self) else numpy.ceil(self)


@oracle("Trunc")
def trunc(self):
    return self if is_integer(self) else numpy.trunc(self)


@oracle("Frac")
def frac(input):
    return input * 0 if is_integer(input) else numpy.fmod(input, 1)


@oracle("Round")
def round_to_even(self):
    return self if is_integer(self) else numpy.rint(self)


@oracle("Sign")
def sign(self):
    if numpy.iscomplexobj(self):
        return numpy.where(self == 0, 0, self / numpy.where(self == 0, 1, numpy.abs(self)))
    return self if numpy.asarray(self).dtype == bool else numpy.sign(self)


@oracle("Signbit")
def signbit(self):
    return self < 0 if is_integer(self) else numpy.signbit(self)


@oracle("IsFinite")
def is_finite(self):
    return numpy.isfinite(self)


@oracle("IsPosInf")
def is_pos_inf(self):
    return self == numpy.inf


@oracle("IsNegInf")
def is_neg_inf(self):
    return self == -numpy.inf
