/* A gated activation of integers or numbers, quantized. */
#ifndef UNDERSTUDY_QUANTIZE_GATED_H
#define UNDERSTUDY_QUANTIZE_GATED_H

#include "kernels/quantize/quantize.h"

/* Of a and b in float32, swish(v) = v sigmoid(v):
 *   GATE_SWISH        swish(a) * b
 *   GATE_CLIPPED      min(a, limit) * sigmoid(alpha * min(a, limit)) * (b held in -limit … limit, + bias)
 *   GATE_SWISH_FIRST  min(swish(a), limit) * (b held in -limit … limit)
 *   GATE_BOUNDED      alpha tanh(a / alpha) sigmoid(a) * limit tanh(b / limit), or b where the limit is not above 0 */
typedef enum GateKind { GATE_SWISH, GATE_CLIPPED, GATE_SWISH_FIRST, GATE_BOUNDED } GateKind;
typedef struct GateForm {
    GateKind kind;
    float alpha, limit, bias;
} GateForm;

/* y = quantized (gate(a, b) * smooth[g]) with a scale for every row, as us_quantize_rows, or, `fixed`, the integers of
 * gate(a, b) * smooth[g] + offset[g], or of gate(a, b) / smooth[g] + offset[g] if it `divides`. Rows belong to groups: the
 * first g that ends behind them, or `sizes`: in turn as many as sizes[g]; ends that fall back or pass the last row are held,
 * rows behind the last group give 0. Without ends there is one group.
 * a and b are first a * weight[g] * row + bias[g] where these are given; a bias of integers is added before the factors.
 * Views: a, b (of y's shape), smooth? and offset? [G, last size], ends? [G] (int32 or int64), y, scale? (one for each row;
 * written where a scale is found), row? [rows], then for a and for b: weight? and bias? [G or 1, last size]. */
typedef struct QuantizeGated {
    GateForm form;
    bool fixed, packed, sizes, divides;
    Rounding rounding;
} QuantizeGated;
Kernel us_quantize_gated;

/* out = gate(a, b) row by row; a and b are the halves of each row of x, or its even and odd places. Rows from the sum of
 * `sizes` on are 0.
 * Views: x and out, in row-major order `rows` rows each, sizes? (int64). */
typedef struct ClippedGate {
    GateForm form;
    int64_t rows;
    bool interleaved;
} ClippedGate;
Kernel us_clipped_gate;
/* Its gradient by x, of GATE_CLIPPED: with A = min(a, limit), B = b held in -limit … limit, s = sigmoid(alpha * A)
 *   by a  slope * (B + bias) * s * (1 + alpha * A * (1 - s)), 0 where a is above the limit
 *   by b  slope * A * s, 0 where b is not within the limits
 * Rows from the sum of `sizes` on are 0.
 * Views: x, out, sizes? as those of us_clipped_gate, out with the slopes of its numbers; x_gradient, as x, may be x. */
Kernel us_clipped_gate_backward;

#endif
