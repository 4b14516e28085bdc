/* Inverse discrete Fourier transform of each of `batch` rows.
 *
 * out[j] = sum over k of in[k] * w[j k mod n] / n, for rows of n complex numbers; n is a power of two. w comes from
 * c64_getw with direction 1. tmp: working memory of 2 * batch * n complex numbers. out and tmp overlap nothing.
 * Complex elements: real and imaginary part in turn.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2. */
#ifndef IFFT_H
#define IFFT_H

#ifdef __cplusplus
extern "C" {
#endif

void c64_ifft_s(float *in, float *w, float *out, int batch, int n, float *tmp, int core_mask);
void c64_ifft_p(float *in, float *w, float *out, int batch, int n, float *tmp);

#ifdef __cplusplus
}
#endif

#endif
