/* Counts of references to objects that many threads share. An object ends when its count reaches 0, once: from then on nobody
 * takes another reference, even when its memory is still there (grace.h). */
#ifndef UNDERSTUDY_REFERENCE_H
#define UNDERSTUDY_REFERENCE_H

#include <stdatomic.h>
#include <stdbool.h>

typedef _Atomic int References;

/* False: the object has ended. */
static inline bool us_reference_take(References *count)
{
    int known = atomic_load(count);
    while (known > 0 && !atomic_compare_exchange_weak(count, &known, known + 1)) {
    }
    return known > 0;
}

/* True: this was the last reference, and the caller ends the object. */
static inline bool us_reference_drop(References *count)
{
    return atomic_fetch_sub(count, 1) == 1;
}

#endif
