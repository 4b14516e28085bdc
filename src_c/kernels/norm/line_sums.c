#include "kernels/norm/line_sums.h"

#include "kernels/maths/maths.h"
#include "tensor/levels.h"

#include <math.h>
#include <string.h>

#include "kernels/norm/vectors.inc"

US_ALWAYS_INLINE Doubles term_of(Doubles values, Term term, double power)
{
    if (term == TERM_VALUE) {
        return values;
    }
    if (term == TERM_SQUARE) {
        return values * values;
    }
    const Doubles sizes = sizes_of_doubles(values);
    if (term == TERM_HALVES) {
        const int whole = (int)power;
        Doubles product = power != whole ? roots_of_doubles(sizes) : (Doubles){0} + 1;
        for (int k = 0; k < whole; k++) {
            product *= sizes;
        }
        return product;
    }
    return sizes;
}

US_ALWAYS_INLINE void raise(Doubles *sizes, double power)
{
    double raised[LANES];
    memcpy(raised, sizes, sizeof raised);
    for (int k = 0; k < LANES; k++) {
        raised[k] = raised[k] > 0 ? exp_double(power * log_double(raised[k])) : raised[k];
    }
    memcpy(sizes, raised, sizeof raised);
}

/* What LANES elements add. */
US_ALWAYS_INLINE void add_lanes(Doubles *sums, const void *x, bool wide, Term term, double center, double power)
{
    Doubles values[VECTORS];
    if (!wide) {
        widen(values, x);
    }
#pragma GCC unroll 8
    for (int k = 0; k < VECTORS; k++) {
        if (wide) {
            memcpy(&values[k], (const double *)x + k * WIDTH, sizeof values[k]);
        }
        values[k] = term_of(values[k] - center, term, power);
    }
    if (term == TERM_POWER) {
        raise(values, power);
    }
#pragma GCC unroll 8
    for (int k = 0; k < VECTORS; k++) {
        sums[k] += values[k];
    }
}

/* The last elements come filled up with the center, which adds nothing. */
US_ALWAYS_INLINE void add_of(double *sums, const void *x, int64_t count, bool wide, Term term, double center, double power)
{
    Doubles parts[VECTORS];
#pragma GCC unroll 8
    for (int k = 0; k < VECTORS; k++) {
        memcpy(&parts[k], sums + k * WIDTH, sizeof parts[k]);
    }
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const void *from = wide ? (const void *)((const double *)x + i) : (const void *)((const float *)x + i);
        add_lanes(parts, from, wide, term, center, power);
    }
    if (i < count) {
        double rest[LANES];
        for (int k = 0; k < LANES; k++) {
            rest[k] = i + k >= count ? center : wide ? ((const double *)x)[i + k] : (double)((const float *)x)[i + k];
        }
        add_lanes(parts, rest, true, term, center, power);
    }
#pragma GCC unroll 8
    for (int k = 0; k < VECTORS; k++) {
        memcpy(sums + k * WIDTH, &parts[k], sizeof parts[k]);
    }
}

void us_add_terms(double *sums, const void *x, int64_t count, bool wide, Term term, double center, double power)
{
    if (term == TERM_VALUE && !wide) {
        add_of(sums, x, count, false, TERM_VALUE, center, power);
    } else if (term == TERM_SQUARE && !wide) {
        add_of(sums, x, count, false, TERM_SQUARE, center, power);
    } else if (term == TERM_HALVES && !wide && power == 3) {
        add_of(sums, x, count, false, TERM_HALVES, center, 3);
    } else if (term == TERM_HALVES && !wide) {
        add_of(sums, x, count, false, TERM_HALVES, center, power);
    } else {
        add_of(sums, x, count, wide, term, center, power);
    }
}
