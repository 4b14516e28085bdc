"""Activations and their gradients, in float64 from the formulas of the pages."""

import math

import numpy

from tests.ascend.oracles import oracle

erf = numpy.vectorize(math.erf, otypes=[numpy.float64])


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def phi(x):
    """Density of the normal distribution."""
    return numpy.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def cdf(x):
    return (1 + erf(x / math.sqrt(2))) / 2


@oracle("Relu")
def relu(self):
    return numpy.maximum(self, 0)


@oracle("SquaredRelu", ulp=1)
def squared_relu(input):
    return numpy.maximum(input, 0) ** 2


@oracle("AddRelu", ulp=2, scale=16, attributes={"alpha": 3})
def add_relu(self, other, alpha):
    return numpy.maximum(self + alpha * other, 0)


@oracle("Shrink", ulp=2, scale=1, attributes={"lambd": 0.5, "bias": 0.25})
def shrink(self, lambd, bias):
    return numpy.where(self > lambd, self - bias, numpy.where(self < -lambd, self + bias, 0))


@oracle("LeakyRelu", attributes={"negativeSlope": 0.25})
def leaky_relu(self, negativeSlope):
    return numpy.where(self > 0, self, negativeSlope * self)


@oracle("Elu", ulp=8, attributes={"alpha": 1.5, "scale": 2.0, "inputScale": 0.5})
def elu(self, alpha, scale, inputScale):
    return numpy.where(self > 0, scale * self, alpha * scale * numpy.expm1(self * inputScale))


@oracle("Celu", ulp=8, attributes={"alpha": 1.5})
def celu(self, alpha):
    return numpy.where(self > 0, self, alpha * numpy.expm1(self / alpha))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@oracle("Selu", ulp=8)
def selu(self):
    return SELU_SCALE * numpy.where(self > 0, self, SELU_ALPHA * numpy.expm1(self))


@oracle("Silu", ulp=8)
def silu(self):
    return self * sigmoid(self)


@oracle("Swish", ulp=8, attributes={"betaOptional": 1.5})
def swish(self, betaOptional):
    return self * sigmoid(betaOptional * self)


@oracle("Mish", ulp=8)
def mish(self):
    return self * numpy.tanh(numpy.log1p(numpy.exp(self)))


@oracle("Gelu", ulp=8, scale=0.25)
def gelu(self):
    return self * cdf(self)


@oracle("GeluV2", ulp=8, scale=0.25, attributes={"approximate": 0})
def gelu_v2(x, approximate):
    return x * cdf(x)


@oracle("FastGelu", ulp=8)
def fast_gelu(self):
    return self / (1 + numpy.exp(-1.702 * self))


@oracle("Hardshrink", attributes={"lambd": 0.5})
def hardshrink(self, lambd):
    return numpy.where((self > lambd) | (self < -lambd), self, 0)


@oracle("Softshrink", ulp=2, scale=1, attributes={"lambd": 0.5})
def softshrink(self, lambd):
    return numpy.where(self > lambd, self - lambd, numpy.where(self < -lambd, self + lambd, 0))


@oracle("Hardsigmoid", ulp=3, scale=1)
def hardsigmoid(self):
    return numpy.clip(self / 6 + 0.5, 0, 1)


@oracle("Hardswish", ulp=4, scale=1)
def hardswish(self):
    return self * numpy.clip(self + 3, 0, 6) / 6


@oracle("LogSigmoid", "LogSigmoidForward", ulp=8)
def log_sigmoid(self):
    return -numpy.logaddexp(0, -self)


@oracle("Softplus", ulp=8, attributes={"beta": 2.0, "threshold": 5.0})
def softplus(self, beta, threshold):
    return numpy.where(beta * self > threshold, self, numpy.log1p(numpy.exp(beta * self)) / beta)


@oracle("Threshold", attributes={"threshold": 1, "value": 2})
def threshold(self, threshold, value):
    return numpy.where(self > threshold, self, value)


# ---- gradients -----------------------------------------------------------------------------------------------------------


@oracle("ThresholdBackward", attributes={"threshold": 1})
def threshold_backward(gradOutput, self, threshold):
    return numpy.where(self > threshold, gradOutput, 0)


@oracle("LeakyReluBackward", attributes={"negativeSlope": 0.25, "selfIsResult": False})
def leaky_relu_backward(gradOutput, self, negativeSlope, selfIsResult):
    return numpy.where(self > 0, gradOutput, negativeSlope * gradOutput)


@oracle("EluBackward", ulp=8, attributes={"alpha": 1.5, "scale": 2.0, "inputScale": 0.5, "isResult": False})
def elu_backward(gradOutput, selfOrResult, alpha, scale, inputScale, isResult):
    slope = alpha * scale * inputScale * numpy.exp(inputScale * selfOrResult)
    return gradOutput * numpy.where(selfOrResult > 0, scale, slope)


@oracle("SeluBackward", ulp=8, scale=8)
def selu_backward(gradOutput, result):
    return gradOutput * numpy.where(result >= 0, SELU_SCALE, result + SELU_SCALE * SELU_ALPHA)


@oracle("SigmoidBackward", ulp=6, scale=16)
def sigmoid_backward(gradOutput, output):
    return gradOutput * output * (1 - output)


@oracle("TanhBackward", ulp=6, scale=16)
def tanh_backward(gradOutput, output):
    return gradOutput * (1 - output * output)


@oracle("SiluBackward", ulp=16, scale=2)
def silu_backward(gradOutput, self):
    s = sigmoid(self)
    return gradOutput * s * (1 + self - self * s)


@oracle("SwishBackward", ulp=16, scale=2, attributes={"betaOptional": 1.5})
def swish_backward(gradOutput, self, betaOptional):
    s = sigmoid(betaOptional * self)
    return gradOutput * s * (1 + betaOptional * self * (1 - s))


@oracle("MishBackward", ulp=16, scale=2)
def mish_backward(gradOutput, self):
    t = numpy.tanh(numpy.log1p(numpy.exp(self)))
    return gradOutput * (t + self * (1 - t * t) * sigmoid(self))


@oracle("GeluBackward", ulp=16, scale=2)
def gelu_backward(gradOutput, self):
    return gradOutput * (cdf(self) + self * phi(self))


@oracle("GeluBackwardV2", ulp=16, scale=2, attributes={"approximate": "none"})
def gelu_backward_v2(gradOutput, self, approximate):
    return gradOutput * (cdf(self) + self * phi(self))


@oracle("FastGeluBackward", ulp=16, scale=2)
def fast_gelu_backward(gradOutput, self):
    s = sigmoid(1.702 * self)
    return gradOutput * s * (1 + 1.702 * self * (1 - s))


@oracle("HardshrinkBackward", attributes={"lambd": 0.5})
def hardshrink_backward(gradOutput, self, lambd):
    return numpy.where((self > lambd) | (self < -lambd), gradOutput, 0)


@oracle("SoftshrinkBackward", attributes={"lambda": 0.5})
def softshrink_backward(gradOutput, self):
    return numpy.where((self > 0.5) | (self < -0.5), gradOutput, 0)


@oracle("HardsigmoidBackward", ulp=2)
def hardsigmoid_backward(gradOutput, self):
    return numpy.where((self > -3) & (self < 3), gradOutput / 6, 0)


@oracle("HardswishBackward", ulp=4, scale=4)
def hardswish_backward(gradOutput, self):
    return gradOutput * numpy.where(self < -3, 0, numpy.where(self <= 3, self / 3 + 0.5, 1))


@oracle("HardswishBackwardV2", ulp=4, scale=4)
def hardswish_backward_v2(gradOutput, self):
    return gradOutput * numpy.where(self <= -3, 0, numpy.where(self < 3, self / 3 + 0.5, 1))


@oracle("HardtanhBackward", attributes={"min": -1, "max": 1})
def hardtanh_backward(gradOutput, self, min, max):
    return numpy.where((self > max) | (self < min), 0, gradOutput)


@oracle("LogSigmoidBackward", ulp=8)
def log_sigmoid_backward(gradOutput, self):
    return gradOutput / (1 + numpy.exp(self))


@oracle("SoftplusBackward", ulp=8, attributes={"beta": 2.0, "threshold": 5.0})
def softplus_backward(gradOutput, self, beta, threshold):
    return numpy.where(beta * self > threshold, gradOutput, gradOutput * sigmoid(beta * self))
