/* Sums over neighbouring elements of a line, in LANES parts so that the order does not depend on the instruction set. */
#ifndef UNDERSTUDY_LINE_SUMS_H
#define UNDERSTUDY_LINE_SUMS_H

#include <stdbool.h>
#include <stdint.h>

/* Of x - center: powers that are multiples of 1/2 by products and a root. */
typedef enum Term { TERM_VALUE, TERM_SQUARE, TERM_MAGNITUDE, TERM_HALVES, TERM_POWER } Term;

/* Adds the terms of `count` elements, which are float64 where they are `wide` and float32 elsewhere. */
void us_add_terms(double *sums, const void *x, int64_t count, bool wide, Term term, double center, double power);

#endif
