/* Discrete Fourier transforms of any length. */
#ifndef UNDERSTUDY_FOURIER_H
#define UNDERSTUDY_FOURIER_H

#include "kernels/kernels.h"

/* out[row, w, m] = scale * the sum over k of window[k - before] * signal[row, m * hop + k] * exp(-2 pi i w k / points), for
 * the k of the window, from `before` to before + width - 1; the signal is 0 behind its end. Computed in float64, by factors of
 * `points` (of half of them where numbers are real and can be halved): 4, then 2, then the others from the least on; rounded
 * once.
 * Views, of real elements: signal [..., length, parts]; window [width, parts], or absent, which is 1; parts are 1 or 2: real,
 * or real and imaginary; out [..., frequencies, frames, 2] with no more frequencies than points. */
typedef struct Fourier {
    int64_t points, hop;
    int64_t before, width; /* the window's place among the points */
    double scale;
} Fourier;
Kernel us_fourier;

#endif
