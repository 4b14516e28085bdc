/* The factors of a discrete Fourier transform.
 *
 * w[k] = exp(-2 pi i k / n) for direction 0 (c64_fft), exp(2 pi i k / n) for direction 1 (c64_ifft); k = 0 … n-1.
 * Complex elements: real and imaginary part in turn.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2. */
#ifndef GETW_H
#define GETW_H

#ifdef __cplusplus
extern "C" {
#endif

void c64_getw_s(float *w, int n, int direction, int core_mask);
void c64_getw_p(float *w, int n, int direction);

#ifdef __cplusplus
}
#endif

#endif
