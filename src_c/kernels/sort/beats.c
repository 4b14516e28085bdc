#include "kernels/sort/beats.h"

bool us_one_beats(const double *elements, int64_t count, double sign, double worst)
{
    int found = 0;
    for (int64_t k = 0; k < count; k++) {
        found |= sign * elements[k] > worst || elements[k] != elements[k];
    }
    return found != 0;
}
