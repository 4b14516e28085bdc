/* Arrays that grow. */
#ifndef UNDERSTUDY_GROW_H
#define UNDERSTUDY_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The array with room behind its `count` elements of `size` bytes: itself, or moved, with twice the capacity. NULL: no
 * memory, and the array is as before. */
static inline void *us_grown(void *array, size_t count, size_t *capacity, size_t size)
{
    enum { FIRST_CAPACITY = 8 };
    if (count < *capacity) {
        return array;
    }
    const size_t wanted = *capacity == 0 ? FIRST_CAPACITY : 2 * *capacity;
    void *grown = wanted <= SIZE_MAX / size ? realloc(array, wanted * size) : NULL;
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}

#endif
