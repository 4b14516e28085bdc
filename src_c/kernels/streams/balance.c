#include "kernels/streams/balance.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"

enum { MATRIX_LIMIT = STREAM_LIMIT * STREAM_LIMIT };

static int64_t place(const Balance *balance, int64_t step, int64_t token)
{
    return (step * balance->tokens + token) * balance->streams;
}

static void keep(const Balance *balance, int64_t step, int64_t token, const float *mix, const float *sums)
{
    if (!us_view_is_absent(balance->matrices)) {
        const int64_t n = balance->streams, at = place(balance, step, token);
        us_linear_store_float(balance->matrices, at * n, n * n, mix);
        us_linear_store_float(balance->sums, at, n, sums);
    }
}

/* Which sum the number of a matrix belongs to: odd steps add columns up. */
static int64_t line_of(int64_t step, int64_t i, int64_t j)
{
    return step % 2 != 0 ? j : i;
}

void us_balance(const Balance *balance, int64_t token, float *mix)
{
    const int64_t n = balance->streams;
    for (int64_t i = 0; i < n; i++) {
        float *row = mix + i * n;
        const float maximum = attention_scale(row, n, 1, NULL, 0);
        attention_multiply(row, n, 1 / attention_exponentials(row, n, maximum));
        for (int64_t j = 0; j < n; j++) {
            row[j] += balance->epsilon;
        }
    }
    keep(balance, 0, token, mix, (const float[STREAM_LIMIT]){0});
    for (int64_t step = 1; step < 2 * balance->iterations; step++) {
        float sums[STREAM_LIMIT] = {0};
        for (int64_t at = 0; at < n * n; at++) {
            sums[line_of(step, at / n, at % n)] += mix[at];
        }
        for (int64_t k = 0; k < n; k++) {
            sums[k] += balance->epsilon;
        }
        for (int64_t at = 0; at < n * n; at++) {
            mix[at] /= sums[line_of(step, at / n, at % n)];
        }
        keep(balance, step, token, mix, sums);
    }
}

void us_balance_backward(const Balance *balance, int64_t token, float *slopes)
{
    const int64_t n = balance->streams;
    float mix[MATRIX_LIMIT], sums[STREAM_LIMIT];
    for (int64_t step = 2 * balance->iterations - 1; step >= 0; step--) {
        const int64_t begin = place(balance, step, token);
        float pulls[STREAM_LIMIT] = {0};
        us_linear_load_float(balance->matrices, begin * n, n * n, mix);
        us_linear_load_float(balance->sums, begin, n, sums);
        for (int64_t at = 0; at < n * n; at++) {
            pulls[line_of(step, at / n, at % n)] += slopes[at] * mix[at];
        }
        for (int64_t at = 0; at < n * n; at++) {
            const int64_t line = line_of(step, at / n, at % n);
            slopes[at] -= pulls[line];
            slopes[at] = step == 0 ? slopes[at] * mix[at] : slopes[at] / sums[line];
        }
    }
}
