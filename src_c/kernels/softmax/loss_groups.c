#include "kernels/softmax/loss_groups.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <string.h>

/* Elements of the rows that are handled at once; bytes of a vector; parts of a maximum. */
enum { GROUP_ELEMENTS = 1024, VECTOR_BYTES = 64, PARTS = 16 };

/* Where the next rows lie; they are fetched while powers and losses are computed. */
typedef struct Next {
    const char *read[2], *written[2];
    int64_t size, count; /* of an element; how many there are */
} Next;

/* The rows as float32. */
typedef struct Group {
    const float *x, *labels, *tops;
    float *probabilities, *gradients;
    Next next;
} Group;

/* What is read, or, `writes`, what is written: half of it each in two loops, as much as a core can wait for. */
US_ALWAYS_INLINE void fetch_next(const Next *next, int64_t first, int64_t count, bool writes)
{
    const int64_t end = (first + count < next->count ? first + count : next->count) * next->size;
    for (int64_t byte = first * next->size; byte < end; byte += CACHE_LINE_BYTES) {
        for (int k = 0; k < 2; k++) {
            if (writes) {
                __builtin_prefetch((const void *)((uintptr_t)next->written[k] + (uintptr_t)byte), 1);
            } else {
                __builtin_prefetch((const void *)((uintptr_t)next->read[k] + (uintptr_t)byte), 0);
            }
        }
    }
}

/* e^x for x <= 0 and NaN with a relative error below 2^-37, enough where the result is rounded to float32: a fit of
 * degree 8 at the Chebyshev nodes of +- ln(2)/2. Below -110 it is e^-110, which float32 rounds to 0. */
US_ALWAYS_INLINE double power_of_double(double x)
{
    const double rounder = 0x1.8p52, bounded = x < -110 ? -110 : x;
    const double shifted = fma_double(bounded, 0x1.71547652b82fep+0, rounder);
    const double r = fma_double(rounder - shifted, 0x1.62e42fefa39efp-1, bounded), r2 = r * r;
    const double low = fma_double(fma_double(0x1.1110c632a3088p-7, r, 0x1.5555555c87148p-5), r2,
                                  fma_double(0x1.55555567532adp-3, r, 0.5));
    const double high = fma_double(0x1.a1132015ba37ep-16, r2, fma_double(0x1.a15179d80ae96p-13, r, 0x1.6c16858b7acb9p-10));
    const double power = 1 + fma_double(fma_double(high, r2 * r2, low), r2, r);
    return power * bits_double((double_bits(shifted) << 52) + double_bits(1));
}

/* e^x for x <= 0 and NaN as exp_float gives it down to -87; below, e^-87, which float16 rounds to 0. */
US_ALWAYS_INLINE float power_of_float(float x)
{
    float r;
    const uint32_t n = exp_reduce_float(x < -87 ? -87 : x, &r);
    return (1 + exp_polynomial_float(r)) * power_of_two_float(n);
}

#define LOOPS "kernels/softmax/loss_groups.inc"
#include "kernels/registers.inc"

/* ---- the largest of every row ---- */

enum { MAXIMA = PARTS / LANES_OF_float };

US_ALWAYS_INLINE Vector_float larger(Vector_float a, Vector_float b)
{
    const Places_float is_larger = b > a;
    return (Vector_float)((is_larger & (Places_float)b) | (~is_larger & (Places_float)a));
}

/* A NaN is not the largest. Which maximum sees an element does not change the result. */
US_ALWAYS_INLINE float largest_of(const float *x, int64_t count)
{
    Vector_float tops[MAXIMA];
    int64_t i = 0;
#pragma GCC unroll 4
    for (int v = 0; v < MAXIMA; v++) {
        tops[v] = (Vector_float){0} - INFINITY;
    }
    for (; i + PARTS <= count; i += PARTS) {
#pragma GCC unroll 4
        for (int v = 0; v < MAXIMA; v++) {
            tops[v] = larger(tops[v], *(const Vector_float *)(x + i + v * LANES_OF_float));
        }
    }
#pragma GCC unroll 4
    for (int v = 1; v < MAXIMA; v++) {
        tops[0] = larger(tops[0], tops[v]);
    }
    tops[0] = LANES_OF_float > 8 ? larger(tops[0], across_float(tops[0], 8)) : tops[0];
    tops[0] = LANES_OF_float > 4 ? larger(tops[0], across_float(tops[0], 4)) : tops[0];
    tops[0] = larger(tops[0], across_float(tops[0], 2));
    float top = larger(tops[0], across_float(tops[0], 1))[0];
    for (; i < count; i++) {
        top = x[i] > top ? x[i] : top;
    }
    return top;
}

static void find_tops(const float *x, int64_t rows, int64_t classes, float *tops)
{
    for (int64_t row = 0; row < rows; row++) {
        tops[row] = largest_of(x + row * classes, classes);
    }
}

int64_t us_group_rows(const RowLosses *work)
{
    const bool is_known = work->dtype == DTYPE_FLOAT32 || work->dtype == DTYPE_FLOAT16;
    const bool is_one_type = is_known && work->result == work->dtype && work->label_dtype == work->dtype;
    return is_one_type && work->inner == 1 && work->labels && work->classes > 0 ? GROUP_ELEMENTS / work->classes : 0;
}

static void *element(const void *data, DType dtype, int64_t index)
{
    return (char *)data + index * (int64_t)us_dtype_size(dtype);
}

void us_group_losses(const RowLosses *work, int64_t first, int64_t rows, double *losses)
{
    float tiles[4][GROUP_ELEMENTS], tops[GROUP_ELEMENTS];
    const int64_t at = first * work->classes, count = rows * work->classes;
    Group group = {tiles[0], tiles[1], tops, tiles[2], tiles[3], {.size = (int64_t)us_dtype_size(work->dtype)}};
    group.next.count = work->outer * work->classes - at - count;
    group.next.read[0] = element(work->logits, work->dtype, at + count);
    group.next.read[1] = element(work->labels, work->dtype, at + count);
    group.next.written[0] = element(work->probabilities ? work->probabilities : work->logits, work->dtype, at + count);
    group.next.written[1] = element(work->gradients ? work->gradients : work->logits, work->dtype, at + count);
    if (work->dtype == DTYPE_FLOAT16) {
        us_load_float(tiles[0], element(work->logits, work->dtype, at), work->dtype, 1, count);
        us_load_float(tiles[1], element(work->labels, work->dtype, at), work->dtype, 1, count);
        find_tops(group.x, rows, work->classes, tops);
        run_group_float(&group, rows, work->classes, losses);
        if (work->probabilities) {
            us_store_float(element(work->probabilities, work->dtype, at), work->dtype, 1, tiles[2], count);
        }
        if (work->gradients) {
            us_store_float(element(work->gradients, work->dtype, at), work->dtype, 1, tiles[3], count);
        }
        return;
    }
    group.x = (const float *)work->logits + at;
    group.labels = (const float *)work->labels + at;
    group.probabilities = work->probabilities ? (float *)work->probabilities + at : tiles[2];
    group.gradients = work->gradients ? (float *)work->gradients + at : tiles[3];
    find_tops(group.x, rows, work->classes, tops);
    run_group_double(&group, rows, work->classes, losses);
}
