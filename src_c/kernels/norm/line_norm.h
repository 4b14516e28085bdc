/* Normalization of lines: groups of elements that share a mean and a variance, or a p-norm. Instance, group, layer and lp
 * normalization are this with different lines and parameters. Computed in float64, types of 16 bits in
 * float32, and rounded once. */
#ifndef UNDERSTUDY_LINE_NORM_H
#define UNDERSTUDY_LINE_NORM_H

#include "kernels/kernels.h"

/* Line l = b * block_lines + k begins at element b * block_step + k * line_step and has `rows` rows, row_step apart, of
 * `run` elements that follow each other. y = (x - mean) / sqrt(variance + epsilon) * scale + offset; with a power p
 * y = x / (sum |x|^p + epsilon)^(1/p) * scale + offset. The variance is that of the population. */
typedef struct LineNorm {
    const void *x;
    void *y; /* may be x */
    DType dtype; /* of x, y, scale, offset: not complex */
    int64_t lines, block_lines, block_step, line_step;
    int64_t rows, row_step, run;
    double epsilon, power; /* 0: mean and variance */
    /* Parameters: NULL is 1 and 0. Line l, element i of a row: index l / line_divisor % period * stride, plus i when
     * by_element. */
    const void *scale, *offset;
    int64_t line_divisor, period, stride;
    bool by_element;
    void *means, *variances; /* one per line, of type `statistics`; may be NULL */
    DType statistics;
} LineNorm;

KernelStatus us_line_norm(const LineNorm *norm);

#endif
