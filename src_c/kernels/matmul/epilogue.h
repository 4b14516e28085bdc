/* A product with what is done to its sums before they are rounded. */
#ifndef UNDERSTUDY_EPILOGUE_H
#define UNDERSTUDY_EPILOGUE_H

#include "kernels/matmul/matmul.h"

typedef enum Activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_GELU_TANH,
    ACTIVATION_RELU_SLOPE, /* these two: the sums are multiplied by the slope at what is read from aux */
    ACTIVATION_GELU_TANH_SLOPE,
} ProductActivation;

/* Sums over k of a's rows or of b's columns, or over n of c's rows as they are stored. They are formed in double, rounded once
 * and stored where the bias would be: [batch, m], or of B [batch, n]. */
typedef enum BiasGradient {
    BIAS_GRADIENT_NONE,
    BIAS_GRADIENT_OF_A,
    BIAS_GRADIENT_OF_B,
    BIAS_GRADIENT_OF_RESULT,
} BiasGradient;

/* The views of us_product, then: bias [batch, m, n], broadcast by strides of 0; factors of A, of B and of the addend, one
 * float each; aux; all five may be absent. c = activation(alpha * factor_a * factor_b * a b + beta * factor * addend + bias),
 * in float32 or float64; what the activation takes is stored in aux, [batch, m, n]. Of ReLU aux has a bit for each element
 * that was positive or no number, 8 rows in a byte: [batch, bytes, n]. */
typedef struct ProductWithEpilogue {
    ViewProduct product;
    ProductActivation activation;
    BiasGradient gradient;
    bool e4m3; /* a and b, [batch, m, k] and [batch, k, n], are bytes of such numbers (kernels/matmul/e4m3.h) */
} ProductWithEpilogue;
Kernel us_product_with_epilogue;

#endif
