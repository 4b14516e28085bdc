/* Convolutions over one to three spatial axes, and their gradients. For every vendor: strides of the views say the
 * layout (channels first, channels last, anything else), types are mixed freely.
 *
 *   x  [N, C, space…]      w  [K, C / groups, taps…]      y  [N, K, space…]
 *   y[n,k,o]  = sum over c, t of  w[k,c,t] * x[n, (k / Kg) * Cg + c, o * stride - padding + t * dilation]
 *   dx, dw    its gradients by x and w
 *
 * with Cg = C / groups and Kg = K / groups. Taps outside x do not count, whatever the weight is. The views' sizes
 * decide everything else: padding is the one before the first element, what is behind the last follows from y's size;
 * positions of dx that no window reaches get 0. So a transposed convolution is us_conv_backward_data of x as dy, with
 * w as it is ([C, K / groups, taps…]) and the output's size, output padding included, in the output view.
 *
 * float16, bfloat16 and float32 data are multiplied and added in float32, float64 in float64, integers exactly (sums
 * below 2^53). Then, in float32 (float64 where the output is),
 *   dst = alpha * sum + beta * dst + addend_scale * addend + bias, and the larger of it and 0 with `relu`,
 * is rounded once, to nearest even, and saturates in integers. dst is read only if beta is not 0, the addend only if
 * its factor is not 0. Results are the same for any number of threads.
 *
 * Sums of products are rounded like sums of all terms. Winograd's method rounds maps of patches instead, so its error
 * is bounded by the largest values of a patch of 4 x 4 (16-bit results: 6 x 6), not by each term: see winograd.c.
 *
 * Outputs may not share memory with x, dy or w, nor lie over themselves; the addend may be the output. */
#ifndef UNDERSTUDY_CONV_H
#define UNDERSTUDY_CONV_H

#include "kernels/kernels.h"

enum { CONV_AXES = 3 };

/* How the sums are formed. Every method gives the same sums up to rounding. The last one is for float32, float16 and
 * bfloat16 data, 3 taps along each of the last two axes (1 along a third), stride 1 and dilation 1; a problem that it
 * does not take, or for which it needs much memory (filters of 18 million weights and more, rows of many thousand
 * elements), goes as with CONV_PLAIN, and so do data with infinities, NaN or values whose sums could overflow. */
typedef enum ConvMethod {
    CONV_ANY,      /* whichever is fastest */
    CONV_PRODUCT,  /* a matrix product over gathered columns */
    CONV_DIRECT,   /* loops over rows, without columns */
    CONV_PLAIN,    /* the faster of these two */
    CONV_WINOGRAD, /* Winograd's filtering of small tiles */
} ConvMethod;

/* Whether Winograd's method is expected to be the fastest where it can be taken: the operands' type, whether it is the
 * filter's gradient, channels and results of a group, result positions of all images. */
bool us_conv_winograd_pays(DType dtype, bool slopes, int64_t channels, int64_t results, int64_t positions);

typedef struct Convolution {
    int32_t axes;                                                  /* spatial axes: 1 to CONV_AXES */
    int64_t stride[CONV_AXES], padding[CONV_AXES], dilation[CONV_AXES]; /* of those axes, outermost first */
    int64_t groups;
    bool mirrored; /* the taps are taken in reverse order: convolution in the mathematical sense */
    ConvMethod method;
    bool relu;
    double alpha, beta, addend_scale;
} Convolution;

/* Views have rank axes + 2. A bias has the shape [channels of the output], an addend that of the output. */
Kernel us_conv_forward;         /* x, w, bias?, addend?, y */
Kernel us_conv_backward_data;   /* dy, w, bias?, addend?, dx */
Kernel us_conv_backward_filter; /* x, dy, dw */

/* The column matrix of the forward product: row c * taps + t, column n * positions + o, zeros for taps outside x. */
typedef struct ConvColumns {
    Convolution conv;
    int64_t taps[CONV_AXES], positions[CONV_AXES]; /* sizes of the filter and of the result */
} ConvColumns;
Kernel us_conv_columns; /* x, columns [C * taps, N * positions] */

#endif
