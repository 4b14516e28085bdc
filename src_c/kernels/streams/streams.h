/* Residual streams that are mixed before and after a layer: manifold-constrained hyper-connections. Every token has N streams of
 * D numbers. In float32, sums along D in double; results are rounded once. The same bits for any number of threads. */
#ifndef UNDERSTUDY_STREAMS_H
#define UNDERSTUDY_STREAMS_H

#include "kernels/kernels.h"

enum { STREAM_LIMIT = 8, MIX_LIMIT = STREAM_LIMIT * (STREAM_LIMIT + 2) /* numbers that a token's mixing has */ };

/* out[j] = the sum over i of mix[i, j] * x[i], + weights[j] * layer.
 * views: x [tokens…, N, D], mix [tokens…, N, N], layer [tokens…, D], weights [tokens…, N], out as x. */
Kernel us_mix_streams;

/* Its gradients. views: dout and x as x, mix, layer, weights, then dx, dmix, dlayer and dweights. */
Kernel us_mix_streams_backward;

typedef struct ReadStreams {
    double norm_epsilon, epsilon;
    bool has_mix; /* alpha has three numbers; else there is no mix, and epsilon counts for the weights as well */
    int64_t iterations; /* that balance the mix; 0: it is left as it is */
} ReadStreams;

/* inverse = 1 / sqrt(mean of x^2 + norm_epsilon), product = (x gamma) phi^T over the N D numbers of a token, and of its parts,
 * the first two of N numbers: read = sigmoid(inverse product alpha[0] + bias) + epsilon, weights = 2 sigmoid(inverse product
 * alpha[1] + bias), mix = inverse product alpha[2] + bias. layer = the sum over i of read[i] * x[i].
 * views: x [tokens…, N, D], phi [K, N D], alpha, bias [K], gamma? [N, D], layer [tokens…, D], weights [tokens…, N], mix?, of
 * K - 2 N numbers for each token or, without a mix, of any number of zeros, inverse? [tokens…], product? [tokens…, K], read?
 * [tokens…, N]; where the mix is balanced, of every step matrices? [2 iterations, tokens…, N, N] and sums? [2 iterations,
 * tokens…, N], by epsilon: step 0 is the softmax of rows + epsilon, odd steps divide by the sums of columns + epsilon, even ones
 * of rows. */
Kernel us_read_streams;

typedef struct ReadStreamsBackward {
    float epsilon;
    int64_t iterations;
} ReadStreamsBackward;

/* Its gradients where there is a mix.
 * views: x, phi, alpha, dlayer, dweights, dmix, inverse, product, read, weights (where the mix is balanced: bias), gamma?, more?
 * as x, matrices? and sums? of the balanced mix, then dx = the gradient + more, dphi, dalpha, dbias and dgamma?. */
Kernel us_read_streams_backward;

typedef struct WeighBlocks {
    double epsilon;
} WeighBlocks;

/* Attention of residuals: of a token's rows, which are its blocks and last the partial one, the inverse = 1 / sqrt(mean of row^2
 * + epsilon), the probabilities = softmax(inverse * the sum of row * projection * norm), out = the sum of rows by probabilities.
 * views: partial [tokens, D], blocks [tokens, N, D], projection and norm [D], out as the partial block, inverse? and
 * probabilities? [tokens, N + 1]. */
Kernel us_weigh_blocks;

/* Its gradients. views: partial, blocks, projection, norm, dout, inverse, probabilities, then dpartial, dblocks, dprojection and
 * dnorm. */
Kernel us_weigh_blocks_backward;

#endif
