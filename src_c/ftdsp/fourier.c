/* Fourier transforms and their factors (ft-dsp 5.1, in their later forms). */
#include "ftdsp/operators.h"
#include "ftdsp/shape.h"
#include "kernels/arrays/fourier.h"

enum { GRAIN = 1024 };

typedef struct Factors {
    float *w;
    int64_t n;
    bool inverse;
} Factors;

static void run_factors(void *context, int64_t begin, int64_t end)
{
    const Factors *work = context;
    us_array_fourier_factors(work->w, work->n, work->inverse, begin, end);
}

void ft_getw(FtCall *call, float *w, int n, int direction)
{
    ft_length(call, "n", n);
    ft_require(call, direction == 0 || direction == 1, "direction", "range", FT_BAD_ATTRIBUTE,
               "direction is %d; 0 is forward, 1 inverse", direction);
    ft_operand(call, "w", w, n, call->dtype);
    if (ft_ok(call)) {
        Factors work = {w, n, direction == 1};
        ft_split(call, n, GRAIN, run_factors, &work);
    }
}

static void check(FtCall *call, const ArrayFourier *work, int64_t count)
{
    const int64_t size = (int64_t)us_dtype_size(call->dtype), bytes = count * size, factors = work->n * size;
    ft_operand(call, "in", work->in, count, call->dtype);
    ft_operand(call, "w", work->w, work->n, call->dtype);
    ft_operand(call, "out", work->out, count, call->dtype);
    ft_operand(call, "tmp", work->tmp, 2 * count, call->dtype);
    ft_apart(call, "out", work->out, bytes, "in", work->in, bytes);
    ft_apart(call, "out", work->out, bytes, "w", work->w, factors);
    ft_apart(call, "tmp", work->tmp, 2 * bytes, "in", work->in, bytes);
    ft_apart(call, "tmp", work->tmp, 2 * bytes, "w", work->w, factors);
    ft_apart(call, "tmp", work->tmp, 2 * bytes, "out", work->out, bytes);
}

static void run_rows(void *context, int64_t begin, int64_t end)
{
    us_array_fourier_rows(context, begin, end);
}

typedef struct Stage {
    const ArrayFourier *work;
    int number;
} Stage;

static void run_butterflies(void *context, int64_t begin, int64_t end)
{
    const Stage *stage = context;
    us_array_fourier_butterflies(stage->work, 0, stage->number, begin, end);
}

static void transform(FtCall *call, ArrayFourier *work, int batch, int n)
{
    ft_length(call, "batch", batch);
    ft_length(call, "n", n);
    ft_require(call, (n & (n - 1)) == 0, "n", "power-of-two", FT_BAD_SIZE, "n is %d, which is no power of 2", n);
    const int64_t count = (int64_t)batch * n;
    ft_require(call, count <= FT_ELEMENT_LIMIT, "batch", "overflow", FT_BAD_SIZE,
               "%d rows of %d: more elements than any memory holds", batch, n);
    if (!ft_ok(call) || count == 0) {
        return;
    }
    work->n = n;
    work->stages = us_array_fourier_stages(n);
    check(call, work, count);
    if (!ft_ok(call)) {
        return;
    }
    if (batch > 1 || work->stages == 0) {
        ft_split(call, batch, 1, run_rows, work);
        return;
    }
    for (int stage = 0; stage < work->stages; stage++) { /* one row: the cores share each stage */
        Stage one = {work, stage};
        ft_split(call, n / 2, GRAIN, run_butterflies, &one);
    }
}

void ft_fft(FtCall *call, const float *in, const float *w, float *out, int batch, int n, float *tmp)
{
    ArrayFourier work = {.in = in, .w = w, .out = out, .tmp = tmp, .scale = 1};
    transform(call, &work, batch, n);
}

void ft_ifft(FtCall *call, const float *in, const float *w, float *out, int batch, int n, float *tmp)
{
    ArrayFourier work = {.in = in, .w = w, .out = out, .tmp = tmp, .scale = n > 0 ? 1 / (float)n : 0};
    transform(call, &work, batch, n);
}
