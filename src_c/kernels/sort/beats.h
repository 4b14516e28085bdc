/* Whether a search for the best of a line has to look at elements one by one. */
#ifndef UNDERSTUDY_SORT_BEATS_H
#define UNDERSTUDY_SORT_BEATS_H

#include <stdbool.h>
#include <stdint.h>

/* One of the elements is NaN, or sign times it is above `worst`. */
bool us_one_beats(const double *elements, int64_t count, double sign, double worst);

#endif
