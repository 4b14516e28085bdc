#include "kernels/arrays/fourier.h"

#include "kernels/maths/maths.h"

#include <string.h>

void us_array_fourier_factors(float *w, int64_t n, bool inverse, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++) {
        /* The angle within its quarter of the circle, so that the axes are met exactly. */
        const int64_t quarter = 4 * k / n;
        const double half_turns = 0.5 * (double)(4 * k - quarter * n) / (double)n;
        const double c = cos_pi_double(half_turns), s = sin_pi_double(half_turns);
        const double real[4] = {c, 0 - s, 0 - c, s}, imaginary[4] = {s, c, 0 - s, 0 - c};
        w[2 * k] = (float)real[quarter];
        w[2 * k + 1] = (float)(inverse ? imaginary[quarter] : 0 - imaginary[quarter]);
    }
}

int us_array_fourier_stages(int64_t n)
{
    int stages = 0;
    while ((INT64_C(1) << stages) < n) {
        stages++;
    }
    return stages;
}

/* Stockham's form, which needs no reordering: numbers i and i + n/2 give numbers 2i - k and 2i - k + span of the next
 * stage, where span doubles from stage to stage and k = i mod span; the difference is multiplied by w[i - k]. */
static void butterflies(const float *from, float *to, const float *w, int64_t n, int64_t span, float scale, int64_t begin,
                        int64_t end)
{
    while (begin < end) {
        const int64_t k = begin % span;
        const int64_t stop = begin - k + span < end ? begin - k + span : end;
        const float real = w[2 * (begin - k)], imaginary = w[2 * (begin - k) + 1], negative = -imaginary;
        const float *first = from + 2 * begin, *second = from + 2 * begin + n;
        float *sum = to + 2 * (2 * begin - k), *difference = sum + 2 * span;
        for (int64_t i = 0; i < 2 * (stop - begin); i += 2) {
            const float x = first[i] - second[i], y = first[i + 1] - second[i + 1];
            sum[i] = (first[i] + second[i]) * scale;
            sum[i + 1] = (first[i + 1] + second[i + 1]) * scale;
            /* Sums on both sides: of a difference beside a sum GCC 12 makes a fused vfmaddsub, whatever -ffp-contract
             * says, and then the bits depend on where a slice ends. */
            difference[i] = (x * real + y * negative) * scale;
            difference[i + 1] = (y * real + x * imaginary) * scale;
        }
        begin = stop;
    }
}

void us_array_fourier_butterflies(const ArrayFourier *work, int64_t row, int stage, int64_t begin, int64_t end)
{
    const int64_t start = 2 * row * work->n;
    float *const targets[2] = {work->out + start, work->tmp + start};
    const int left = work->stages - 1 - stage;
    const float *from = stage == 0 ? work->in + start : targets[(left + 1) % 2];
    const float scale = left == 0 ? work->scale : 1;
    butterflies(from, targets[left % 2], work->w, work->n, INT64_C(1) << stage, scale, begin, end);
}

void us_array_fourier_rows(const ArrayFourier *work, int64_t begin, int64_t end)
{
    for (; begin < end; begin++) {
        for (int stage = 0; stage < work->stages; stage++) {
            us_array_fourier_butterflies(work, begin, stage, 0, work->n / 2);
        }
        if (work->stages == 0) {
            memcpy(work->out + 2 * begin, work->in + 2 * begin, 2 * sizeof(float));
        }
    }
}
