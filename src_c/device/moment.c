#include "device/moment.h"

#include <stdlib.h>

uint64_t us_moment_reached(const Moment *moment, size_t place)
{
    return moment != NULL && place < moment->count ? moment->reached[place] : 0;
}

Moment *us_moment_hold(Moment *moment)
{
    if (moment != NULL) {
        moment->references++;
    }
    return moment;
}

void us_moment_let_go(Moment *moment)
{
    if (moment != NULL && --moment->references == 0) {
        free(moment);
    }
}

bool us_moment_includes(const Moment *later, const Moment *earlier)
{
    for (size_t i = 0; earlier != NULL && i < earlier->count; i++) {
        if (earlier->reached[i] > us_moment_reached(later, i)) {
            return false;
        }
    }
    return earlier == NULL || !earlier->unknown || (later != NULL && later->unknown);
}

Moment *us_moment_combine(const Moment *first, const Moment *second, size_t count)
{
    size_t counts[] = {first != NULL ? first->count : 0, second != NULL ? second->count : 0};
    count = counts[0] > count ? counts[0] : count;
    count = counts[1] > count ? counts[1] : count;
    Moment *made = malloc(sizeof *made + count * sizeof *made->reached);
    if (made != NULL) {
        made->references = 1;
        made->unknown = (first != NULL && first->unknown) || (second != NULL && second->unknown);
        made->count = count;
        for (size_t i = 0; i < count; i++) {
            uint64_t a = us_moment_reached(first, i), b = us_moment_reached(second, i);
            made->reached[i] = a > b ? a : b;
        }
    }
    return made;
}

void us_moment_advance(Moment **moment, const Moment *other)
{
    if (us_moment_includes(*moment, other)) {
        return;
    }
    Moment *made = us_moment_combine(*moment, other, 0);
    if (made != NULL) {
        us_moment_let_go(*moment);
        *moment = made;
    }
}
